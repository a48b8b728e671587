/* forward.h - a whole pass in one call: describes it, runs it, returns its answers. */
#pragma once

#include "lib/network/pass.h"

/* One sequence's part of a pass. Its rows are consecutive in token[] and pos[]. */
struct forward_seq {
    size_t rows;
    const int32_t *slots; /* cache slots that these rows read (their own included) */
    size_t n_slots;
    size_t latent;        /* the part of kv->latents that they read */
};
/* All pointers are host memory. */
struct forward {
    const int32_t *token, *pos; /* [T] */
    const int32_t *slot;        /* [T] the slot for each row's K and V; NULL if kv is NULL */
    const struct forward_seq *seqs;
    size_t n_seqs; /* T = sum of rows */
    enum mask mask;
    size_t mask_block;
    const int32_t *wanted; /* [R] rows whose answer is wanted, in any order */
    size_t n_wanted;
    const int32_t *uncond;   /* [R] for CFG: the unconditional row of each wanted row, or NULL */
    struct head_query query; /* how the head answers */
    int again; /* 1: such a pass comes again with this work and this cache, so ops.run may record
                * it */
};
/* kv NULL: every row reads all rows of its own sequence (vanilla LLaDA), and nothing is cached.
 * out: [R]. logits: NULL or [R, V]. */
void forward(const struct network *n, struct kv *kv, struct work *work, const struct forward *f,
             struct head_row *out, float *logits);
/* ops.prepare for such a pass; its results have no meaning. */
void forward_prepare(const struct network *n, struct kv *kv, struct work *work,
                     const struct forward *forward);
