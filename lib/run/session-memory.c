/* session-memory.c - handles the memory of a session before anything is loaded: warns of runs that
 * do not fit, writes --explain, and changes the run by --on-oom so that it fits.
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

/* *n and *companion = the networks that would be loaded. Returns -1 if they cannot be loaded. */
static int settle_networks(const struct session *session, struct network *n,
                           struct network *companion, struct err *e)
{
    if (session->companion.asked &&
        companion_settle(&session->companion, session->job, session->backend, companion, e))
        return -1;
    return engine_settle(&session->job->args->engine, n, session->backend, &session->checkpoint, e);
}

/* *fit = the memory of the run with the present engine options: with whole batches, or with each
 * prompt `alone`. Returns -1 if the networks cannot be loaded with these options. */
static int estimate_run(const struct session *session, int alone, struct memory_fit *fit)
{
    struct network n, companion;
    /* the level decides how much scratch memory products need */
    engine_level(&session->job->args->engine, session->backend, &session->checkpoint, NULL);
    if (settle_networks(session, &n, &companion, NULL))
        return -1;
    *fit = (alone ? memory_fit_for_longest : memory_fit_for_batches)(
        session->job, &n, session->companion.asked ? &companion : NULL, &session->prompts);
    return 0;
}

void session_foresee(struct session *session)
{
    struct network n, companion;
    if (settle_networks(session, &n, &companion, NULL))
        return;
    char *lacks = memory_fit_refusal(session->job, &n, session->companion.asked ? &companion : NULL,
                                     &session->prompts);
    if (lacks)
        log_warn(&session->log, "W105",
                 "%s: %s; try a smaller --dtype, --quant or shorter texts, or "
                 "--on-oom plan", n.config.name, lacks);
    free(lacks);
}

/* With offloaded layers a share of a host's memory must stay free for programs, prompts and
 * records. */
static int fits_with_reserve(const struct memory_fit *fit, const struct backend *backend)
{
    enum { BESIDE_SHARE = 64 };
    return fit->fits &&
           (backend->name[0] || fit->bytes + fit->bytes / BESIDE_SHARE <= fit->available);
}

/* *outside = the fewest offloaded layers with which the run fits. Returns 0, and sets *outside to
 * 0, if the run never fits. */
static int offload_fewest(struct session *session, size_t *outside, int alone)
{
    enum { IN_SLOTS = 2 }; /* layers in memory at a time, so offloading so few saves nothing */
    size_t layers = session->checkpoint.config.layers;
    struct memory_fit fit;
    for (*outside = 0; *outside <= layers; *outside += *outside ? 1 : IN_SLOTS + 1)
        if (!estimate_run(session, alone, &fit) && fits_with_reserve(&fit, session->backend))
            return 1;
    *outside = 0;
    return 0;
}

/* Offloads keys and values of some layers, or else whole layers, unless the options set these maps.
 * automatic 1: maps that are not given count as auto. Returns 0 if that is not enough. */
static int offload_layers_or_kv(struct session *session, int alone, int automatic)
{
    struct engine *engine = &session->args.engine;
    int layers = engine_maps_itself(engine->device_map) || (automatic && !engine->device_map);
    int kv = engine->kv_map ? engine_maps_itself(engine->kv_map) : layers;
    return (kv && offload_fewest(session, &engine->offload_kv, alone)) ||
           (layers && offload_fewest(session, &engine->offload, alone));
}

/* Sets the first level, from the given one on, at which each point fits with one prompt; else the
 * last level with offloaded layers. If nothing fits, no option changes. */
static void choose_level(struct session *session, const struct memory_fit *asked)
{
    struct engine *engine = &session->args.engine;
    const char *level = engine->level, *name = session->checkpoint.config.name;
    const struct saving *saving = saving_named(level);
    struct memory_fit fit = *asked;
    while (!fit.fits && (saving = saving_next(saving))) {
        engine->level = saving->name;
        if (estimate_run(session, 1, &fit))
            fit.fits = 0;
    }
    int outside = !fit.fits && offload_layers_or_kv(session, 1, 1);
    char *lacks = memory_fit_explain(asked, session->job, session->backend);
    if (outside)
        log_warn(&session->log, "W110",
                 "%s: %s; it runs at level %s with %s%zu of %zu layers offloaded "
                 "(--on-oom plan)", name, lacks, engine->level,
                 engine->offload_kv ? "keys and values of " : "",
                 engine->offload_kv ? engine->offload_kv : engine->offload,
                 session->checkpoint.config.layers);
    else if (!fit.fits)
        log_warn(&session->log, "W110", "%s: %s; no level is small enough (--on-oom plan)", name,
                 lacks);
    else if (saving)
        log_warn(&session->log, "W110", "%s: %s; it runs at level %s (--on-oom plan)", name, lacks,
                 saving->name);
    if (!fit.fits && !outside)
        engine->level = level;
    free(lacks);
}

