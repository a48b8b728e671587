/* cpu.h - functions that the files of kernels/cpu share, and that the table in cpu_ops.c lists.
 * CPU(NAME) and OWN_CPU(NAME) make the names of a level (level.h). A function with the name of a
 * slot of kernels/ops.h, mixing.h or train.h does what that slot defines. */
#pragma once

#include "kernels/cpu/level.h"
#include "kernels/mixing.h"
#include "kernels/ops.h"
#include "kernels/train.h"

/* A part of a loop with fewer operations costs less than waking a thread for it. */
enum { WORTH_A_THREAD = 65536 };

/* The number of elements for one part of a loop whose elements take `operations` operations
 * each. */
INLINE size_t grain(size_t operations) { return WORTH_A_THREAD / (operations + 1) + 1; }

/* Values that form no rows are divided among threads in spans of whole vectors. So only the last
 * values of all are computed one by one, however the spans are divided, and results do not depend
 * on the division. */
enum { SPAN = 64 };
INLINE size_t spans(size_t n) { return (n + SPAN - 1) / SPAN; }
INLINE size_t span_begin(size_t span, size_t n) { return span * SPAN < n ? span * SPAN : n; }

/* CPU_SLOTS: slots with one function for a level and the levels built on it. OWN_CPU_SLOTS: slots
 * for which the level amx has a function of its own. */
#define CPU_SLOTS(X)                                                                               \
    X(refuses) X(mat_make) X(mat_free) X(mat_bytes) X(embed) X(rope_table) X(qkv) X(rope)          \
    X(swiglu) X(rmsnorm)
#define OWN_CPU_SLOTS(X)                                                                           \
    X(attention) X(attention_work) X(matmul) X(gated) X(matmul_work) X(head) X(head_work)
#define CPU_TRAIN_SLOTS(X)                                                                         \
    X(rmsnorm_back) X(swiglu_back) X(spread) X(embed_back) X(add) X(shift_back) X(squash_back)     \
    X(heads_out_back) X(removal_back) X(wkv_back) X(wkv_back_work) X(cross_entropy) X(squares)     \
    X(adamw)
#define OWN_CPU_TRAIN_SLOTS(X) X(gemm) X(gemm_work) X(attention_back) X(attention_back_work)
#define CPU_DECLARE(slot) OPS_DECLARE(ops, slot, CPU(slot))
#define OWN_CPU_DECLARE(slot) OPS_DECLARE(ops, slot, OWN_CPU(slot))
#define CPU_DECLARE_MIXING(slot) OPS_DECLARE(mixing_ops, slot, CPU(slot))
#define CPU_DECLARE_TRAIN(slot) OPS_DECLARE(train_ops, slot, CPU(slot))
#define OWN_CPU_DECLARE_TRAIN(slot) OPS_DECLARE(train_ops, slot, OWN_CPU(slot))
CPU_SLOTS(CPU_DECLARE)
OWN_CPU_SLOTS(OWN_CPU_DECLARE)
MIXING_SLOTS(CPU_DECLARE_MIXING)
CPU_TRAIN_SLOTS(CPU_DECLARE_TRAIN)
OWN_CPU_TRAIN_SLOTS(OWN_CPU_DECLARE_TRAIN)
extern const struct ops OWN_CPU(ops);
extern const struct train_ops OWN_CPU(train);

/* matmul in two steps, on the calling thread: pack_rows packs the rows x[T, K] once, and
 * packed_product multiplies them by one part of a matrix after another. packed: packed_bytes(...)
 * bytes, 64-byte aligned. x must stay valid until the last product. */
size_t OWN_CPU(packed_bytes)(const struct mat *weight, size_t T);
/* The largest packed_bytes of any dtype, for a matrix of K columns. */
size_t OWN_CPU(packed_most)(size_t T, size_t K);
void OWN_CPU(pack_rows)(void *packed, const float *x, const struct mat *weight, size_t T);
/* y[T, n] (row stride ldy) = columns first .. first + n - 1 of x W^T. `first` is a multiple of
 * PANEL. T is the T of pack_rows. */
void OWN_CPU(packed_product)(float *y, size_t ldy, void *packed, const struct mat *weight, size_t T,
                             size_t first, size_t n);
/* attention-dense.c: attention where attn.dense is not 0. */
void CPU(attention_dense)(struct backend *backend, const struct attn *attention, void *work);
size_t CPU(attention_dense_work)(const struct backend *backend, size_t T, size_t max_slots,
                                 size_t head_dim, size_t dense);
