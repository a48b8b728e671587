/* runner.c - see runner.h.
 *
 * Everything that can be refused is refused before the first record: settings, files,
 * checkpoint, prompts, device. After that a failure belongs to one prompt (an error record) or
 * to one batch (oom records), and the run goes on; the worst of them is the exit code. */
#include "lib/run/runner.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/progress.h"
#include "lib/record/rec.h"
#include "lib/record/resume.h"
#include "lib/run/selfcheck.h"
#include "lib/run/fit.h"
#include "lib/run/generation_record.h"
#include "lib/run/promptset.h"

struct session {
    const struct job *job;
    struct log log;
    struct checkpoint checkpoint;
    struct tokenizer *tokenizer; /* NULL: none */
    struct promptset prompts;
    char workload[SETTINGS_ID];  /* of the prompts: the beginning of their hash */
    struct backend *backend;
    struct gpu_monitor monitor;
    struct network network;
    int loaded;                  /* 0: the weights did not fit, every record is oom */
    struct rec_writer out;
    int writing;
    struct selfcheck selfcheck;
    struct progress progress;
    int64_t seq, batch_id;
    int worst;                   /* exit code so far */
};

static void worse(struct session *s, int code)
{
    if (code > s->worst) /* 0 < failed records < bad data < internal */
        s->worst = code;
}

/* What the flags alone can tell. */
static int check_flags(const struct job *job, struct err *e)
{
    const struct job_args *a = job->args;
    if (!a->engine.model)
        return err_set(e, EXIT_BAD_USAGE, "-m MODEL is needed (try '%s --help')",
                       job->decoder->tool);
    if (engine_check_device(&a->engine, e))
        return -1;
    for (size_t i = 0; i < job->plan->points; i++)
        if (job->decoder->check(&job->plan->point[i], e))
            return -1;
    for (size_t i = 0; i < job->n_files; i++)
        if (strcmp(a->common.output, "-") && file_same(job->files[i], a->common.output))
            return err_set(e, EXIT_BAD_USAGE, "%s is input and output", job->files[i]);
    return 0;
}

/* A model that this decoder does not run, and which one does. */
static int other_decoder(const struct job *job, const struct checkpoint *c, struct err *e)
{
    const char *other = "another tool";
    for (size_t i = 0; decoders[i]; i++)
        if (decoders[i]->paradigms >> c->config.arch & 1)
            other = decoders[i]->tool;
    return err_set(e, EXIT_BAD_DATA, "%s: %s does not run %s models (try %s)",
                   job->args->engine.model, job->decoder->tool,
                   c->config.arch == ARCH_LLADA ? "masked diffusion" : "autoregressive", other);
}

static int open_model(struct session *s, struct err *e)
{
    const struct job *job = s->job;
    struct checkpoint *c = &s->checkpoint;
    if (checkpoint_open(c, job->args->engine.model, (uint64_t)job->args->common.seed, e))
        return -1;
    if (!(job->decoder->paradigms >> c->config.arch & 1))
        return other_decoder(job, c, e);
    if (job->args->engine.check_finite && checkpoint_check_values(c, e))
        return -1;
    return checkpoint_tokenizer(c, &s->tokenizer, e);
}

static int read_prompts(struct session *s, struct err *e)
{
    const struct job *job = s->job;
    struct prompt_encoder encoder;
    if (prompt_encoder_make(&encoder, &s->checkpoint.config, s->tokenizer, job->args->chat, e))
        return -1;
    encoder.parse_special = job->args->parse_special;
    if (promptset_read(&s->prompts, job->files, job->n_files, job->args->common.limit, &encoder, e))
        return -1;
    memcpy(s->workload, s->prompts.sha256, SETTINGS_ID - 1);
    return 0;
}

/* NULL: a file of the checkpoint cannot be read. */
static json_t *meta_extra(const struct session *s, struct err *e)
{
    json_t *about = checkpoint_describe(&s->checkpoint, e);
    if (!about)
        return NULL;
    json_t *m = json_object(), *b = json_object();
    json_object_set_new(m, "checkpoint", about);
    json_object_set_new(m, "tokenizer_sha256",
                        s->tokenizer ? json_string(tokenizer_hash(s->tokenizer)) : json_null());
    json_object_set_new(m, "prompts_sha256", json_string(s->prompts.sha256));
    rec_set_int(m, "prompts", (int64_t)s->prompts.n);
    json_object_set_new(b, "name", json_string(s->backend->ops->name));
    json_object_set_new(b, "isa", json_string(s->backend->level));
    json_object_set_new(b, "library",
                        *s->backend->library ? json_string(s->backend->library) : json_null());
    rec_set_int(b, "threads", (int64_t)pool_threads(s->backend->pool));
    json_object_set_new(m, "backend", b);
    rec_set_int(m, "launch", s->job->plan->launch);
    return m;
}

