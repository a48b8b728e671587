/* runner.c - see runner.h. Loops over rounds, points and batches. A failure costs one prompt (an
 * error record) or one batch (oom records), and the run continues; the worst failure is the exit
 * code. Records of an interrupted process are taken over batch by batch, in the same order. */
#include "lib/run/runner.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/base/resident.h"
#include "lib/run/fitness.h"
#include "lib/run/memory_fit.h"
#include "lib/run/generation_record.h"
#include "lib/run/session.h"
#include "lib/run/steady.h"
#include "lib/setting/system.h"

/* Logs the memory of a batch without the weights, and its estimate. */
static void note_memory(const struct session *s, const struct batch_trace *t)
{
    const size_t *kind = t->memory.kind;
    log_more(&s->log, "batch %lld: %zu bytes of cache (%zu estimated), %zu of activations (%zu)",
             (long long)s->batch_id, kind[MEMORY_KV], t->estimate.kv, kind[MEMORY_ACTIVATIONS],
             t->estimate.activations);
}

static int write_generation(struct session *s, const struct prompt *p, struct generation_place *at,
                            const struct generation *g, const struct batch_trace *trace,
                            struct err *e)
{
    if (g->bad) {
        struct err bad = {0};
        err_set(&bad, EXIT_INTERNAL,
                "prompt '%.200s': the logits hold a NaN or an infinity: expected numbers", p->id);
        return session_error(s, &bad, p, e);
    }
    if (g->oom)
        session_worse(s, EXIT_FAILED_RECORDS);
    at->host = s->timed ? &s->host : NULL;
    at->load_peak = s->load_peak;
    at->load_allocated = s->load_allocated;
    at->seq = s->seq++;
    at->workload = s->workload;
    at->prompts = s->prompts.n;
    return rec_write(&s->out, "generation",
                     generation_record(s->job, &s->network, s->tokenizer, p, at, g, trace,
                                       &s->monitor),
                     e);
}

/* Otherwise this batch would show the memory of an earlier one. */
static void trim(struct session *s)
{
    if (s->backend->ops->trim)
        s->backend->ops->trim(s->backend);
    resident_trim();
}

/* A batch must free all its memory: bytes in use are the same after every batch. */
static void check_given_back(struct session *s)
{
    size_t now = s->backend->memory.requested;
    if (s->live && now > s->live)
        log_warn(&s->log, "W111", "memory leak: batch %lld left %zu bytes allocated. This is a "
                 "bug: please report the command line.", (long long)s->batch_id, now - s->live);
    s->live = now;
}

/* Generates n prompts together: out[n], *trace. -1: the trace cannot be written. */
static int generate(struct session *s, const struct generation_place *at,
                    const struct prompt *const *p, size_t n, struct generation *out,
                    struct batch_trace *trace, struct err *e)
{
    int bad = 0;
    const struct job *job = s->job;
    struct generation_input *in = mem_zero(n, sizeof *in);
    for (size_t i = 0; i < n; i++)
        in[i] = p[i]->input;
    if (!strcmp(job->args->trim, "batch"))
        trim(s);
    memory_reset_peak(&s->backend->memory);
    gpu_monitor_begin(&s->monitor);
    if (s->timed)
        host_monitor_begin(&s->host);
    *trace = (struct batch_trace){0};
    if (s->loaded) {
        const struct decode_env env = {
            .prepare = !!strcmp(at->phase, "cold"), .seed = job->plan->seed, .stop = job->stop,
            .companion = at->companion,
            .observer = watcher_begin(&s->watch, &s->network, at, p, out, n),
            .latents = job->latents};
        job->decoder->run(&s->network, at->point, &env, in, n, out, trace);
        bad = watcher_end(&s->watch, e);
        memory_fit_add_idle(&trace->estimate, job, at->point,
                     s->companion.loaded ? &s->companion.network : NULL);
        note_memory(s, trace);
        check_given_back(s);
    } else {
        generation_batch_begin(trace);
        trace->memory = s->backend->memory;
    }
    if (s->timed)
        host_monitor_end(&s->host);
    gpu_monitor_end(&s->monitor, trace);
    if (gpu_monitor_layers(&s->monitor, &trace->memory) == 0)
        log_warn(&s->log, "W102", "batch %lld: memory counters do not satisfy requested <= "
                 "allocated <= reserved <= process", (long long)s->batch_id);
    for (size_t i = 0; i < n; i++)
        out[i].oom |= !s->loaded;
    free(in);
    return bad;
}

