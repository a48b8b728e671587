/* forecast.h - modelled time and memory of a batch on any machine, present or not. Each pass
 * takes the longer of its arithmetic and its memory traffic:
 *
 *     ns of a pass = max(flops / (mfu peak flops per s), bytes / (mbu peak bytes per s))
 *
 * flops and bytes come from lib/network/cost.h; the list of passes from the decoder's schedule
 * (lib/decode/pace.h) and cache policy (lib/decode/cache). The contract is `fixed`: the number
 * of passes does not depend on the text.
 * Source: Williams, Waterman, Patterson, "Roofline", CACM 52 (2009). */
#pragma once

#include "lib/forecast/fraction.h"
#include "lib/forecast/hardware.h"
#include "lib/decode/cache/cache.h"
#include "lib/network/cost.h"

/* A batch of equal prompts. */
struct forecast_batch {
    size_t batch, prompt, length; /* prompts; tokens of a prompt; generated tokens */
    size_t steps, block;          /* diffusion: steps over all blocks, a multiple of their number */
    enum caching cache;
    struct cache_params kept;     /* parameters of the cache policy */
};
/* The arithmetic and the bandwidth that a machine reaches: shares times ceilings. */
struct forecast_reach { double flops_per_s, bytes_per_s; };
struct forecast_reach forecast_reach(const struct hardware *hardware, const struct network *n,
                                     const struct fraction *fraction);

struct forecast_time {
    double ns, first_ns;  /* of the batch; of its first pass */
    double memory_ns;     /* of passes bound by memory */
    double passes, rows;  /* rows: of one prompt */
    struct cost cost;
};
/* The time of a batch, by the paradigm of the network. *n needs only be settled (network.h). */
struct forecast_time forecast_time(const struct network *n, const struct forecast_batch *batch,
                                   const struct forecast_reach *reach);
/* The steps at which a diffusion batch takes `ns`, linear between the step counts that its blocks
 * allow; -inf: the fewest steps take longer; +inf: `batch->length` steps take less. */
double forecast_crossing(const struct network *n, const struct forecast_batch *batch,
                         const struct forecast_reach *reach, double ns);
/* forecast_crossing() on the line through the fewest and the most steps, as along.h continues
 * measured step counts. NaN: below zero. */
double forecast_meeting(const struct network *n, const struct forecast_batch *batch,
                        const struct forecast_reach *reach, double ns);

/* Bytes of weights, cache and activations as this program lays them out, without scratch of
 * operations and memory of the driver. Activations are bf16 on a GPU with bf16 arithmetic. */
struct memory_estimate forecast_memory(struct network *n, const struct forecast_batch *batch,
                                       int is_gpu);
