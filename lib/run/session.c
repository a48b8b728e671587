/* session.c - see session.h. Order: settings are checked first, because that costs nothing; then
 * checkpoint and prompts are read; then device, output and memory for the weights are opened. If
 * the weights do not fit, the run continues without them: its records say oom. */
#include "lib/run/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/cpus.h"
#include "lib/base/file.h"
#include "lib/base/resident.h"
#include "lib/network/latent.h"
#include "lib/record/resume.h"

void session_worse(struct session *session, int code)
{
    if (code > session->worst) /* order: 0, failed records, no good prompt, internal */
        session->worst = code;
}

int session_stopped(const struct session *session)
{
    return session->job->stop && *session->job->stop;
}

/* If `config` is NULL, the model is not known yet. */
static int check_points(const struct job *job, const struct config *config, struct err *e)
{
    const struct decoder *decoder = job->decoder;
    int bad = 0;
    for (size_t i = 0; i < job->plan->points && !bad; i++) {
        const struct settings *point = &job->plan->point[i];
        bad = !config          ? settings_check(point, e)
              : decoder->check ? decoder->check(point, config, e)
                               : 0;
    }
    return bad;
}

/* Reads --party K/N: this process is party K of N. Without --turns and --party N is 1. */
static int read_party(const struct job_args *args, size_t *party, size_t *parties, struct err *e)
{
    char end;
    *party = 0;
    *parties = 1;
    if (!args->turns && !args->party)
        return 0;
    int fits = args->party && sscanf(args->party, "%2zu/%2zu%c", party, parties, &end) == 2 &&
               *parties >= 2 && *parties <= TURNS_PARTIES && *party < *parties;
    return fits ? 0
                : err_set(e, EXIT_BAD_USAGE, "--party: expected K/N beside --turns, N from 2 to %d "
                          "and K below N, got '%.20s'", TURNS_PARTIES,
                          args->party ? args->party : "");
}

/* Checks that need only the options. */
static int check_flags(const struct job *job, struct err *e)
{
    const struct job_args *args = job->args;
    if (!args->engine.model)
        return err_set(e, EXIT_BAD_USAGE, "expected -m MODEL (try '%s --help')",
                       job->decoder->tool);
    if (engine_check_device(&args->engine, e) || engine_check_memory(&args->engine, e) ||
        watcher_check(job, e))
        return -1;
    size_t party, parties;
    if (read_party(args, &party, &parties, e))
        return -1;
    if (args->party && !args->turns)
        return err_set(e, EXIT_BAD_USAGE, "--party: expected --turns FILE beside it");
    if (check_points(job, NULL, e))
        return -1;
    for (size_t i = 0; i < job->n_files; i++)
        if (strcmp(args->common.output, "-") && file_same(job->files[i], args->common.output))
            return err_set(e, EXIT_BAD_USAGE, "%s is both input and output", job->files[i]);
    return 0;
}

/* Refuses a model that this decoder does not run; the message names the tool that does. */
static int other_decoder(const struct job *job, const struct checkpoint *model, struct err *e)
{
    const enum paradigm paradigm = model->config.paradigm;
    const char *other = paradigm == PARADIGM_AUTOREGRESSIVE ? "gen-llama"
                        : paradigm == PARADIGM_LATENT       ? "gen-ltm"
                                                            : "gen-llada";
    return err_set(e, EXIT_BAD_DATA, "%s: %s does not run %s models (try %s)",
                   job->args->engine.model, job->decoder->tool,
                   config_paradigm_name(model->config.paradigm), other);
}

/* -1: the device cannot run some point. */
static int check_device(const struct session *session, struct err *e)
{
    const struct job *job = session->job;
    for (size_t i = 0; job->decoder->able && i < job->plan->points; i++)
        if (job->decoder->able(&job->plan->point[i], session->backend, e))
            return -1;
    return 0;
}

/* Sets settings that were not given to those of the model's authors. Under a block-causal mask it
 * also sets cache=exact, and block_length to the block length of the mask, unless the authors fill
 * other blocks. If the mask comes from a name or --mask-block and not from the files, the block
 * length of the mask counts before that of the authors. */
