/* work.c - one block, cut into named shapes (work.h).
 *
 * The index arrays come first. The host has a twin with the same offsets, so that one copy sends
 * all of them. The same function measures and cuts the block, so that both agree. */
#include "lib/network/work.h"

#include <stdlib.h>

#include "kernels/mixing.h"
#include "lib/base/mem.h"
#include "lib/base/order.h"

enum { ALIGN = 256 };

struct arena {
    unsigned char *block; /* NULL: only measures */
    size_t at;
};

static void *arena_take(struct arena *k, size_t count, size_t bytes)
{
    void *p = k->block ? k->block + k->at : NULL;
    k->at += (count * bytes + ALIGN - 1) / ALIGN * ALIGN;
    return p;
}

static int32_t *arena_ids(struct arena *k, size_t count)
{
    return arena_take(k, count, sizeof(int32_t));
}

static void arena_index(struct arena *k, struct index *x, const struct work_size *s)
{
    struct rows *r = &x->rows;
    x->extra = arena_take(k, s->extra, 1);
    r->key = arena_take(k, s->wanted, sizeof *r->key);
    r->seqs = arena_take(k, s->seqs, sizeof *r->seqs);
    r->token = arena_ids(k, s->rows);
    r->pos = arena_ids(k, s->rows);
    r->slot = arena_ids(k, s->rows);
    r->slots = arena_ids(k, s->listed);
    r->slot_pos = arena_ids(k, s->listed);
    r->wanted = arena_ids(k, s->wanted);
    r->uncond = arena_ids(k, (s->guided | s->compared) * s->wanted);
    x->member = arena_ids(k, s->seqs);
    x->target = arena_ids(k, s->wanted);
    x->ban = arena_ids(k, ADVANCE_STOPS);
    x->quiet = arena_ids(k, ADVANCE_STOPS);
    x->part = arena_take(k, (s->chosen | s->sifted) * s->seqs, sizeof *x->part);
    x->some = arena_take(k, s->chosen * s->seqs, sizeof *x->some);
    x->cross = arena_take(k, s->latent * s->seqs, sizeof *x->cross);
    x->feature = arena_ids(k, s->fed * s->rows);
    x->both = arena_ids(k, 2 * s->chained * s->rows);
}

size_t work_scores(const struct network *n, const struct work_size *s)
{
    return s->how.scores < n->config.heads ? s->how.scores : n->config.heads;
}

/* Matrices of logits that the head stores at once. */
static size_t work_logits(const struct work_size *s)
{
    return s->how.dense_head * (1 + (s->guided | s->compared));
}

size_t work_tile(const struct network *n, const struct work_size *s)
{
    return n->row_tile && n->row_tile < s->rows ? n->row_tile : s->rows;
}

/* The scratch of a time mixing layer. */
static size_t mixing_scratch(const struct network *n, const struct work_size *s)
{
    const struct config *c = &n->config;
    const struct ops *ops = n->backend->ops;
    struct backend *b = n->backend;
    size_t D = c->width, HE = c->heads * c->head_dim, tile = work_tile(n, s);
    size_t most = ops->mixing->wkv_work(b, s->seqs, s->rows, c->heads, c->head_dim);
    most = order_max(most, ops->matmul_work(b, tile, D, order_max(HE, c->rank)));
    return order_max(most, ops->matmul_work(b, tile, c->rank, order_max(D, HE)));
}

/* Bytes of work for the operation that needs most. */
static size_t scratch_bytes(const struct network *n, const struct work_size *s)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct ops *ops = b->ops;
    size_t T = s->rows, D = c->width, HE = c->heads * c->head_dim, tile = work_tile(n, s);
    size_t most = ops->attention_work(b, T, s->seqs, order_max(s->slots, c->latents), c->heads,
                                      c->kv_heads, c->head_dim, work_scores(n, s));
    most = order_max(most, ops->qkv_work(b, tile, (1 + s->chained) * D, c->heads, c->kv_heads,
                                      c->head_dim, c->qkv_bias || c->qk_norm));
    most = order_max(most, ops->matmul_work(b, tile, HE, D));
    const size_t F = config_ffn_most(c);
    most = order_max(most, ops->matmul_work(b, tile, D, 2 * F));
    most = order_max(most, ops->matmul_work(b, tile, F, D));
    if (config_recurs(c))
        most = order_max(most, mixing_scratch(n, s));
    if (c->experts)
        most = order_max(most, ops->experts_work(b, tile, D, c->ffn, c->experts, c->used));
    if (s->fed)
        most = order_max(most, ops->matmul_work(b, tile, s->fed * D, D));
    if (s->chosen)
        most = order_max(most, ops->matmul_work(b, T, D, c->kv_heads * c->head_dim));
    if (s->chosen || s->sifted)
        most = order_max(most, reuse_work(T, s->seqs, c->kv_heads * c->head_dim));
    return order_max(most, ops->head_work(b, s->wanted, D, config_answers(c), work_logits(s)));
}

