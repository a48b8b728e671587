/* train_batch.h - the input of a training step: tokens, targets and weights. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* seqs sequences of len rows. A row of weight 0 has no target. The loss is the sum over rows of
 * weight * CE (cross entropy of the target in nats). */
struct train_batch {
    size_t seqs, len;
    int32_t *token, *target; /* [seqs * len] */
    float *weight;           /* [seqs * len] */
    int32_t *last;           /* [seqs * len] last position that a row sees, ascending in a sequence;
                              * read with a block-causal mask only */
    /* The latents of every sequence in each layer, [L, seqs, n, D], in memory of the host as the
     * other arrays; NULL: the model has no latents. */
    const float *z;
    int again; /* 1: only z differs from the previous call; results without z are reused */
};

/* A batch without sequences, with zeroed arrays of `rows` rows. The caller's (train_batch_free). */
struct train_batch train_batch_room(size_t rows);
/* Frees all arrays but z. */
void train_batch_free(struct train_batch *batch);