static void suppose_defaults(const struct job *job, const struct config *config)
{
    for (size_t i = 0; i < job->plan->points; i++) {
        struct settings *point = &job->plan->point[i];
        char blocks[64] = "";
        if (!config_denoises(config))
            continue; /* the row holds settings of diffusion */
        if (config->attends_block)
            snprintf(blocks, sizeof blocks, "block_length=%zu cache=exact", config->attends_block);
        settings_suppose(point, config->family->named ? blocks : "");
        settings_suppose(point, config->family->defaults ? config->family->defaults : "");
        settings_suppose(point, blocks);
    }
}

static int open_model(struct session *session, struct err *e)
{
    const struct job *job = session->job;
    struct checkpoint *model = &session->checkpoint;
    if (engine_checkpoint(&job->args->engine, (uint64_t)job->args->common.seed, model,
                          &session->log, e))
        return -1;
    if (job->decoder->paradigms >> PARADIGM_AUTOREGRESSIVE & 1)
        config_write_left_to_right(&model->config);
    if (!(job->decoder->paradigms >> model->config.paradigm & 1))
        return other_decoder(job, model, e);
    suppose_defaults(job, &model->config);
    if (generation_refuses(&model->config, e) || check_points(job, &model->config, e))
        return -1;
    if (job->args->engine.check_finite && checkpoint_check_values(model, e))
        return -1;
    return checkpoint_tokenizer(model, &session->tokenizer, e) ||
                   companion_open(&session->companion, job, model, session->tokenizer,
                                  &session->log, e)
               ? -1
               : 0;
}

/* Adds the variables of the environment that change answers or times of the libraries below. */
static void put_environment(json_t *meta)
{
    static const char *const names[] = {"NVIDIA_TF32_OVERRIDE", "CUDA_LAUNCH_BLOCKING",
                                        "CUDA_DEVICE_MAX_CONNECTIONS", "CUBLAS_WORKSPACE_CONFIG",
                                        "CUBLASLT_HEURISTICS_CACHE_CAPACITY", "GLIBC_TUNABLES"};
    json_t *set = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *value = json_string(getenv(names[i]));
        if (value)
            json_object_set_new(set, names[i], value);
    }
    if (json_object_size(set))
        json_object_set(meta, "environment", set);
    json_decref(set);
}

/* Sets `chat`, the templates of the run: "own,none". */
static void put_templates(const struct session *session, json_t *meta)
{
    struct buf text = {0};
    for (size_t i = 0; i < CHAT_WORDS; i++)
        if (session->chat[i])
            buf_format(&text, "%s%s", text.len ? "," : "", session->chat[i]);
    rec_set_text(meta, "chat", text.data);
    buf_free(&text);
}

/* Returns the fields of the meta record. NULL: a file of the checkpoint cannot be read. */
static json_t *meta_extra(const struct session *session, struct err *e)
{
    json_t *about = checkpoint_describe(&session->checkpoint, e), *companion = NULL;
    if (about && session->job->args->extras.draft)
        companion = checkpoint_describe(&session->companion.checkpoint, e);
    if (!about || (session->job->args->extras.draft && !companion)) {
        json_decref(about);
        return NULL;
    }
    json_t *meta = json_object(), *backend = json_object();
    json_object_set_new(meta, "checkpoint", about);
    if (companion)
        json_object_set_new(meta, "draft_model", companion);
    if (session->job->options) /* the file of --settings, part of the work as the arguments are */
        json_object_set_new(meta, "options", json_deep_copy(session->job->options));
    if (session->job->args->engine.level)
        json_object_set_new(meta, "level", json_string(session->job->args->engine.level));
    json_object_set_new(meta, "tokenizer_sha256",
                        session->tokenizer ? json_string(tokenizer_hash(session->tokenizer))
                                           : json_null());
    json_object_set_new(meta, "prompts_sha256", json_string(session->prompts.in.sha256));
    if (session->latents.file.n)
        json_object_set_new(meta, "latent_file", json_string(session->latents.file.sha256));
    rec_set_int(meta, "prompts", (int64_t)session->prompts.n);
    put_templates(session, meta);
    json_object_set_new(backend, "name", json_string(session->backend->ops->name));
    json_object_set_new(backend, "isa", json_string(session->backend->level));
    json_object_set_new(backend, "library",
                        *session->backend->library ? json_string(session->backend->library)
                                                   : json_null());
    rec_set_int(backend, "threads", (int64_t)pool_threads(session->backend->pool));
    json_object_set_new(meta, "backend", backend);
    rec_set_int(meta, "launch", session->job->plan->launch);
    put_environment(meta);
    return meta;
}