static void arena_mixing(struct arena *k, struct mixing_room *m, const struct config *c, size_t T)
{
    const int seven = c->mixer == MIXER_RWKV7;
    const size_t D = c->width, HE = c->heads * c->head_dim, lanes = seven ? LANES_OF_7 : LANES_OF_6;
    float **const wide[] = {&m->k, &m->v, &m->w, &m->g, &m->a, &m->b, &m->first, &m->share};
    m->norm = arena_take(k, T * D, sizeof(float));
    for (size_t i = 0; i < lanes; i++)
        m->lane[i] = arena_take(k, T * D, sizeof(float));
    m->low = arena_take(k, (seven ? 1 : lanes) * T * c->rank, sizeof(float));
    for (size_t i = 0; i < (seven ? 8 : 4); i++)
        *wide[i] = arena_take(k, T * HE, sizeof(float));
}

/* Sets the pointers into `block` and returns the bytes needed; NULL: only measures. */
static size_t cut_all(struct work *w, const struct network *n, unsigned char *block)
{
    const struct config *c = &n->config;
    const struct work_size *s = &w->size;
    const size_t A = dtype_value_bytes(n->backend->act), D = c->width, E = c->head_dim;
    const size_t T = s->rows, R = s->wanted, taken = s->chosen * T;
    const size_t fresh = s->cached && !s->sifted ? 0 : T * c->kv_heads * E;
    const enum dtype kept = s->sifted ? n->kv_dtype : n->backend->act;
    struct arena k = {block, 0};
    arena_index(&k, &w->device, s);
    w->index_bytes = k.at;
    w->answer = arena_take(&k, R, sizeof *w->answer);
    w->logits = arena_take(&k, s->logits * R * c->vocab, sizeof *w->logits);
    w->tops = arena_take(&k, s->tops * R, sizeof *w->tops);
    w->map = arena_take(&k, s->linked * T * s->slots, sizeof *w->map);
    w->mean = arena_take(&k, s->linked * T, sizeof *w->mean);
    w->x = arena_take(&k, T * D, A);
    w->q = arena_take(&k, T * c->heads * E, A);
    w->y = arena_take(&k, T * c->heads * E, A);
    w->fresh = (struct cache){arena_take(&k, fresh, dtype_value_bytes(kept)), NULL, kept};
    w->fresh.v = arena_take(&k, fresh, dtype_value_bytes(kept));
    w->gate = arena_take(&k, work_tile(n, s) * config_ffn_most(c), A);
    w->up = arena_take(&k, s->how.unfused * work_tile(n, s) * config_ffn(c, 0), A);
    w->normed = arena_take(&k, c->experts ? work_tile(n, s) * D : 0, A);
    w->active = arena_ids(&k, c->experts > 0);
    w->table = arena_take(&k, T * E, sizeof *w->table);
    w->still = arena_take(&k, config_leaves_unrotated(c) ? T * E : 0, sizeof *w->still);
    w->wanted = arena_take(&k, R * D, A);
    w->uncond = arena_take(&k, (s->guided | s->compared) * R * D, A);
    w->before = arena_take(&k, s->compared * R * D, A);
    w->sum = arena_take(&k, taken * D, A);
    w->taps = arena_take(&k, s->taps * T * D, A);
    w->fed = arena_take(&k, s->fed * T * D, A);
    w->context = arena_take(&k, (s->fed > 0) * T * D, A);
    w->joined = arena_take(&k, 2 * s->chained * T * D, A);
    w->rows = (struct chosen){arena_ids(&k, taken), arena_ids(&k, taken), arena_ids(&k, taken),
                              arena_ids(&k, taken)};
    if (config_recurs(c))
        arena_mixing(&k, &w->mixing, c, T);
    w->scratch = arena_take(&k, scratch_bytes(n, s), 1);
    return k.at;
}

struct work *work_make(const struct network *n, const struct work_size *size)
{
    struct work *w = mem_zero(1, sizeof *w);
    w->size = *size;
    w->block = n->backend->ops->alloc(n->backend, cut_all(w, n, NULL), MEMORY_ACTIVATIONS);
    if (!w->block) {
        free(w);
        return NULL;
    }
    cut_all(w, n, w->block);
    struct arena k = {mem_zero(w->index_bytes, 1), 0};
    arena_index(&k, &w->host, size);
    for (size_t t = 0; size->chained && t < size->rows; t++) {
        w->host.both[2 * t] = (int32_t)t;
        w->host.both[2 * t + 1] = (int32_t)(size->rows + t);
    }
    return w;
}

void work_free(struct work *w, const struct network *n)
{
    if (!w)
        return;
    n->backend->ops->free(n->backend, w->block);
    free(w->host.extra); /* the start of the index arrays */
    free(w);
}

double work_experts(const struct work *w, const struct network *n)
{
    int32_t active = 0;
    if (n->config.experts)
        n->backend->ops->read(n->backend, &active, w->active, sizeof active);
    return active;
}

void work_forget_experts(const struct work *w, const struct network *n)
{
    if (n->config.experts)
        n->backend->ops->clear(n->backend, w->active, sizeof *w->active);
}
