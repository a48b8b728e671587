/* verdict.h - where crossover records place a crossover, in words. */
#ifndef ANALYSIS_VERDICT_VERDICT_H
#define ANALYSIS_VERDICT_VERDICT_H

#include "lib/analysis/records/runset.h"
#include "lib/base/buf.h"

/* The crossover `name` (X_lat, X_q, X_par) at this batch size and, when the record names one, this
 * quality metric; `series` NULL: any, else that one. NULL: none. Borrowed. */
const json_t *verdict_find(const struct runset *s, const char *name, double batch,
                           const char *quality, const char *series);

/* Where it lies, in the unit that verdict_unit names; NaN: nowhere. */
double verdict_at(const json_t *crossover);
/* Appends "24.5 [17.2, 34.0]"; an end outside what was measured of the series itself is "<2" or
 * ">64"; "none". */
void verdict_place(struct buf *b, const struct runset *s, const json_t *crossover);
/* Appends where an X_lat would lie by the roofline, " (28.1 if both ran at their rooflines)";
 * nothing where the record does not say. Far from the measured place one of the two wastes more. */
void verdict_predicted(struct buf *b, const struct runset *s, const json_t *crossover);
/* "steps", "passes", "rows"; long: "denoising steps", ... */
const char *verdict_unit(const json_t *crossover, int is_long);
/* Appends where that is along the axis, when the axis is not what the place counts:
 * " (threshold 0.9)", " (threshold 0.8 to 0.9)", " (threshold up to 0.5)"; else nothing. */
void verdict_values(struct buf *b, const json_t *crossover);

#endif
