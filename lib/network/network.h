/* network.h - the one network of this project: its weights in the memory of a back end.
 * kv.h is its cache, pass.h runs it.
 *
 * Every family is the same block (RMSNorm, RoPE, attention, SwiGLU) under other tensor names,
 * another mask and a few switches of its config (lib/checkpoint/config.h): biases b, norms h of
 * single heads, and latent vectors z_l of a layer (latent.h), which every row reads.
 *
 *     x = embed(token)
 *     per layer: x += Wo attention(rope(h(Wq n + b)), rope(h(Wk n + b)), Wv n + b),  n = rmsnorm(x)
 *                x += Wco attention(rope(Wcq c), rope(Wck z_l), Wcv z_l),            c = rmsnorm(x)
 *                x += Wdown (silu(Wgate m) * Wup m),                                 m = rmsnorm(x)
 *     wanted rows: head(rmsnorm(x))
 *
 * With another mixer (config.mixer) the first line of a layer is the time mixing of RWKV 6 or 7,
 * r, k, v and out being its projections: kernels/mixing.h, kernels/wkv.h.
 * Source: Touvron et al. 2023 (arXiv 2302.13971), 2.2; Nie et al. 2025 (arXiv 2502.09992), 2.2;
 * modeling_llama.py of https://github.com/huggingface/transformers.
 */
#ifndef NETWORK_NETWORK_H
#define NETWORK_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"
#include "lib/base/err.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/network/offload.h"

/* Vectors are memory of the back end. */
struct layer {
    float *attn_norm, *ffn_norm;      /* [D] */
    float *q_bias, *k_bias, *v_bias;  /* [H*E], [K*E], [K*E], or NULL */
    float *q_norm, *k_norm;           /* [E], or NULL */
    float *cross_norm;                /* [D], or NULL */
    struct mat q, k, v, o, gate, up, down; /* of a layer that is offloaded: in its slot */
    struct mat cross_q, cross_k, cross_v, cross_o; /* the same; data NULL without latents */
    float *term[MIXING_VECTORS];        /* of a mixer, by role; NULL where it has none */
    struct mat mixing[MIXING_MATRICES]; /* the same; data NULL */
};
/* How precisely a network runs; a name that is NULL is the first of its list.
 *   dtype  auto | f32 | bf16 | bf16-f32 | f16   matrices and products (kernels/ops.h). auto: bf16
 *          on a device that computes in it; elsewhere what loses nothing of the checkpoint,
 *          bf16-f32 when it is BF16, else f32
 *   kv     auto | f32 | bf16   the cache. auto: bf16 with dtype bf16 or a quantization, else f32
 *   quant  none | int8 | nf4 | ..   lib/checkpoint/quantization.h; matrices that it leaves out go
 *          by dtype
 *   offload  layers that are kept elsewhere (offload.h); no bit depends on it
 *   offload_kv  those whose keys and values are, where kv_apart; else they are where the matrices
 *          of their layer are */
struct precision {
    const char *dtype, *kv, *quant;
    struct offload_wish offload, offload_kv;
    int kv_apart;
};

/* Who hears what each layer of a pass computes, before the next one writes over it: the outputs of
 * the heads that meet Wo, and the hidden values that meet Wdown. Both are memory of the back end,
 * in its `act`. For statistics over passes that forward() runs, not for generation, and without
 * row tiles. */
struct layer_hook {
    void (*hear)(void *ctx, size_t layer, const act *heads /* [T, H*E] */,
                 const act *hidden /* [T, F] */, size_t T);
    void *ctx;
};

/* Every so many passes one runs twice, with the same result: a slow-down of known size, to test
 * whether a measurement finds it. On a device that replays recorded passes it does nothing. */
struct handicap { size_t every, passes; };

struct network {
    struct config config;
    struct backend *backend; /* borrowed */
    enum dtype dtype;        /* of the matrices that are not quantized */
    enum dtype kv_dtype;     /* of caches made for it: F32 or BF16 */
    enum dtype quant;
    size_t row_tile;         /* rows that the products of a layer work on at once, the same numbers
                              * with less between them (lib/network/work.h); 0: all. The caller's */
    struct mat embed, head;  /* head.data == embed.data when tied */
    float *norm;             /* [D], memory of the back end */
    float *inv_freq;         /* [E/2], the same */
    struct layer *layer;     /* [L] */
    struct offload_wish wish; /* layers that are outside, or will be */
    struct offload_wish kv_wish; /* those whose keys and values are, in caches made for it */
    struct offload *offload; /* those at work; NULL: none is outside */
    uint64_t identity;       /* of what is above: networks that differ there differ here */
    struct handicap *handicap; /* NULL: none; borrowed */
    const struct layer_hook *hook; /* NULL: nobody hears; borrowed */
    int64_t huge_page_bytes; /* of the host's memory in huge pages with the weights loaded; -1: on a
                              * device, or the system does not tell */
};

/* Settles config, precision and the back end's `act`, all that estimate.h asks for, and loads
 * nothing. -1: EXIT_BAD_USAGE, EXIT_BAD_DATA. */
int network_settle(struct network *n, struct backend *b, const struct checkpoint *c,
                   const struct precision *p, struct err *e);
/* -1 (EXIT_BAD_USAGE): the back end has no matrices of a kind that is wanted. */
int network_check(const struct network *n, struct err *e);
/* Loads weights into the back end, and sets its `act`. -1: EXIT_BAD_USAGE, EXIT_BAD_DATA, EXIT_BUSY
 * (others use the memory of the device), EXIT_CANNOT_CREATE or EXIT_IO (no store, or a full one),
 * or EXIT_FAILED_RECORDS when memory is short: then *n still says what was wanted, for a record of
 * it. */
int network_load(struct network *n, struct backend *b, const struct checkpoint *c,
                 const struct precision *p, struct err *e);
/* From now on the matrices of a part are in format d (QUANT_NONE: by dtype), made anew from the
 * checkpoint, which is the one that was loaded and is not packed. -1: as network_load; the network
 * is then for network_free alone. */
int network_part(struct network *n, const struct checkpoint *c, enum part p, size_t layer,
                 enum dtype d, struct err *e);
void network_free(struct network *n);
size_t network_weight_bytes(const struct network *n); /* taken */
/* out[rows * cols], in memory of the back end = the values of a role as the network computes with
 * them: read back from the matrix, quantized or not. ids: 0, 1, .. rows - 1, there too. The role
 * has that layer, which is not offloaded, and the back end's `act` is F32. */
void network_values(const struct network *n, enum role r, size_t layer, const int32_t *ids,
                    float *out);
/* What the weights will take, from config, dtype, quant and wish alone: mat_bytes of every matrix
 * (values in the back end's layout, with their scales when quantized), or in place of the layers
 * outside two slots; 4 bytes a value of a norm, of a bias and of the rotation's frequencies. For a
 * network that is settled. */
size_t network_expected_bytes(const struct network *n);
/* The same in memory of the host, which hands out whole pages. */
size_t network_expected_pages(const struct network *n);
/* Of a layer in the store, its parts rounded up. For a network that is settled. */
size_t network_layer_bytes(const struct network *n);
/* 1: matrices, or keys and values, of layers are outside. */
static inline int network_offloads(const struct network *n)
{
    return n->wish.layers || n->kv_wish.layers;
}
int network_half(const struct network *n); /* 1: keys, values, attention may be rounded to bf16 */

#endif
