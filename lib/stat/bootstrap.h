/* bootstrap.h - resampling that names its draws: draw d of a stream is the same whatever was drawn
 * before it and on however many threads, so every interval repeats bit for bit from the seed.
 */
#ifndef STAT_BOOTSTRAP_H
#define STAT_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#include "lib/stat/launch.h"
#include "lib/stat/stat.h"

/* index[i] = a place 0..n-1, drawn with replacement: draw `draw` of stream `seed`. */
void bootstrap_draw(uint64_t seed, uint64_t draw, size_t n, uint32_t *index);

/* sum[columns] = the first columns of rows[.][width] at the places index[0..n-1] added up, each in
 * that order; index NULL: rows 0..n-1. */
void bootstrap_sums(const double *rows, size_t width, size_t columns, const uint32_t *index,
                    size_t n, double *sum);

/* Whole numbers add up to the same in any order, so a long table of them need not be read all over
 * the memory in every draw: how often each place was drawn is counted first, and then several draws
 * read the table once, from one end to the other.
 *
 * bootstrap_whole: the first of the columns from which on all are whole numbers from 0 to
 * BOOTSTRAP_WHOLE; `width`: there is none, or the table is so short that nothing is gained.
 * bootstrap_count: times[bootstrap_room(n)], how often each place stands in index[0..n-1].
 * bootstrap_weigh: sums[draws][width], there the columns from..width-1: what bootstrap_sums gives
 * for each of these draws, by times[draws][bootstrap_room(n)]. */
enum { BOOTSTRAP_WHOLE = INT16_MAX, BOOTSTRAP_SHORT = 1024 };
size_t bootstrap_whole(const double *rows, size_t width, size_t n);
size_t bootstrap_room(size_t n);
void bootstrap_count(const uint32_t *index, size_t n, int16_t *times);
void bootstrap_weigh(const double *rows, size_t width, size_t from, const int16_t *times,
                     size_t draws, size_t n, double *sums);

/* Draws of a cost into out[d * stride]: around `value`, as Student's distribution has its logarithm
 * over launches[n] (two or more, all above 0); else `value` itself. Costs that were measured in the
 * same launches and draw from one `seed` keep what these launches have in common.
 *
 * Launches resampled with replacement would give intervals too narrow: 87 of 100 hold the true
 * value at 5 launches. Here the residuals of the log values get normal weights (less their mean)
 * over the root of a chi-square, so that the spread of one cost is exactly Student's with n - 1
 * degrees of freedom. work[n]. Source: Kalibera and Jones ISMM'13 (the unit); Gelman et al.,
 * Bayesian Data Analysis, 3rd ed., 3.2 and 3.6 (the distribution). */
void bootstrap_cost(double value, const struct launch_value *launches, size_t n, uint64_t seed,
                    size_t draws, double *out, size_t stride, double *work);

/* Percentile interval of the draws around `value`. Draws may be -INFINITY or INFINITY (censored: a
 * crossing outside what was measured) and an end may come out so. Draws that are NaN are left
 * out; below 40 draws the ends are NaN. Sorts draws.
 * Source: Efron and Tibshirani 1993, chapter 13. */
struct interval bootstrap_interval(double value, double *draws, size_t n, double level);

/* Wilson's interval for a share of `hits` among n; NaN ends at n = 0.
 * Source: Wilson 1927, equation in Brown, Cai, DasGupta 2001 (4). */
struct interval bootstrap_wilson(double hits, double n, double level);

#endif
