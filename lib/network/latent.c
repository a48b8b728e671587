/* latent.c - latents of texts (latent.h). Keys and values lie in one block with all that makes
 * them, so the latents of a text can be exchanged between two passes without allocation. */
#include "lib/network/latent.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"

enum { ALIGN = 256 };

static void *cut(struct latents *z, size_t *at, size_t bytes)
{
    void *p = z->block ? z->block + *at : NULL;
    *at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return p;
}

/* Sets the pointers into z->block, and returns its bytes; block NULL: only measures. */
static size_t cut_all(struct latents *z, const struct network *n)
{
    const struct config *c = &n->config;
    size_t at = 0, N = c->latents, KE = c->kv_heads * c->head_dim, all = z->texts * N;
    z->k = cut(z, &at, c->layers * all * KE * sizeof *z->k);
    z->v = cut(z, &at, c->layers * all * KE * sizeof *z->v);
    z->table = cut(z, &at, N * c->head_dim * sizeof *z->table);
    z->in = cut(z, &at, N * c->width * sizeof *z->in);
    z->slots = cut(z, &at, (all > N ? all : N) * sizeof *z->slots);
    z->scratch = cut(z, &at, n->backend->ops->matmul_work(n->backend, N, c->width, 2 * KE));
    return at;
}

size_t latent_values(const struct config *c)
{
    return c->layers * c->latents * c->width;
}

size_t latent_bytes(const struct network *n, size_t texts)
{
    struct latents z = {.texts = texts};
    return cut_all(&z, n);
}

/* z->slots = 0, step, 2 step, ... */
static void list_slots(struct latents *z, const struct network *n, size_t count, size_t step)
{
    int32_t *list = mem_alloc(count * sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = (int32_t)(i * step);
    n->backend->ops->write(n->backend, z->slots, list, count * sizeof *list);
    free(list);
}

int latent_make(struct latents *z, const struct network *n, size_t texts)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    *z = (struct latents){.texts = texts, .n = (int32_t)n->config.latents};
    z->block = b->ops->alloc(b, cut_all(z, n), MEMORY_KV);
    if (!z->block)
        return -1;
    cut_all(z, n);
    list_slots(z, n, c->latents, c->context / c->latents);
    b->ops->rope_table(b, z->table, z->slots, n->inv_freq, config_rope_scale(c), c->latents,
                       c->head_dim);
    list_slots(z, n, texts * c->latents, 1);
    return 0;
}

void latent_free(struct latents *z, const struct network *n)
{
    n->backend->ops->free(n->backend, z->block);
    *z = (struct latents){0};
}

static size_t place(const struct latents *z, const struct config *c, size_t l, size_t text)
{
    return (l * z->texts + text) * c->latents * c->kv_heads * c->head_dim;
}

void latent_set(struct latents *z, const struct network *n, size_t text, const float *values,
                size_t step)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    size_t N = c->latents;
    assert(b->act == DTYPE_F32);
    for (size_t l = 0; l < c->layers; l++) {
        const struct layer *y = &n->layer[l];
        float *k = z->k + place(z, c, l, text), *v = z->v + place(z, c, l, text);
        const struct product p[] = {{&y->cross_k, k, 0}, {&y->cross_v, v, 0}};
        b->ops->write(b, z->in, values + l * step, N * c->width * sizeof *z->in);
        b->ops->matmul(b, p, 2, (struct input){.x = z->in}, N, z->scratch);
        b->ops->rope(b, k, z->table, N, c->kv_heads, c->head_dim, 1);
    }
}

struct attn_seq latent_seq(const struct latents *z, size_t text, int32_t row, int32_t rows)
{
    int32_t n = z->n;
    return (struct attn_seq){row, rows, (int32_t)text * n, n};
}

void latent_read(const struct latents *z, const struct network *n, size_t l, struct attn *a)
{
    size_t at = place(z, &n->config, l, 0);
    a->kv = (struct cache){z->k + at, z->v + at, DTYPE_F32};
    a->slots = a->slot_pos = z->slots;
    a->max_slots = n->config.latents;
}
