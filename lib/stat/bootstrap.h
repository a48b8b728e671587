/* bootstrap.h - resampling that names its draws: draw d of a stream is the same whatever was drawn
 * before it and on however many threads, so every interval repeats bit for bit from the seed.
 */
#ifndef STAT_BOOTSTRAP_H
#define STAT_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#include "lib/stat/stat.h"

/* index[i] = a place 0..n-1, drawn with replacement: draw `draw` of stream `seed`. */
void bootstrap_draw(uint64_t seed, uint64_t draw, size_t n, uint32_t *index);

/* Median of the resample index[0..n-1] of n values in ascending order. count[n] is work. */
double bootstrap_median(const double *sorted, const uint32_t *index, uint32_t *count, size_t n);

/* Draws of a cost into out[d * stride]: means of resampled launches[n_launch] (two or more), else
 * medians of resampled samples[n_sample] (ascending, two or more), else `value` itself.
 * work[2 * max(n_launch, n_sample)]. */
void bootstrap_cost(double value, const double *launches, size_t n_launch, const double *samples,
                    size_t n_sample, uint64_t seed, size_t draws, double *out, size_t stride,
                    uint32_t *work);

/* Percentile interval of the draws around `value`. Draws may be -INFINITY or INFINITY (censored: a
 * crossing outside what was measured) and an end may come out so. Draws that are NaN are left
 * out; below 40 draws the ends are NaN. Sorts draws.
 * Source: Efron and Tibshirani 1993, chapter 13. */
struct interval bootstrap_interval(double value, double *draws, size_t n, double level);

/* Wilson's interval for a share of `hits` among n; NaN ends at n = 0.
 * Source: Wilson 1927, equation in Brown, Cai, DasGupta 2001 (4). */
struct interval bootstrap_wilson(double hits, double n, double level);

#endif
