/* scaling.h - finds crossovers of the load: the batch size, the length, and the rate of arriving
 * prompts, at which a diffusion model costs as much as the autoregressive model.
 *
 * A track is one diffusion setting at several batch sizes or rates with all else equal, or at
 * several lengths with the same number of tokens a step. Each cell of a track has the ratio of its
 * cost to the cost of an autoregressive point with the same device, batch size, length, rate and
 * contract. The plain rival is the plain point, preferably with the same number formats. The
 * fastest rival is the point of the same model and formats that costs least in pairs with the plain
 * one. The crossover is the load at which the log of the ratio is zero; the log is made monotone
 * and interpolated linearly in log2 of the load. Nothing is extrapolated. */
#pragma once

#include <jansson.h>

#include "lib/analysis/points/costs.h"

struct scaling_how {
    enum points_rivals rivals;
    const json_t *x_q; /* array of X_q records; borrowed */
};

/* An array with the members of one `crossover` record for each track, named X_batch, X_length or
 * X_rate: at, lo, hi (crossing_set()), bracket, exists, probability, direction, and cells [{at,
 * ratio, lo, hi, llada_point, llama_point, llama_config}]. Direction cheaper_up_to means that the
 * diffusion model costs less below the crossover, cheaper_from that it costs less above. A cell
 * whose ratio has no interval (costs.h) is left out of the curve.
 *
 * `rival` says which rivals the cells have (points.h). Against the fastest, `comparisons` is the
 * number of candidates of all cells together, the plain points included, and each interval has
 * Bonferroni's level over all of them (ratio_level()).
 *
 * x_q: an array of X_q records (meeting.h). X_rate also has as_good, from the X_q records of its
 * series with one prompt at a time. Records against the fastest LLaMA do not count. true: all show
 * that the step count is as good as LLaMA. false: one shows that the step count is worse. null:
 * undecided or not tested; as_good_reason says which. as_good_by names the qualities. The caller's
 * reference. */
json_t *scaling_records(const struct points *points, const struct costs *costs,
                        const struct scaling_how *how);
