/* cuda.h - functions that the folders of kernels/cuda share, and the only entry point of the shared
 * object. A function cuda_NAME does what the slot NAME of kernels/ops.h, mixing.h or train.h
 * defines. All have C linkage, because both C and CUDA C++ call them. */
#pragma once

#include "kernels/advance.h"
#include "kernels/links.h"
#include "kernels/mixing.h"
#include "kernels/ops.h"
#include "kernels/reuse.h"
#include "kernels/train.h"
#include "lib/base/linkage.h"

C_BEGIN

/* The entry point: the only symbol that the shared object exports. Fills backend->ops, device,
 * name, address and level for device `index` (-1: the best device that is not busy). Returns -1
 * with EXIT_NO_DEVICE and the reason (no driver, a driver that is too old, no device, or no code
 * for the device in this build), or with EXIT_BAD_USAGE or EXIT_BAD_DATA if an environment
 * variable, or the file that it names, is wrong. */
int crossover_cuda_open(struct backend *backend, int index, struct err *e);
extern const struct ops cuda_ops;

/* The slots that this back end fills, of struct ops and train_ops; of mixing_ops it fills all
 * (MIXING_SLOTS). */
#define CUDA_SLOTS(X)                                                                              \
    X(alloc) X(free) X(trim) X(room) X(write) X(read) X(copy) X(clear) X(mirror) X(mirror_free)    \
    X(fetch) X(run) X(prepare) X(event_record) X(event_wait) X(store_open) X(store_close)          \
    X(store_put) X(stage) X(arrive) X(store_rows) X(act_dtype) X(refuses) X(mat_make) X(mat_free)  \
    X(mat_bytes) X(embed) X(rope_table) X(qkv) X(qkv_work) X(attention) X(attention_work)          \
    X(matmul) X(gated) X(matmul_work) X(experts) X(experts_work) X(rope) X(swiglu) X(rmsnorm)      \
    X(head) X(head_work) X(advance_texts) X(advance_canvases) X(choose) X(settle) X(sift)          \
    X(links) X(close)
#define CUDA_TRAIN_SLOTS(X)                                                                        \
    X(gemm) X(gemm_work) X(rmsnorm_back) X(swiglu_back) X(attention_back) X(attention_back_work)   \
    X(spread) X(embed_back) X(add) X(shift_back) X(squash_back) X(heads_out_back) X(removal_back)  \
    X(wkv_back) X(wkv_back_work) X(cross_entropy) X(squares) X(adamw)
#define CUDA_DECLARE(slot) OPS_DECLARE(ops, slot, cuda_##slot)
#define CUDA_DECLARE_MIXING(slot) OPS_DECLARE(mixing_ops, slot, cuda_##slot)
#define CUDA_DECLARE_TRAIN(slot) OPS_DECLARE(train_ops, slot, cuda_##slot)
CUDA_SLOTS(CUDA_DECLARE)
MIXING_SLOTS(CUDA_DECLARE_MIXING)
CUDA_TRAIN_SLOTS(CUDA_DECLARE_TRAIN)

/* rows.cu */
/* The part of qkv after the products: rotates q and k, and stores k and v in the cache. struct
 * qkv_made holds the products as rows of `act`, ld values apart. q NULL: the products for q are in
 * qkv->q. k and v NULL: these products are in the cache; qkv->slot is then NULL, and qkv->to.dtype
 * is the activations' format. */
struct qkv_made {
    const act *q, *k, *v;
    size_t ld;
};
void cuda_rotate_store(struct backend *backend, const struct qkv *qkv, const struct qkv_made *made,
                       size_t T);
/* y[T, F] = silu(gate) * up; gate and up [T, F] with row stride ld. */
void cuda_swiglu_rows(struct backend *backend, act *y, const act *gate, const act *up, size_t ld,
                      size_t T, size_t F);

/* heads.cu: the part of qkv after the products if there are biases or norms of heads. k, v: the
 * products, [T, K*E] of `act`, outside the cache. */
void cuda_head_rows(struct backend *backend, const struct qkv *qkv, const act *k, const act *v,
                    size_t T);

/* product.cu; product.h has the kernels that it chooses from */
/* y[T, n] (fp32, row stride n) = x[T, K] times rows first .. first + n - 1 of W, for the head.
 * work: matmul_work(T, K, n) bytes. */
void cuda_logits(struct backend *backend, float *y, const struct mat *weight, size_t first,
                 size_t n, const act *x, size_t T, void *work);

/* attention.cu */
/* Make and free the counters with which the blocks of a split list, or of a product of few.cu, find
 * out which of them ends last. All are 0 between two kernels. */
void cuda_attention_open(struct backend *backend);
void cuda_attention_close(struct backend *backend);

C_END
