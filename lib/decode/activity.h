/* activity.h - how large the values are that a network computes inside, over texts: what the
 * score `activation` of lib/checkpoint/prune.h asks for.
 *
 * A text runs as its likelihood does (likelihood.h): once from left to right, or with
 * ACTIVITY_MASKS draws of masks for a diffusion model, which sees its own text half masked most
 * of the time. All rows of these passes count alike.
 */
#ifndef DECODE_ACTIVITY_H
#define DECODE_ACTIVITY_H

#include "lib/checkpoint/prune.h"
#include "lib/network/network.h"
#include "lib/record/rec.h"

enum { ACTIVITY_MASKS = 8 };

struct activity {
    struct prune_values mean; /* of |y_h|^2 of each head and h_j^2 of each hidden unit; owned */
    int64_t texts, rows;      /* records that were read; rows of all passes over them */
};
/* Runs the texts of an input, {text, reference} or {text} or {prompt_ids}, the first `limit` of
 * them (0: all), through a network on a back end of the host; other kinds of records pass by. -1:
 * EXIT_BAD_DATA (there is none, or one is broken: where), EXIT_IO, EXIT_FAILED_RECORDS (memory);
 * *c is freed. */
int activity_run(struct activity *c, struct network *n, const struct tokenizer *t,
                    struct rec_reader *in, int64_t limit, uint64_t seed, struct err *e);
void activity_free(struct activity *c);

#endif
