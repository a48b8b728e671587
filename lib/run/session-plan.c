/* session-plan.c - what a session does about memory before it loads anything: it says what will not
 * fit, explains, and, where --on-oom asks for it, makes the run one that fits.
 *
 * The order in which a run gives way is fixed: first how many prompts run together, down to one
 * (runner.c, which halves), then the levels one after the other (saving.h), then the layers whose
 * keys and values stay in memory (lib/network/offload.h), where those alone will do, else the
 * layers that stay with their keys and values, then nothing. Steps, lengths and options that were
 * said stay: a run that would answer another question is no answer.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/run/explain.h"
#include "lib/run/memory_fit.h"
#include "lib/run/saving.h"
#include "lib/run/session.h"

/* *n and *companion = the networks that would be loaded. -1: they cannot be. */
static int settle_networks(const struct session *s, struct network *n, struct network *companion,
                           struct err *e)
{
    if (s->companion.asked && companion_settle(&s->companion, s->job, s->backend, companion, e))
        return -1;
    return engine_settle(&s->job->args->engine, n, s->backend, &s->checkpoint, e);
}

/* How the run stands as its engine is set now, with batches as they were asked for or each prompt
 * alone. -1: it cannot be had so. */
static int estimate_run(const struct session *s, int alone, struct memory_fit *f)
{
    struct network n, companion;
    engine_level(&s->job->args->engine, s->backend, &s->checkpoint, NULL); /* whose scratch it is */
    if (settle_networks(s, &n, &companion, NULL))
        return -1;
    *f = (alone ? memory_fit_for_longest : memory_fit_for_batches)(
        s->job, &n, s->companion.asked ? &companion : NULL, s->prompts.v, s->prompts.n);
    return 0;
}

void session_foresee(struct session *s)
{
    struct network n, companion;
    if (settle_networks(s, &n, &companion, NULL))
        return;
    char *lacks = memory_fit_refusal(s->job, &n, s->companion.asked ? &companion : NULL,
                                     s->prompts.v, s->prompts.n);
    if (lacks)
        log_warn(&s->log, "W105", "%s: %s; try a smaller --dtype, --quant or shorter texts, or "
                 "--on-oom plan", n.config.name, lacks);
    free(lacks);
}

/* Where layers go outside, a share of a host's memory is left for what is not the model: its
 * programs, prompts and records. */
static int fits_well(const struct memory_fit *f, const struct backend *b)
{
    enum { BESIDE_SHARE = 64 };
    return f->fits && (b->name[0] || f->bytes + f->bytes / BESIDE_SHARE <= f->available);
}

/* *outside = as few layers as the run fits with. 0: it does not, however many; then none is. */
static int put_some(struct session *s, size_t *outside, int alone)
{
    enum { IN_SLOTS = 2 }; /* so many outside save nothing */
    size_t layers = s->checkpoint.config.layers;
    struct memory_fit f;
    for (*outside = 0; *outside <= layers; *outside += *outside ? 1 : IN_SLOTS + 1)
        if (!estimate_run(s, alone, &f) && fits_well(&f, s->backend))
            return 1;
    *outside = 0;
    return 0;
}

/* Keys and values of some layers, or some layers with theirs, as far as that was not said; `plan`:
 * nor asked for. 0: that is not enough. */
static int put_outside(struct session *s, int alone, int plan)
{
    struct engine *g = &s->args.engine;
    int layers = engine_maps_itself(g->device_map) || (plan && !g->device_map);
    int kv = g->kv_map ? engine_maps_itself(g->kv_map) : layers;
    return (kv && put_some(s, &g->offload_kv, alone)) ||
           (layers && put_some(s, &g->offload, alone));
}

/* The first level from the one asked for on at which each point fits with one prompt, or the last
 * one with layers outside. Where nothing does, all stays. */
static void climb_down(struct session *s, const struct memory_fit *asked)
{
    struct engine *g = &s->args.engine;
    const char *level = g->level, *name = s->checkpoint.config.name;
    const struct saving *l = saving_named(level);
    struct memory_fit f = *asked;
    while (!f.fits && (l = saving_next(l))) {
        g->level = l->name;
        if (estimate_run(s, 1, &f))
            f.fits = 0;
    }
    int outside = !f.fits && put_outside(s, 1, 1);
    char *lacks = memory_fit_explain(asked, s->job, s->backend);
    if (outside)
        log_warn(&s->log, "W110", "%s: %s; it runs at level %s with %s%zu of %zu layers offloaded "
                 "(--on-oom plan)", name, lacks, g->level,
                 g->offload_kv ? "keys and values of " : "",
                 g->offload_kv ? g->offload_kv : g->offload, s->checkpoint.config.layers);
    else if (!f.fits)
        log_warn(&s->log, "W110", "%s: %s; no level is small enough (--on-oom plan)", name, lacks);
    else if (l)
        log_warn(&s->log, "W110", "%s: %s; it runs at level %s (--on-oom plan)", name, lacks,
                 l->name);
    if (!f.fits && !outside)
        g->level = level;
    free(lacks);
}

