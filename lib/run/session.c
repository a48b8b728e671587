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

void session_worse(struct session *s, int code)
{
    if (code > s->worst) /* order: 0, failed records, no good prompt, internal */
        s->worst = code;
}

int session_stopped(const struct session *s)
{
    return s->job->stop && *s->job->stop;
}

/* c NULL: the model is not known yet. */
static int check_points(const struct job *job, const struct config *c, struct err *e)
{
    const struct decoder *d = job->decoder;
    int bad = 0;
    for (size_t i = 0; i < job->plan->points && !bad; i++) {
        const struct settings *point = &job->plan->point[i];
        bad = !c ? settings_check(point, e) : d->check ? d->check(point, c, e) : 0;
    }
    return bad;
}

/* Reads --party K/N: this process is party K of N. Without --turns and --party it is alone. */
static int read_party(const struct job_args *a, size_t *party, size_t *parties, struct err *e)
{
    char end;
    *party = 0;
    *parties = 1;
    if (!a->turns && !a->party)
        return 0;
    int fits = a->party && sscanf(a->party, "%2zu/%2zu%c", party, parties, &end) == 2 &&
               *parties >= 2 && *parties <= TURNS_PARTIES && *party < *parties;
    return fits ? 0
                : err_set(e, EXIT_BAD_USAGE, "--party: expected K/N beside --turns, N from 2 to %d "
                          "and K below N, got '%.20s'", TURNS_PARTIES, a->party ? a->party : "");
}

/* Checks that need only the options. */
static int check_flags(const struct job *job, struct err *e)
{
    const struct job_args *a = job->args;
    if (!a->engine.model)
        return err_set(e, EXIT_BAD_USAGE, "expected -m MODEL (try '%s --help')",
                       job->decoder->tool);
    if (engine_check_device(&a->engine, e) || engine_check_memory(&a->engine, e) ||
        watcher_check(job, e))
        return -1;
    size_t party, parties;
    if (read_party(a, &party, &parties, e))
        return -1;
    if (a->party && !a->turns)
        return err_set(e, EXIT_BAD_USAGE, "--party: expected --turns FILE beside it");
    if (check_points(job, NULL, e))
        return -1;
    for (size_t i = 0; i < job->n_files; i++)
        if (strcmp(a->common.output, "-") && file_same(job->files[i], a->common.output))
            return err_set(e, EXIT_BAD_USAGE, "%s is both input and output", job->files[i]);
    return 0;
}

/* A model that this decoder does not run, and which one does. */
static int other_decoder(const struct job *job, const struct checkpoint *c, struct err *e)
{
    const enum paradigm p = c->config.paradigm;
    const char *other = p == PARADIGM_AUTOREGRESSIVE ? "gen-llama"
                        : p == PARADIGM_LATENT       ? "gen-ltm"
                                                     : "gen-llada";
    return err_set(e, EXIT_BAD_DATA, "%s: %s does not run %s models (try %s)",
                   job->args->engine.model, job->decoder->tool,
                   config_paradigm_name(c->config.paradigm), other);
}

/* -1: the device cannot run some point. */
static int check_device(const struct session *s, struct err *e)
{
    const struct job *job = s->job;
    for (size_t i = 0; job->decoder->able && i < job->plan->points; i++)
        if (job->decoder->able(&job->plan->point[i], s->backend, e))
            return -1;
    return 0;
}

/* Settings that were not given are those of the model's authors; under a block-causal mask also the
 * length of its blocks, unless the authors fill other ones, and the cache that is exact there. The
 * authors' length goes with the mask of the files, not with that of a name or of --mask-block. */
static void suppose_defaults(const struct job *job, const struct config *c)
{
    for (size_t i = 0; i < job->plan->points; i++) {
        struct settings *point = &job->plan->point[i];
        char blocks[64] = "";
        if (!config_denoises(c))
            continue; /* the row holds settings of diffusion */
        if (c->attends_block)
            snprintf(blocks, sizeof blocks, "block_length=%zu cache=exact", c->attends_block);
        settings_suppose(point, c->family->named ? blocks : "");
        settings_suppose(point, c->family->defaults ? c->family->defaults : "");
        settings_suppose(point, blocks);
    }
}

static int open_model(struct session *s, struct err *e)
{
    const struct job *job = s->job;
    struct checkpoint *c = &s->checkpoint;
    if (engine_checkpoint(&job->args->engine, (uint64_t)job->args->common.seed, c, &s->log, e))
        return -1;
    if (job->decoder->paradigms >> PARADIGM_AUTOREGRESSIVE & 1)
        config_write_left_to_right(&c->config);
    if (!(job->decoder->paradigms >> c->config.paradigm & 1))
        return other_decoder(job, c, e);
    suppose_defaults(job, &c->config);
    if (generation_refuses(&c->config, e) || check_points(job, &c->config, e))
        return -1;
    if (job->args->engine.check_finite && checkpoint_check_values(c, e))
        return -1;
    return checkpoint_tokenizer(c, &s->tokenizer, e) ||
                   companion_open(&s->companion, job, c, s->tokenizer, &s->log, e)
               ? -1
               : 0;
}

