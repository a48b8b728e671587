/* attain.h - what the diffusion points of a field achieve together: the band of the best quality
 * within each budget, and the hypervolume of both paradigms side by side. */
#ifndef ANALYSIS_POINTS_ATTAIN_H
#define ANALYSIS_POINTS_ATTAIN_H

#include <jansson.h>

#include "lib/analysis/points/field.h"

/* The members of an `attainment` record: curve [{cost, lo, mid, hi}] over budgets evenly in the
 * logarithm; an end is null where that share of the draws attains nothing. NULL: the field has no
 * diffusion point with cost and quality. The caller's. */
json_t *attain_curve(const struct field *f, const struct field_board *b, double level);
/* The members of a `hypervolume` record: llada, llama and their difference, each {value, lo, hi},
 * as shares of the box between the best and the worst cost and quality measured, which it holds as
 * `ideal` and `reference`. NULL: a paradigm is missing, or the box is empty. The caller's. */
json_t *attain_volume(const struct field *f, const struct field_board *b, double level);

#endif
