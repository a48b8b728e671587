/* claims.h - what a run states: its records of kind `claim`, as `conclude` writes them. */
#ifndef REPORT_CLAIMS_H
#define REPORT_CLAIMS_H

#include "lib/analysis/records/runset.h"
#include "lib/base/buf.h"

/* The first claim of that name and key (NULL: any); NULL: there is none. Borrowed. */
const json_t *claims_find(const struct runset *s, const char *name, const char *key);
/* Its text; "": there is none. Borrowed. */
const char *claims_text(const json_t *claim);
/* 1: it is there and says that it is decided. */
int claims_is_decided(const json_t *claim);

/* 1: a claim about time is null because the launches were disturbed or too few: then no ratio of
 * times is printed anywhere on the page. */
int claims_times_are_null(const struct runset *s);
/* 0: the figure of that name draws ratios of times, and those are null. */
int claims_allow_figure(const struct runset *s, const char *name);
/* 1: the claims about time are of processor time. */
int claims_are_of_processor(const struct runset *s);

/* The claim X_q of the place k among those of the primary analysis, one for each task; NULL. */
const json_t *claims_equal_quality(const struct runset *s, size_t k);
/* Appends "accuracy of sum within 5 points" of an X_q. */
void claims_margin(struct buf *b, const json_t *equal_quality);

#endif
