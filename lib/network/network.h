/* network.h - the one network of this project: its weights in the memory of a back end. kv.h has
 * its cache; pass.h runs it. One network serves all families, because every family is the same
 * block (RMSNorm, RoPE, attention, SwiGLU) with other tensor names, another mask and a few switches
 * in its config (lib/checkpoint/config.h): biases b, norms h of single heads, and latent vectors
 * z_l of a layer (latent.h), which every row reads.
 *
 *     x = embed(token)
 *     per layer: x += Wo attention(rope(h(Wq n + b)), rope(h(Wk n + b)), Wv n + b),  n = rmsnorm(x)
 *                x += Wco attention(rope(Wcq c), rope(Wck z_l), Wcv z_l),            c = rmsnorm(x)
 *                x += Wdown (silu(Wgate m) * Wup m),                                 m = rmsnorm(x)
 *                     or the sum over the chosen ones of n experts (kernels/experts.h)
 *     wanted rows: head(rmsnorm(x))
 *
 * With another mixer (config.mixer) time mixing of RWKV 6 or 7 replaces the first line of a layer;
 * its projections r, k, v and out are q, k, v and o of struct layer (kernels/mixing.h). Source:
 * Touvron et al. 2023 (arXiv 2302.13971), 2.2; Nie et al. 2025 (arXiv 2502.09992), 2.2;
 * modeling_llama.py of https://github.com/huggingface/transformers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"
#include "lib/base/err.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/network/offload.h"

/* The weights of a layer. Vectors are in memory of the back end. */
struct layer {
    float *attn_norm, *ffn_norm;      /* [D] */
    float *q_bias, *k_bias, *v_bias;  /* [H*E], [K*E], [K*E], or NULL */
    float *q_norm, *k_norm;           /* [E], or NULL */
    float *cross_norm;                /* [D], or NULL */
    float *router_bias;               /* [n], or NULL */
    struct mat q, k, v, o, gate, up, down; /* of an offloaded layer: in the slot of the layer. A
                                            * layer with experts has no gate, up and down here */
    struct mat router, *expert; /* with experts: [n, D]; [3 n] all gates, then all ups, all downs */
    struct mat shared_gate, shared_up, shared_down; /* data NULL without a shared expert */
    void *table;                /* [3 n] addresses of the data of expert[], in the back end */
    struct mat cross_q, cross_k, cross_v, cross_o; /* data NULL if the model has no latents */
    float *term[MIXING_VECTORS];        /* vectors of time mixing by role; NULL: mixer without it */
    struct mat mixing[MIXING_MATRICES]; /* matrices of time mixing; data NULL: mixer without it */
};
/* The precision of a network. NULL means the first word of a list.
 *   dtype  auto | f32 | bf16 | bf16-f32 | f16   format of matrices and products (kernels/ops.h).
 *          auto: bf16 on a device that computes in bf16, except for latent models; else the format
 *          that loses nothing of the checkpoint: bf16-f32 for a BF16 checkpoint, f32 for others
 *   kv     auto | f32 | bf16   format of the cache. auto: bf16 with dtype bf16 or a quantization,
 *          else f32
 *   quant  none | int8 | nf4 | ..   lib/checkpoint/quantization.h. Matrices that are not quantized
 *          have the format dtype
 *   offload     layers to offload (offload.h); changes no bit of a result
 *   offload_kv  kv_apart 1: layers whose keys and values are offloaded. kv_apart 0: keys and values
 *          are offloaded with the matrices of their layer */
struct precision {
    const char *dtype, *kv, *quant;
    struct offload_wish offload, offload_kv;
    int kv_apart;
};

/* A callback that gets two arrays of each layer of a pass before the next layer overwrites them:
 * `heads`, the outputs of the heads (input of Wo), and `hidden` (input of Wdown). Both arrays are
 * memory of the back end, in the dtype backend->act. The callback serves statistics over passes of
 * forward(), not generation. row_tile must be 0. */
struct layer_hook {
    void (*hear)(void *ctx, size_t layer, const act *heads /* [T, H*E] */,
                 const act *hidden /* [T, F] */, size_t T);
    void *ctx;
};

/* One pass in `every` runs twice, with the same result. This is a slow-down of known size, to test
 * whether a measurement finds a slow-down. A handicap has no effect on a device that replays
 * recorded passes. passes: passes so far. */
struct handicap { size_t every, passes; };

