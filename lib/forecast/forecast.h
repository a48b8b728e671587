/* forecast.h - models time and memory of a batch on any machine, present or not. A pass takes as
 * long as its arithmetic or its memory traffic, whichever is longer:
 *
 *     seconds of a pass = max(flops / (mfu peak flops per s), bytes / (mbu peak bytes per s))
 *
 * flops and bytes come from lib/network/cost.h, the peaks from hardware.h, mfu and mbu from
 * fraction.h. The list of passes comes from the schedule (lib/decode/pace.h) and the cache policy
 * (lib/decode/cache) of the decoder. The contract is `fixed`, so the number of passes does not
 * depend on the text.
 * Source: Williams, Waterman, Patterson, "Roofline", CACM 52 (2009). */
#pragma once

#include "lib/forecast/fraction.h"
#include "lib/forecast/hardware.h"
#include "lib/decode/cache/cache.h"
#include "lib/network/cost.h"

/* A batch of prompts of equal length. */
struct forecast_batch {
    size_t batch, prompt, length; /* prompts; tokens of a prompt; generated tokens of an answer */
    size_t steps, block;          /* diffusion: steps over all blocks, a multiple of their number */
    enum caching cache;
    struct cache_params kept;     /* parameters of the cache policy */
};
/* The arithmetic and the bandwidth that a network reaches on a machine: shares times ceilings. */
struct forecast_reach { double flops_per_s, bytes_per_s; };
struct forecast_reach forecast_reach(const struct hardware *hardware, const struct network *n,
                                     const struct fraction *fraction);

struct forecast_time {
    double ns, first_ns;  /* time of the batch; of its first pass */
    double memory_ns;     /* time of the passes that memory bounds */
    double passes, rows;  /* passes of the batch; rows computed for one prompt */
    struct cost cost;
};
/* The time of a batch on a diffusion or autoregressive network. *n must be settled (network.h); it
 * need not be loaded. */
struct forecast_time forecast_time(const struct network *n, const struct forecast_batch *batch,
                                   const struct forecast_reach *reach);
/* The steps at which a diffusion batch takes `ns`, interpolated linearly between the step counts
 * that its blocks allow. -inf: the fewest steps take longer. +inf: batch->length steps take
 * less. */
double forecast_crossing(const struct network *n, const struct forecast_batch *batch,
                         const struct forecast_reach *reach, double ns);
/* forecast_crossing(), but an infinite result is replaced by the step count on the line through the
 * fewest and the most steps, as along.h continues the line of measured step counts. NaN: that step
 * count is not above 0. */
double forecast_meeting(const struct network *n, const struct forecast_batch *batch,
                        const struct forecast_reach *reach, double ns);

/* Bytes of weights, cache and activations as this program lays them out. Scratch of operations (the
 * back end of forecasts is ref) and memory of the driver are left out. is_gpu 1: activations are
 * bf16 if the network computes in bf16. Sets n->backend->act. */
struct memory_estimate forecast_memory(struct network *n, const struct forecast_batch *batch,
                                       int is_gpu);
