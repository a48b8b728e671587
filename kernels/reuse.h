/* reuse.h - what passes take over from the passes before them, chosen where they run.
 *
 * choose, settle: the outputs of attention and of the gated layer are kept for every position, and
 * only rows whose values have changed most are computed anew. sift: of the keys and values of a
 * pass only those are kept that a block of rows asks for most. How many rows are chosen is known to
 * the host; which ones never leaves the back end.
 *
 * On the host host-reuse.c (ref and cpu), on a device cuda/layer/reuse.cu. Scores are compared in
 * double there and in float here; equal vectors score exactly 1 on both. NaN counts as the least.
 */
#ifndef KERNELS_REUSE_H
#define KERNELS_REUSE_H

#include "kernels/ops.h"

/* How many rows of a sequence are chosen, and where that goes. */
struct share {
    int32_t first, n; /* rows first .. first + n - 1 of the sequence are apart: see below */
    int32_t take;     /* chosen in all */
    int32_t out;      /* where their list begins: choose in row[], sift in the slots of `to` */
};

/* ---- choose: the rows whose values have changed most ---- */

/* What is known of the chosen rows, in ascending order, n of them in all. */
struct chosen {
    int32_t *row;        /* [n] of the pass */
    int32_t *slot, *pos; /* [n] theirs */
    int32_t *place;      /* [T] where a row stands in row[]; -1: it was not chosen */
};
/* s(t) = the cosine of v[t] + bias, rounded to the cache's format, and kept[slot[t]], or 0 where
 * one of them is zero; then kept[slot[t]] becomes the former. Of each sequence the rows apart are
 * chosen, and of the others those of least s; of equals the lowest. */
struct drift {
    const act *v;            /* [T, n] */
    const float *bias;       /* [n], or NULL */
    void *kept;              /* [S, n] of dtype: the values of a layer */
    enum dtype dtype;        /* F32 or BF16 */
    const int32_t *slot, *pos;   /* [T] */
    const struct attn_seq *seqs; /* [n_seqs] whose rows are 0..T-1 in ascending order */
    const struct share *part;   /* [n_seqs] */
    size_t n_seqs, T, max_rows, n;
    struct chosen to;
};

/* ---- settle: outputs added, anew where they were computed ---- */

/* For each row t with a place: x[t] = sum[place], and kept[slot[t]] = what that added;
 * for the others x[t] += kept[slot[t]]. */
struct outputs {
    act *x;               /* [T, D] the stream */
    const act *sum;       /* [n, D] that of the chosen rows, with the outputs */
    act *kept;            /* [S, D] of a layer */
    const int32_t *place; /* [T]; NULL: row t stands at t */
    const int32_t *slot;  /* [T] */
    size_t T, D;
};

/* ---- sift: the keys and values that a block asks for ---- */

/* With p the mean over the rows apart (the block) and over all heads of q k, a row outside the
 * block scores the largest p of itself and its neighbours outside the block. The keys and values of
 * those that score most, of equals the lowest, go to slots out .. of `to`, in ascending order.
 * Source: Song et al. 2025, "Sparse-dLLM", arXiv 2508.02558, section 3. */
struct sift {
    const act *q;          /* [T, H*E] rotated */
    struct cache from, to; /* of one dtype; row t has slot t of `from` */
    const struct attn_seq *seqs;
    const struct share *part;
    size_t n_seqs, T, max_rows;
    size_t heads, kv_heads, head_dim;
};

/* Bytes of work for choose and sift; n: values of a key. */
static inline size_t reuse_work(size_t T, size_t n_seqs, size_t n)
{
    return 24 * T + 8 * n_seqs * n;
}

#ifdef __cplusplus
extern "C" {
#endif
void host_choose(struct backend *b, const struct drift *d, void *work);
void host_settle(struct backend *b, const struct outputs *o);
void host_sift(struct backend *b, const struct sift *s, void *work);
#ifdef __cplusplus
}
#endif

#endif
