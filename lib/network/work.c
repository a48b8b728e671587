/* work.c - one block of memory, cut into the arrays of struct work; see work.h.
 *
 * The index arrays come first. The host has an equal block with the same offsets, so that one copy
 * sends all index arrays. cut_all() both measures and cuts the block, so that size and layout
 * agree. */
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

static void arena_index(struct arena *k, struct index *index, const struct work_size *size)
{
    struct rows *rows = &index->rows;
    index->extra = arena_take(k, size->extra, 1);
    rows->key = arena_take(k, size->wanted, sizeof *rows->key);
    rows->seqs = arena_take(k, size->seqs, sizeof *rows->seqs);
    rows->token = arena_ids(k, size->rows);
    rows->pos = arena_ids(k, size->rows);
    rows->slot = arena_ids(k, size->rows);
    rows->slots = arena_ids(k, size->listed);
    rows->slot_pos = arena_ids(k, size->listed);
    rows->wanted = arena_ids(k, size->wanted);
    rows->uncond = arena_ids(k, (size->guided | size->compared) * size->wanted);
    index->member = arena_ids(k, size->seqs);
    index->target = arena_ids(k, size->wanted);
    index->ban = arena_ids(k, ADVANCE_STOPS);
    index->quiet = arena_ids(k, ADVANCE_STOPS);
    index->part = arena_take(k, (size->chosen | size->sifted) * size->seqs, sizeof *index->part);
    index->some = arena_take(k, size->chosen * size->seqs, sizeof *index->some);
    index->cross = arena_take(k, size->latent * size->seqs, sizeof *index->cross);
    index->feature = arena_ids(k, size->fed * size->rows);
    index->both = arena_ids(k, 2 * size->chained * size->rows);
}

size_t work_scores(const struct network *n, const struct work_size *size)
{
    return size->how.scores < n->config.heads ? size->how.scores : n->config.heads;
}

/* Matrices of logits [R, V] that a dense head stores at once. */
static size_t work_logits(const struct work_size *size)
{
    return size->how.dense_head * (1 + (size->guided | size->compared));
}

size_t work_tile(const struct network *n, const struct work_size *size)
{
    return n->row_tile && n->row_tile < size->rows ? n->row_tile : size->rows;
}

/* Bytes of scratch for a time mixing layer. */
static size_t mixing_scratch(const struct network *n, const struct work_size *size)
{
    const struct config *config = &n->config;
    const struct ops *ops = n->backend->ops;
    struct backend *backend = n->backend;
    size_t D = config->width, HE = config->heads * config->head_dim, tile = work_tile(n, size);
    size_t most = ops->mixing->wkv_work(backend, size->seqs, size->rows, config->heads,
                                        config->head_dim);
    most = order_max(most, ops->matmul_work(backend, tile, D, order_max(HE, config->rank)));
    return order_max(most, ops->matmul_work(backend, tile, config->rank, order_max(D, HE)));
}

/* Bytes of scratch for the operation that needs most. */
static size_t scratch_bytes(const struct network *n, const struct work_size *size)
{
    const struct config *config = &n->config;
    struct backend *backend = n->backend;
    const struct ops *ops = backend->ops;
    size_t T = size->rows, D = config->width, HE = config->heads * config->head_dim,
           tile = work_tile(n, size);
    size_t most = ops->attention_work(backend, T, size->seqs,
                                      order_max(size->slots, config->latents), config->heads,
                                      config->kv_heads, config->head_dim, work_scores(n, size));
    most = order_max(most, ops->qkv_work(backend, tile, (1 + size->chained) * D, config->heads,
                                         config->kv_heads, config->head_dim,
                                         config->qkv_bias || config->qk_norm));
    most = order_max(most, ops->matmul_work(backend, tile, HE, D));
    const size_t F = config_ffn_most(config);
    most = order_max(most, ops->matmul_work(backend, tile, D, 2 * F));
    most = order_max(most, ops->matmul_work(backend, tile, F, D));
    if (config_recurs(config))
        most = order_max(most, mixing_scratch(n, size));
    if (config->experts)
        most = order_max(
            most, ops->experts_work(backend, tile, D, config->ffn, config->experts, config->used));
    if (size->fed)
        most = order_max(most, ops->matmul_work(backend, tile, size->fed * D, D));
    if (size->chosen)
        most = order_max(most,
                         ops->matmul_work(backend, T, D, config->kv_heads * config->head_dim));
    if (size->chosen || size->sifted)
        most = order_max(most, reuse_work(T, size->seqs, config->kv_heads * config->head_dim));
    return order_max(
        most, ops->head_work(backend, size->wanted, D, config_answers(config), work_logits(size)));
}

