/* kv.c - memory for a cache; see kv.h.
 *
 * Keys and values of all layers lie in one array each, [L, S, K*E], in the memory of the back end.
 * So do the outputs of attention and of the gated layer, [L, S, D], where they are kept.
 * Which position a slot holds is known on the host alone: attention is told with every pass.
 */
#include "lib/network/kv.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

/* -1: no memory. */
static int make_states(struct kv *kv, const struct network *n)
{
    const struct config *c = &n->config;
    const struct ops *ops = n->backend->ops;
    size_t texts = c->layers * kv->slots * sizeof(float);
    kv->dtype = DTYPE_F32;
    kv->last = ops->alloc(n->backend, texts * c->width, MEMORY_KV);
    kv->state = kv->last ? ops->alloc(n->backend, texts * (config_state(c) - c->width), MEMORY_KV)
                         : NULL;
    return kv->state ? 0 : -1;
}

static int make_slots(struct kv *kv, const struct network *n)
{
    const struct config *c = &n->config;
    const struct ops *ops = n->backend->ops;
    size_t bytes = c->layers * kv->slots * c->kv_heads * c->head_dim *
                   dtype_value_bytes(n->kv_dtype);
    kv->k = ops->alloc(n->backend, bytes, MEMORY_KV);
    kv->v = kv->k ? ops->alloc(n->backend, bytes, MEMORY_KV) : NULL;
    return kv->v ? 0 : -1;
}

int kv_make(struct kv *kv, const struct network *n, size_t slots)
{
    *kv = (struct kv){.slots = slots, .dtype = n->kv_dtype};
    if (config_recurs(&n->config) ? make_states(kv, n) : make_slots(kv, n)) {
        kv_free(kv, n);
        return -1;
    }
    kv->pos = mem_zero(slots, sizeof *kv->pos);
    return 0;
}

int kv_keep_outputs(struct kv *kv, const struct network *n)
{
    size_t value = dtype_value_bytes(n->backend->act);
    size_t bytes = n->config.layers * kv->slots * n->config.width * value;
    const struct ops *ops = n->backend->ops;
    kv->attn = ops->alloc(n->backend, bytes, MEMORY_KV);
    kv->ffn = kv->attn ? ops->alloc(n->backend, bytes, MEMORY_KV) : NULL;
    return kv->ffn ? 0 : -1;
}

void kv_forget(struct kv *kv, const struct network *n, size_t slot)
{
    const struct config *c = &n->config;
    const size_t D = c->width, HEE = config_state(c) - D;
    for (size_t l = 0; l < c->layers; l++) {
        memset(kv->state + (l * kv->slots + slot) * HEE, 0, HEE * sizeof *kv->state);
        memset(kv->last + (l * kv->slots + slot) * D, 0, D * sizeof *kv->last);
    }
}

void kv_free(struct kv *kv, const struct network *n)
{
    void *const blocks[] = {kv->k, kv->v, kv->state, kv->last, kv->attn, kv->ffn};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        n->backend->ops->free(n->backend, blocks[i]);
    free(kv->pos);
    *kv = (struct kv){0};
}
