/* verdict.h - the place of a crossover, from crossover records, in words. */
#pragma once

#include "lib/analysis/records/runset.h"
#include "lib/base/buf.h"

/* The crossover record `name` (X_lat, X_q, X_par) at this batch size, of this quality metric if the
 * record names one, and of this series (NULL: any). NULL: none. Borrowed. */
const json_t *verdict_find(const struct runset *set, const char *name, double batch,
                           const char *quality, const char *series);

/* The place, in the unit of verdict_unit(); NaN: none. */
double verdict_at(const json_t *crossover);
/* Appends "24.5 [17.2, 34.0]"; an end outside the measured range of the series is "<2" or ">64"; no
 * place: "none". */
void verdict_place(struct buf *text, const struct runset *set, const json_t *crossover);
/* "steps", "passes", "rows"; long: "denoising steps", ... */
const char *verdict_unit(const json_t *crossover, int is_long);
/* Appends the values of the axis at the place, if the axis is not its unit: " (threshold 0.9)",
 * " (threshold 0.8 to 0.9)", " (threshold up to 0.5)"; else nothing. */
void verdict_values(struct buf *text, const json_t *crossover);
