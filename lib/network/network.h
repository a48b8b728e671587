/* network.h - the one network of this project: its weights in the memory of a back end. kv.h is its
 * cache; pass.h runs it.
 *
 * Every family is the same block (RMSNorm, RoPE, attention, SwiGLU) with other tensor names,
 * another mask and a few switches in its config (lib/checkpoint/config.h): biases b, norms h of
 * single heads, and latent vectors z_l of a layer (latent.h), which every row reads.
 *
 *     x = embed(token)
 *     per layer: x += Wo attention(rope(h(Wq n + b)), rope(h(Wk n + b)), Wv n + b),  n = rmsnorm(x)
 *                x += Wco attention(rope(Wcq c), rope(Wck z_l), Wcv z_l),            c = rmsnorm(x)
 *                x += Wdown (silu(Wgate m) * Wup m),                                 m = rmsnorm(x)
 *                     or, of n experts, the chosen ones (kernels/experts.h)
 *     wanted rows: head(rmsnorm(x))
 *
 * With another mixer (config.mixer) the first line of a layer is the time mixing of RWKV 6 or 7,
 * with q, k, v and o as its projections r, k, v and out: kernels/mixing.h, kernels/wkv.h. Source:
 * Touvron et al. 2023 (arXiv 2302.13971), 2.2; Nie et al. 2025 (arXiv 2502.09992), 2.2;
 * modeling_llama.py of https://github.com/huggingface/transformers. */
#pragma once

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
    float *router_bias;               /* [n], or NULL */
    struct mat q, k, v, o, gate, up, down; /* of an offloaded layer: in its slot; of a layer with
                                            * experts: no gate, up and down */
    struct mat router, *expert; /* with experts: [n, D]; [3 n] gate, up and down of each */
    struct mat shared_gate, shared_up, shared_down; /* data NULL without a shared expert */
    void *table;                /* [3 n] addresses of the data of expert[], for a device */
    struct mat cross_q, cross_k, cross_v, cross_o; /* data NULL if the model has no latents */
    float *term[MIXING_VECTORS];        /* of time mixing, by role; NULL if the mixer has none */
    struct mat mixing[MIXING_MATRICES]; /* of time mixing; data NULL if the mixer has none */
};
/* The precision of a network. A NULL name is the first of its list.
 *   dtype  auto | f32 | bf16 | bf16-f32 | f16   matrices and products (kernels/ops.h). auto: bf16
 *          on a device that computes in it; elsewhere the format that loses nothing of the
 *          checkpoint: bf16-f32 if it is BF16, else f32
 *   kv     auto | f32 | bf16   the cache. auto: bf16 with dtype bf16 or a quantization, else f32
 *   quant  none | int8 | nf4 | ..   lib/checkpoint/quantization.h; matrices that are not quantized
 *          have dtype
 *   offload  layers to offload (offload.h); it changes no bit of a result
 *   offload_kv  if kv_apart: layers whose keys and values are offloaded; else they go with the
 *          matrices of their layer */
struct precision {
    const char *dtype, *kv, *quant;
    struct offload_wish offload, offload_kv;
    int kv_apart;
};

/* A callback for the values of each layer of a pass, before the next layer overwrites them: the
 * outputs of the heads (input of Wo) and the hidden values (input of Wdown). Both are memory of the
 * back end, in its `act`. For statistics over passes of forward(), not for generation, and without
 * row tiles. */
struct layer_hook {
    void (*hear)(void *ctx, size_t layer, const act *heads /* [T, H*E] */,
                 const act *hidden /* [T, F] */, size_t T);
    void *ctx;
};

/* Every `every` passes one runs twice, with the same result: a slow-down of known size, to test
 * whether a measurement finds it. It does nothing on a device that replays recorded passes. */
struct handicap { size_t every, passes; };

