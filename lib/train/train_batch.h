/* train_batch.h - the input of a training step: tokens, targets and weights. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* seqs sequences of len rows. A row of weight 0 has no target. loss = sum of weight * CE. */
struct train_batch {
    size_t seqs, len;
    int32_t *token, *target; /* [seqs * len] */
    float *weight;           /* [seqs * len] */
    int32_t *last;           /* [seqs * len] last position that a row sees, ascending in a sequence;
                              * read with a block-causal mask only */
    /* Latent models: [L, seqs, n, D], for each layer the latents of every sequence; else NULL. Like
     * the other arrays, memory of the host. */
    const float *z;
    int again; /* 1: only z differs from the previous call; results without z are reused */
};

/* A batch with zeroed arrays for `rows` rows and no sequence yet. The caller's. */
struct train_batch train_batch_room(size_t rows);
/* Frees all arrays but z. */
void train_batch_free(struct train_batch *batch);
