/* bootstrap.h - resampling, and intervals from the draws. A stream (a seed) has numbered draws.
 * Draw d does not depend on earlier draws or on the number of threads, so every interval repeats
 * bit for bit. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/stat/stat.h"

/* Sets index[n] to draw number `draw` of stream `seed`: numbers from 0 to n - 1, drawn with
 * replacement. */
void bootstrap_draw(uint64_t seed, uint64_t draw, size_t n, uint32_t *index);

/* sum[c] = sum over i of rows[index[i]][c], rows[.][width], added in the order of i; index NULL:
 * rows 0..n-1. */
void bootstrap_sums(const double *rows, size_t width, const uint32_t *index, size_t n, double *sum);

/* `value` with the (1 - level) / 2 and (1 + level) / 2 quantiles of the draws as its ends. A draw,
 * and so an end, may be -INFINITY or INFINITY (a crossing outside the measured range). NaN draws
 * are left out; if fewer than 40 others remain, the ends are NaN. Sorts draws.
 * Source: Efron and Tibshirani 1993, chapter 13. */
struct interval bootstrap_interval(double value, double *draws, size_t n, double level);

/* Wilson's interval of the share p = hits / n, with z the normal quantile of `level`:
 *   (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)
 * NaN ends at n = 0. Source: Wilson 1927; Brown, Cai, DasGupta 2001, equation 4. */
struct interval bootstrap_wilson(double hits, double n, double level);
