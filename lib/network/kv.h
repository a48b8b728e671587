/* kv.h - the cache of a network: keys and values of tokens, in slots. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/network/network.h"

struct latents; /* latent.h */

/* Key and value slots for every layer. The network defines which layers are offloaded (kv_wish;
 * offload.h); stored outputs always stay in memory. With time mixing a slot is a text: it holds the
 * state behind the rows computed so far (zeros before the first) and never moves. */
struct kv {
    void *k, *v;  /* [L less offloaded ones, S, K*E] of dtype; NULL: all are offloaded, or kv has
                   * states */
    struct offload *outside; /* an offloaded layer: [S, K*E] keys, and values from byte `second` on;
                              * NULL: none */
    size_t second;
    float *state; /* [L, S, H, E, E] of time mixing, or NULL */
    float *last;  /* [L, S, D] the row before the next one, or NULL */
    enum dtype dtype; /* F32 or BF16 */
    int32_t *pos; /* [S], host: forward() stores here the position of each slot's token */
    size_t slots; /* S */
    act *attn, *ffn; /* [L, S, D] of the back end's `act`: stored outputs, or NULL */
    const struct latents *latents; /* latents that rows read; borrowed, or NULL */
};
/* -1: no memory. If a store finds no space, the process ends: exit 74. */
int kv_make(struct kv *kv, const struct network *n, size_t slots);
/* Bytes of S slots of a layer in a store; *second: the offset of the values. */
size_t kv_layer_bytes(const struct network *n, size_t slots, size_t *second);
int kv_keep_outputs(struct kv *kv, const struct network *n); /* -1: no memory */
/* Starts a new text in a slot. Only on a host, with states. */
void kv_forget(struct kv *kv, const struct network *n, size_t slot);
/* One layer of the cache; not for states. */
struct cache kv_layer(const struct kv *kv, const struct network *n, size_t layer);
void kv_free(struct kv *kv, const struct network *n);
