/* verdict.h - finds crossover records and words the place of a crossover. */
#pragma once

#include "lib/analysis/records/runset.h"
#include "lib/base/buf.h"

/* The crossover record `name` (X_lat, X_q, X_par) at this batch size, with this quality metric and
 * this series. quality, series NULL: any; a record that names none fits any. NULL: there is no such
 * record. Borrowed. */
const json_t *verdict_find(const struct runset *set, const char *name, double batch,
                           const char *quality, const char *series);

/* The place of the crossover, in the unit of verdict_unit(); NaN: none. */
double verdict_at(const json_t *crossover);
/* Appends the place and its interval, "24.5 [17.2, 34.0]". An end outside the measured range of the
 * series is "<2" or ">64". If the crossover does not exist, appends "none". */
void verdict_place(struct buf *text, const struct runset *set, const json_t *crossover);
/* The unit of the place: "steps", "passes", "rows"; is_long 1: "denoising steps", ... */
const char *verdict_unit(const json_t *crossover, int is_long);
/* Appends the values of the axis around the place: " (threshold 0.9)", " (threshold 0.8 to 0.9)".
 * Appends nothing if the axis is the unit of the place. */
void verdict_values(struct buf *text, const json_t *crossover);
