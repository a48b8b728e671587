/* network.h - the one network of this project and the one way to run it.
 *
 * LLaMA and LLaDA are the same block (RMSNorm, RoPE, attention, SwiGLU) under other tensor names
 * and another mask. forward() runs any set of rows; everything else (prefill, decode, denoising
 * steps, block caches, batches of unequal prompts) is a choice of rows, slots and mask.
 *
 *     x = embed(token)
 *     per layer: x += Wo attention(rope(Wq n), rope(Wk n), Wv n),  n = rmsnorm(x)
 *                x += Wdown (silu(Wgate m) * Wup m),               m = rmsnorm(x)
 *     wanted rows: head(rmsnorm(x))
 * Source: models.md 1.3 and 4.2.
 */
#ifndef MODEL_NETWORK_H
#define MODEL_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"
#include "lib/base/err.h"
#include "lib/model/checkpoint.h"

struct layer {
    float *attn_norm, *ffn_norm; /* [D] */
    struct mat q, k, v, o, gate, up, down;
};
/* How precisely a network runs; a name that is NULL is the first of its list.
 *   dtype  auto | f32 | bf16 | bf16-f32   matrices and products (kernels/ops.h). auto: what loses
 *          nothing of the checkpoint, bf16-f32 when it is BF16, else f32
 *   kv     auto | f32 | bf16   the cache. auto: bf16 with dtype bf16 or a quantization, else f32
 *   quant  none | int8 | nf4   lib/model/quantization.h; the other matrices go by dtype */
struct precision {
    const char *dtype, *kv, *quant;
};

struct network {
    struct config config;
    struct backend *backend; /* borrowed */
    enum dtype dtype;        /* of the matrices that are not quantized */
    enum dtype kv_dtype;     /* of caches made for it: F32 or BF16 */
    enum quant quant;
    struct mat embed, head;  /* head.data == embed.data when tied */
    float *norm;             /* [D] */
    float *inv_freq;         /* [E/2], host */
    struct layer *layer;     /* [L] */
};

/* Loads weights into the back end. -1: EXIT_BAD_USAGE, EXIT_BAD_DATA, or EXIT_FAILED_RECORDS when
 * memory is short: then *n still says what was wanted, for a record of it. */
int network_load(struct network *n, struct backend *b, const struct checkpoint *c,
                 const struct precision *p, struct err *e);
void network_free(struct network *n);
size_t network_weight_bytes(const struct network *n);
const char *dtype_name(enum dtype d); /* "f32", "bf16", "bf16-f32", "int8", "nf4" */

/* Named key/value slots for every layer. A slot keeps the position of its token. */
struct kv {
    void *k, *v;  /* [L, S, K*E] of dtype */
    enum dtype dtype; /* F32 or BF16 */
    int32_t *pos; /* [S], host */
    size_t slots; /* S */
};
int kv_make(struct kv *kv, const struct network *n, size_t slots); /* -1: no memory */
void kv_free(struct kv *kv, const struct network *n);

/* Activations for up to `rows` rows at once reading up to `slots` keys a sequence; `logit_rows`
 * rows wanted at once. One block, cut into named shapes. */
struct work;
struct work *work_make(const struct network *n, size_t rows, size_t slots, size_t logit_rows);
void work_free(struct work *w, const struct network *n); /* NULL is fine */

/* One sequence's part of a pass. Its rows are consecutive in token[] and pos[]. */
struct forward_seq {
    size_t rows;
    const int32_t *slots; /* cache slots that these rows read (their own included) */
    size_t n_slots;
};
struct forward {
    const int32_t *token, *pos; /* [T] */
    const int32_t *slot;        /* [T] where each row's K and V go; NULL with kv NULL */
    const struct forward_seq *seqs;
    size_t n_seqs; /* T = sum of rows */
    enum mask mask;
    size_t mask_block;
    const int32_t *wanted; /* [R] rows whose answer is wanted, in any order */
    size_t n_wanted;
    const int32_t *uncond;   /* [R] for CFG: the unconditional twin of each wanted row, or NULL */
    struct head_query query; /* how the head answers */
};
/* kv NULL: every row reads all rows of its own sequence (vanilla LLaDA), and nothing is kept.
 * out: [R]. logits: NULL or [R, V] host floats. */
void forward(const struct network *n, struct kv *kv, struct work *w, const struct forward *f,
             struct head_row *out, float *logits);

#endif
