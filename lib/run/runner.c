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
#include "lib/run/inputs.h"
#include "lib/run/session.h"
#include "lib/run/steady.h"
#include "lib/setting/system.h"

/* Logs the memory of a batch without the weights, and its estimate. */
static void note_memory(const struct session *run, const struct batch_trace *trace)
{
    const size_t *kind = trace->memory.kind;
    log_more(&run->log, "batch %lld: %zu bytes of cache (%zu estimated), %zu of activations (%zu)",
             (long long)run->batch_id, kind[MEMORY_KV], trace->estimate.kv,
             kind[MEMORY_ACTIVATIONS], trace->estimate.activations);
}

static int write_generation(struct session *run, const struct prompt *prompt,
                            struct generation_place *at, const struct generation *generation,
                            const struct batch_trace *trace, struct err *e)
{
    if (generation->bad) {
        struct err bad = {0};
        err_set(&bad, EXIT_INTERNAL,
                "prompt '%.200s': the logits hold a NaN or an infinity: expected numbers",
                prompt->id);
        return session_error(run, &bad, prompt, e);
    }
    if (generation->oom)
        session_worse(run, EXIT_FAILED_RECORDS);
    at->host = run->timed ? &run->host : NULL;
    at->load_peak = run->load_peak;
    at->load_allocated = run->load_allocated;
    at->seq = run->seq++;
    at->workload = run->workload;
    at->prompts = promptset_at(&run->prompts, at->point)->n;
    return rec_write(&run->out, "generation",
                     generation_record(run->job, &run->network, run->tokenizer, prompt, at,
                                       generation, trace, &run->monitor),
                     e);
}

/* Returns freed memory. Otherwise this batch would show the memory of an earlier batch. */
static void trim(struct session *run)
{
    if (run->backend->ops->trim)
        run->backend->ops->trim(run->backend);
    resident_trim();
}

/* A batch must free all its memory: bytes in use are the same after every batch. */
static void check_given_back(struct session *run)
{
    size_t now = run->backend->memory.requested;
    if (run->live && now > run->live)
        log_warn(&run->log, "W111", "memory leak: batch %lld left %zu bytes allocated. This is a "
                 "bug: please report the command line.", (long long)run->batch_id, now - run->live);
    run->live = now;
}

/* Generates n prompts together: out[n], *trace. -1: the trace cannot be written. */
static int generate(struct session *run, const struct generation_place *at,
                    const struct prompt *const *prompt, size_t n, struct generation *out,
                    struct batch_trace *trace, struct err *e)
{
    int bad = 0;
    const struct job *job = run->job;
    struct generation_input *in = inputs_make(run->job->plan, at, prompt, n);
    if (!strcmp(job->args->trim, "batch"))
        trim(run);
    memory_reset_peak(&run->backend->memory);
    gpu_monitor_begin(&run->monitor);
    if (run->timed)
        host_monitor_begin(&run->host);
    *trace = (struct batch_trace){0};
    if (run->loaded) {
        const struct decode_env env = {
            .prepare = !!strcmp(at->phase, "cold"), .seed = job->plan->seed, .stop = job->stop,
            .companion = at->companion,
            .observer = watcher_begin(&run->watch, &run->network, at, prompt, out, n),
            .latents = job->latents};
        job->decoder->run(&run->network, at->point, &env, in, n, out, trace);
        bad = watcher_end(&run->watch, e);
        note_memory(run, trace);
        check_given_back(run);
    } else {
        generation_batch_begin(trace);
        trace->memory = run->backend->memory;
    }
    if (run->timed)
        host_monitor_end(&run->host);
    gpu_monitor_end(&run->monitor, trace);
    if (gpu_monitor_layers(&run->monitor, &trace->memory) == 0)
        log_warn(&run->log, "W102", "batch %lld: memory counters do not satisfy requested <= "
                 "allocated <= reserved <= process", (long long)run->batch_id);
    for (size_t i = 0; i < n; i++)
        out[i].oom |= !run->loaded;
    free(in);
    return bad;
}

