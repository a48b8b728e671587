/* links.h - measures how much the rows of a sequence attend to each other, for rules that keep
 * dependent slots apart (kernels/unmask/dawn.h).
 *
 * On the host: host-links.c (ref and cpu); on a device: cuda/layer/links.cu. Source: Luo et al.
 * 2026, "DAWN", arXiv 2602.06953, and attn_avg() in llada/model/modeling_llada.py of
 * github.com/lizhuo-luo/DAWN. */
#pragma once

#include "kernels/ops.h"
#include "lib/base/host_device.h"

/* map[t, j] = share * the mean over heads of softmax_j(q_t k_j / sqrt(E)). Row t sees all rows of
 * its sequence; j is a row of the sequence, counted from its first row. If `add` is 1, the value is
 * added to map[t, j]. mean[t], unless NULL, is the mean of map[., j] over all rows of the sequence,
 * where j is the index of row t. */
struct links {
    const act *q;       /* [T, H*E] rotated */
    struct cache kv;    /* row t is slot t */
    const struct attn_seq *seqs; /* the rows of all sequences are 0..T-1 in ascending order */
    size_t T;
    size_t heads, kv_heads, head_dim;
    double share;
    int add;
    size_t stride;      /* values of a row of map; >= the rows of any sequence */
    float *map;         /* [T, stride] */
    float *mean;        /* [T], or NULL */
};

/* The sequence that a row belongs to. */
HOST_DEVICE const struct attn_seq *links_seq(const struct links *links, size_t row)
{
    const struct attn_seq *sequence = links->seqs;
    while (row >= (size_t)(sequence->row_begin + sequence->rows))
        sequence++;
    return sequence;
}
