/* kv.c - memory of a cache; see kv.h.
 *
 * Keys and values of all layers that are not offloaded are one array each, in memory of the back
 * end. An offloaded layer is a block of a store: the keys of the layer, then its values. Only the
 * host stores the positions of the slots; each pass sends the positions that attention needs. */
#include "lib/network/kv.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

/* Allocates kv->last and kv->state of time mixing. -1: no memory. */
static int make_states(struct kv *kv, const struct network *n)
{
    const struct config *config = &n->config;
    const struct ops *ops = n->backend->ops;
    size_t texts = config->layers * kv->slots * sizeof(float);
    kv->dtype = DTYPE_F32;
    kv->last = ops->alloc(n->backend, texts * config->width, MEMORY_KV);
    kv->state = kv->last ? ops->alloc(n->backend, texts * (config_state(config) - config->width),
                                      MEMORY_KV)
                         : NULL;
    return kv->state ? 0 : -1;
}

/* Bytes of the keys of all slots of a layer; the values have the same size. */
static size_t half_bytes(const struct network *n, size_t slots)
{
    return slots * n->config.kv_heads * n->config.head_dim * dtype_value_bytes(n->kv_dtype);
}

size_t kv_layer_bytes(const struct network *n, size_t slots, size_t *second)
{
    *second = config_recurs(&n->config) ? 0 : offload_part(half_bytes(n, slots));
    return 2 * *second;
}

/* Allocates the layers that are not offloaded. -1: no memory. */
static int make_inside(struct kv *kv, const struct network *n)
{
    const struct ops *ops = n->backend->ops;
    size_t bytes = (n->config.layers - n->kv_wish.layers) * half_bytes(n, kv->slots);
    if (config_recurs(&n->config))
        return make_states(kv, n);
    if (!bytes)
        return 0;
    kv->k = ops->alloc(n->backend, bytes, MEMORY_KV);
    kv->v = kv->k ? ops->alloc(n->backend, bytes, MEMORY_KV) : NULL;
    return kv->v ? 0 : -1;
}

/* Opens the store of the offloaded layers. -1: no memory. */
static int make_outside(struct kv *kv, const struct network *n)
{
    struct err e = {0};
    size_t bytes = kv_layer_bytes(n, kv->slots, &kv->second);
    if (!n->kv_wish.layers || !bytes)
        return 0;
    kv->outside = offload_open(n->backend, &n->kv_wish, n->config.layers, bytes, MEMORY_KV, &e);
    if (!kv->outside && e.code != EXIT_FAILED_RECORDS)
        err_file(__FILE__, __LINE__, e.text);
    if (kv->outside)
        offload_start(kv->outside);
    return kv->outside ? 0 : -1;
}

int kv_make(struct kv *kv, const struct network *n, size_t slots)
{
    *kv = (struct kv){.slots = slots, .dtype = n->kv_dtype};
    if (make_inside(kv, n) || make_outside(kv, n)) {
        kv_free(kv, n);
        return -1;
    }
    kv->pos = mem_zero(slots, sizeof *kv->pos);
    return 0;
}

struct cache kv_layer(const struct kv *kv, const struct network *n, size_t layer)
{
    const struct offload_wish *wish = &n->kv_wish;
    int64_t number = kv->outside ? offload_number(wish, n->config.layers, layer) : -1;
    if (number >= 0) {
        unsigned char *slot = kv->outside->slot[number % 2];
        return (struct cache){slot, slot + kv->second, kv->dtype};
    }
    size_t at = (layer - offload_before(wish, n->config.layers, layer)) * half_bytes(n, kv->slots);
    return (struct cache){(char *)kv->k + at, (char *)kv->v + at, kv->dtype};
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
    const struct config *config = &n->config;
    const struct ops *ops = n->backend->ops;
    const size_t D = config->width, HEE = config_state(config) - D;
    for (size_t layer = 0; layer < config->layers; layer++) {
        ops->clear(n->backend, kv->state + (layer * kv->slots + slot) * HEE,
                   HEE * sizeof *kv->state);
        ops->clear(n->backend, kv->last + (layer * kv->slots + slot) * D, D * sizeof *kv->last);
    }
}

void kv_free(struct kv *kv, const struct network *n)
{
    void *const blocks[] = {kv->k, kv->v, kv->state, kv->last, kv->attn, kv->ffn};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        n->backend->ops->free(n->backend, blocks[i]);
    offload_close(kv->outside);
    free(kv->pos);
    *kv = (struct kv){0};
}
