/* forward.h - a whole pass in one call: describes it, runs it, returns its answers. */
#pragma once

#include "lib/network/pass.h"

/* The rows of one sequence in a pass. These rows are consecutive in token[] and pos[]. */
struct forward_seq {
    size_t rows;
    const int32_t *slots; /* [n_slots] slots of the cache that the rows read, with their own */
    size_t n_slots;
    size_t latent;        /* number of the text in kv->latents whose latents the rows read */
};
/* All pointers point to host memory. */
struct forward {
    const int32_t *token, *pos; /* [T] */
    const int32_t *slot;        /* [T] the slot for key and value of each row; NULL without cache */
    const struct forward_seq *seqs;
    size_t n_seqs; /* T = sum of rows */
    enum mask mask;
    size_t mask_block;
    const int32_t *wanted; /* [R] rows whose answer is wanted, in any order */
    size_t n_wanted;
    const int32_t *uncond;   /* [R] for CFG: the unconditional row of each wanted row, or NULL */
    struct head_query query; /* how the head answers */
    int again; /* 1: passes of this shape follow with the same work and cache, so ops.run may
                * record this one */
};
/* Runs the pass *f and waits for its answers out[R] and, unless logits is NULL, logits[R, V]. kv
 * NULL: nothing is cached, and the keys of a row are the rows of its own sequence (vanilla
 * LLaDA). */
void forward(const struct network *n, struct kv *kv, struct work *work, const struct forward *f,
             struct head_row *out, float *logits);
/* Calls ops.prepare for passes of this shape, where the back end has it. The results of the pass
 * have no meaning. */
void forward_prepare(const struct network *n, struct kv *kv, struct work *work,
                     const struct forward *forward);
