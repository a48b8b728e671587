/* kv.h - the cache of a network: keys and values of tokens, in slots. */
#ifndef NETWORK_KV_H
#define NETWORK_KV_H

#include <stddef.h>
#include <stdint.h>

#include "lib/network/network.h"

struct latents; /* latent.h */

/* Named key/value slots for every layer. With a mixer that recurs a slot is a text: it holds the
 * state behind the rows that were computed so far, zeros before the first. */
struct kv {
    void *k, *v;  /* [L, S, K*E] of dtype; NULL where there are states */
    float *state; /* [L, S, H, E, E] of time mixing, or NULL */
    float *last;  /* [L, S, D] the row before the next one, or NULL */
    enum dtype dtype; /* F32 or BF16 */
    int32_t *pos; /* [S], host: forward() keeps here the position of each slot's token */
    size_t slots; /* S */
    act *attn, *ffn; /* [L, S, D] of the back end's `act`: outputs kept beside them, or NULL */
    const struct latents *latents; /* what rows of a latent model read besides; borrowed, or NULL */
};
int kv_make(struct kv *kv, const struct network *n, size_t slots); /* -1: no memory */
int kv_keep_outputs(struct kv *kv, const struct network *n); /* -1: no memory */
/* The text of a slot begins anew. On a host, with states. */
void kv_forget(struct kv *kv, const struct network *n, size_t slot);
void kv_free(struct kv *kv, const struct network *n);

#endif