/* Warns of a missing library, which would otherwise look like a slow device. */
static void warn_library(const struct session *session)
{
    if (!strncmp(session->backend->ops->name, "cuda", 4) && !*session->backend->library)
        log_warn(&session->log, "W104",
                 "cuBLASLt was not found: products of many rows run on kernels "
                 "that are several times slower; put libcublasLt.so on LD_LIBRARY_PATH");
}

/* Loads the weights of all networks or of none. On -1 session->network still has its settings. */
static int load_all(struct session *session, struct err *e)
{
    const struct engine *engine = &session->job->args->engine;
    if (!companion_load(&session->companion, session->job, session->backend, e)) {
        int bad = engine_load(engine, &session->network, session->backend, &session->checkpoint, e);
        if (!bad && !companion_agrees(&session->companion, session->backend, e))
            return 0;
        if (!bad)
            network_free(&session->network);
        companion_unload(&session->companion);
        return -1;
    }
    struct err ignored = {0};
    engine_settle(engine, &session->network, session->backend, &session->checkpoint, &ignored);
    return -1;
}

/* Predicts again by the speed of the filled store, which may differ from the trial. A store of keys
 * and values is filled in each pass, so it is not measured. */
static void settle_slowdown(struct session *session)
{
    for (size_t i = 0;
         session->slowdown && session->network.offload && i < session->job->plan->points; i++) {
        double said = session->slowdown[i].ratio;
        slowdown_settle(&session->slowdown[i], &session->network);
        if (fabs(session->slowdown[i].ratio - said) > said / 10)
            slowdown_say(&session->slowdown[i], &session->network, &session->log);
    }
}

static int open_prior(struct session *session, struct err *e)
{
    const struct job *job = session->job;
    return job->decoder->open_prior
               ? job->decoder->open_prior(&session->latents, job->plan->point, job->plan->points,
                                          session->checkpoint.folder, &session->checkpoint.config,
                                          session->backend, e)
               : 0;
}

/* Reads --z-file, which must hold latents of every prompt. */
static int open_latents(struct session *session, struct err *e)
{
    const char *path = session->job->args->extras.z_file;
    struct latent_file *file = &session->latents.file;
    session->latents.keep = session->job->args->extras.keep_latents;
    session->own.latents = &session->latents;
    if (!path)
        return 0;
    if (latent_file_read(file, path, latent_values(&session->checkpoint.config), e))
        return -1;
    for (size_t chat = 0; chat < CHAT_WORDS; chat++) {
        const struct prompts *prompts = &session->prompts.by_chat[chat];
        for (size_t i = 0; i < prompts->n; i++)
            if (!latent_file_find(file, prompts->v[i].input.key))
                return err_set(e, EXIT_BAD_DATA, "%s: no latents of prompt '%.200s'", path,
                               prompts->v[i].id);
    }
    return 0;
}

