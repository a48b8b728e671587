/* cuda.h - functions that the folders of kernels/cuda share, and the one entry point of the shared
 * object. A function with the name of a slot of kernels/ops.h, mixing.h or train.h does what that
 * slot defines. C linkage, because both C and CUDA C++ call them.
 */
#ifndef KERNELS_CUDA_CUDA_H
#define KERNELS_CUDA_CUDA_H

#include "kernels/advance.h"
#include "kernels/mixing.h"
#include "kernels/ops.h"
#include "kernels/reuse.h"
#include "kernels/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The entry point: the only symbol that the shared object exports. Fills b->ops, device, name,
 * address and level for device `index` (-1: the best that is not busy). -1: EXIT_NO_DEVICE with the
 * reason: no driver, a driver too old, no device, or none that this build has code for. */
int crossover_cuda_open(struct backend *b, int index, struct err *e);
extern const struct ops cuda_ops;

/* open.cu, alloc.cu, transfer.cu, graph.cu, event.cu */
void cuda_close(struct backend *b);
void *cuda_alloc(struct backend *b, size_t bytes, enum memory_kind kind);
void cuda_free(struct backend *b, void *p);
void cuda_trim(struct backend *b);
void cuda_room(struct backend *b, size_t *available, size_t *total);
void cuda_write(struct backend *b, void *to, const void *from, size_t bytes);
void cuda_read(struct backend *b, void *to, const void *from, size_t bytes);
void cuda_copy(struct backend *b, void *to, const void *from, size_t bytes);
void cuda_clear(struct backend *b, void *p, size_t bytes);
void *cuda_mirror(struct backend *b, size_t bytes);
void cuda_mirror_free(struct backend *b, void *p);
void cuda_fetch(struct backend *b, void *mirror, const void *from, size_t bytes);
void cuda_run(struct backend *b, const void *key, size_t key_bytes, void (*step)(void *ctx),
              void *ctx);
void cuda_prepare(struct backend *b, const void *key, size_t key_bytes, void (*step)(void *ctx),
                  void *ctx);
int64_t cuda_event_record(struct backend *b);
int64_t cuda_event_wait(struct backend *b, int64_t event);

/* store.cu */
struct store *cuda_store_open(struct backend *b, const char *folder, size_t blocks, size_t bytes,
                              struct err *e);
void cuda_store_close(struct backend *b, struct store *s);
int cuda_store_put(struct backend *b, struct store *s, size_t block, size_t at, const void *from,
                   size_t bytes, struct err *e);
void cuda_stage(struct backend *b, struct store *s, size_t block, void *to);
void cuda_arrive(struct backend *b, struct store *s);
void cuda_store_rows(struct backend *b, struct store *s, size_t block, const void *from,
                     const struct store_rows *r);

/* mat.cu */
enum dtype cuda_act_dtype(enum dtype dtype);
const char *cuda_refuses(const struct backend *b, enum dtype dtype, size_t cols);
int cuda_mat_make(struct backend *b, struct mat *m, const struct mat_source *s, enum dtype dtype);
void cuda_mat_free(struct backend *b, struct mat *m);
size_t cuda_mat_bytes(size_t rows, size_t cols, enum dtype dtype);

/* rows.cu */
void cuda_embed(struct backend *b, act *y, const struct mat *w, const int32_t *token, size_t T);
void cuda_rope_table(struct backend *b, float *table, const int32_t *pos, const float *inv_freq,
                     size_t T, size_t E);
void cuda_rmsnorm(struct backend *b, act *y, const act *x, const int32_t *row, const float *gain,
                  size_t T, size_t D, double eps);
/* The part of qkv after the products, where others made them: rotates q and k, and stores k and v
 * in the cache. Products are rows of `act`, ld values apart. q NULL: they are in a->q. k and v
 * NULL: they are in the cache (a->slot NULL, and a->to.dtype is the activations' format). */
struct qkv_made {
    const act *q, *k, *v;
    size_t ld;
};
void cuda_rotate_store(struct backend *b, const struct qkv *a, const struct qkv_made *m, size_t T);
void cuda_swiglu(struct backend *b, act *y, const act *gate, const act *up, size_t n);
/* y[T, F] = silu(gate) * up; gate and up [T, F] with row stride ld. */
void cuda_swiglu_rows(struct backend *b, act *y, const act *gate, const act *up, size_t ld,
                      size_t T, size_t F);

/* heads.cu: the part of qkv after three products where there are biases or norms of heads. k, v:
 * [T, K*E] of `act`, not in the cache. */