/* A map that is auto: with batches as asked for if that can be, else so that each prompt fits. */
static void map_layers(struct session *s)
{
    const struct engine *g = &s->args.engine;
    int layers = engine_maps_itself(g->device_map), kv = engine_maps_itself(g->kv_map);
    if ((layers || kv) && !put_outside(s, 0, 0) && !put_outside(s, 1, 0))
        log_warn(&s->log, "W112", "%s: it does not fit even with all %s offloaded (%s auto)",
                 s->checkpoint.config.name, layers ? "layers" : "keys and values",
                 layers ? "--device-map" : "--kv-map");
}

/* A host has no limit of its own: what is free now is one. */
static void plan(struct session *s)
{
    struct backend *b = s->backend;
    struct memory_fit f;
    size_t total;
    s->args.halve = 1;
    if (!b->name[0] && !b->memory.cap)
        b->ops->room(b, &b->memory.cap, &total);
    if (!estimate_run(s, 1, &f) && !f.fits)
        climb_down(s, &f);
}

/* From a device that is too small to the processor. */
static int move(struct session *s, struct err *e)
{
    struct memory_fit f;
    if (!s->backend->name[0] || estimate_run(s, 1, &f) || f.fits)
        return 0;
    char *lacks = memory_fit_explain(&f, s->job, s->backend);
    log_warn(&s->log, "W110", "%s: %s; it runs on the CPU, and records hold the times of the CPU "
             "(--on-oom cpu)", s->checkpoint.config.name, lacks);
    free(lacks);
    backend_close(s->backend);
    s->backend = NULL;
    s->args.engine.device = "cpu";
    return engine_open(&s->args.engine, &s->backend, e);
}

/* What is kept in memory after all saves none. */
static void doubt_folder(const struct session *s)
{
    const struct precision p = engine_precision(&s->args.engine, &s->checkpoint.config);
    const char *folder = offload_folder(&p.offload);
    size_t outside = p.offload.layers + (p.kv_apart ? p.offload_kv.layers : 0);
    if (outside && !s->backend->name[0] && file_in_memory(folder))
        log_warn(&s->log, "W113", "%s: this folder for offloaded layers is in memory itself, so "
                 "offloading saves nothing (choose another one with --offload-dir)", folder);
}

/* What the note of the slow-down does not tell apart. */
static void say_kv_map(const struct session *s)
{
    const struct precision p = engine_precision(&s->args.engine, &s->checkpoint.config);
    if (p.kv_apart && p.offload_kv.layers != p.offload.layers)
        log_note(&s->log, "%s: keys and values of %zu of %zu layers are offloaded, and the "
                 "matrices of %zu", s->checkpoint.config.name, p.offload_kv.layers,
                 s->checkpoint.config.layers, p.offload.layers);
}

int session_plan(struct session *s, struct err *e)
{
    const char *how = s->job->args->on_oom;
    s->args = *s->job->args;
    s->own = *s->job;
    s->own.args = &s->args;
    s->job = &s->own;
    map_layers(s);
    if (!strcmp(how, "plan"))
        plan(s);
    else if (!strcmp(how, "cpu") && move(s, e))
        return -1;
    engine_say_saving(&s->args.engine, &s->checkpoint.config, &s->log);
    say_kv_map(s);
    doubt_folder(s);
    return 0;
}

int session_slowdown(struct session *s, struct err *e)
{
    const struct run_plan *plan = s->job->plan;
    struct network n, companion;
    if (settle_networks(s, &n, &companion, NULL)) /* loading will say why */
        return 0;
    if (!network_offloads(&n))
        return 0;
    s->slowdown = mem_zero(plan->points, sizeof *s->slowdown);
    for (size_t i = 0; i < plan->points; i++) {
        struct memory_fit f = memory_fit_for_point(
            s->job, &n, s->companion.asked ? &companion : NULL, &plan->point[i], s->prompts.v,
            s->prompts.n, s->prompts.n);
        if (f.batch && slowdown_foresee(&s->slowdown[i], &n, &f.need, &f.passes, e))
            return -1;
        if (f.batch)
            slowdown_say(&s->slowdown[i], &n, &s->log);
    }
    return 0;
}

int session_explain(struct session *s, struct err *e)
{
    const struct job *job = s->job;
    struct network n, companion;
    if (settle_networks(s, &n, &companion, e) ||
        rec_open(&s->out, &job->args->common, job->decoder->tool, job->argc, job->argv, NULL, e))
        return -1;
    s->writing = 1;
    return explain_write(job, &n, s->companion.asked ? &companion : NULL, &s->prompts, &s->out,
                         &s->log, e);
}