static void say_parts(struct session *run, size_t n, size_t half)
{
    if (run->parted || strcmp(run->job->args->on_oom, "plan"))
        log_more(&run->log, "%zu prompts do not fit together: %zu and %zu", n, half, n - half);
    else
        log_note(&run->log,
                 "%zu prompts do not fit together: they and later batches run as halves, "
                 "here %zu and %zu (batch_halved in their records)", n, half, n - half);
    run->parted = 1;
}

/* Generates n prompts together and writes their records; with --halve as two batches in sequence if
 * they do not fit. *ns: time of the batch. */
static int run_batch(struct session *run, struct generation_place at,
                     const struct prompt *const *prompt, size_t n, int64_t *ns, struct err *e)
{
    struct generation *out = mem_zero(n, sizeof *out);
    struct batch_trace trace;
    int64_t begin = clock_ns();
    at.batch_id = run->batch_id;
    at.seq = run->seq;
    at.watched = watcher_looks_closely(run->job);
    int rc = generate(run, &at, prompt, n, out, &trace, e);
    at.prepare_ns = trace.start_ns - begin;
    *ns = trace.makespan_ns;
    int halve = run->loaded && run->job->args->halve && n > 1 && out[0].oom;
    run->batch_id += !halve;
    at.filled = settings_count(at.point, "batch");
    at.filled = n < at.filled ? n : at.filled;
    for (size_t i = 0; i < n && !halve && !rc && !trace.interrupted; i++)
        rc = write_generation(run, prompt[i], &at, &out[i], &trace, e);
    for (size_t i = 0; i < n; i++)
        generation_free(&out[i]);
    free(out);
    if (!halve || rc) {
        progress_at(&run->progress, run->seq, at.phase);
        return rc;
    }
    size_t half = n - n / 2;
    say_parts(run, n, half);
    at.halved = 1;
    rc = run_batch(run, at, prompt, half, ns, e);
    at.phase = strcmp(at.phase, "cold") ? at.phase : "warmup"; /* only the first batch is cold */
    return rc || session_stopped(run) ? rc : run_batch(run, at, prompt + half, n - half, ns, e);
}

/* Runs a batch, and repeats it while host or GPU disturb it. Records of the repeated runs are
 * tainted, those of the last run may be. The number of repeats is limited, so that a run ends on a
 * machine that is never quiet. */
static int run_undisturbed(struct session *run, struct generation_place at,
                           const struct prompt *const *prompt, size_t n, struct err *e)
{
    enum { SPARE = 8, SHARE = 4 };
    int64_t ns;
    int rc = run_batch(run, at, prompt, n, &ns, e);
    for (run->batches++;
         !rc && run->timed && !session_stopped(run) && at.attempt < run->job->args->again &&
         run->again < SPARE + run->batches / SHARE &&
         (host_monitor_taints(&run->host.seen) || gpu_monitor_tainted(&run->monitor));
         run->again++) {
        at.attempt++;
        rc = run_batch(run, at, prompt, n, &ns, e);
    }
    return rc;
}

/* Takes over the next record of an earlier process. -1: that is not the record of `prompt`. */
static int take_over(struct session *run, const struct prompt *prompt, struct err *e)
{
    const json_t *kept = rec_kept(&run->out);
    if (!kept)
        return rec_fail_kept(&run->out, e);
    if (rec_is(kept, "kind", "generation") && rec_is(kept, "id", prompt->id) &&
        rec_int(kept, "seq", -1) == run->seq) {
        int64_t batch_id = rec_int(kept, "batch_id", -1);
        session_worse(run, rec_is(kept, "status", "ok") ? EXIT_OK : EXIT_FAILED_RECORDS);
        if (batch_id >= run->batch_id)
            run->batch_id = batch_id + 1;
        run->seq++;
    } else if (rec_is(kept, "kind", "error") && rec_is(kept, "where", prompt->where)) {
        session_worse(run, EXIT_INTERNAL); /* NaN is the only error of a batch */
    } else {
        return err_set(e, EXIT_BAD_DATA, "%s: its work file has another record at the place of "
                       "prompt '%.200s' (--fresh starts again)", run->job->args->common.output,
                       prompt->id);
    }
    rec_keep(&run->out);
    return 0;
}