/* Loads the weights. If they do not fit, the run continues and its records say oom. */
static int load_weights(struct session *session, struct err *e)
{
    struct err load = {0};
    int64_t begin = clock_ns();
    session_foresee(session);
    session->network.config = session->checkpoint.config;
    session->network.backend = session->backend;
    session->loaded = !load_all(session, &load);
    session->load_peak = resident_peak();
    session->load_allocated = session->backend->memory.allocated_peak;
    if (!session->loaded && load.code != EXIT_FAILED_RECORDS) {
        *e = load;
        return -1;
    }
    if (!session->loaded) {
        log_warn(&session->log, "W101",
                 "the weights do not fit: %s; every record will have status oom", load.text);
        return 0;
    }
    log_more(&session->log, "%s: %zu bytes of weights in %.2f s (%zu estimated)",
             session->network.config.name, network_weight_bytes(&session->network),
             (double)(clock_ns() - begin) * 1e-9, network_expected_bytes(&session->network));
    settle_slowdown(session);
    if (session->network.huge_page_bytes >= 0)
        log_more(&session->log, "%lld bytes of this process lie in huge pages",
                 (long long)session->network.huge_page_bytes);
    return 0;
}

/* Prints an error if it is one of the first. Returns the error as its record shows it. */
static struct err note_failure(struct session *session, const struct err *what, const char *where)
{
    struct err shown = *what;
    int says_where = !strncmp(what->text, where, strlen(where));
    if (session->said++ < REC_BAD_SAID)
        log_error(&session->log, "%s%s%s", says_where ? "" : where, says_where ? "" : ": ",
                  what->text);
    if (shown.code == EXIT_FAILED_RECORDS)
        shown.code = EXIT_BAD_DATA;
    session_worse(session, shown.code == EXIT_BAD_DATA ? EXIT_FAILED_RECORDS : shown.code);
    return shown;
}

int session_error(struct session *session, const struct err *what, const struct prompt *prompt,
                  struct err *e)
{
    struct err shown = note_failure(session, what, prompt->where);
    return rec_error(&session->out, &shown, prompt->where, json_object_get(prompt->record, "id"),
                     e);
}

static int write_faults(struct session *session, struct err *e)
{
    const struct prompt_input *in = &session->prompts.in;
    for (size_t i = 0; i < in->faults; i++) {
        const struct prompt_fault *fault = &in->fault[i];
        struct err shown = note_failure(session, &fault->err, fault->where);
        if (rec_bad(&session->out, &shown, fault->where, fault->id, e))
            return -1;
    }
    session->out.bad += in->more;
    session->said += in->more;
    if (!session->prompts.n || in->unsound)
        session_worse(session, EXIT_BAD_DATA);
    return 0;
}

static void catch_signals(void (*note)(int))
{
    struct sigaction once = {.sa_flags = (int)SA_RESETHAND}; /* a second signal ends the process */
    once.sa_handler = note;
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
    sigaction(SIGHUP, &once, NULL);
}

static int is_timed(const struct job *job)
{
    const struct job_args *args = job->args;
    return args->schedule || args->warmup || args->repeat > 1;
}

/* Returns why all records must come from one process; NULL if several may write them. */
static const char *why_one_process(const struct job *job)
{
    return is_timed(job)      ? "a launch that is timed is one process"
           : job->args->trace ? "a trace holds the passes of one process"
                              : NULL;
}

/* Opens the records, and the outputs of --trace and --stream. */
static int open_outputs(struct session *session, struct err *e)
{
    const struct job *job = session->job;
    struct resume_wish wish = {&session->log, job->args->fresh, why_one_process(job)};
    json_t *extra = meta_extra(session, e);
    if (!extra)
        return -1;
    session->own.meta = extra;
    int bad = watcher_open(&session->watch, job, &session->checkpoint.config, session->tokenizer,
                           session->prompts.n, &session->progress, extra, e) ||
              rec_open_work(&session->out, &job->args->common, &wish, job->decoder->tool, job->argc,
                            job->argv, json_incref(extra), e);
    session->writing = !bad;
    return bad ? -1 : 0;
}

/* Sets the handicap, then joins the processes that take turns. Each launch begins to count passes
 * elsewhere, so over launches all prompts are slowed alike. */
