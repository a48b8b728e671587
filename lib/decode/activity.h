/* activity.h - measures how large the activations of a network are on given texts. The pruning
 * score `activation` (lib/checkpoint/packing/prune.h) needs these numbers.
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
    struct prune_values mean; /* means over all rows of |y_h|^2 per head and of h_j^2 per hidden
                               * unit (letters of prune.h); owned */
    int64_t texts, rows;      /* records read; rows of all passes over them */
};
/* Runs the first `limit` (0: all) texts of an input through a network on a back end of the host. A
 * record is {text, reference}, {text} or {prompt_ids}; other kinds of records are skipped. Returns
 * -1 and frees *activity: EXIT_BAD_DATA (no text, or a broken record), EXIT_IO, EXIT_FAILED_RECORDS
 * (out of memory). */
int activity_run(struct activity *activity, struct network *n, const struct tokenizer *tokenizer,
                    struct rec_reader *in, int64_t limit, uint64_t seed, struct err *e);
void activity_free(struct activity *activity);
