/* verdict.h - what the crossover records say, in words. */
#ifndef ANALYSIS_VERDICT_H
#define ANALYSIS_VERDICT_H

#include "lib/base/buf.h"
#include "lib/analysis/runset.h"

/* The crossover `name` (X_lat, X_q, X_par) at this batch size and, when the record names one, this
 * quality metric; `series` NULL: any, else that llada_series. NULL: none. Borrowed. */
const json_t *verdict_find(const struct runset *s, const char *name, double batch,
                           const char *quality, const char *series);

/* Appends "24.5 [17.2, 34.0]"; an end outside what was measured is "<2" or ">64"; "none". */
void verdict_steps(struct buf *b, const struct runset *s, const json_t *crossover);

/* Appends the answer of one X_par record as sentences that stand alone: whether LLaDA is as good
 * and as fast at some step count, at which, with intervals and probability. */
void verdict_answer(struct buf *b, const struct runset *s, const json_t *x_par);

/* Appends the price of equal quality, from the first measured step count that reaches it: time and
 * memory as multiples of LLaMA's. Nothing when it cannot be told. */
void verdict_price(struct buf *b, const struct runset *s, const json_t *x_par);

#endif
