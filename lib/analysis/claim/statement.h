/* statement.h - sets the members that claims share: name, text, value with interval or reason,
 * goal, ratio. */
#pragma once

#include "lib/analysis/claim/finding.h"
#include "lib/base/buf.h"

/* Appends a claim to the list and returns it, borrowed. of: the member `key` of the claim; NULL: no
 * key, because the name is unique. */
json_t *statement_add(json_t *list, const char *name, const char *of, int primary, int decided);
/* The first claim of this name in the list, borrowed; NULL: none. */
const json_t *statement_find(const json_t *list, const char *name);
/* Sets member `key` to the text of the buf, if there is any, and frees the buf. */
void statement_text(json_t *claim, const char *key, struct buf *text);
/* Sets the member `text` in the same way, with a capital first letter. */
void statement_sentence(json_t *claim, struct buf *text);
/* Sets value, lo and hi, or their reason. */
void statement_interval(json_t *claim, const struct interval *interval, const char *reason);
/* Sets task, clock, verdict, interval, launches, prompts and the two points. */
void statement_versus(json_t *claim, const struct findings *findings, const struct versus *versus);
/* Sets the mean times of both models with their intervals, and the launches, whether or not there
 * is a ratio. A time has all prompts of its point, but a ratio has only those of both points. */
void statement_times(json_t *claim, const struct versus *versus);
/* Sets task, quality_metric, margin, margin_relative. */
void statement_goal(json_t *claim, const struct goal *goal);
/* The member `task`: the text, or null if task is NULL (all prompts). The caller's reference. */
json_t *statement_task(const char *task);

const char *statement_clock(const struct findings *findings); /* "cpu", "wall" */
/* Why a goal is not met. Static. */
const char *statement_never(const struct finding *finding);
/* Appends the peak memory of LLaDA and of LLaMA: "9.6 MB against 9.1 MB". */
void statement_bytes(struct buf *text, const struct findings *findings);
