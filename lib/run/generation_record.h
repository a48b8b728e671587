/* generation_record.h - writes a generation as a record.
 *
 * `point` is a hash of all that decides answers and times: model, weights (weights.h), settings,
 * engine (device, instruction set, library, formats, threads, layers outside), `conditions` (chat
 * template, reading of special tokens, a mask that the files do not say, order of offloaded layers,
 * variables of the environment).
 * `point` leaves out, each for a reason:
 * - prompts: `workload` is their identity. Seed, launch, rounds, warm-up, turns, repeats: the
 *   design of a measurement, which measure treats as such.
 * - that measured times chose the level: `isa` and `library` are part of `point`, so two choices
 *   give two points. Measured times also choose the algorithm of the GPU library for a shape, but
 *   only once for a device (kernels/cuda/product/choices.h), so launches share the choice.
 * - version and commit (also CROSSOVER_CUDA, LD_PRELOAD): most commits change no number, and the
 *   meta record names them. The machine: measure compares fingerprints.
 * - --mem-cap, --halve, --on-oom: their effects are in the record. Folders of stores and caches. */
#pragma once

#include "lib/run/monitor/gpu_monitor.h"
#include "lib/run/monitor/host_monitor.h"
#include "lib/run/job.h"
#include "lib/run/prompts/prompt.h"
#include "lib/run/probe/slowdown.h"

/* The place of a generation in its run, and what was measured around its batch. */
struct generation_place {
    const struct settings *point;
    const char *chat;         /* the template in use, or "none"; NULL: not known */
    const struct network *companion; /* the second network, if the point uses one; NULL: none */
    const struct memory *idle; /* memory of a second network that the point does not use, or NULL */
    const char *phase;        /* cold | warmup | timed */
    int64_t round, seq, batch_id;
    size_t filled;            /* prompts of this batch; the last batch may have fewer */
    const char *workload;     /* identity of the prompts of the run */
    size_t prompts;           /* prompts of the run */
    int halved;               /* 1: half of a batch that did not fit in memory */
    int64_t attempt;          /* earlier runs of this batch, which were disturbed */
    int64_t warmups, steady;  /* warm-up batches of the point; 1 steady, 0 not, -1: no warm-up */
    int64_t prepare_ns;       /* from the ids of the batch to the start of its clock */
    const struct host_monitor *host; /* NULL: nothing is timed */
    int watched;              /* 1: --trace or --stream slowed the passes */
    int64_t load_peak;        /* peak resident bytes until loading ended; -1: unknown */
    size_t load_allocated;    /* peak bytes of the back end while loading */
    const struct slowdown *slowdown; /* prediction for offloaded layers; NULL: none */
};

/* Returns the fields that name what runs: config, point, series, axis, model, all settings. The
 * caller's reference. */
json_t *generation_record_about(const struct job *job, const struct network *n,
                                const struct generation_place *at);
/* Sets the fields of offloaded layers, if there are any. */
void generation_record_put_offload(json_t *record, const struct network *n,
                                   const struct slowdown *slowdown);
/* Returns the generation record (caller's reference). tokenizer NULL: text is null with a
 * reason. */
json_t *generation_record(const struct job *job, const struct network *n,
                          const struct tokenizer *tokenizer, const struct prompt *prompt,
                          const struct generation_place *at, const struct generation *generation,
                          const struct batch_trace *trace, const struct gpu_monitor *monitor);