/* Numbers of a device without its library would accuse the device. */
static void warn_library(const struct session *s)
{
    if (!strncmp(s->backend->ops->name, "cuda", 4) && !*s->backend->library)
        log_warn(&s->log, "W104", "no cuBLASLt was found: products of many rows run on kernels "
                 "that are several times slower; put libcublasLt.so on LD_LIBRARY_PATH");
}

/* One line before hours are spent on records that will say oom. To refuse is up to the loading. */
static void foresee(struct session *s)
{
    struct network n;
    if (engine_settle(&s->job->args->engine, &n, s->backend, &s->checkpoint, NULL))
        return;
    char *lacks = fit_lacks(s->job, &n, s->prompts.v, s->prompts.n);
    if (lacks)
        log_warn(&s->log, "W105", "%s: %s; try a smaller --dtype, --quant or shorter texts",
                 n.config.name, lacks);
    free(lacks);
}

/* Memory too short for the weights is a result, not a failure: the records say oom. */
static int load_weights(struct session *s, struct err *e)
{
    struct err load = {0};
    int64_t begin = clock_ns();
    foresee(s);
    s->network.config = s->checkpoint.config;
    s->network.backend = s->backend;
    s->loaded = !engine_load(&s->job->args->engine, &s->network, s->backend, &s->checkpoint,
                             &load);
    if (!s->loaded && load.code != EXIT_FAILED_RECORDS) {
        *e = load;
        return -1;
    }
    if (!s->loaded) {
        log_warn(&s->log, "W101", "the weights do not fit: %s; every record will say oom",
                 load.text);
        return 0;
    }
    log_more(&s->log, "%s: %zu bytes of weights in %.2f s (%zu on estimate)", s->network.config.name,
             network_weight_bytes(&s->network), (double)(clock_ns() - begin) * 1e-9,
             network_expected_bytes(&s->network));
    return 0;
}

/* What a batch took beside the weights, and should have taken. */
static void note_memory(const struct session *s, const struct batch_trace *t)
{
    const size_t *kind = t->memory.kind;
    log_more(&s->log, "batch %lld: %zu bytes of cache (%zu on estimate), %zu of activations (%zu)",
             (long long)s->batch_id, kind[MEMORY_KV], t->estimate.kv, kind[MEMORY_ACTIVATIONS],
             t->estimate.activations);
}

/* An error record. A sound prompt that this model cannot answer (exit 1) is bad data to it. */
static int write_error(struct session *s, const struct err *what, const char *where,
                       struct err *e)
{
    struct err shown = *what;
    worse(s, what->code);
    if (shown.code == EXIT_FAILED_RECORDS)
        shown.code = EXIT_BAD_DATA;
    return rec_error(&s->out, &shown, where, e);
}

static int write_faults(struct session *s, struct err *e)
{
    for (size_t i = 0; i < s->prompts.faults; i++) {
        const struct prompt_fault *f = &s->prompts.fault[i];
        if (write_error(s, &f->err, f->where, e))
            return -1;
        int says_where = !strncmp(f->err.text, f->where, strlen(f->where));
        log_note(&s->log, "%s%s%s", says_where ? "" : f->where, says_where ? "" : ": ",
                 f->err.text);
    }
    return 0;
}

static void catch_signals(void (*note)(int))
{
    struct sigaction once = {.sa_flags = (int)SA_RESETHAND}; /* a second signal ends at once */
    once.sa_handler = note;
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
    sigaction(SIGHUP, &once, NULL);
}

/* Why its records must be of one process: a launch is the unit of time. NULL: nothing is timed. */
static const char *one_process(const struct job *job)
{
    const struct job_args *a = job->args;
    int timed = a->schedule || a->warmup || a->repeat > 1;
    return timed ? "a launch that is timed is one process" : NULL;
}

