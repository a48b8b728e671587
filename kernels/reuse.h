/* reuse.h - computes some rows of a pass again and reuses results of earlier passes for the others.
 * The back end chooses the rows.
 *
 * choose, settle: the outputs of attention and of the gated layer are stored for every position;
 * only the rows whose values changed most are computed again. sift: of the keys and values of a
 * pass, only those are kept to which a block of rows attends most. The host knows how many rows are
 * chosen; only the back end knows which.
 *
 * On the host: host-reuse.c (ref and cpu); on a device: cuda/layer/reuse.cu. Scores are compared in
 * double on the host and in float on the device; equal vectors score exactly 1 on both. NaN ranks
 * lowest. */
#pragma once

#include "kernels/ops.h"

/* The choice in one sequence: the rows set apart, the number of rows to choose, and the place of
 * the result. */
struct share {
    int32_t first, n; /* rows first .. first + n - 1 of the sequence are set apart: struct drift
                       * always chooses them, struct sift never */
    int32_t take;     /* number of chosen rows */
    int32_t out;      /* first index of the result: in chosen.row[] for choose, in the slots of
                       * sift.to for sift */
};

/* ---- choose: the rows whose values changed most ---- */

/* The chosen rows in ascending order, n in all. */
struct chosen {
    int32_t *row;        /* [n] rows of the pass */
    int32_t *slot, *pos; /* [n] slot and position of each chosen row */
    int32_t *place;      /* [T] index of a row in row[]; -1: not chosen */
};
/* s(t) = the cosine of kept[slot[t]] and v[t] + bias (rounded to the format of kept), or 0 if one
 * of these vectors is zero. Then kept[slot[t]] = v[t] + bias. In each sequence the rows set apart
 * are chosen first, then the other rows with the smallest s; among equals the lowest row. */
struct drift {
    const act *v;            /* [T, n] */
    const float *bias;       /* [n], or NULL */
    void *kept;              /* [S, n] of dtype: the stored values of a layer */
    enum dtype dtype;        /* F32 or BF16 */
    const int32_t *slot, *pos;   /* [T] */
    const struct attn_seq *seqs; /* [n_seqs]; the rows of all sequences are 0..T-1 in ascending
                                  * order */
    const struct share *part;   /* [n_seqs] */
    size_t n_seqs, T, max_rows, n;
    struct chosen to;
};

/* ---- settle: adds the outputs of layers, and stores the new ones ---- */

/* For each row t with a place: kept[slot[t]] = sum[place] - x[t], then x[t] = sum[place]. For the
 * other rows: x[t] += kept[slot[t]]. */
struct outputs {
    act *x;               /* [T, D] the residual stream */
    const act *sum;       /* [n, D] the stream of the chosen rows, with the outputs added */
    act *kept;            /* [S, D] stored outputs of a layer */
    const int32_t *place; /* [T]; NULL: row t has place t */
    const int32_t *slot;  /* [T] */
    size_t T, D;
};

/* ---- sift: the keys and values that a block attends to ---- */

/* The block is the rows set apart. p(row) = the mean of q k over the queries q of the block and all
 * heads, with k the key of the row. The score of a row outside the block is the largest p of the
 * row and its two neighbours outside the block. The keys and values of the rows with the largest
 * scores (among equals the lowest row) go to slots share.out, share.out + 1, ... of `to`, in
 * ascending order. Source: Song et al. 2025, "Sparse-dLLM", arXiv 2508.02558, section 3. */
struct sift {
    const act *q;          /* [T, H*E] rotated */
    struct cache from, to; /* both of one dtype; row t is slot t of `from` */
    const struct attn_seq *seqs;
    const struct share *part;
    size_t n_seqs, T, max_rows;
    size_t heads, kv_heads, head_dim;
};

/* Bytes of work for choose and sift. n: values of a key (K*E). */
static inline size_t reuse_work(size_t T, size_t n_seqs, size_t n)
{
    return 24 * T + 8 * n_seqs * n;
}
