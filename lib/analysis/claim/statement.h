/* statement.h - the members that claims share: a name, a text, a value with its interval or a
 * reason, the goal or the ratio that it is about.
 */
#ifndef ANALYSIS_CLAIM_STATEMENT_H
#define ANALYSIS_CLAIM_STATEMENT_H

#include "lib/analysis/claim/finding.h"
#include "lib/base/buf.h"

/* Appends a claim to the list; borrowed. `of` is its key; NULL: there is
 * one of that name. */
json_t *statement_add(json_t *list, const char *name, const char *of, int primary, int decided);
/* Sets what the buf holds, if anything, and gives the buf back. A sentence begins with a capital
 * and is the member `text`. */
void statement_text(json_t *c, const char *key, struct buf *b);
void statement_sentence(json_t *c, struct buf *b);
/* value, lo, hi, or the reason. */
void statement_interval(json_t *c, const struct interval *x, const char *reason);
/* task, clock, verdict, the interval and what it is of. */
void statement_versus(json_t *c, const struct findings *f, const struct versus *x);
/* task, quality_metric, margin. */
void statement_goal(json_t *c, const struct goal *g);
json_t *statement_task(const char *task); /* null: all prompts; the caller's reference */

const char *statement_clock(const struct findings *f); /* "cpu", "wall" */
/* Why a goal is not met. Borrowed. */
const char *statement_never(const struct finding *g);
/* "9.6 MB against 9.1 MB". */
void statement_bytes(struct buf *b, const struct findings *f);

#endif