void cuda_head_rows(struct backend *b, const struct qkv *a, const act *k, const act *v, size_t T);

/* product.cu; product.h has the kernels that it chooses from */
void cuda_qkv(struct backend *b, const struct qkv *a, size_t T, void *work);
size_t cuda_qkv_work(const struct backend *b, size_t T, size_t D, size_t heads, size_t kv_heads,
                     size_t head_dim, int steps);
void cuda_matmul(struct backend *b, const struct product *p, size_t n, struct input in, size_t T,
                 void *work);
void cuda_gated(struct backend *b, act *y, struct input in, const struct mat *gate,
                const struct mat *up, size_t T, void *work);
size_t cuda_matmul_work(const struct backend *b, size_t T, size_t K, size_t N);
/* y[T, n] (fp32, row stride n) = x[T, K] times rows first..first+n of W, for the head. work:
 * matmul_work(T, K, n). */
void cuda_logits(struct backend *b, float *y, const struct mat *w, size_t first, size_t n,
                 const act *x, size_t T, void *work);

/* experts.cu */
void cuda_experts(struct backend *b, const struct experts *a, size_t T, void *work);
size_t cuda_experts_work(const struct backend *b, size_t T, size_t D, size_t F, size_t n,
                         size_t used);

/* attention.cu */
void cuda_attention(struct backend *b, const struct attn *a, void *work);
/* Makes the counters of splits (kernels/cuda/attention), all 0 between two kernels. */
void cuda_attention_open(struct backend *b);
void cuda_attention_close(struct backend *b);
size_t cuda_attention_work(const struct backend *b, size_t T, size_t n_seqs, size_t max_slots,
                           size_t heads, size_t kv_heads, size_t head_dim, size_t dense);

/* head.cu */
void cuda_head(struct backend *b, const struct mat *w, const act *x, const act *xu, size_t R,
               const struct head_query *q, struct head_row *out, float *logits, void *work);
size_t cuda_head_work(const struct backend *b, size_t R, size_t D, size_t V, size_t dense);

/* advance.cu */
void cuda_advance_texts(struct backend *b, const struct text_loop *l);
void cuda_advance_canvases(struct backend *b, const struct canvas_loop *l);

/* reuse.cu */
void cuda_choose(struct backend *b, const struct drift *d, void *work);
void cuda_settle(struct backend *b, const struct outputs *o);
void cuda_sift(struct backend *b, const struct sift *s, void *work);

/* wkv.cu, wkv_back.cu */
void cuda_wkv(struct backend *b, const struct wkv *w, void *work);
size_t cuda_wkv_work(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                     size_t head_dim);
void cuda_wkv_back(struct backend *b, const struct wkv_back *a, void *work);
size_t cuda_wkv_back_work(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                          size_t head_dim);

/* mixing.cu */
void cuda_shift(struct backend *b, const struct shift *a);
void cuda_squash(struct backend *b, const struct squash *a);
void cuda_removal(struct backend *b, const struct removal *a);
void cuda_heads_out(struct backend *b, const struct heads_out *a);

/* train.cu */
void cuda_rope(struct backend *b, float *x, const float *table, size_t T, size_t heads, size_t E,
               int sign);
void cuda_rmsnorm_back(struct backend *b, float *dx, float *dg, const float *dy, const float *x,
                       const float *g, size_t T, size_t D, double eps, float *work);
void cuda_swiglu_back(struct backend *b, float *dgate, float *dup, const float *dy,
                      const float *gate, const float *up, size_t n);
void cuda_spread(struct backend *b, float *y, const float *x, const int32_t *place, size_t T,
                 size_t D);
void cuda_cross_entropy(struct backend *b, float *logits, const int32_t *target,
                        const float *weight, size_t T, size_t V, double *loss);

/* attention_back.cu, mixing_back.cu, strided.cu */
void cuda_attention_back(struct backend *b, const struct attn_back *a, float *work);
size_t cuda_attention_back_work(const struct backend *b, size_t rows, size_t len, size_t heads,
                                size_t head_dim);
void cuda_shift_back(struct backend *b, const struct shift_back *a);
void cuda_squash_back(struct backend *b, const struct squash_back *a);
void cuda_heads_out_back(struct backend *b, const struct heads_out_back *a);
void cuda_removal_back(struct backend *b, const struct removal_back *a);
void cuda_gemm(struct backend *b, const struct gemm *g, size_t n, void *work);
size_t cuda_gemm_work(const struct backend *b, size_t M, size_t N, size_t K);

#ifdef __cplusplus
}
#endif

#endif