static void say_parts(struct session *s, size_t n, size_t half)
{
    if (s->parted || strcmp(s->job->args->on_oom, "plan"))
        log_more(&s->log, "%zu prompts do not fit together: %zu and %zu", n, half, n - half);
    else
        log_note(&s->log, "%zu prompts do not fit together: they and later batches run as halves, "
                 "here %zu and %zu (batch_halved in their records)", n, half, n - half);
    s->parted = 1;
}

/* Generates n prompts together and writes their records; with --halve as two batches in sequence if
 * they do not fit. *ns: time of the batch. */
static int run_batch(struct session *s, struct generation_place at, const struct prompt *const *p,
                     size_t n, int64_t *ns, struct err *e)
{
    struct generation *out = mem_zero(n, sizeof *out);
    struct batch_trace trace;
    int64_t begin = clock_ns();
    at.batch_id = s->batch_id;
    at.seq = s->seq;
    at.watched = watcher_is_close(s->job);
    int rc = generate(s, &at, p, n, out, &trace, e);
    at.prepare_ns = trace.start_ns - begin;
    *ns = trace.makespan_ns;
    int halve = s->loaded && s->job->args->halve && n > 1 && out[0].oom;
    s->batch_id += !halve;
    at.filled = settings_count(at.point, "batch");
    at.filled = n < at.filled ? n : at.filled;
    for (size_t i = 0; i < n && !halve && !rc && !trace.interrupted; i++)
        rc = write_generation(s, p[i], &at, &out[i], &trace, e);
    for (size_t i = 0; i < n; i++)
        generation_free(&out[i]);
    free(out);
    if (!halve || rc) {
        progress_at(&s->progress, s->seq, at.phase);
        return rc;
    }
    size_t half = n - n / 2;
    say_parts(s, n, half);
    at.halved = 1;
    rc = run_batch(s, at, p, half, ns, e);
    at.phase = strcmp(at.phase, "cold") ? at.phase : "warmup"; /* one batch is the first */
    return rc || session_stopped(s) ? rc : run_batch(s, at, p + half, n - half, ns, e);
}

/* Runs a batch, and repeats it while host or GPU disturb it. Records of the repeated runs are
 * tainted, those of the last run may be. The number of repeats is limited, so that a run ends on a
 * machine that is never quiet. */
static int run_undisturbed(struct session *s, struct generation_place at,
                           const struct prompt *const *p, size_t n, struct err *e)
{
    enum { SPARE = 8, SHARE = 4 };
    int64_t ns;
    int rc = run_batch(s, at, p, n, &ns, e);
    for (s->batches++; !rc && s->timed && !session_stopped(s) && at.attempt < s->job->args->again &&
                       s->again < SPARE + s->batches / SHARE &&
                       (host_monitor_taints(&s->host.seen) ||
                        gpu_monitor_tainted(&s->monitor)); s->again++) {
        at.attempt++;
        rc = run_batch(s, at, p, n, &ns, e);
    }
    return rc;
}

/* Takes over the next record of an earlier process, which must be the one of p. -1: it is not. */
static int take_over(struct session *s, const struct prompt *p, struct err *e)
{
    const json_t *kept = rec_kept(&s->out);
    if (!kept)
        return rec_fail_kept(&s->out, e);
    if (rec_is(kept, "kind", "generation") && rec_is(kept, "id", p->id) &&
        rec_int(kept, "seq", -1) == s->seq) {
        int64_t batch_id = rec_int(kept, "batch_id", -1);
        session_worse(s, rec_is(kept, "status", "ok") ? EXIT_OK : EXIT_FAILED_RECORDS);
        if (batch_id >= s->batch_id)
            s->batch_id = batch_id + 1;
        s->seq++;
    } else if (rec_is(kept, "kind", "error") && rec_is(kept, "where", p->where)) {
        session_worse(s, EXIT_INTERNAL); /* NaN is the only error of a batch */
    } else {
        return err_set(e, EXIT_BAD_DATA, "%s: its work file has another record at the place of "
                       "prompt '%.200s' (--fresh starts again)", s->job->args->common.output,
                       p->id);
    }
    rec_keep(&s->out);
    return 0;
}

