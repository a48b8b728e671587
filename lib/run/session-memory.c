/* session-memory.c - the memory of a session before anything is loaded: warns of runs that do not
 * fit, writes --explain, and changes the run with --on-oom so that it fits.
 *
 * Order of the changes: first fewer prompts together, down to one (runner.c halves batches); then
 * the levels one after the other (saving.h); then keys and values of some layers are offloaded
 * (lib/network/offload.h) if that is enough, else whole layers. Steps, lengths and given options
 * never change: the run would answer another question. */
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

/* *f = the memory of the run with the present engine options, with whole batches or each prompt
 * alone. -1: the networks cannot be loaded so. */
static int estimate_run(const struct session *s, int alone, struct memory_fit *f)
{
    struct network n, companion;
    engine_level(&s->job->args->engine, s->backend, &s->checkpoint, NULL); /* sets its scratch */
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

/* With offloaded layers a share of a host's memory must stay free for programs, prompts and
 * records. */
static int fits_with_reserve(const struct memory_fit *f, const struct backend *b)
{
    enum { BESIDE_SHARE = 64 };
    return f->fits && (b->name[0] || f->bytes + f->bytes / BESIDE_SHARE <= f->available);
}

/* *outside = the fewest offloaded layers with which the run fits. 0: it never fits; *outside is 0
 * then. */
static int offload_fewest(struct session *s, size_t *outside, int alone)
{
    enum { IN_SLOTS = 2 }; /* these stay in memory, so offloading so few saves nothing */
    size_t layers = s->checkpoint.config.layers;
    struct memory_fit f;
    for (*outside = 0; *outside <= layers; *outside += *outside ? 1 : IN_SLOTS + 1)
        if (!estimate_run(s, alone, &f) && fits_with_reserve(&f, s->backend))
            return 1;
    *outside = 0;
    return 0;
}

/* Offloads keys and values of some layers, or else whole layers, unless the options set these maps.
 * automatic: maps that are not given count as auto. 0: that is not enough. */
static int offload_layers_or_kv(struct session *s, int alone, int automatic)
{
    struct engine *g = &s->args.engine;
    int layers = engine_maps_itself(g->device_map) || (automatic && !g->device_map);
    int kv = g->kv_map ? engine_maps_itself(g->kv_map) : layers;
    return (kv && offload_fewest(s, &g->offload_kv, alone)) ||
           (layers && offload_fewest(s, &g->offload, alone));
}

/* Sets the first level, from the given one on, at which each point fits with one prompt; else the
 * last level with offloaded layers. If nothing fits, no option changes. */
static void choose_level(struct session *s, const struct memory_fit *asked)
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
    int outside = !f.fits && offload_layers_or_kv(s, 1, 1);
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

/* Settles maps that are auto: so that whole batches fit, or else each prompt alone. */
static void map_layers(struct session *s)
{
    const struct engine *g = &s->args.engine;
    int layers = engine_maps_itself(g->device_map), kv = engine_maps_itself(g->kv_map);
    if ((layers || kv) && !offload_layers_or_kv(s, 0, 0) && !offload_layers_or_kv(s, 1, 0))
        log_warn(&s->log, "W112", "%s: it does not fit even with all %s offloaded (%s auto)",
                 s->checkpoint.config.name, layers ? "layers" : "keys and values",
                 layers ? "--device-map" : "--kv-map");
}

/* --on-oom plan. A host has no limit of its own: its free memory is the limit. */
static void make_room(struct session *s)
{
    struct backend *b = s->backend;
    struct memory_fit f;
    size_t total;
    s->args.halve = 1;
    if (!b->name[0] && !b->memory.cap)
        b->ops->room(b, &b->memory.cap, &total);
    if (!estimate_run(s, 1, &f) && !f.fits)
        choose_level(s, &f);
}

/* --on-oom cpu: moves the run from a device that is too small to the CPU. */
static int move_to_cpu(struct session *s, struct err *e)
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

/* Warns if the store of offloaded layers is itself in memory. */
static void doubt_folder(const struct session *s)
{
    const struct precision p = engine_precision(&s->args.engine, &s->checkpoint.config);
    const char *folder = offload_folder(&p.offload);
    size_t outside = p.offload.layers + (p.kv_apart ? p.offload_kv.layers : 0);
    if (outside && !s->backend->name[0] && file_in_memory(folder))
        log_warn(&s->log, "W113", "%s: this folder for offloaded layers is in memory itself, so "
                 "offloading saves nothing (choose another one with --offload-dir)", folder);
}

/* Prints how many layers are offloaded, if keys and values differ from matrices. */
static void say_kv_map(const struct session *s)
{
    const struct precision p = engine_precision(&s->args.engine, &s->checkpoint.config);
    if (p.kv_apart && p.offload_kv.layers != p.offload.layers)
        log_note(&s->log, "%s: keys and values of %zu of %zu layers are offloaded, and the "
                 "matrices of %zu", s->checkpoint.config.name, p.offload_kv.layers,
                 s->checkpoint.config.layers, p.offload.layers);
}

int session_settle_memory(struct session *s, struct err *e)
{
    const char *how = s->job->args->on_oom;
    s->args = *s->job->args;
    s->own = *s->job;
    s->own.args = &s->args;
    s->job = &s->own;
    map_layers(s);
    if (!strcmp(how, "plan"))
        make_room(s);
    else if (!strcmp(how, "cpu") && move_to_cpu(s, e))
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
