/* verdict.h - what the crossover records say, in words. */
#ifndef ANALYSIS_VERDICT_VERDICT_H
#define ANALYSIS_VERDICT_VERDICT_H

#include "lib/analysis/config_table.h"
#include "lib/analysis/runset.h"
#include "lib/base/buf.h"

/* The crossover `name` (X_lat, X_q, X_par) at this batch size and, when the record names one, this
 * quality metric; `series` NULL: any, else that one. NULL: none. Borrowed. */
const json_t *verdict_find(const struct runset *s, const char *name, double batch,
                           const char *quality, const char *series);

/* The X_par records that answer the question: contract answer where it was measured, the smallest
 * batch of it, each quality and series. An array, perhaps empty; the caller's reference. */
json_t *verdict_headlines(const struct runset *s);

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

/* Appends ", because ..." of a crossover that does not exist: its reason after `before`. */
void verdict_reason(struct buf *b, const char *before, const json_t *crossover);

/* Appends the answer of one X_par record as a sentence that stands alone: whether LLaDA is as good
 * and as fast at some amount of work, at which, with interval and probability. */
void verdict_answer(struct buf *b, const struct runset *s, const json_t *x_par);
/* Appends what it is made of: " Equal quality takes ...; equal latency allows ...". */
void verdict_parts(struct buf *b, const struct runset *s, const json_t *x_par);

/* Appends the price of equal quality, from the first measured point that reaches it: time and
 * memory as multiples of LLaMA's. Nothing when it cannot be told. */
void verdict_price(struct buf *b, const struct runset *s, const json_t *x_par);

/* Appends the ratio of two rows: "10.3 [9.9, 10.7]", or without an interval where there is none. */
void verdict_ratio(struct buf *b, const struct config_row *llada, const struct config_row *llama);

/* Appends which contract stands for what, and the ratio of both models' times under either, at one
 * step count. headline NULL: there is none. */
void verdict_contracts(struct buf *b, const struct runset *s, const json_t *headline);

/* Appends where the advantage changes hands by batch size and by length (X_batch, X_length), for
 * the tokens a step that equal quality takes. Nothing when neither was measured. */
void verdict_scale(struct buf *b, const struct runset *s, const json_t *headline);

#endif