static int session_open(struct session *s, struct err *e)
{
    const struct job *job = s->job;
    const struct common *c = &job->args->common;
    json_t *extra;
    struct resume_wish wish = {&s->log, job->args->fresh, one_process(job)};
    if (check_flags(job, e) || open_model(s, e) || read_prompts(s, e) ||
        engine_open(&job->args->engine, &s->backend, e) ||
        !(extra = meta_extra(s, e)) ||
        rec_open_work(&s->out, c, &wish, job->decoder->tool, job->argc, job->argv, extra, e))
        return -1;
    s->writing = 1;
    warn_library(s);
    selfcheck_start(&s->selfcheck, job->args->selfcheck, s->backend);
    gpu_monitor_open(&s->monitor, s->backend->address, (uint64_t)c->seed);
    if (job->note_signal)
        catch_signals(job->note_signal);
    return write_faults(s, e) || load_weights(s, e) ? -1 : 0;
}

static int write_generation(struct session *s, const struct prompt *p, struct generation_place *at,
                            const struct generation *g, const struct batch_trace *trace,
                            struct err *e)
{
    if (g->bad) {
        struct err bad = {0};
        err_set(&bad, EXIT_INTERNAL,
                "prompt '%.200s': the logits hold a NaN or an infinity: expected numbers", p->id);
        log_note(&s->log, "%s", bad.text);
        return write_error(s, &bad, p->where, e);
    }
    if (g->oom)
        worse(s, EXIT_FAILED_RECORDS);
    at->seq = s->seq++;
    at->workload = s->workload;
    at->prompts = s->prompts.n;
    return rec_write(&s->out, "generation",
                     generation_record(s->job, &s->network, s->tokenizer, p, at, g, trace, &s->monitor),
                     e);
}

static int stopped(const struct session *s)
{
    return s->job->stop && *s->job->stop;
}

/* What the card takes with the model loaded and nothing to do. Joules are of one process, so where
 * another may go on there is none. */
static int write_idle(struct session *s, const char *when, struct err *e)
{
    int wanted = s->loaded && !stopped(s) && !rec_lasts(&s->out);
    json_t *o = wanted ? gpu_monitor_idle(&s->monitor, when, s->job->args->idle_ms) : NULL;
    if (!o)
        return 0;
    rec_set_int(o, "launch", s->job->plan->launch);
    json_object_set_new(o, "model", json_string(s->network.config.name));
    json_object_set_new(o, "device_name", json_string(s->backend->name));
    return rec_write(&s->out, "idle", o, e);
}

/* Generates n prompts together: out[n], *trace. */
static void generate(struct session *s, const struct generation_place *at, const struct prompt *const *p,
                     size_t n, struct generation *out, struct batch_trace *trace)
{
    const struct job *job = s->job;
    struct generation_input *in = mem_zero(n, sizeof *in);
    for (size_t i = 0; i < n; i++)
        in[i] = p[i]->input;
    memory_reset_peak(&s->backend->memory);
    gpu_monitor_begin(&s->monitor);
    *trace = (struct batch_trace){0};
    if (s->loaded) {
        const struct decode_env env = {!!strcmp(at->phase, "cold"), job->plan->seed, job->stop};
        job->decoder->run(&s->network, at->point, &env, in, n, out, trace);
        note_memory(s, trace);
    } else {
        trace->start_ns = clock_ns();
        trace->memory = s->backend->memory;
    }
    gpu_monitor_end(&s->monitor, trace);
    if (gpu_monitor_layers(&s->monitor, &trace->memory) == 0)
        log_warn(&s->log, "W102", "batch %lld: memory breaks requested <= allocated <= reserved "
                 "<= process", (long long)s->batch_id);
    for (size_t i = 0; i < n; i++)
        out[i].oom |= !s->loaded;
    free(in);
}

/* Generates n prompts together and writes their records; with --halve as two batches, one after the
 * other, where memory is short. */
