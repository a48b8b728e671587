/* activity.h - how large the activations of a network are on given texts: input of the score
 * `activation` of lib/checkpoint/packing/prune.h.
 *
 * A text runs as for its likelihood (likelihood.h): one causal pass, or ACTIVITY_MASKS passes with
 * drawn masks for a diffusion model, which mostly sees half-masked text. All rows of these passes
 * have the same weight. */
#pragma once

#include "lib/checkpoint/packing/prune.h"
#include "lib/network/network.h"
#include "lib/record/rec.h"

enum { ACTIVITY_MASKS = 8 };

struct activity {
    struct prune_values mean; /* sums of |y_h|^2 per head and h_j^2 per hidden unit; owned */
    int64_t texts, rows;      /* records read; rows of all passes over them */
};
/* Runs the first `limit` (0: all) texts of an input, {text, reference} or {text} or {prompt_ids},
 * through a network on a back end of the host; skips other kinds of records. -1: EXIT_BAD_DATA (no
 * text, or a broken record), EXIT_IO, EXIT_FAILED_RECORDS (memory); *activity is freed then. */
int activity_run(struct activity *activity, struct network *n, const struct tokenizer *tokenizer,
                    struct rec_reader *in, int64_t limit, uint64_t seed, struct err *e);
void activity_free(struct activity *activity);