/* Takes over a batch whose records an earlier process has written completely, and returns 1. If
 * they are incomplete, drops them and returns 0. -1: *e. */
static int take_kept_batch(struct session *run, const struct prompt *const *prompt, size_t n,
                           struct err *e)
{
    int64_t batch_id = run->batch_id;
    if (rec_kept_left(&run->out) < (int64_t)n)
        return rec_drop_kept(&run->out, e);
    for (size_t i = 0; i < n; i++)
        if (take_over(run, prompt[i], e))
            return -1;
    if (run->batch_id == batch_id) /* the batch held only errors */
        run->batch_id++;
    progress_at(&run->progress, run->seq, NULL);
    return 1;
}

/* Writes the error record of a failed self-check, the last record of the run. Returns -1. */
static int end_failed_check(struct session *run, const struct err *what)
{
    struct err ignored = {0};
    rec_fatal(&run->out, what, "self-check", &ignored);
    return -1;
}

/* Runs a batch unless an earlier process did, with the checks between batches. */
static int do_batch(struct session *run, struct generation_place at,
                    const struct prompt *const *prompt, size_t n, struct err *e)
{
    int kept = take_kept_batch(run, prompt, n, e);
    if (kept)
        return kept < 0 ? -1 : 0;
    if (run->loaded)
        selfcheck_before(&run->selfcheck, run->job, &run->network, at.point, prompt[0], &run->out);
    if (run_undisturbed(run, at, prompt, n, e) || rec_sync(&run->out, e))
        return -1;
    if (run->loaded && !session_stopped(run) &&
        selfcheck_after(&run->selfcheck, run->job, &run->network, &run->out, e))
        return end_failed_check(run, e);
    return 0;
}

/* Warm-up lets caches, clocks and page tables settle. The first batch is repeated, so that times
 * can be compared. The time of a cold batch is not compared. */
static int warm_up(struct session *run, struct generation_place *at,
                   const struct prompt *const *prompt, size_t n, struct err *e)
{
    const struct job_args *args = run->job->args;
    int64_t most = args->warmup_most > args->warmup ? args->warmup_most : args->warmup;
    size_t size = settings_count(at->point, "batch"), warm = 0;
    int64_t *ns = mem_zero((size_t)most, sizeof *ns);
    int rc = 0;
    at->steady = most ? 0 : -1;
    while (at->warmups < most && (at->warmups < args->warmup || !at->steady) && !rc &&
           !session_stopped(run)) {
        int cold = !run->batch_id;
        struct generation_place here = *at;
        here.phase = cold ? "cold" : "warmup";
        rc = run_batch(run, here, prompt, size < n ? size : n, &ns[warm], e);
        warm += !cold;
        at->warmups++;
        at->steady = steady_reached(ns, warm);
    }
    free(ns);
    return rc;
}

/* Lists the prompts that fit the context with the tokens that the point adds; the others get an
 * error record in the first round. Returns their number, or -1. */