static int run_batch(struct session *s, struct generation_place at, const struct prompt *const *p,
                     size_t n, struct err *e)
{
    struct generation *out = mem_zero(n, sizeof *out);
    struct batch_trace trace;
    generate(s, &at, p, n, out, &trace);
    int rc = 0, halve = s->loaded && s->job->args->halve && n > 1 && out[0].oom;
    at.batch_id = halve ? s->batch_id : s->batch_id++;
    at.filled = n;
    for (size_t i = 0; i < n && !halve && !rc && !trace.interrupted; i++)
        rc = write_generation(s, p[i], &at, &out[i], &trace, e);
    for (size_t i = 0; i < n; i++)
        generation_free(&out[i]);
    free(out);
    if (!halve) {
        progress_at(&s->progress, s->seq, at.phase);
        return rc;
    }
    size_t half = n - n / 2;
    log_more(&s->log, "%zu prompts do not fit together: %zu and %zu", n, half, n - half);
    at.halved = 1;
    rc = run_batch(s, at, p, half, e);
    at.phase = strcmp(at.phase, "cold") ? at.phase : "warmup"; /* one batch is the first */
    return rc || stopped(s) ? rc : run_batch(s, at, p + half, n - half, e);
}

/* A record of an earlier process stands where this batch would put one for p: 0, or -1. */
static int take_over(struct session *s, const struct prompt *p, struct err *e)
{
    const json_t *kept = rec_kept(&s->out), *r = rec_kept_of(&s->out, "generation", p->record);
    const char *where = kept && !strcmp(rec_kind(kept), "error") ? rec_text(kept, "where") : NULL;
    if (r && rec_int(r, "seq", -1) == s->seq) {
        const char *status = rec_text(r, "status");
        worse(s, status && !strcmp(status, "ok") ? EXIT_OK : EXIT_FAILED_RECORDS);
        if (rec_int(r, "batch_id", -1) >= s->batch_id)
            s->batch_id = rec_int(r, "batch_id", 0) + 1;
        s->seq++;
    } else if (where && !strcmp(where, p->where)) {
        worse(s, EXIT_INTERNAL); /* NaN is all that a batch has errors for */
    } else {
        return err_set(e, EXIT_BAD_DATA, "%s: its work file has another record where prompt "
                       "'%.200s' is due (--fresh starts anew)", s->job->args->common.output, p->id);
    }
    return rec_keep(&s->out, e);
}

/* A batch whose records an earlier process wrote, all of them: 1. Else 0, and those there are of it
 * are dropped; or -1. */
static int batch_kept(struct session *s, const struct prompt *const *p, size_t n, struct err *e)
{
    int64_t batch_id = s->batch_id;
    if (rec_kept_left(&s->out) < (int64_t)n)
        return rec_drop_kept(&s->out, e);
    for (size_t i = 0; i < n; i++)
        if (take_over(s, p[i], e))
            return -1;
    if (s->batch_id == batch_id) /* errors only */
        s->batch_id++;
    progress_at(&s->progress, s->seq, NULL);
    return 1;
}

/* The self-check failed: its error record is the last that the run leaves. */
static int fall(struct session *s, const struct err *what)
{
    struct err ignored = {0};
    rec_fatal(&s->out, what, "self-check", &ignored);
    return -1;
}

/* run_batch, unless it was done; then what must be seen to between batches. */
static int do_batch(struct session *s, struct generation_place at, const struct prompt *const *p,
                    size_t n, struct err *e)
{
    int kept = batch_kept(s, p, n, e);
    if (kept)
        return kept < 0 ? -1 : 0;
    if (s->loaded)
        selfcheck_before(&s->selfcheck, s->job, &s->network, at.point, p[0], &s->out);
    if (run_batch(s, at, p, n, e) || rec_sync(&s->out, e))
        return -1;
    if (s->loaded && !stopped(s) && selfcheck_after(&s->selfcheck, s->job, &s->network, &s->out, e))
        return fall(s, e);
    return 0;
}

/* Batches that let caches, clocks and page tables settle; prompts from the first on, again and
 * again. */
static int warm_up(struct session *s, const struct settings *point,
                   const struct prompt *const *p, size_t n, struct err *e)
{
    size_t size = settings_count(point, "batch"), take = size < n ? size : n;
    const struct prompt **batch = mem_zero(take, sizeof *batch);
    int rc = 0;
    for (int64_t w = 0; w < s->job->args->warmup && !rc && !stopped(s); w++) {
        for (size_t i = 0; i < take; i++)
            batch[i] = p[((size_t)w * take + i) % n];
        struct generation_place at = {.point = point, .phase = s->batch_id ? "warmup" : "cold"};
        rc = run_batch(s, at, batch, take, e);
    }
    free(batch);
    return rc;
}

