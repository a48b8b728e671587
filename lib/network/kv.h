/* kv.h - the cache of a network: keys and values of tokens, in slots. A pass that has a cache
 * computes only new rows. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/network/network.h"

struct latents; /* latent.h */

/* Keys and values of every layer. n->kv_wish defines which layers are offloaded (offload.h); stored
 * outputs always stay in memory. With time mixing a slot is a text: it has the state after the rows
 * computed so far (zeros before the first row), and a text keeps its slot. */
struct kv {
    void *k, *v;  /* [layers that are not offloaded, S, K*E] of dtype; NULL: all layers are
                   * offloaded, or kv has states */
    struct offload *outside; /* the offloaded layers, each [S, K*E] keys, and values from byte
                              * `second` on; NULL: none */
    size_t second;
    float *state; /* [L, S, H, E, E] states of time mixing, or NULL */
    float *last;  /* [L, S, D] with time mixing: the last row that was mixed, or NULL */
    enum dtype dtype; /* F32 or BF16 */
    int32_t *pos; /* [S], host: forward() stores here the position of the token in each slot */
    size_t slots; /* S */
    act *attn, *ffn; /* [L, S, D] in the dtype backend->act: stored outputs of attention and of the
                      * feed-forward block, or NULL */
    const struct latents *latents; /* latents that rows read; borrowed, or NULL */
};
/* Allocates a cache with `slots` slots (kv_free). -1: no memory. If the folder of the store has no
 * space, the process ends with exit code 74 (err_file). */
int kv_make(struct kv *kv, const struct network *n, size_t slots);
/* Bytes of `slots` slots of one layer in a store. *second: the offset of the values. */
size_t kv_layer_bytes(const struct network *n, size_t slots, size_t *second);
/* Allocates kv->attn and kv->ffn. -1: no memory; kv_free() then frees the rest. */
int kv_keep_outputs(struct kv *kv, const struct network *n);
/* Zeroes the state of a slot, before the first row of a new text. Only with time mixing. */
void kv_forget(struct kv *kv, const struct network *n, size_t slot);
/* Keys and values of one layer; of an offloaded layer in its slot. Not with time mixing. */
struct cache kv_layer(const struct kv *kv, const struct network *n, size_t layer);
void kv_free(struct kv *kv, const struct network *n);
