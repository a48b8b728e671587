/* attain.h - the joint performance of the diffusion points of a field: the best quality within each
 * budget, with a band, and the hypervolume of both paradigms. */
#ifndef ANALYSIS_POINTS_ATTAIN_H
#define ANALYSIS_POINTS_ATTAIN_H

#include <jansson.h>

#include "lib/analysis/points/field.h"

/* The members of an `attainment` record: curve [{cost, lo, mid, hi}] over budgets, evenly spaced in
 * the logarithm. lo, mid or hi is null where that quantile of the draws attains nothing. NULL: the
 * field has no diffusion point with cost and quality. The caller's reference. */
json_t *attain_curve(const struct field *f, const struct field_board *b, double level);
/* The members of a `hypervolume` record: llada, llama and their difference, each {value, lo, hi},
 * as shares of the box from the best (`ideal`) to the worst (`reference`) measured cost and
 * quality. NULL: a paradigm is missing, or the box is empty. The caller's reference. */
json_t *attain_volume(const struct field *f, const struct field_board *b, double level);

#endif
