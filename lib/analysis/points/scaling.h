/* scaling.h - crossovers of the load: the batch size, the length, and the rate at which prompts
 * arrive, at which a diffusion model costs as much as the autoregressive model.
 *
 * A track is one diffusion setting at several batch sizes or rates, all else equal, or at several
 * lengths with the same number of tokens a step. Each of its cells has the ratio of the cost to
 * that of the autoregressive point with the same device, batch size, length, rate, contract and
 * number format. The crossover is where the log of the ratio, made monotone and linear in log2 of
 * the load, is zero. Nothing is extrapolated. The autoregressive point is the plain one. With
 * `fastest` it is the point of the same model and formats that costs least in pairs with the plain
 * one. */
#pragma once

#include <jansson.h>

#include "lib/analysis/points/costs.h"

/* The members of one `crossover` record for each track, named X_batch, X_length or X_rate:
 * direction (cheaper_up_to: the diffusion model costs less below the crossover; cheaper_from: above
 * it), at, lo, hi, bracket, exists, censored, probability, cells [{at, ratio, lo, hi, llada_point,
 * llama_point}]. A cell whose ratio has no interval (costs.h) is left out of the curve.
 * An array; the caller's reference. */
json_t *scaling_records(const struct points *points, const struct costs *costs, int fastest);