static void arena_mixing(struct arena *k, struct mixing_room *room, const struct config *config,
                         size_t T)
{
    const int seven = config->mixer == MIXER_RWKV7;
    const size_t D = config->width, HE = config->heads * config->head_dim,
                 lanes = seven ? LANES_OF_7 : LANES_OF_6;
    float **const wide[] = {&room->k, &room->v, &room->w,     &room->g,
                            &room->a, &room->b, &room->first, &room->share};
    room->norm = arena_take(k, T * D, sizeof(float));
    for (size_t i = 0; i < lanes; i++)
        room->lane[i] = arena_take(k, T * D, sizeof(float));
    room->low = arena_take(k, (seven ? 1 : lanes) * T * config->rank, sizeof(float));
    for (size_t i = 0; i < (seven ? 8 : 4); i++)
        *wide[i] = arena_take(k, T * HE, sizeof(float));
}

/* Sets the pointers of *work into `block` and returns the bytes of the block. block NULL: only
 * measures. */
static size_t cut_all(struct work *work, const struct network *n, unsigned char *block)
{
    const struct config *config = &n->config;
    const struct work_size *size = &work->size;
    const size_t bytes = dtype_value_bytes(n->backend->act), D = config->width,
                 E = config->head_dim;
    const size_t T = size->rows, wanted = size->wanted, taken = size->chosen * T;
    const size_t fresh = size->cached && !size->sifted ? 0 : T * config->kv_heads * E;
    const enum dtype kept = size->sifted ? n->kv_dtype : n->backend->act;
    struct arena k = {block, 0};
    arena_index(&k, &work->device, size);
    work->index_bytes = k.at;
    work->answer = arena_take(&k, wanted, sizeof *work->answer);
    work->logits = arena_take(&k, size->logits * wanted * config->vocab, sizeof *work->logits);
    work->tops = arena_take(&k, size->tops * wanted, sizeof *work->tops);
    work->map = arena_take(&k, size->linked * T * size->slots, sizeof *work->map);
    work->mean = arena_take(&k, size->linked * T, sizeof *work->mean);
    work->x = arena_take(&k, T * D, bytes);
    work->q = arena_take(&k, T * config->heads * E, bytes);
    work->y = arena_take(&k, T * config->heads * E, bytes);
    work->fresh = (struct cache){arena_take(&k, fresh, dtype_value_bytes(kept)), NULL, kept};
    work->fresh.v = arena_take(&k, fresh, dtype_value_bytes(kept));
    work->gate = arena_take(&k, work_tile(n, size) * config_ffn_most(config), bytes);
    work->up = arena_take(&k, size->how.unfused * work_tile(n, size) * config_ffn(config, 0),
                          bytes);
    work->normed = arena_take(&k, config->experts ? work_tile(n, size) * D : 0, bytes);
    work->active = arena_ids(&k, config->experts > 0);
    work->table = arena_take(&k, T * E, sizeof *work->table);
    work->still = arena_take(&k, config_leaves_unrotated(config) ? T * E : 0, sizeof *work->still);
    work->wanted = arena_take(&k, wanted * D, bytes);
    work->uncond = arena_take(&k, (size->guided | size->compared) * wanted * D, bytes);
    work->before = arena_take(&k, size->compared * wanted * D, bytes);
    work->sum = arena_take(&k, taken * D, bytes);
    work->taps = arena_take(&k, size->taps * T * D, bytes);
    work->fed = arena_take(&k, size->fed * T * D, bytes);
    work->context = arena_take(&k, (size->fed > 0) * T * D, bytes);
    work->joined = arena_take(&k, 2 * size->chained * T * D, bytes);
    work->rows = (struct chosen){arena_ids(&k, taken), arena_ids(&k, taken), arena_ids(&k, taken),
                                 arena_ids(&k, taken)};
    if (config_recurs(config))
        arena_mixing(&k, &work->mixing, config, T);
    work->scratch = arena_take(&k, scratch_bytes(n, size), 1);
    return k.at;
}

struct work *work_make(const struct network *n, const struct work_size *size)
{
    struct work *work = mem_zero(1, sizeof *work);
    work->size = *size;
    work->block = n->backend->ops->alloc(n->backend, cut_all(work, n, NULL), MEMORY_ACTIVATIONS);
    if (!work->block) {
        free(work);
        return NULL;
    }
    cut_all(work, n, work->block);
    struct arena k = {mem_zero(work->index_bytes, 1), 0};
    arena_index(&k, &work->host, size);
    for (size_t row = 0; size->chained && row < size->rows; row++) {
        work->host.both[2 * row] = (int32_t)row;
        work->host.both[2 * row + 1] = (int32_t)(size->rows + row);
    }
    return work;
}

void work_free(struct work *work, const struct network *n)
{
    if (!work)
        return;
    n->backend->ops->free(n->backend, work->block);
    free(work->host.extra); /* the first index array: the start of the block of the host */
    free(work);
}

double work_experts(const struct work *work, const struct network *n)
{
    int32_t active = 0;
    if (n->config.experts)
        n->backend->ops->read(n->backend, &active, work->active, sizeof active);
    return active;
}

void work_forget_experts(const struct work *work, const struct network *n)
{
    if (n->config.experts)
        n->backend->ops->clear(n->backend, work->active, sizeof *work->active);
}