static int64_t list_fitting(struct session *run, const struct settings *point, size_t round,
                            const struct prompt **prompt, struct err *e)
{
    const struct config *config = &run->checkpoint.config;
    size_t extent = system_extent(point), context = config->context;
    int64_t n = 0;
    const struct prompts *prompts = promptset_at(&run->prompts, point);
    for (size_t i = 0; i < prompts->n; i++) {
        const struct prompt *one = &prompts->v[i];
        if (one->input.n + extent <= context) {
            prompt[n++] = one;
            continue;
        }
        struct err over = {0};
        err_set(&over, EXIT_FAILED_RECORDS, "prompt '%.200s': %zu tokens and %zu to generate: "
                "expected at most %zu, the context%s", one->id, one->input.n, extent, context,
                config->rope_beta > 0 ? " (llama_4_scaling_beta, for those after it, is not built)"
                                      : "");
        if (round == 0 && session_error(run, &over, one, e))
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

static int open_active(struct session *run, const struct settings *point, size_t round,
                       struct active *active, struct err *e)
{
    *active = (struct active){.prompt = mem_zero(run->prompts.n, sizeof *active->prompt),
                              .at = {.point = point,
                                     .chat = run->chat[settings_count(point, "chat_template")],
                                     .companion = companion_at(&run->companion, run->job, point),
                                     .idle = companion_idle(&run->companion, run->job, point),
                                     .phase = "timed", .round = (int64_t)round, .steady = -1}};
    if (run->slowdown)
        active->at.slowdown = &run->slowdown[point - run->job->plan->point];
    int64_t fit = list_fitting(run, point, round, active->prompt, e);
    if (fit < 0)
        return -1;
    active->fit = (size_t)fit;
    active->size = memory_fit_together(point, active->fit);
    return active->fit && round == 0 ? warm_up(run, &active->at, active->prompt, active->fit, e)
                                     : 0;
}

/* Runs the batches of prompts from..to-1. */
static int run_batches(struct session *run, const struct active *active, size_t from, size_t to,
                       struct err *e)
{
    int rc = 0;
    to = to < active->fit ? to : active->fit;
    for (size_t i = from, n; i < to && !rc && !session_stopped(run); i += n) {
        n = to - i < active->size ? to - i : active->size;
        rc = do_batch(run, active->at, active->prompt + i, n, e);
    }
    return rc;
}

static int run_point(struct session *run, const struct settings *point, size_t round,
                     struct err *e)
{
    struct active active;
    int rc = open_active(run, point, round, &active, e);
    rc = rc ? rc : run_batches(run, &active, 0, active.fit, e);
    free(active.prompt);
    return rc;
}

/* Returns the round of entry i of the plan in repetition `again`. Entries of one point have
 * different rounds in the plan, and a repetition must not use a round of another entry. */
static size_t round_of(const struct run_plan *plan, size_t i, size_t again)
{
    return again * (run_plan_rounds(plan) / plan->rounds) +
           (plan->round ? (size_t)plan->round[i] : 0);
}

/* Rounds outside, points inside: a slow drift of the machine affects all points alike. */
static int run_plan(struct session *run, struct err *e)
{
    const struct run_plan *plan = run->job->plan;
    for (size_t again = 0; again < plan->rounds; again++)
        for (size_t i = 0; i < plan->points; i++)
            if (session_stopped(run) ||
                run_point(run, &plan->point[i], round_of(plan, i, again), e))
                return session_stopped(run) ? 0 : -1;
    return 0;
}

/* ---- turns with other processes ---- */

typedef int sleep_until(struct turns *turns, const volatile sig_atomic_t *stop, struct err *e);

/* Sleeps in turns_wait or turns_meet. Returns 1 if the turn of this process has come or all have
 * met, 0 if a signal was received, -1: *e. */
static int rest(struct session *run, sleep_until *until, struct err *e)
{
    gpu_poll_rest(run->monitor.poll, 1);
    int rc = until(run->turns, run->job->stop, e);
    gpu_poll_rest(run->monitor.poll, 0);
    return rc < 0 ? -1 : !rc;
}

/* Looks at the host while all parties are idle, and writes the result in the first turn. Returns as
 * rest(). */
static int begin(struct session *run, struct err *e)
{
    int go = run->turns ? rest(run, turns_meet, e) : 1;
    json_t *look = go > 0 ? fitness_look(run) : NULL;
    if (go > 0 && run->turns)
        go = rest(run, turns_meet, e);
    if (go > 0 && run->turns)
        go = rest(run, turns_wait, e);
    if (go > 0)
        return fitness_write(run, look, e) || fitness_idle(run, "before", e) ? -1 : 1;
    json_decref(look);
    return go;
}

/* Returns the turns that each party has with a group of prompts. *works = the turns in which this
 * party works. Each of its points works once. If another party has more points, points work a
 * second time until the turns are used up, and never a third time. */
static size_t count_turns(const struct run_plan *plan, size_t *works)
{
    size_t turns = plan->units > plan->points ? plan->units : plan->points;
    *works = turns < 2 * plan->points ? turns : 2 * plan->points;
    return turns;
}

/* Runs one group of prompts in turns, a point in each. The turns in which this party works are
 * spread evenly. */
static int run_group(struct session *run, struct active *active, size_t group, size_t size,
                     struct err *e)
{
    const struct run_plan *plan = run->job->plan;
    size_t works, done = 0, n = plan->points, turns = count_turns(plan, &works);
    struct rng draw = {rng_derive(plan->seed, "turns"), group, 0};
    uint32_t *order = mem_zero(n, sizeof *order);
    int rc = 0, go = 1;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    rng_shuffle(&draw, order, n);
    for (size_t unit = 0; unit < plan->rounds * turns && go > 0 && !rc; unit++) {
        go = rest(run, turns_wait, e);
        if (go > 0 && done <= unit * works / turns) {
            size_t i = order[done % n];
            active[i].at.round = (int64_t)round_of(plan, i, done++ / n);
            rc = run_batches(run, &active[i], group * size, (group + 1) * size, e);
        }
        turns_pass(run->turns);
    }
    free(order);
    return go < 0 ? -1 : rc;
}

/* Warms up all points in one turn, then takes a turn per group of prompts. A group is the largest
 * batch. */
static int run_in_turn(struct session *run, struct active *active, struct err *e)
{
    const struct run_plan *plan = run->job->plan;
    size_t size = 1, most = 0;
    int rc = 0;
    for (size_t i = 0; i < plan->points && !rc && !session_stopped(run); i++) {
        rc = open_active(run, &plan->point[i], round_of(plan, i, 0), &active[i], e);
        size = active[i].size > size ? active[i].size : size;
        most = active[i].fit > most ? active[i].fit : most;
    }
    turns_pass(run->turns);
    for (size_t g = 0; g * size < most && !rc && !session_stopped(run); g++)
        rc = run_group(run, active, g, size, e);
    return rc;
}

static int run_all(struct session *run, struct err *e)
{
    const struct run_plan *plan = run->job->plan;
    int go = begin(run, e);
    if (go <= 0)
        return go;
    if (!run->turns)
        return run_plan(run, e);
    struct active *active = mem_zero(plan->points, sizeof *active);
    int rc = run_in_turn(run, active, e);
    for (size_t i = 0; i < plan->points; i++)
        free(active[i].prompt);
    free(active);
    return rc;
}

static int64_t count_answers(const struct session *run)
{
    const struct run_plan *plan = run->job->plan;
    size_t works = plan->points;
    if (run->turns)
        count_turns(plan, &works);
    int64_t n = (int64_t)(plan->rounds * works * run->prompts.n);
    for (size_t i = 0; i < plan->points; i++)
        n += run->job->args->warmup * (int64_t)settings_count(&plan->point[i], "batch");
    return n;
}

int runner_run(const struct job *job, struct err *e)
{
    const struct common *common = &job->args->common;
    struct session run = {.job = job,
                          .log = {job->decoder->tool, common->quiet ? 0 : common->verbose ? 2 : 1}};
    int bad = session_open(&run, e);
    if (!bad && !job->args->explain) {
        progress_start(&run.progress, &run.log, job->args->stream ? "never" : common->progress,
                       "generations", count_answers(&run));
        bad = run_all(&run, e) ? -1 : 0;
        if (!bad && run.loaded && !session_stopped(&run) &&
            selfcheck_last(&run.selfcheck, job, &run.network, &run.out, e))
            bad = end_failed_check(&run, e);
        bad = bad || fitness_idle(&run, "after", e) ? -1 : 0;
        progress_end(&run.progress);
    }
    return session_close(&run, bad, e);
}
