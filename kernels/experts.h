/* experts.h - a mixture of experts in place of the feed-forward of a layer: a router chooses, for
 * each row, some of n gated products, and adds what these give.
 *
 *     p = softmax(Wr x)                        of all n experts, in fp32
 *     S = the `used` experts with the largest p; equal ones: the lowest number
 *     y += sum_{e in S} p_e Wdown_e (silu(Wgate_e x) * (Wup_e x)),    e ascending
 *
 * p is not divided by its sum over S. Rows are sorted by expert once, and each expert multiplies
 * exactly its own rows, so weights of experts that no row chose are not read. Source: Shazeer et
 * al. 2017 (arXiv 1701.06538); modeling_lladamoe.py of inclusionAI (families/llada_moe.c). */
#pragma once

#include "kernels/ops.h"

enum { EXPERTS_MOST = 512, EXPERTS_USED_MOST = 32, EXPERTS_PARTS = 3 };

/* Operands of ops.experts. All matrices of one part (gate, up, down) have the same shape and dtype,
 * so the same layout. */
struct experts {
    const act *x;             /* [T, D], normalized rows */
    const struct mat *router; /* [n, D], F32: x is not rounded, sums are fp32 */
    const struct mat *gate, *up, *down; /* n each, of one dtype: [F, D], [F, D], [D, F] */
    const void *data;         /* [3 n] addresses of the data of gate[n], up[n] and down[n], for a
                               * device; memory of the back end */
    size_t n, used;           /* used <= n <= EXPERTS_MOST, used <= EXPERTS_USED_MOST */
    act *y;                   /* [T, D], rounded to `act` once after the sum */
    int32_t *active;          /* [1], memory of the back end: += experts with at least one row, for
                               * each piece if the back end takes many rows in pieces */
};
