/* proportion.h - compares the shares of right answers of two configurations on the same prompts.
 * Only prompts that one configuration alone gets right tell a difference.
 *
 * The prompt is the unit. A prompt with several answers (other seeds) counts with its share of
 * right answers. Among numbers in 0..1 with the same mean, zeros and ones have the largest
 * variance. So intervals that are made for right and wrong are never too narrow for shares. */
#pragma once

#include <stddef.h>

#include "lib/stat/stat.h"

/* first = sum over prompts i of max(first_i - second_i, 0), second = sum of max(second_i - first_i,
 * 0). at_first, at_second: at how many of the n prompts first_i or second_i is the larger one. */
struct proportion_pairs { double first, second, n, at_first, at_second; };
struct proportion_pairs proportion_count(const double *first, const double *second, size_t n);

/* p of McNemar's exact two-sided test: P(min(K, m - K) <= min(at_first, at_second)), K binomial(m,
 * 1/2), m = at_first + at_second. 1 when m = 0. For shares this is the sign test.
 * Source: McNemar 1947; the exact form: Fay 2010 (Biostatistics 11:373). */
double proportion_mcnemar(const struct proportion_pairs *pairs);

/* Share of the second - share of the first, with Tango's score interval. This interval keeps its
 * level for small n and few differences, where resampling would show no spread at all.
 * Source: Tango 1998 (Statistics in Medicine 17:891). */
struct interval proportion_difference(const struct proportion_pairs *pairs, double level);
/* Tango's score statistic: by how many standard errors the difference (share of the second - share
 * of the first) lies above d. The statistic grows as sqrt(n). */
double proportion_above(const struct proportion_pairs *pairs, double d);
