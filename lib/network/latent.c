/* latent.c - latents of texts; see latent.h. Keys, values and all arrays that are needed to compute
 * them are in one block, so the latents of a text can be replaced between two passes without
 * allocation. */
#include "lib/network/latent.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"

enum { ALIGN = 256 };

static void *cut(struct latents *latents, size_t *at, size_t bytes)
{
    void *p = latents->block ? latents->block + *at : NULL;
    *at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return p;
}

/* Sets the pointers into latents->block and returns the bytes of the block. block NULL: only
 * measures. */
static size_t cut_all(struct latents *latents, const struct network *n)
{
    const struct config *config = &n->config;
    size_t at = 0, N = config->latents, KE = config->kv_heads * config->head_dim,
           all = latents->texts * N;
    latents->k = cut(latents, &at, config->layers * all * KE * sizeof *latents->k);
    latents->v = cut(latents, &at, config->layers * all * KE * sizeof *latents->v);
    latents->table = cut(latents, &at, N * config->head_dim * sizeof *latents->table);
    latents->in = cut(latents, &at, N * config->width * sizeof *latents->in);
    latents->slots = cut(latents, &at, (all > N ? all : N) * sizeof *latents->slots);
    latents->scratch = cut(latents, &at,
                           n->backend->ops->matmul_work(n->backend, N, config->width, 2 * KE));
    return at;
}

size_t latent_values(const struct config *config)
{
    return config->layers * config->latents * config->width;
}

size_t latent_bytes(const struct network *n, size_t texts)
{
    struct latents latents = {.texts = texts};
    return cut_all(&latents, n);
}

/* latents->slots = 0, step, 2 step, ... */
static void list_slots(struct latents *latents, const struct network *n, size_t count, size_t step)
{
    int32_t *list = mem_alloc(count * sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = (int32_t)(i * step);
    n->backend->ops->write(n->backend, latents->slots, list, count * sizeof *list);
    free(list);
}

int latent_make(struct latents *latents, const struct network *n, size_t texts)
{
    const struct config *config = &n->config;
    struct backend *backend = n->backend;
    *latents = (struct latents){.texts = texts, .n = (int32_t)n->config.latents};
    latents->block = backend->ops->alloc(backend, cut_all(latents, n), MEMORY_KV);
    if (!latents->block)
        return -1;
    cut_all(latents, n);
    list_slots(latents, n, config->latents, config->context / config->latents);
    backend->ops->rope_table(backend, latents->table, latents->slots, n->inv_freq,
                             config_rope_scale(config), config->latents, config->head_dim);
    list_slots(latents, n, texts * config->latents, 1);
    return 0;
}

void latent_free(struct latents *latents, const struct network *n)
{
    n->backend->ops->free(n->backend, latents->block);
    *latents = (struct latents){0};
}

/* Index of the first key (and value) of a text in this layer. */
static size_t place(const struct latents *latents, const struct config *config, size_t layer,
                    size_t text)
{
    return (layer * latents->texts + text) * config->latents * config->kv_heads * config->head_dim;
}

void latent_set(struct latents *latents, const struct network *n, size_t text, const float *values,
                size_t step)
{
    const struct config *config = &n->config;
    struct backend *backend = n->backend;
    size_t count = config->latents;
    assert(backend->act == DTYPE_F32);
    for (size_t layer = 0; layer < config->layers; layer++) {
        const struct layer *weights = &n->layer[layer];
        float *k = latents->k + place(latents, config, layer, text),
              *value = latents->v + place(latents, config, layer, text);
        const struct product product[] = {{&weights->cross_k, k, 0}, {&weights->cross_v, value, 0}};
        backend->ops->write(backend, latents->in, values + layer * step,
                            count * config->width * sizeof *latents->in);
        backend->ops->matmul(backend, product, 2, (struct input){.x = latents->in}, count,
                             latents->scratch);
        backend->ops->rope(backend, k, latents->table, count, config->kv_heads, config->head_dim,
                           1);
    }
}

struct attn_seq latent_seq(const struct latents *latents, size_t text, int32_t row, int32_t rows)
{
    int32_t n = latents->n;
    return (struct attn_seq){row, rows, (int32_t)text * n, n};
}

void latent_read(const struct latents *latents, const struct network *n, size_t layer,
                 struct attn *attention)
{
    size_t at = place(latents, &n->config, layer, 0);
    attention->kv = (struct cache){latents->k + at, latents->v + at, DTYPE_F32};
    attention->slots = attention->slot_pos = latents->slots;
    attention->max_slots = n->config.latents;
}
