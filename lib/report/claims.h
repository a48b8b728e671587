/* claims.h - the claim records of a run, which `conclude` writes. */
#pragma once

#include "lib/analysis/records/runset.h"
#include "lib/base/buf.h"

/* The first claim with this name and key (NULL: any key); NULL: none. Borrowed. */
const json_t *claims_find(const struct runset *set, const char *name, const char *key);
/* The text of the claim; "": it has none. Borrowed. */
const char *claims_text(const json_t *claim);
/* 1: the claim exists and is decided. */
int claims_is_decided(const json_t *claim);

/* 1: a claim about time is null because launches were disturbed or too few. Then the page prints no
 * ratio of times. */
int claims_times_are_null(const struct runset *set);
/* 0: the figure of this name draws ratios of times, and these are null. */
int claims_allow_figure(const struct runset *set, const char *name);
/* 1: the claims about time use processor time. */
int claims_are_of_processor(const struct runset *set);

/* The k-th claim X_q of the primary analysis, one for each task; NULL: none. Borrowed. */
const json_t *claims_equal_quality(const struct runset *set, size_t k);
/* Appends "accuracy on sum within 5 points", the metric and margin of an X_q. */
void claims_margin(struct buf *text, const json_t *claim);