/* 1: takes over a batch whose records an earlier process has written completely. 0: it has not, and
 * the records that exist are dropped. -1: *e. */
static int take_kept_batch(struct session *s, const struct prompt *const *p, size_t n,
                           struct err *e)
{
    int64_t batch_id = s->batch_id;
    if (rec_kept_left(&s->out) < (int64_t)n)
        return rec_drop_kept(&s->out, e);
    for (size_t i = 0; i < n; i++)
        if (take_over(s, p[i], e))
            return -1;
    if (s->batch_id == batch_id) /* it held only errors */
        s->batch_id++;
    progress_at(&s->progress, s->seq, NULL);
    return 1;
}

/* Writes the error record of a failed self-check, the last record of the run. Returns -1. */
static int end_failed_check(struct session *s, const struct err *what)
{
    struct err ignored = {0};
    rec_fatal(&s->out, what, "self-check", &ignored);
    return -1;
}

/* Runs a batch unless an earlier process did, with the checks between batches. */
static int do_batch(struct session *s, struct generation_place at, const struct prompt *const *p,
                    size_t n, struct err *e)
{
    int kept = take_kept_batch(s, p, n, e);
    if (kept)
        return kept < 0 ? -1 : 0;
    if (s->loaded)
        selfcheck_before(&s->selfcheck, s->job, &s->network, at.point, p[0], &s->out);
    if (run_undisturbed(s, at, p, n, e) || rec_sync(&s->out, e))
        return -1;
    if (s->loaded && !session_stopped(s) &&
        selfcheck_after(&s->selfcheck, s->job, &s->network, &s->out, e))
        return end_failed_check(s, e);
    return 0;
}

/* Warm-up lets caches, clocks and page tables settle. It repeats the first batch, so that times can
 * be compared. The time of a cold batch is not compared. */
static int warm_up(struct session *s, struct generation_place *at, const struct prompt *const *p,
                   size_t n, struct err *e)
{
    const struct job_args *a = s->job->args;
    int64_t most = a->warmup_most > a->warmup ? a->warmup_most : a->warmup;
    size_t size = settings_count(at->point, "batch"), warm = 0;
    int64_t *ns = mem_zero((size_t)most, sizeof *ns);
    int rc = 0;
    at->steady = most ? 0 : -1;
    while (at->warmups < most && (at->warmups < a->warmup || !at->steady) && !rc &&
           !session_stopped(s)) {
        int cold = !s->batch_id;
        struct generation_place here = *at;
        here.phase = cold ? "cold" : "warmup";
        rc = run_batch(s, here, p, size < n ? size : n, &ns[warm], e);
        warm += !cold;
        at->warmups++;
        at->steady = steady_reached(ns, warm);
    }
    free(ns);
    return rc;
}

/* Lists the prompts that fit the context with the tokens that the point adds; the others get an
 * error record in the first round. Returns their number, or -1. */
static int64_t list_fitting(struct session *s, const struct settings *point, size_t round,
                            const struct prompt **p, struct err *e)
{
    const struct config *c = &s->checkpoint.config;
    size_t extent = system_extent(point), context = c->context;
    int64_t n = 0;
    for (size_t i = 0; i < s->prompts.n; i++) {
        const struct prompt *one = &s->prompts.v[i];
        if (one->input.n + extent <= context) {
            p[n++] = one;
            continue;
        }
        struct err over = {0};
        err_set(&over, EXIT_FAILED_RECORDS, "prompt '%.200s': %zu tokens and %zu to generate: "
                "expected at most %zu, the context%s", one->id, one->input.n, extent, context,
                c->rope_beta > 0 ? " (llama_4_scaling_beta, for those after it, is not built)"
                                 : "");
        if (round == 0 && session_error(s, &over, one, e))
            return -1;
    }
    return n;
}