struct network {
    struct config config;
    struct backend *backend; /* borrowed */
    enum dtype dtype;        /* of matrices that are not quantized */
    enum dtype kv_dtype;     /* of caches for this network: F32 or BF16 */
    enum dtype quant;
    size_t row_tile;         /* rows that the products of a layer work on at once; 0: all. Smaller
                              * tiles give the same numbers with smaller intermediate arrays
                              * (lib/network/work.h). The caller sets row_tile */
    struct mat embed, head;  /* head.data == embed.data when tied */
    struct mat fuse;         /* F of pass_fuse(), in a drafter (config.taps); else data NULL */
    int32_t *ids;            /* [config.answers] ids of the rows of the head (checkpoint.ids), in
                              * memory of the back end; or NULL */
    float *fuse_norm;        /* [D], or NULL */
    float *norm;             /* [D], memory of the back end */
    float *inv_freq;         /* [E/2], memory of the back end */
    float *still;            /* [E/2] zeros, if some layer leaves its heads unrotated; else NULL */
    struct layer *layer;     /* [L] */
    struct offload_wish wish; /* layers whose matrices are, or will be, offloaded */
    struct offload_wish kv_wish; /* layers whose keys and values caches of this network offload */
    struct offload *offload; /* the offloaded layers; NULL: none */
    uint64_t identity;       /* hash of config and of the addresses and formats of the weights; part
                              * of the key struct pass */
    struct handicap *handicap; /* NULL: none; borrowed */
    const struct layer_hook *hook; /* NULL: no callback; borrowed */
    int64_t huge_page_bytes; /* bytes of the process in huge pages after loading; -1: on a device,
                              * or the system does not tell */
};

/* Settles a network: sets config, precision, wishes and backend->act, which is all that estimate.h
 * needs. Loads nothing. -1: EXIT_BAD_USAGE, EXIT_BAD_DATA. */
int network_settle(struct network *n, struct backend *backend, const struct checkpoint *model,
                   const struct precision *precision, struct err *e);
/* -1 (EXIT_BAD_USAGE): the back end cannot compute with a matrix of the network in its format. */
int network_check(const struct network *n, struct err *e);
/* network_settle(), then loads the weights into the back end (network_free). -1: EXIT_BAD_USAGE,
 * EXIT_BAD_DATA, EXIT_BUSY (other processes use the memory of the device), EXIT_CANNOT_CREATE or
 * EXIT_IO (the store cannot be made or is full), EXIT_FAILED_RECORDS (memory is short). If only the
 * loading failed, *n is settled, so that a record can name its settings. */
int network_load(struct network *n, struct backend *backend, const struct checkpoint *model,
                 const struct precision *precision, struct err *e);
/* *n is a copy of a drafter, *from the model that it drafts for. If the drafter has no embedding or
 * no head, the copy gets the matrix of *from. The copy gets its own identity. Do not free it. */
void network_lend(struct network *n, const struct network *from);
/* Loads the matrices of a part of a layer again in the format `dtype` (QUANT_NONE: n->dtype), from
 * the checkpoint that was loaded, which must not be packed. Nothing may be offloaded. -1: as
 * network_load(); only network_free() is then possible. */
int network_part(struct network *n, const struct checkpoint *model, enum part part, size_t layer,
                 enum dtype dtype, struct err *e);
void network_free(struct network *n);
size_t network_weight_bytes(const struct network *n); /* bytes of the loaded weights */
/* out[rows * cols] = the values of a role with which the network computes, read back from the
 * matrix. out and ids, the numbers 0, 1, .. rows - 1, are memory of the back end. The layer must
 * have the role and must not be offloaded; backend->act must be F32. */
void network_values(const struct network *n, enum role role, size_t layer, const int32_t *ids,
                    float *out);
/* For a settled network. Bytes that the weights will take, from config, dtype, quant and wish
 * alone: ops.mat_bytes of every matrix (at most two slots for all offloaded layers), and 4 bytes a
 * value of norms, biases and frequencies of the rotation. */
size_t network_expected_bytes(const struct network *n);
/* network_expected_bytes(), with each block rounded up to whole pages of the host. */
size_t network_expected_pages(const struct network *n);
/* For a settled network. Bytes of the largest layer in the store, each matrix rounded up
 * (offload_part). */
size_t network_layer_bytes(const struct network *n);
/* 1: matrices, or keys and values, of some layers are offloaded. */
static inline int network_offloads(const struct network *n)
{
    return n->wish.layers || n->kv_wish.layers;
}
/* 1: keys, values and factors of attention may be rounded to bf16. */
int network_half(const struct network *n);
