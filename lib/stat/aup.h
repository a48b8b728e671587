/* aup.h - accuracy under parallelism: one number for a curve of accuracy against tokens per forward
 * pass. With points by ascending tokens per forward r_1 < r_2 < .. and accuracies y_i in percent,
 *
 *     AUP = r_1 y_1 + sum over i > 1 of (r_i - r_(i-1)) (y_i w(y_i) + y_(i-1) w(y_(i-1))) / 2
 *     w(y) = min(exp(-3 (1 - y / best)), 1)
 *
 * Points with y_i < y_1 - 5 do not count. Source: d3LLM (hao-ai-lab; arXiv 2601.07568), section on
 * the metric. AUP depends on `best`, the best accuracy among all systems that are compared. So
 * numbers of two tables are comparable only if both tables use the same `best`. */
#pragma once

#include <stddef.h>

struct aup_point { double per_forward, accuracy; }; /* tokens; percent */

/* Returns AUP in tokens per forward pass * percent; NaN if n = 0. best: percent. Sorts point. */
double aup_of(struct aup_point *point, size_t n, double best);