/* A point that is running. */
struct active {
    const struct prompt **prompt; /* [fit] prompts that fit the context; owned */
    size_t fit, size;             /* prompts in a batch */
    struct generation_place at;
};

static int open_active(struct session *s, const struct settings *point, size_t round,
                       struct active *a, struct err *e)
{
    *a = (struct active){.prompt = mem_zero(s->prompts.n, sizeof *a->prompt),
                         .at = {.point = point,
                                .companion = companion_at(&s->companion, s->job, point),
                                .phase = "timed", .round = (int64_t)round, .steady = -1}};
    if (s->slowdown)
        a->at.slowdown = &s->slowdown[point - s->job->plan->point];
    int64_t fit = list_fitting(s, point, round, a->prompt, e);
    if (fit < 0)
        return -1;
    a->fit = (size_t)fit;
    a->size = memory_fit_together(point, a->fit);
    return a->fit && round == 0 ? warm_up(s, &a->at, a->prompt, a->fit, e) : 0;
}

/* The batches of prompts from..to-1. */
static int run_batches(struct session *s, const struct active *a, size_t from, size_t to,
                       struct err *e)
{
    int rc = 0;
    to = to < a->fit ? to : a->fit;
    for (size_t i = from, n; i < to && !rc && !session_stopped(s); i += n) {
        n = to - i < a->size ? to - i : a->size;
        rc = do_batch(s, a->at, a->prompt + i, n, e);
    }
    return rc;
}

static int run_point(struct session *s, const struct settings *point, size_t round,
                     struct err *e)
{
    struct active a;
    int rc = open_active(s, point, round, &a, e);
    rc = rc ? rc : run_batches(s, &a, 0, a.fit, e);
    free(a.prompt);
    return rc;
}

/* The round of entry i of the plan in its `again`-th repetition. Entries of one point have other
 * rounds in the plan, and a repetition must not meet the rounds of other entries. */
static size_t round_of(const struct run_plan *p, size_t i, size_t again)
{
    size_t rounds = 1;
    for (size_t k = 0; p->round && k < p->points; k++)
        rounds = (size_t)p->round[k] + 1 > rounds ? (size_t)p->round[k] + 1 : rounds;
    return again * rounds + (p->round ? (size_t)p->round[i] : 0);
}

/* Rounds outside, points inside: a slow drift of the machine affects all points alike. */
static int run_plan(struct session *s, struct err *e)
{
    const struct run_plan *plan = s->job->plan;
    for (size_t again = 0; again < plan->rounds; again++)
        for (size_t i = 0; i < plan->points; i++)
            if (session_stopped(s) || run_point(s, &plan->point[i], round_of(plan, i, again), e))
                return session_stopped(s) ? 0 : -1;
    return 0;
}

/* ---- in turn with other processes ---- */

typedef int sleep_until(struct turns *t, const volatile sig_atomic_t *stop, struct err *e);

/* Sleeps in turns_wait or turns_meet. 1: the turn of this process has come, or all have met; 0: a
 * signal was received; -1: *e. */
static int rest(struct session *s, sleep_until *until, struct err *e)
{
    gpu_poll_rest(s->monitor.poll, 1);
    int rc = until(s->turns, s->job->stop, e);
    gpu_poll_rest(s->monitor.poll, 0);
    return rc < 0 ? -1 : !rc;
}

/* Looks at the host while all parties are idle, and writes that in the first turn. Returns as
 * rest(). */
static int begin(struct session *s, struct err *e)
{
    int go = s->turns ? rest(s, turns_meet, e) : 1;
    json_t *look = go > 0 ? fitness_look(s) : NULL;
    if (go > 0 && s->turns)
        go = rest(s, turns_meet, e);
    if (go > 0 && s->turns)
        go = rest(s, turns_wait, e);
    if (go > 0)
        return fitness_write(s, look, e) || fitness_idle(s, "before", e) ? -1 : 1;
    json_decref(look);
    return go;
}