static int read_prompts(struct session *s, struct err *e)
{
    const struct job *job = s->job;
    struct prompt_encoder encoder;
    struct chat_choice chat;
    if (prompt_encoder_make(&encoder, &s->checkpoint, s->tokenizer, job->args->chat, &chat, e))
        return -1;
    s->chat = chat_name(encoder.chat); /* a constant */
    if (chat.unknown)
        log_warn(&s->log, "W109", "%s", chat.said.text);
    else if (*chat.said.text)
        log_note(&s->log, "%s", chat.said.text);
    encoder.parse_special = job->args->parse_special;
    int bad = promptset_read(&s->prompts, job->files, job->n_files, job->args->common.limit,
                             &encoder, e);
    chat_free(chat.chosen);
    if (bad)
        return -1;
    memcpy(s->workload, s->prompts.in.sha256, SETTINGS_ID - 1);
    return 0;
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

/* The fields of the meta record. NULL: a file of the checkpoint cannot be read. */
static json_t *meta_extra(const struct session *s, struct err *e)
{
    json_t *about = checkpoint_describe(&s->checkpoint, e), *companion = NULL;
    if (about && s->job->args->extras.draft)
        companion = checkpoint_describe(&s->companion.checkpoint, e);
    if (!about || (s->job->args->extras.draft && !companion)) {
        json_decref(about);
        return NULL;
    }
    json_t *m = json_object(), *b = json_object();
    json_object_set_new(m, "checkpoint", about);
    if (companion)
        json_object_set_new(m, "draft_model", companion);
    if (s->job->options) /* as the arguments are: they are part of the work */
        json_object_set_new(m, "options", json_deep_copy(s->job->options));
    if (s->job->args->engine.level)
        json_object_set_new(m, "level", json_string(s->job->args->engine.level));
    json_object_set_new(m, "tokenizer_sha256",
                        s->tokenizer ? json_string(tokenizer_hash(s->tokenizer)) : json_null());
    json_object_set_new(m, "prompts_sha256", json_string(s->prompts.in.sha256));
    if (s->latents.file.n)
        json_object_set_new(m, "latent_file", json_string(s->latents.file.sha256));
    rec_set_int(m, "prompts", (int64_t)s->prompts.n);
    json_object_set_new(m, "chat", json_string(s->chat));
    json_object_set_new(b, "name", json_string(s->backend->ops->name));
    json_object_set_new(b, "isa", json_string(s->backend->level));
    json_object_set_new(b, "library",
                        *s->backend->library ? json_string(s->backend->library) : json_null());
    rec_set_int(b, "threads", (int64_t)pool_threads(s->backend->pool));
    json_object_set_new(m, "backend", b);
    rec_set_int(m, "launch", s->job->plan->launch);
    put_environment(m);
    return m;
}

/* Otherwise a missing library would look like a slow device. */
static void warn_library(const struct session *s)
{
    if (!strncmp(s->backend->ops->name, "cuda", 4) && !*s->backend->library)
        log_warn(&s->log, "W104", "cuBLASLt was not found: products of many rows run on kernels "
                 "that are several times slower; put libcublasLt.so on LD_LIBRARY_PATH");
}

/* Loads the weights of all networks or of none. -1: the network holds the bytes that it needs. */
static int load_all(struct session *s, struct err *e)
{
    const struct engine *g = &s->job->args->engine;
    if (!companion_load(&s->companion, s->job, s->backend, e)) {
        int bad = engine_load(g, &s->network, s->backend, &s->checkpoint, e);
        if (!bad && !companion_agrees(&s->companion, s->backend, e))
            return 0;
        if (!bad)
            network_free(&s->network);
        companion_unload(&s->companion);
        return -1;
    }
    struct err ignored = {0};
    engine_settle(g, &s->network, s->backend, &s->checkpoint, &ignored);
    return -1;
}

/* Measures the filled store: its speed may differ from the trial. Stores of caches are filled in
 * each pass. */
static void settle_slowdown(struct session *s)
{
    for (size_t i = 0; s->slowdown && s->network.offload && i < s->job->plan->points; i++) {
        double said = s->slowdown[i].ratio;
        slowdown_settle(&s->slowdown[i], &s->network);
        if (fabs(s->slowdown[i].ratio - said) > said / 10)
            slowdown_say(&s->slowdown[i], &s->network, &s->log);
    }
}

static int open_prior(struct session *s, struct err *e)
{
    const struct job *job = s->job;
    return job->decoder->open_prior
               ? job->decoder->open_prior(&s->latents, job->plan->point, job->plan->points,
                                          s->checkpoint.folder, &s->checkpoint.config, s->backend,
                                          e)
               : 0;
}

/* Reads --z-file, which must hold latents of every prompt. */
static int open_latents(struct session *s, struct err *e)
{
    const char *path = s->job->args->extras.z_file;
    struct latent_file *file = &s->latents.file;
    s->latents.keep = s->job->args->extras.keep_latents;
    s->own.latents = &s->latents;
    if (!path)
        return 0;
    if (latent_file_read(file, path, latent_values(&s->checkpoint.config), e))
        return -1;
    for (size_t i = 0; i < s->prompts.n; i++)
        if (!latent_file_find(file, s->prompts.v[i].input.key))
            return err_set(e, EXIT_BAD_DATA, "%s: no latents of prompt '%.200s'", path,
                           s->prompts.v[i].id);
    return 0;
}

/* If the weights do not fit, the run continues and its records say oom. */
static int load_weights(struct session *s, struct err *e)
{
    struct err load = {0};
    int64_t begin = clock_ns();
    session_foresee(s);
    s->network.config = s->checkpoint.config;
    s->network.backend = s->backend;
    s->loaded = !load_all(s, &load);
    s->load_peak = resident_peak();
    s->load_allocated = s->backend->memory.allocated_peak;
    if (!s->loaded && load.code != EXIT_FAILED_RECORDS) {
        *e = load;
        return -1;
    }
    if (!s->loaded) {
        log_warn(&s->log, "W101", "the weights do not fit: %s; every record will have status oom",
                 load.text);
        return 0;
    }
    log_more(&s->log, "%s: %zu bytes of weights in %.2f s (%zu estimated)", s->network.config.name,
             network_weight_bytes(&s->network), (double)(clock_ns() - begin) * 1e-9,
             network_expected_bytes(&s->network));
    settle_slowdown(s);
    if (s->network.huge_page_bytes >= 0)
        log_more(&s->log, "%lld bytes of this process lie in huge pages",
                 (long long)s->network.huge_page_bytes);
    return 0;
}

/* Prints the first errors; each is an error record too. */
static struct err note_failure(struct session *s, const struct err *what, const char *where)
{
    struct err shown = *what;
    int says_where = !strncmp(what->text, where, strlen(where));
    if (s->said++ < REC_BAD_SAID)
        log_error(&s->log, "%s%s%s", says_where ? "" : where, says_where ? "" : ": ", what->text);
    if (shown.code == EXIT_FAILED_RECORDS)
        shown.code = EXIT_BAD_DATA;
    session_worse(s, shown.code == EXIT_BAD_DATA ? EXIT_FAILED_RECORDS : shown.code);
    return shown;
}

int session_error(struct session *s, const struct err *what, const struct prompt *p, struct err *e)
{
    struct err shown = note_failure(s, what, p->where);
    return rec_error(&s->out, &shown, p->where, json_object_get(p->record, "id"), e);
}

static int write_faults(struct session *s, struct err *e)
{
    const struct prompt_input *in = &s->prompts.in;
    for (size_t i = 0; i < in->faults; i++) {
        const struct prompt_fault *f = &in->fault[i];
        struct err shown = note_failure(s, &f->err, f->where);
        if (rec_bad(&s->out, &shown, f->where, f->id, e))
            return -1;
    }
    s->out.bad += in->more;
    s->said += in->more;
    if (!s->prompts.n || in->unsound)
        session_worse(s, EXIT_BAD_DATA);
    return 0;
}

static void catch_signals(void (*note)(int))
{
    struct sigaction once = {.sa_flags = (int)SA_RESETHAND}; /* a second one ends at once */
    once.sa_handler = note;
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
    sigaction(SIGHUP, &once, NULL);
}

static int is_timed(const struct job *job)
{
    const struct job_args *a = job->args;
    return a->schedule || a->warmup || a->repeat > 1;
}

/* Why all records must come from one process, or NULL: they need not. */
static const char *why_one_process(const struct job *job)
{
    return is_timed(job)      ? "a launch that is timed is one process"
           : job->args->trace ? "a trace holds the passes of one process"
                              : NULL;
}

/* Opens the records, and the outputs of --trace and --stream. */
static int open_outputs(struct session *s, struct err *e)
{
    const struct job *job = s->job;
    struct resume_wish wish = {&s->log, job->args->fresh, why_one_process(job)};
    json_t *extra = meta_extra(s, e);
    if (!extra)
        return -1;
    s->own.meta = extra;
    int bad = watcher_open(&s->watch, job, &s->checkpoint.config, s->tokenizer, s->prompts.n,
                         &s->progress, extra, e) ||
              rec_open_work(&s->out, &job->args->common, &wish, job->decoder->tool, job->argc,
                            job->argv, json_incref(extra), e);
    s->writing = !bad;
    return bad ? -1 : 0;
}

/* Sets the handicap, then joins the processes that take turns. Each launch begins to count passes
 * elsewhere, so over launches all prompts are slowed alike. */
static int open_turns(struct session *s, struct err *e)
{
    enum { STRIDE = 7 };
    const struct job_args *a = s->job->args;
    size_t party, parties;
    s->handicap = (struct handicap){(size_t)a->handicap, (size_t)(STRIDE * a->launch)};
    s->network.handicap = a->handicap ? &s->handicap : NULL;
    if (!a->turns)
        return 0;
    if (read_party(a, &party, &parties, e))
        return -1;
    s->turns = turns_join(a->turns, party, parties, e);
    return s->turns ? 0 : -1;
}

/* Processes that take turns share their cores: two cores of a shared host rarely have the same
 * speed at one time. With fewer threads than cores, each launch takes other cores. */
static void share_cores(const struct job_args *a)
{
    if (a->turns)
        cpus_keep((size_t)a->engine.threads, (size_t)a->launch);
}

int session_open(struct session *s, struct err *e)
{
    share_cores(s->job->args);
    if (check_flags(s->job, e) || open_model(s, e) || read_prompts(s, e) ||
        engine_open(&s->job->args->engine, &s->backend, e) || session_settle_memory(s, e))
        return -1;
    const struct job *job = s->job;
    size_t party, parties;
    if (check_device(s, e) || open_latents(s, e))
        return -1;
    engine_level(&job->args->engine, s->backend, &s->checkpoint, &s->log);
    if (job->args->explain)
        return session_explain(s, e);
    if (session_slowdown(s, e) || open_outputs(s, e))
        return -1;
    s->out.inputs = json_incref(s->prompts.in.inputs);
    warn_library(s);
    selfcheck_start(&s->selfcheck, job->args->selfcheck, s->backend);
    if (read_party(job->args, &party, &parties, e))
        return -1;
    gpu_monitor_open(&s->monitor, s->backend->address, parties,
                     (uint64_t)job->args->common.seed);
    s->timed = is_timed(job);
    if (s->timed)
        host_monitor_open(&s->host);
    if (s->timed && !job->args->force && gpu_monitor_foreign(&s->monitor) > 0)
        return err_set(e, EXIT_BUSY, "%s: other processes are using this GPU: a timed run needs it "
                       "alone; end them, or use --force", s->backend->name);
    if (job->note_signal)
        catch_signals(job->note_signal);
    return write_faults(s, e) || load_weights(s, e) || (s->loaded && open_prior(s, e)) ||
                   open_turns(s, e)
               ? -1
               : 0;
}

int session_close(struct session *s, int bad, struct err *e)
{
    if (s->said > REC_BAD_SAID)
        log_error(&s->log, "and %lld more errors like these", (long long)(s->said - REC_BAD_SAID));
    const char *status = session_stopped(s)                  ? "interrupted"
                         : s->worst == EXIT_INTERNAL ? "failed"
                                                     : "ok";
    bad = watcher_close(&s->watch, bad ? NULL : status, e) || bad ? -1 : 0;
    if (s->writing && !bad && session_stopped(s) && rec_lasts(&s->out)) {
        log_note(&s->log, "stopped; the same command continues after %lld records",
                 (long long)(s->out.records + rec_kept_left(&s->out)));
        rec_abandon(&s->out);
    } else if (s->writing && !bad) {
        bad = rec_close(&s->out, status, e);
    } else if (s->writing) {
        rec_abandon(&s->out);
    }
    turns_leave(s->turns);
    selfcheck_free(&s->selfcheck);
    if (s->job->decoder->close_prior)
        s->job->decoder->close_prior(&s->latents);
    latent_file_free(&s->latents.file);
    if (s->loaded)
        network_free(&s->network);
    companion_close(&s->companion);
    free(s->slowdown);
    gpu_monitor_close(&s->monitor);
    host_monitor_close(&s->host);
    if (s->backend)
        backend_close(s->backend);
    promptset_free(&s->prompts);
    tokenizer_free(s->tokenizer);
    checkpoint_close(&s->checkpoint);
    json_decref((json_t *)(uintptr_t)s->own.meta);
    return bad ? err_code(e) : session_stopped(s) ? 128 + (int)*s->job->stop : s->worst;
}
