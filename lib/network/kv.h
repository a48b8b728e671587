/* kv.h - the cache of a network: keys and values of tokens, in slots. */
#ifndef NETWORK_KV_H
#define NETWORK_KV_H

#include <stddef.h>
#include <stdint.h>

#include "lib/network/network.h"

struct latents; /* latent.h */

/* Named key/value slots for every layer. Which layers have theirs outside, the network says
 * (kv_wish; offload.h); outputs that are kept beside them stay. With a mixer that recurs a slot is
 * a text: it holds the state behind the rows that were computed so far, zeros before the first, and
 * never moves. */
struct kv {
    void *k, *v;  /* [L less those outside, S, K*E] of dtype; NULL: all are outside, or states */
    struct offload *outside; /* a layer there: [S, K*E] keys, and from `second` on values; NULL:
                               * none is */
    size_t second;
    float *state; /* [L, S, H, E, E] of time mixing, or NULL */
    float *last;  /* [L, S, D] the row before the next one, or NULL */
    enum dtype dtype; /* F32 or BF16 */
    int32_t *pos; /* [S], host: forward() keeps here the position of each slot's token */
    size_t slots; /* S */
    act *attn, *ffn; /* [L, S, D] of the back end's `act`: outputs kept beside them, or NULL */
    const struct latents *latents; /* what rows of a latent model read besides; borrowed, or NULL */
};
/* -1: no memory. A store that there is no room for ends the process: exit 74. */
int kv_make(struct kv *kv, const struct network *n, size_t slots);
/* Bytes of S slots of a layer in a store; *second: where values begin. */
size_t kv_layer_bytes(const struct network *n, size_t slots, size_t *second);
int kv_keep_outputs(struct kv *kv, const struct network *n); /* -1: no memory */
/* The text of a slot begins anew. On a host, with states. */
void kv_forget(struct kv *kv, const struct network *n, size_t slot);
/* Layer l of it; not of states. */
struct cache kv_layer(const struct kv *kv, const struct network *n, size_t l);
void kv_free(struct kv *kv, const struct network *n);

#endif
