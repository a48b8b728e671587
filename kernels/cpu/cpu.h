/* cpu.h - functions that the files of kernels/cpu share, and that the table in cpu_ops.c lists. A
 * function with the name of a slot of kernels/ops.h, mixing.h or train.h does what that slot
 * defines. CPU() and OWN_CPU(): level.h. */
#ifndef KERNELS_CPU_CPU_H
#define KERNELS_CPU_CPU_H

#include "kernels/cpu/level.h"
#include "kernels/mixing.h"
#include "kernels/ops.h"
#include "kernels/train.h"

/* A part of a loop with fewer operations costs less than waking a thread for it. */
enum { WORTH_A_THREAD = 65536 };

/* Elements that make one part of a loop, when each element takes `operations`. */
INLINE size_t grain(size_t operations) { return WORTH_A_THREAD / (operations + 1) + 1; }

/* Values that form no rows are divided among threads in spans of whole vectors. Single values then
 * remain only at the end of all values, however the spans are divided. */
enum { SPAN = 64 };
INLINE size_t spans(size_t n) { return (n + SPAN - 1) / SPAN; }
INLINE size_t span_begin(size_t span, size_t n) { return span * SPAN < n ? span * SPAN : n; }

size_t CPU(mat_bytes)(size_t rows, size_t cols, enum dtype dtype);
int CPU(mat_make)(struct backend *b, struct mat *m, const struct mat_source *s, enum dtype dtype);
void CPU(mat_free)(struct backend *b, struct mat *m);
const char *CPU(refuses)(const struct backend *b, enum dtype dtype, size_t cols);
void CPU(embed)(struct backend *b, act *y, const struct mat *w, const int32_t *token, size_t T);
void OWN_CPU(matmul)(struct backend *b, const struct product *p, size_t n, struct input in,
                     size_t T, void *work);
void OWN_CPU(gated)(struct backend *b, act *y, struct input in, const struct mat *gate,
                    const struct mat *up, size_t T, void *work);
size_t OWN_CPU(matmul_work)(const struct backend *b, size_t T, size_t K, size_t N);
/* matmul in two steps, on the calling thread: pack_rows packs rows once, packed_product multiplies
 * them by many parts of a matrix. packed: packed_bytes(...) bytes, 64-byte aligned. x must stay
 * valid until the last product. */
size_t OWN_CPU(packed_bytes)(const struct mat *w, size_t T);
/* The largest packed_bytes of any dtype, for a matrix of K columns. */
size_t OWN_CPU(packed_most)(size_t T, size_t K);
void OWN_CPU(pack_rows)(void *packed, const float *x, const struct mat *w, size_t T);
/* y[T, n] (row stride ldy) = columns first..first+n of x W^T. `first` is a multiple of PANEL. T is
 * the T of pack_rows. */
void OWN_CPU(packed_product)(float *y, size_t ldy, void *packed, const struct mat *w, size_t T,
                             size_t first, size_t n);
void OWN_CPU(gemm)(struct backend *b, const struct gemm *g, size_t n, void *work);
size_t OWN_CPU(gemm_work)(const struct backend *b, size_t M, size_t N, size_t K);

void CPU(rmsnorm)(struct backend *b, act *y, const act *x, const int32_t *row, const float *gain,
                  size_t T, size_t D, double eps);
void CPU(rope_table)(struct backend *b, float *table, const int32_t *pos, const float *inv_freq,
                     size_t T, size_t E);
void CPU(rope)(struct backend *b, float *x, const float *table, size_t T, size_t heads, size_t E,
               int sign);
void CPU(qkv)(struct backend *b, const struct qkv *a, size_t T, void *work);
void CPU(swiglu)(struct backend *b, act *y, const act *gate, const act *up, size_t n);

void OWN_CPU(attention)(struct backend *b, const struct attn *a, void *work);
size_t OWN_CPU(attention_work)(const struct backend *b, size_t T, size_t n_seqs, size_t max_slots,
                               size_t heads, size_t kv_heads, size_t head_dim, size_t dense);
/* attention-dense.c: attention where attn.dense is not 0. */
void CPU(attention_dense)(struct backend *b, const struct attn *a, void *work);
size_t CPU(attention_dense_work)(const struct backend *b, size_t T, size_t max_slots,
                                 size_t head_dim, size_t dense);
void OWN_CPU(head)(struct backend *b, const struct mat *w, const act *x, const act *xu, size_t R,
                   const struct head_query *q, struct head_row *out, float *logits, void *work);
size_t OWN_CPU(head_work)(const struct backend *b, size_t R, size_t D, size_t V, size_t dense);
void CPU(wkv)(struct backend *b, const struct wkv *a, void *work);
size_t CPU(wkv_work)(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                     size_t head_dim);
void CPU(wkv_back)(struct backend *b, const struct wkv_back *a, void *work);
size_t CPU(wkv_back_work)(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                          size_t head_dim);

void CPU(shift)(struct backend *b, const struct shift *a);
void CPU(squash)(struct backend *b, const struct squash *a);
void CPU(removal)(struct backend *b, const struct removal *a);
void CPU(heads_out)(struct backend *b, const struct heads_out *a);

extern const struct ops OWN_CPU(ops);

/* kernels/train.h */
void CPU(rmsnorm_back)(struct backend *b, float *dx, float *dg, const float *dy, const float *x,
                       const float *g, size_t T, size_t D, double eps, float *work);
void CPU(swiglu_back)(struct backend *b, float *dgate, float *dup, const float *dy,
                      const float *gate, const float *up, size_t n);
void OWN_CPU(attention_back)(struct backend *b, const struct attn_back *a, float *work);
size_t OWN_CPU(attention_back_work)(const struct backend *b, size_t rows, size_t len, size_t heads,
                                    size_t head_dim);
void CPU(shift_back)(struct backend *b, const struct shift_back *a);
void CPU(squash_back)(struct backend *b, const struct squash_back *a);
void CPU(heads_out_back)(struct backend *b, const struct heads_out_back *a);
void CPU(removal_back)(struct backend *b, const struct removal_back *a);
void CPU(cross_entropy)(struct backend *b, float *logits, const int32_t *target,
                        const float *weight, size_t T, size_t V, double *loss);
void CPU(spread)(struct backend *b, float *y, const float *x, const int32_t *place, size_t T,
                 size_t D);
double CPU(squares)(struct backend *b, const float *x, size_t n, double *work);
void CPU(adamw)(struct backend *b, float *w, float *m, float *v, const float *g, size_t n,
                const struct adamw *a);

#endif
