/* multichoice.h - questions with several choices. The model's answer is the most likely choice, the
 * one with the least nats: in total (choice_accuracy), by character (_norm, the acc_norm of
 * lm-eval), or by byte (_bytes). If the nats are bounds, the name of the metric begins with
 * bound_. */
#pragma once

#include "lib/analysis/score/scores.h"

/* The choices of a prompt record, borrowed. NULL: EXIT_BAD_DATA (fewer than two, one that is no
 * text or empty, no right_choice among them, no text). */
const json_t *multichoice_of(const json_t *record, struct err *e);
/* Writes a quality record for each metric, and keeps the answers in scores. nats: a number for each
 * choice, borrowed; it does not count if scores has random weights. */
int multichoice_write(struct rec_writer *out, struct scores *scores, const json_t *record,
                      json_t *nats, int is_bound, struct err *e);
/* Writes the accuracies of a group. */
int multichoice_sum(struct rec_writer *out, const struct scores *scores, int is_bound,
                    struct err *e);
