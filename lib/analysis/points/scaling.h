/* scaling.h - where the advantage changes hands as the load grows: the batch size, and the length,
 * at which a diffusion model costs as much as the autoregressive one beside it.
 *
 * A track is one diffusion setting at several batch sizes, all else equal, or at several lengths
 * with the same number of tokens a step. At each of its points stands the ratio of its cost to that
 * of the autoregressive point of the same device, batch size, length, contract and number format.
 * Where the ratio's logarithm, monotone and linear in log2 of the batch size or length, is zero, is
 * the crossover; nothing is extrapolated.
 */
#ifndef ANALYSIS_POINTS_SCALING_H
#define ANALYSIS_POINTS_SCALING_H

#include <jansson.h>

#include "lib/analysis/points/costs.h"

/* The members of one `crossover` record a track, named X_batch or X_length: direction
 * (cheaper_up_to: the diffusion model costs less below the crossover; cheaper_from: above it), at,
 * lo, hi, bracket, exists, censored, probability, cells [{at, ratio, lo, hi, llada_point,
 * llama_point, predicted_ratio}], and predicted_at: where both would meet if every point took the
 * least time that the machine's limits allow (points.h, roof). A cell whose ratio has no interval
 * (costs.h) is no part of the curve. An array; the caller's. */
json_t *scaling_records(const struct points *p, const struct costs *costs);

#endif
