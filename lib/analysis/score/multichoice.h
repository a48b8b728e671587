/* multichoice.h - scores questions with several choices. The model's answer is the most likely
 * choice, which is the choice with the least nats. Three metrics count the nats in three ways: in
 * total (choice_accuracy), by character (choice_accuracy_norm, the acc_norm of lm-eval), and by
 * byte (choice_accuracy_bytes). If the nats are bounds, the metrics are named bound_*. */
#pragma once

#include "lib/analysis/score/scores.h"

/* The choices of a prompt record, borrowed. NULL: EXIT_BAD_DATA: there are fewer than two choices,
 * a choice is empty or no text, right_choice is not the index of one, or the question is
 * missing. */
const json_t *multichoice_of(const json_t *record, struct err *e);
/* Writes a quality record for each metric, and keeps the answers in scores. nats: an array with the
 * nats of each choice; borrowed. With random weights the value is null and nothing is kept. */
int multichoice_write(struct rec_writer *out, struct scores *scores, const json_t *record,
                      json_t *nats, int is_bound, struct err *e);
/* Writes the summary of each metric: the accuracy over all prompts in scores. */
int multichoice_sum(struct rec_writer *out, const struct scores *scores, int is_bound,
                    struct err *e);
