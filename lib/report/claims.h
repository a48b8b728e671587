/* claims.h - the claim records of a run, which `conclude` writes. */
#pragma once

#include "lib/analysis/records/runset.h"
#include "lib/base/buf.h"

/* The first claim with this name and key; key NULL: any key. NULL: no such claim. Borrowed. */
const json_t *claims_find(const struct runset *set, const char *name, const char *key);
/* The text of the claim; "": the claim has no text. Borrowed. */
const char *claims_text(const json_t *claim);
/* 1: the claim is not NULL and is decided. */
int claims_is_decided(const json_t *claim);

/* 1: a claim about time is null because launches were disturbed or too few. The page then prints no
 * ratio of times at all. */
int claims_times_are_null(const struct runset *set);
/* 0: the figure with this name shows ratios of times, and claims_times_are_null(). */
int claims_allow_figure(const struct runset *set, const char *name);
/* 1: the claims about time use processor time. 0: they use elapsed time, or there are none. */
int claims_are_of_processor(const struct runset *set);

/* Claim k, from 0, among the claims X_q of the primary analysis, one for each task; NULL: no more.
 * Borrowed. */
const json_t *claims_equal_quality(const struct runset *set, size_t k);
/* Appends metric, task and margin of a claim X_q: "accuracy on sum within 5 points". */
void claims_margin(struct buf *text, const json_t *claim);
