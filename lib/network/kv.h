/* kv.h - the cache of a network: keys and values of tokens, in slots. */
#ifndef NETWORK_KV_H
#define NETWORK_KV_H

#include <stddef.h>
#include <stdint.h>

#include "lib/network/network.h"

struct latents; /* latent.h */

/* Named key/value slots for every layer. */
struct kv {
    void *k, *v;  /* [L, S, K*E] of dtype */
    enum dtype dtype; /* F32 or BF16 */
    int32_t *pos; /* [S], host: forward() keeps here the position of each slot's token */
    size_t slots; /* S */
    act *attn, *ffn; /* [L, S, D] of the back end's `act`: outputs kept beside them, or NULL */
    const struct latents *latents; /* what rows of a latent model read besides; borrowed, or NULL */
};
int kv_make(struct kv *kv, const struct network *n, size_t slots); /* -1: no memory */
int kv_keep_outputs(struct kv *kv, const struct network *n); /* -1: no memory */
void kv_free(struct kv *kv, const struct network *n);

#endif
