/* train_batch.h - what a training step reads: tokens, their targets, what each of them counts. */
#ifndef TRAIN_TRAIN_BATCH_H
#define TRAIN_TRAIN_BATCH_H

#include <stddef.h>
#include <stdint.h>

/* seqs sequences of len rows. A row of weight 0 has no target. loss = sum of weight * CE. */
struct train_batch {
    size_t seqs, len;
    int32_t *token, *target; /* [seqs * len] */
    float *weight;           /* [seqs * len] */
    /* Of a latent model, [L, seqs, n, D]: layer l's latents of every sequence; else NULL. Memory of
     * the host, as all of a batch is. */
    const float *z;
    int again; /* 1: all but z is as in the call before, and what it does not change is kept */
};

/* Room for so many rows, all zeros, and no sequence yet. The caller's. */
struct train_batch train_batch_room(size_t rows);
/* Frees token, target and weight; z is whose it is. */
void train_batch_free(struct train_batch *b);

#endif