/* Turns that each party has with a group of prompts. works: the turns in which this party works.
 * Each of its points works once. If another party has more points, points work a second time until
 * the turns are used up, and never a third time. */
static size_t count_turns(const struct run_plan *plan, size_t *works)
{
    size_t turns = plan->units > plan->points ? plan->units : plan->points;
    *works = turns < 2 * plan->points ? turns : 2 * plan->points;
    return turns;
}

/* Runs one group of prompts in turns, a point in each. The turns in which this party works are
 * spread evenly. */
static int run_group(struct session *s, struct active *a, size_t group, size_t size, struct err *e)
{
    const struct run_plan *plan = s->job->plan;
    size_t works, done = 0, n = plan->points, turns = count_turns(plan, &works);
    struct rng draw = {rng_derive(plan->seed, "turns"), group, 0};
    uint32_t *order = mem_zero(n, sizeof *order);
    int rc = 0, go = 1;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    rng_shuffle(&draw, order, n);
    for (size_t u = 0; u < plan->rounds * turns && go > 0 && !rc; u++) {
        go = rest(s, turns_wait, e);
        if (go > 0 && done <= u * works / turns) {
            size_t i = order[done % n];
            a[i].at.round = (int64_t)round_of(plan, i, done++ / n);
            rc = run_batches(s, &a[i], group * size, (group + 1) * size, e);
        }
        turns_pass(s->turns);
    }
    free(order);
    return go < 0 ? -1 : rc;
}

/* Warms up all points in one turn, then takes a turn per group of prompts. A group is the largest
 * batch. */
static int run_in_turn(struct session *s, struct active *a, struct err *e)
{
    const struct run_plan *plan = s->job->plan;
    size_t size = 1, most = 0;
    int rc = 0;
    for (size_t i = 0; i < plan->points && !rc && !session_stopped(s); i++) {
        rc = open_active(s, &plan->point[i], round_of(plan, i, 0), &a[i], e);
        size = a[i].size > size ? a[i].size : size;
        most = a[i].fit > most ? a[i].fit : most;
    }
    turns_pass(s->turns);
    for (size_t g = 0; g * size < most && !rc && !session_stopped(s); g++)
        rc = run_group(s, a, g, size, e);
    return rc;
}

static int run_all(struct session *s, struct err *e)
{
    const struct run_plan *plan = s->job->plan;
    int go = begin(s, e);
    if (go <= 0)
        return go;
    if (!s->turns)
        return run_plan(s, e);
    struct active *a = mem_zero(plan->points, sizeof *a);
    int rc = run_in_turn(s, a, e);
    for (size_t i = 0; i < plan->points; i++)
        free(a[i].prompt);
    free(a);
    return rc;
}

static int64_t count_answers(const struct session *s)
{
    const struct run_plan *plan = s->job->plan;
    size_t works = plan->points;
    if (s->turns)
        count_turns(plan, &works);
    int64_t n = (int64_t)(plan->rounds * works * s->prompts.n);
    for (size_t i = 0; i < plan->points; i++)
        n += s->job->args->warmup * (int64_t)settings_count(&plan->point[i], "batch");
    return n;
}

int runner_run(const struct job *job, struct err *e)
{
    const struct common *c = &job->args->common;
    struct session s = {.job = job,
                        .log = {job->decoder->tool, c->quiet ? 0 : c->verbose ? 2 : 1}};
    int bad = session_open(&s, e);
    if (!bad && !job->args->explain) {
        progress_start(&s.progress, &s.log, job->args->stream ? "never" : c->progress,
                       "generations", count_answers(&s));
        bad = run_all(&s, e) ? -1 : 0;
        if (!bad && s.loaded && !session_stopped(&s) &&
            selfcheck_last(&s.selfcheck, job, &s.network, &s.out, e))
            bad = end_failed_check(&s, e);
        bad = bad || fitness_idle(&s, "after", e) ? -1 : 0;
        progress_end(&s.progress);
    }
    return session_close(&s, bad, e);
}