static int open_turns(struct session *session, struct err *e)
{
    enum { STRIDE = 7 };
    const struct job_args *args = session->job->args;
    size_t party, parties;
    session->handicap = (struct handicap){(size_t)args->handicap, (size_t)(STRIDE * args->launch)};
    session->network.handicap = args->handicap ? &session->handicap : NULL;
    if (!args->turns)
        return 0;
    if (read_party(args, &party, &parties, e))
        return -1;
    session->turns = turns_join(args->turns, party, parties, e);
    return session->turns ? 0 : -1;
}

/* Processes that take turns share their cores: two cores of a shared host rarely have the same
 * speed at one time. With fewer threads than cores, each launch takes other cores. */
static void share_cores(const struct job_args *args)
{
    if (args->turns)
        cpus_keep((size_t)args->engine.threads, (size_t)args->launch);
}

int session_open(struct session *session, struct err *e)
{
    share_cores(session->job->args);
    if (check_flags(session->job, e) || open_model(session, e) ||
        session_read_prompts(session, e) ||
        engine_open(&session->job->args->engine, &session->backend, e) ||
        session_settle_memory(session, e))
        return -1;
    const struct job *job = session->job;
    size_t party, parties;
    if (check_device(session, e) || open_latents(session, e))
        return -1;
    engine_level(&job->args->engine, session->backend, &session->checkpoint, &session->log);
    if (job->args->explain)
        return session_explain(session, e);
    if (session_slowdown(session, e) || open_outputs(session, e))
        return -1;
    session->out.inputs = json_incref(session->prompts.in.inputs);
    warn_library(session);
    selfcheck_start(&session->selfcheck, job->args->selfcheck, session->backend);
    if (read_party(job->args, &party, &parties, e))
        return -1;
    gpu_monitor_open(&session->monitor, session->backend->address, parties,
                     (uint64_t)job->args->common.seed);
    session->timed = is_timed(job);
    if (session->timed)
        host_monitor_open(&session->host);
    if (session->timed && !job->args->force && gpu_monitor_foreign(&session->monitor) > 0)
        return err_set(e, EXIT_BUSY, "%s: other processes are using this GPU: a timed run needs it "
                       "alone; end them, or use --force", session->backend->name);
    if (job->note_signal)
        catch_signals(job->note_signal);
    return write_faults(session, e) || load_weights(session, e) ||
                   (session->loaded && open_prior(session, e)) || open_turns(session, e)
               ? -1
               : 0;
}

int session_close(struct session *session, int bad, struct err *e)
{
    if (session->said > REC_BAD_SAID)
        log_error(&session->log, "and %lld more errors like these",
                  (long long)(session->said - REC_BAD_SAID));
    const char *status = session_stopped(session)          ? "interrupted"
                         : session->worst == EXIT_INTERNAL ? "failed"
                                                           : "ok";
    bad = watcher_close(&session->watch, bad ? NULL : status, e) || bad ? -1 : 0;
    if (session->writing && !bad && session_stopped(session) && rec_lasts(&session->out)) {
        log_note(&session->log, "stopped; the same command continues after %lld records",
                 (long long)(session->out.records + rec_kept_left(&session->out)));
        rec_abandon(&session->out);
    } else if (session->writing && !bad) {
        bad = session_stopped(session) ? rec_interrupted(&session->out, e)
                                       : rec_close(&session->out, status, e);
    } else if (session->writing) {
        rec_abandon(&session->out);
    }
    turns_leave(session->turns);
    selfcheck_free(&session->selfcheck);
    if (session->job->decoder->close_prior)
        session->job->decoder->close_prior(&session->latents);
    latent_file_free(&session->latents.file);
    if (session->loaded)
        network_free(&session->network);
    companion_close(&session->companion);
    free(session->slowdown);
    gpu_monitor_close(&session->monitor);
    host_monitor_close(&session->host);
    if (session->backend)
        backend_close(session->backend);
    promptset_free(&session->prompts);
    tokenizer_free(session->tokenizer);
    checkpoint_close(&session->checkpoint);
    json_decref((json_t *)(uintptr_t)session->own.meta);
    return bad                        ? err_code(e)
           : session_stopped(session) ? 128 + (int)*session->job->stop
                                      : session->worst;
}
