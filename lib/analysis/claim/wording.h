/* wording.h - words the findings of a run in plain English. No sentence contains a number that is
 * null; an undecided sentence gives the reason instead. An answer has at most WORDING_MOST words.
 * Every quality is named with its metric. */
#pragma once

#include "lib/analysis/claim/finding.h"
#include "lib/base/buf.h"

enum { WORDING_MOST = 40 };

/* 1: the answer is decided: every goal is decided, and no self-test failed. If ranking records
 * exist, the order of the two points of the answer must also hold over templates and seeds, for the
 * metric and task of every goal. Random weights need only a decided time. Without goals the time of
 * vanilla decoding must be decided. */
int wording_is_decided(const struct findings *findings);
/* Each of these functions appends its text. */
/* "AMD EPYC (Zen 3), 2 cores" */
void wording_machine(struct buf *text, const struct findings *findings);
/* The fingerprint of that machine; NULL: unknown. Borrowed. */
const char *wording_fingerprint(const struct evidence *evidence);
void wording_question(struct buf *text, const struct findings *findings);
void wording_answer(struct buf *buffer, const struct findings *findings);
void wording_sure(struct buf *text, const struct findings *findings);

/* ---- parts of sentences, for notes and sections ---- */

void wording_times(struct buf *text, const struct versus *versus); /* "1.40 times [1.31, 1.50]" */
/* "takes 1.40 times as long [1.31, 1.50]". The words depend on the clock and the verdict. */
void wording_takes(struct buf *text, const struct versus *versus, enum pairs_clock clock);
void wording_pace(struct buf *text, const struct contender *contender);  /* "8 tokens a step" */
void wording_margin(struct buf *text, const struct goal *goal);     /* "accuracy within 5 points" */
const char *wording_task(const struct goal *goal);               /* "sums"; "" for all prompts */
void wording_llama(struct buf *text, const struct goal *goal); /* "LLaMA on sums (accuracy ...)" */
char *wording_metric(const struct goal *goal); /* "judge perplexity"; the caller frees */
/* The reason of a null value in words: "other work disturbed the timed launches". Borrowed. */
const char *wording_reason(const char *reason);
/* The ranking record of the metric and task of the goal; if there is none, of its metric over all
 * tasks. NULL: the order was not judged. */
const json_t *wording_ranking(const struct evidence *evidence, const struct goal *goal);
/* The verdict of wording_ranking() on the two points of the answer, for example "HOLDS"; UNDECIDED
 * if the record does not rank these two, or if it calls them SAME and the answer is not a match
 * within at least this margin. If the answer has no two points, or the record has no pairs (version
 * 1.0.0), the verdict of the record on all points is returned. NULL: there is no record.
 * Borrowed. */
const char *wording_order(const struct evidence *evidence, const struct finding *finding);