/* Settles maps that are auto, so that whole batches fit, or else each prompt alone. */
static void map_layers(struct session *session)
{
    const struct engine *engine = &session->args.engine;
    int layers = engine_maps_itself(engine->device_map), kv = engine_maps_itself(engine->kv_map);
    if ((layers || kv) && !offload_layers_or_kv(session, 0, 0) &&
        !offload_layers_or_kv(session, 1, 0))
        log_warn(&session->log, "W112", "%s: it does not fit even with all %s offloaded (%s auto)",
                 session->checkpoint.config.name, layers ? "layers" : "keys and values",
                 layers ? "--device-map" : "--kv-map");
}

/* --on-oom plan. A host without --mem-cap has no limit, so its free memory becomes the limit. */
static void make_room(struct session *session)
{
    struct backend *backend = session->backend;
    struct memory_fit fit;
    size_t total;
    session->args.halve = 1;
    if (!backend->name[0] && !backend->memory.cap)
        backend->ops->room(backend, &backend->memory.cap, &total);
    if (!estimate_run(session, 1, &fit) && !fit.fits)
        choose_level(session, &fit);
}

/* --on-oom cpu: moves the run from a device that is too small to the CPU. */
static int move_to_cpu(struct session *session, struct err *e)
{
    struct memory_fit fit;
    if (!session->backend->name[0] || estimate_run(session, 1, &fit) || fit.fits)
        return 0;
    char *lacks = memory_fit_explain(&fit, session->job, session->backend);
    log_warn(&session->log, "W110",
             "%s: %s; it runs on the CPU, and records hold the times of the CPU "
             "(--on-oom cpu)", session->checkpoint.config.name, lacks);
    free(lacks);
    backend_close(session->backend);
    session->backend = NULL;
    session->args.engine.device = "cpu";
    return engine_open(&session->args.engine, &session->backend, e);
}

/* Warns if the store of offloaded layers is itself in memory. */
static void doubt_folder(const struct session *session)
{
    const struct precision precision = engine_precision(&session->args.engine,
                                                        &session->checkpoint.config);
    const char *folder = offload_folder(&precision.offload);
    size_t outside = precision.offload.layers +
                     (precision.kv_apart ? precision.offload_kv.layers : 0);
    if (outside && !session->backend->name[0] && file_in_memory(folder))
        log_warn(&session->log, "W113",
                 "%s: this folder for offloaded layers is in memory itself, so "
                 "offloading saves nothing (choose another one with --offload-dir)", folder);
}

/* Prints how many layers are offloaded, if keys and values differ from matrices. */
static void say_kv_map(const struct session *session)
{
    const struct precision precision = engine_precision(&session->args.engine,
                                                        &session->checkpoint.config);
    if (precision.kv_apart && precision.offload_kv.layers != precision.offload.layers)
        log_note(&session->log, "%s: keys and values of %zu of %zu layers are offloaded, and the "
                 "matrices of %zu", session->checkpoint.config.name, precision.offload_kv.layers,
                 session->checkpoint.config.layers, precision.offload.layers);
}

int session_settle_memory(struct session *session, struct err *e)
{
    const char *how = session->job->args->on_oom;
    session->args = *session->job->args;
    session->own = *session->job;
    session->own.args = &session->args;
    session->job = &session->own;
    map_layers(session);
    if (!strcmp(how, "plan"))
        make_room(session);
    else if (!strcmp(how, "cpu") && move_to_cpu(session, e))
        return -1;
    engine_say_saving(&session->args.engine, &session->checkpoint.config, &session->log);
    say_kv_map(session);
    doubt_folder(session);
    return 0;
}

int session_slowdown(struct session *session, struct err *e)
{
    const struct run_plan *plan = session->job->plan;
    struct network n, companion;
    if (settle_networks(session, &n, &companion, NULL)) /* loading will say why */
        return 0;
    if (!network_offloads(&n))
        return 0;
    session->slowdown = mem_zero(plan->points, sizeof *session->slowdown);
    for (size_t i = 0; i < plan->points; i++) {
        struct memory_fit fit = memory_fit_for_point(
            session->job, &n, session->companion.asked ? &companion : NULL, &plan->point[i],
            &session->prompts, session->prompts.n);
        if (fit.batch && slowdown_foresee(&session->slowdown[i], &n, &fit.need, &fit.passes, e))
            return -1;
        if (fit.batch)
            slowdown_say(&session->slowdown[i], &n, &session->log);
    }
    return 0;
}

int session_explain(struct session *session, struct err *e)
{
    const struct job *job = session->job;
    struct network n, companion;
    if (settle_networks(session, &n, &companion, e) ||
        rec_open(&session->out, &job->args->common, job->decoder->tool, job->argc, job->argv, NULL,
                 e))
        return -1;
    session->writing = 1;
    return explain_write(job, &n, session->companion.asked ? &companion : NULL, &session->prompts,
                         &session->out, &session->log, e);
}