/* The prompts that fit the context with what the point adds; the others get an error record in the
 * first round. Returns how many fit, or -1. */
static int64_t fitting(struct session *s, const struct settings *point, size_t round,
                       const struct prompt **p, struct err *e)
{
    size_t extent = s->job->decoder->extent(point), context = s->checkpoint.config.context;
    int64_t n = 0;
    for (size_t i = 0; i < s->prompts.n; i++) {
        const struct prompt *one = &s->prompts.v[i];
        if (one->input.n + extent <= context) {
            p[n++] = one;
            continue;
        }
        struct err over = {0};
        err_set(&over, EXIT_FAILED_RECORDS,
                "prompt '%.200s': %zu tokens and %zu to come: expected at most %zu, the context",
                one->id, one->input.n, extent, context);
        if (round == 0 && write_error(s, &over, one->where, e))
            return -1;
    }
    return n;
}

static int run_point(struct session *s, const struct settings *point, size_t round,
                     struct err *e)
{
    const struct prompt **p = mem_zero(s->prompts.n, sizeof *p);
    int64_t fit = fitting(s, point, round, p, e);
    int rc = fit < 0 ? -1 : 0;
    if (fit > 0 && round == 0)
        rc = warm_up(s, point, p, (size_t)fit, e);
    size_t size = settings_count(point, "batch");
    for (size_t i = 0, n; i < (size_t)fit && fit > 0 && !rc && !stopped(s); i += n) {
        n = (size_t)fit - i < size ? (size_t)fit - i : size;
        struct generation_place at = {.point = point, .phase = "timed", .round = (int64_t)round};
        rc = do_batch(s, at, p + i, n, e);
    }
    free(p);
    return rc;
}

/* Rounds outside, points inside: a slow drift of the machine meets every setting alike. */
static int run_plan(struct session *s, struct err *e)
{
    const struct plan *plan = s->job->plan;
    for (size_t round = 0; round < plan->rounds; round++)
        for (size_t i = 0; i < plan->points; i++)
            if (stopped(s) || run_point(s, &plan->point[i], round, e))
                return stopped(s) ? 0 : -1;
    return 0;
}

static int64_t planned(const struct session *s)
{
    const struct plan *plan = s->job->plan;
    int64_t n = 0;
    for (size_t i = 0; i < plan->points; i++)
        n += (int64_t)(plan->rounds * s->prompts.n) +
             s->job->args->warmup * (int64_t)settings_count(&plan->point[i], "batch");
    return n;
}

static int session_close(struct session *s, int bad, struct err *e)
{
    if (s->writing && !bad && stopped(s) && rec_lasts(&s->out)) {
        log_note(&s->log, "stopped; the same command goes on after %lld records",
                 (long long)(s->out.records + rec_kept_left(&s->out)));
        rec_abandon(&s->out);
    } else if (s->writing && !bad) {
        const char *status = stopped(s)                  ? "interrupted"
                             : s->worst == EXIT_INTERNAL ? "failed"
                                                         : "ok";
        bad = rec_close(&s->out, status, e);
    } else if (s->writing) {
        rec_abandon(&s->out);
    }
    selfcheck_free(&s->selfcheck);
    if (s->loaded)
        network_free(&s->network);
    gpu_monitor_close(&s->monitor);
    if (s->backend)
        backend_close(s->backend);
    promptset_free(&s->prompts);
    tokenizer_free(s->tokenizer);
    checkpoint_close(&s->checkpoint);
    return bad ? e->code : stopped(s) ? 128 + (int)*s->job->stop : s->worst;
}

int runner_run(const struct job *job, struct err *e)
{
    const struct common *c = &job->args->common;
    struct session s = {.job = job,
                        .log = {job->decoder->tool, c->quiet ? 0 : c->verbose ? 2 : 1}};
    int bad = session_open(&s, e);
    if (!bad) {
        progress_start(&s.progress, &s.log, c->progress, "generations", planned(&s));
        bad = write_idle(&s, "before", e) || run_plan(&s, e) ? -1 : 0;
        if (!bad && s.loaded && !stopped(&s) &&
            selfcheck_last(&s.selfcheck, job, &s.network, &s.out, e))
            bad = fall(&s, e);
        bad = bad || write_idle(&s, "after", e) ? -1 : 0;
        progress_end(&s.progress);
    }
    return session_close(&s, bad, e);
}