struct network {
    struct config config;
    struct backend *backend; /* borrowed */
    enum dtype dtype;        /* of matrices that are not quantized */
    enum dtype kv_dtype;     /* of caches for it: F32 or BF16 */
    enum dtype quant;
    size_t row_tile;         /* rows that the products of a layer work on at once: the same numbers
                              * with smaller intermediate arrays (lib/network/work.h); 0: all. Set
                              * by the caller */
    struct mat embed, head;  /* head.data == embed.data when tied */
    struct mat fuse;         /* of a drafter (config.taps), else data NULL. A drafter without embed
                              * or head uses those of the model that it drafts for */
    int32_t *ids;            /* [config.answers] of checkpoint, memory of the back end; or NULL */
    float *fuse_norm;        /* [D], or NULL */
    float *norm;             /* [D], memory of the back end */
    float *inv_freq;         /* [E/2], memory of the back end */
    float *still;            /* [E/2] zeros, where a layer leaves its heads unrotated; else NULL */
    struct layer *layer;     /* [L] */
    struct offload_wish wish; /* layers that are, or will be, offloaded */
    struct offload_wish kv_wish; /* layers whose keys and values are offloaded, in caches for it */
    struct offload *offload; /* the offloaded layers; NULL: none */
    uint64_t identity;       /* a hash of the members above: different networks have different
                              * values */
    struct handicap *handicap; /* NULL: none; borrowed */
    const struct layer_hook *hook; /* NULL: no callback; borrowed */
    int64_t huge_page_bytes; /* huge pages of the host's memory with the weights loaded; -1: on a
                              * device, or the system does not tell */
};

/* Settles config, precision and the back end's `act`, which is all that estimate.h needs. Loads
 * nothing. -1: EXIT_BAD_USAGE, EXIT_BAD_DATA. */
int network_settle(struct network *n, struct backend *backend, const struct checkpoint *model,
                   const struct precision *precision, struct err *e);
/* -1 (EXIT_BAD_USAGE): the back end cannot have a matrix that is needed. */
int network_check(const struct network *n, struct err *e);
/* Loads weights into the back end, and sets its `act`. -1: EXIT_BAD_USAGE, EXIT_BAD_DATA, EXIT_BUSY
 * (other processes use the device's memory), EXIT_CANNOT_CREATE or EXIT_IO (no store, or a full
 * one), or EXIT_FAILED_RECORDS when memory is short: *n then still has the requested settings, for
 * a record. */
int network_load(struct network *n, struct backend *backend, const struct checkpoint *model,
                 const struct precision *precision, struct err *e);
/* *n is a copy of a drafter, *from the model that it drafts for. If the drafter has no embedding or
 * head, the copy gets that of the model, and an identity of its own. The copy is not freed. */
void network_lend(struct network *n, const struct network *from);
/* Makes the matrices of a part anew in format dtype (QUANT_NONE: by dtype), from the checkpoint
 * that was loaded, which must not be packed. -1: as network_load; the network can then only be
 * freed. */
int network_part(struct network *n, const struct checkpoint *model, enum part part, size_t layer,
                 enum dtype dtype, struct err *e);
void network_free(struct network *n);
size_t network_weight_bytes(const struct network *n); /* bytes of the loaded weights */
/* out[rows * cols], memory of the back end = the values of a role as the network computes with
 * them, read back from the matrix. ids: 0, 1, .. rows - 1, also memory of the back end. The layer
 * has that role and is not offloaded, and the back end's `act` is F32. */
void network_values(const struct network *n, enum role role, size_t layer, const int32_t *ids,
                    float *out);
/* The bytes that weights will take, from config, dtype, quant and wish alone: mat_bytes of every
 * matrix (two slots for all offloaded layers), and 4 bytes a value of norms, biases and the
 * rotation's frequencies. For a settled network. */
size_t network_expected_bytes(const struct network *n);
/* network_expected_bytes() in host memory, which is handed out in whole pages. */
size_t network_expected_pages(const struct network *n);
/* Bytes of a layer in the store, its parts rounded up. For a settled network. */
size_t network_layer_bytes(const struct network *n);
/* 1: matrices, or keys and values, of some layers are offloaded. */
static inline int network_offloads(const struct network *n)
{
    return n->wish.layers || n->kv_wish.layers;
}
int network_half(const struct network *n); /* 1: keys, values and attention may be rounded to
                                            * bf16 */
