/* pass.c - the operations of one pass, in order; see pass.h.
 *
 * The operations depend only on struct pass and read the index arrays. A pass allocates nothing and
 * exchanges no data with the host while it runs. So a back end may record the operations once and
 * repeat them as long as struct pass stays the same, whatever values the index arrays have. */
#include "lib/network/pass.h"

#include <assert.h>
#include <string.h>

#include "kernels/links.h"
#include "kernels/experts.h"
#include "lib/network/latent.h"
#include "lib/network/pass/pass-layer.h"

enum { SLOT_STEP = 256 }; /* see pass_slots() */

/* ---- description ---- */

void pass_begin(struct pass *pass, const struct network *n, const struct kv *kv,
                const struct work *work)
{
    memset(pass, 0, sizeof *pass);
    pass->network = n->identity;
    pass->block = work->block;
    pass->size = work->size;
    if (kv) {
        pass->k = kv->k;
        pass->v = kv->v;
        pass->attn = kv->attn;
        pass->outside = kv->outside ? kv->outside->block : NULL;
        pass->kv_slots = kv->slots;
        pass->kv_dtype = kv->dtype;
    }
}

size_t pass_slots(const struct work *work, size_t n)
{
    size_t step = (n + SLOT_STEP - 1) / SLOT_STEP * SLOT_STEP;
    assert(n <= work->size.slots);
    return step < work->size.slots ? step : work->size.slots;
}

void pass_list_rows(struct work *work, size_t T)
{
    const struct rows *rows = &work->host.rows;
    assert(T <= work->size.listed);
    for (size_t row = 0; row < T; row++)
        rows->slots[row] = (int32_t)row;
    memcpy(rows->slot_pos, rows->pos, T * sizeof *rows->pos);
}

void pass_write(const struct network *n, struct work *work)
{
    n->backend->ops->write(n->backend, work->block, work->host.extra, work->index_bytes);
}

/* ---- a layer ---- */

/* If keys and values of this layer are offloaded: writes the changed ones back to the store. slot:
 * the T changed slots; NULL: all slots. */
static void keep_rows(const struct network *n, size_t layer, const struct kv *kv,
                      const int32_t *slot, size_t T)
{
    const struct config *config = &n->config;
    size_t row = config->kv_heads * config->head_dim * dtype_value_bytes(kv->dtype);
    const struct store_rows rows = {slot, slot ? T : kv->slots, row, kv->second};
    offload_keep(kv->outside, layer, &rows);
}

/* The rows that a layer computes: all rows of the pass, or the chosen rows. */
struct layer_rows {
    act *x; /* [T, D] the residual stream of these rows */
    const int32_t *slot, *pos;
    const struct attn_seq *seqs;
    size_t T, max_rows;
};

/* Computes queries, keys and values of rows, one tile of rows after another. to, slot: see struct
 * qkv. */
static void qkv_block(const struct network *n, size_t layer, const struct work *work,
                      const struct layer_rows *rows, struct cache to, const int32_t *slot)
{
    const struct config *config = &n->config;
    const struct layer *weights = &n->layer[layer];
    const size_t E = config->head_dim, kept = config->kv_heads * E * dtype_value_bytes(to.dtype);
    for (size_t row = 0, together; row < rows->T; row += together) {
        together = pass_rows_at_once(n, work, row, rows->T);
        size_t at = slot ? 0 : row * kept;
        const struct input in = {pass_row_at(n, rows->x, row, config->width), weights->attn_norm,
                                 config->norm_eps};
        const struct input both = {.x = pass_row_at(n, work->joined, row, 2 * config->width)};
        const struct qkv qkv = {.in = config->chains ? both : in,
                                .wq = &weights->q,
                                .wk = &weights->k,
                                .wv = &weights->v,
                                .bias = {weights->q_bias, weights->k_bias, weights->v_bias},
                                .head_gain = {weights->q_norm, weights->k_norm},
                                .table = (config->unrotated[layer] ? work->still : work->table) +
                                         row * E,
                                .q = pass_row_at(n, work->q, row, config->heads * E),
                                .to = {(char *)to.k + at, (char *)to.v + at, to.dtype},
                                .slot = slot ? slot + row : NULL,
                                .heads = config->heads,
                                .kv_heads = config->kv_heads,
                                .head_dim = E};
        n->backend->ops->qkv(n->backend, &qkv, together, work->scratch);
    }
}

/* The number of last layers whose attention shows which rows depend on which (kernels/links.h). */
enum { LINKED_LAYERS = 4 };

static void link_rows(const struct network *n, size_t layer, const struct work *work,
                      const struct pass *pass)
{
    const struct config *config = &n->config;
    const size_t some = config->layers < LINKED_LAYERS ? config->layers : LINKED_LAYERS;
    const struct links links = {.q = work->q, .kv = work->fresh, .seqs = work->device.rows.seqs,
                                .T = pass->T, .heads = config->heads, .kv_heads = config->kv_heads,
                                .head_dim = config->head_dim, .share = 1 / (double)some,
                                .add = layer + some > config->layers, .stride = work->size.slots,
                                .map = work->map,
                                .mean = layer + 1 == config->layers ? work->mean : NULL};
    if (pass->links && layer + some >= config->layers)
        n->backend->ops->links(n->backend, &links);
}

static void attention_block(const struct network *n, size_t layer, const struct kv *kv,
                            const struct work *work, const struct pass *pass,
                            const struct layer_rows *rows)
{
    const struct config *config = &n->config;
    struct backend *backend = n->backend;
    const struct rows *device = &work->device.rows;
    const int own = !kv || pass->sifts; /* 1: keys and values go to work->fresh, not to a cache */
    const struct cache to = own ? work->fresh : kv_layer(kv, n, layer);
    const struct attn attn = {.q = work->q, .y = work->y, .kv = to, .half = network_half(n),
                              .pos = rows->pos, .seqs = rows->seqs, .slots = device->slots,
                              .slot_pos = device->slot_pos, .n_seqs = pass->n_seqs, .T = rows->T,
                              .max_rows = rows->max_rows, .max_slots = pass->max_slots,
                              .heads = config->heads, .kv_heads = config->kv_heads,
                              .head_dim = config->head_dim, .mask = pass->mask,
                              .mask_block = pass->mask_block, .window = config->window,
                              .dense = work_scores(n, &work->size)};
    qkv_block(n, layer, work, rows, to, own ? NULL : rows->slot);
    if (!own) /* all rows of the pass: choose_rows() has stored the values of all rows */
        keep_rows(n, layer, kv, device->slot,
                  pass->T);
    link_rows(n, layer, work, pass);
    backend->ops->attention(backend, &attn, work->scratch);
    pass_multiply(n, work, &n->layer[layer].o, (struct input){.x = work->y}, rows->x, 1, rows->T);
}

/* work->gate = silu(in Wgate^T) * (in Wup^T), in one operation or (variant.unfused) in three. */
static void gate_rows(const struct network *n, size_t layer, const struct work *work,
                      struct input in, size_t rows)
{
    struct backend *backend = n->backend;
    const struct layer *weights = &n->layer[layer];
    const struct product gate = {&weights->gate, work->gate, 0}, up = {&weights->up, work->up, 0};
    if (!work->size.how.unfused) {
        backend->ops->gated(backend, work->gate, in, &weights->gate, &weights->up, rows,
                            work->scratch);
        return;
    }
    backend->ops->matmul(backend, &gate, 1, in, rows, work->scratch);
    backend->ops->matmul(backend, &up, 1, in, rows, work->scratch);
    backend->ops->swiglu(backend, work->gate, work->gate, work->up,
                         rows * config_ffn(&n->config, layer));
}

/* work->x += attention of the rows to the latents of their texts. */
static void cross_block(const struct network *n, size_t layer, const struct kv *kv,
                        const struct work *work, const struct pass *pass)
{
    const struct config *config = &n->config;
    struct backend *backend = n->backend;
    const struct layer *weights = &n->layer[layer];
    struct attn attn = {.q = work->q, .y = work->y, .half = network_half(n),
                        .pos = work->device.rows.pos, .seqs = work->device.cross,
                        .n_seqs = pass->n_seqs, .T = pass->T, .max_rows = pass->max_rows,
                        .heads = config->heads, .kv_heads = config->kv_heads,
                        .head_dim = config->head_dim, .mask = MASK_FULL,
                        .dense = work_scores(n, &work->size)};
    latent_read(kv->latents, n, layer, &attn);
    pass_multiply(n, work, &weights->cross_q,
                  (struct input){work->x, weights->cross_norm, config->norm_eps}, work->q, 0,
                  pass->T);
    backend->ops->rope(backend, work->q, work->table, pass->T, config->heads, config->head_dim, 1);
    backend->ops->attention(backend, &attn, work->scratch);
    pass_multiply(n, work, &weights->cross_o, (struct input){.x = work->y}, work->x, 1, pass->T);
}

/* x[T, D] += the outputs of the experts that each row chooses, and of the shared expert. */
static void experts_block(const struct network *n, size_t layer, const struct work *work, act *x,
                          size_t T)
{
    const struct config *config = &n->config;
    const struct layer *weights = &n->layer[layer];
    struct backend *backend = n->backend;
    struct experts experts = {.x = work->normed, .router = &weights->router,
                              .gate = weights->expert, .up = weights->expert + config->experts,
                              .down = weights->expert + 2 * config->experts, .data = weights->table,
                              .n = config->experts, .used = config->used, .active = work->active,
                              .bias = weights->router_bias, .groups = config->groups,
                              .groups_used = config->groups_used,
                              .scale = (float)config->router_scale};
    for (size_t row = 0, rows; row < T; row += rows) {
        rows = pass_rows_at_once(n, work, row, T);
        experts.y = pass_row_at(n, x, row, config->width);
        backend->ops->rmsnorm(backend, work->normed, experts.y, NULL, weights->ffn_norm, rows,
                              config->width, config->norm_eps);
        backend->ops->experts(backend, &experts, rows, work->scratch);
        if (!config->shared)
            continue;
        const struct product down = {&weights->shared_down, experts.y, 1};
        backend->ops->gated(backend, work->gate, (struct input){.x = work->normed},
                            &weights->shared_gate, &weights->shared_up, rows, work->scratch);
        backend->ops->matmul(backend, &down, 1, (struct input){.x = work->gate}, rows,
                             work->scratch);
    }
}

static void ffn_block(const struct network *n, size_t layer, const struct work *work, act *x,
                      size_t T)
{
    struct backend *backend = n->backend;
    const struct layer *weights = &n->layer[layer];
    if (config_mixes(&n->config, layer)) {
        experts_block(n, layer, work, x, T);
        return;
    }
    for (size_t row = 0, together; row < T; row += together) {
        together = pass_rows_at_once(n, work, row, T);
        act *rows = pass_row_at(n, x, row, n->config.width);
        const struct product down = {&weights->down, rows, 1};
        gate_rows(n, layer, work, (struct input){rows, weights->ffn_norm, n->config.norm_eps},
                  together);
        backend->ops->matmul(backend, &down, 1, (struct input){.x = work->gate}, together,
                             work->scratch);
    }
}

/* Caches the chosen keys and values of this layer. */
static void sift_layer(const struct network *n, size_t layer, const struct kv *kv,
                       const struct work *work, const struct pass *pass)
{
    const struct config *config = &n->config;
    const struct index *index = &work->device;
    const struct sift sift = {.q = work->q, .from = work->fresh, .to = kv_layer(kv, n, layer),
                              .seqs = index->rows.seqs, .part = index->part, .n_seqs = pass->n_seqs,
                              .T = pass->T, .max_rows = pass->max_rows, .heads = config->heads,
                              .kv_heads = config->kv_heads, .head_dim = config->head_dim};
    n->backend->ops->sift(n->backend, &sift, work->scratch);
    keep_rows(n, layer, kv, NULL, 0);
}

/* 1: the last feed-forward block runs only on the rows that the head answers. Nothing reads other
 * rows of its output, unless outputs are stored or n->hook reads them. The answers do not change,
 * because the result of a row does not depend on the rows beside it (struct variant). Guided passes
 * run the block on all rows: the head answers two lists of rows, and two calls of the block would
 * read the matrices twice. */
static int ends_short(const struct network *n, const struct kv *kv, const struct pass *pass)
{
    return !(kv && kv->attn) && !n->hook && !pass->guided && pass->R < pass->T;
}

/* Copies the stream after this layer to work->taps if size.tap[] lists the layer. The last layer
 * cannot be listed, because after it work->x may miss rows (ends_short). */
static void tap_layer(const struct network *n, size_t layer, const struct work *work,
                      const struct pass *pass)
{
    const size_t D = n->config.width;
    for (size_t i = 0; i < pass->size.taps; i++)
        if (pass->size.tap[i] == layer)
            n->backend->ops->rmsnorm(n->backend, pass_row_at(n, work->taps, i * work->size.rows, D),
                                     work->x, NULL, NULL, pass->T, D, 0);
}

static void whole_layer(const struct network *n, size_t layer, const struct kv *kv,
                        const struct work *work, const struct pass *pass)
{
    const struct rows *rows = &work->device.rows;
    const struct layer_rows all = {work->x,    rows->slot, rows->pos,
                                   rows->seqs, pass->T,    pass->max_rows};
    if (config_recurs(&n->config))
        pass_mix(n, layer, kv, work, pass);
    else
        attention_block(n, layer, kv, work, pass, &all);
    if (pass->sifts)
        sift_layer(n, layer, kv, work, pass);
    if (work->size.latent)
        cross_block(n, layer, kv, work, pass);
    if (layer + 1 == n->config.layers && ends_short(n, kv, pass)) {
        if (pass->R) {
            n->backend->ops->rmsnorm(n->backend, work->wanted, work->x, rows->wanted, NULL, pass->R,
                                     n->config.width, 0);
            ffn_block(n, layer, work, work->wanted, pass->R);
        }
        return;
    }
    ffn_block(n, layer, work, work->x, pass->T);
    if (n->hook)
        n->hook->hear(n->hook->ctx, layer, work->y, work->gate, pass->T);
}

/* ---- a layer whose outputs are stored ---- */

/* work->rows = the chosen rows, which this layer computes. Values are computed for all rows,
 * because the choice compares the values of each row with its cached values. */
static void choose_rows(const struct network *n, size_t layer, const struct kv *kv,
                        const struct work *work, const struct pass *pass)
{
    const struct config *config = &n->config;
    const struct layer *weights = &n->layer[layer];
    const struct index *index = &work->device;
    struct backend *backend = n->backend;
    const struct cache to = kv_layer(kv, n, layer);
    /* work->q can hold the values: queries are computed later and are at least as wide */
    const struct product product = {&weights->v, work->q, 0};
    const struct drift drift = {.v = work->q, .bias = weights->v_bias, .kept = to.v,
                                .dtype = to.dtype, .slot = index->rows.slot, .pos = index->rows.pos,
                                .seqs = index->rows.seqs, .part = index->part,
                                .n_seqs = pass->n_seqs, .T = pass->T, .max_rows = pass->max_rows,
                                .n = config->kv_heads * config->head_dim, .to = work->rows};
    backend->ops->matmul(backend, &product, 1,
                         (struct input){work->x, weights->attn_norm, config->norm_eps}, pass->T,
                         work->scratch);
    backend->ops->choose(backend, &drift, work->scratch);
    backend->ops->rope_table(backend, work->table, work->rows.pos, n->inv_freq,
                             config_rope_scale(config), pass->chosen, config->head_dim);
}

/* work->sum[T, D] = the rows row[T] of the stream work->x; row NULL: all rows. */
static void gather(const struct network *n, const struct work *work, const int32_t *row, size_t T)
{
    n->backend->ops->rmsnorm(n->backend, work->sum, work->x, row, NULL, T, n->config.width, 0);
}

/* Updates work->x after attention or a feed-forward block. Computed rows come from work->sum, and
 * their new outputs are stored in `kept`. The other rows add their stored outputs. some 0: all rows
 * were computed. */
static void settle(const struct network *n, size_t layer, act *kept, const struct kv *kv,
                   const struct work *work, const struct pass *pass, int some)
{
    size_t D = n->config.width, value = dtype_value_bytes(n->backend->act);
    const struct outputs outputs = {.x = work->x, .sum = work->sum,
                                    .kept = (char *)kept + layer * kv->slots * D * value,
                                    .place = some ? work->rows.place : NULL,
                                    .slot = work->device.rows.slot, .T = pass->T, .D = D};
    n->backend->ops->settle(n->backend, &outputs);
}

/* A layer with stored outputs. The first layer computes all rows, as the code of the authors of
 * dLLM-Cache does, because values of the first layer show only whether the token changed. */
static void kept_layer(const struct network *n, size_t layer, const struct kv *kv,
                       const struct work *work, const struct pass *pass)
{
    const struct index *index = &work->device;
    const struct rows *rows = &index->rows;
    const int some = layer > 0 && pass->chosen;
    const struct layer_rows layer_rows =
        some ? (struct layer_rows){work->sum,   work->rows.slot, work->rows.pos,
                                   index->some, pass->chosen,    pass->max_chosen}
             : (struct layer_rows){work->sum,  rows->slot, rows->pos,
                                   rows->seqs, pass->T,    pass->max_rows};
    const int32_t *row = some ? work->rows.row : NULL;
    if (some)
        choose_rows(n, layer, kv, work, pass);
    gather(n, work, row, layer_rows.T);
    attention_block(n, layer, kv, work, pass, &layer_rows);
    settle(n, layer, kv->attn, kv, work, pass, some);
    gather(n, work, row, layer_rows.T);
    ffn_block(n, layer, work, work->sum, layer_rows.T);
    settle(n, layer, kv->ffn, kv, work, pass, some);
}

/* ---- from tokens to answers ---- */

static void answer(const struct network *n, const struct kv *kv, const struct work *work,
                   const struct pass *pass)
{
    const struct rows *rows = &work->device.rows;
    struct backend *backend = n->backend;
    const struct ops *ops = backend->ops;
    size_t D = n->config.width;
    double eps = n->config.norm_eps;
    const int there = ends_short(n, kv, pass); /* 1: the wanted rows are in work->wanted already */
    if (n->config.chains)
        pass_keep_states(n, work, there ? work->wanted : work->x, there ? NULL : rows->wanted,
                         pass->R);
    ops->rmsnorm(backend, work->wanted, there ? work->wanted : work->x, there ? NULL : rows->wanted,
                 n->norm, pass->R, D, eps);
    int compares = pass->query.divergence != 0;
    struct head_query query = pass->query;
    query.dense = work->size.how.dense_head;
    query.ids = n->ids;
    if (pass->guided)
        ops->rmsnorm(backend, work->uncond, work->x, rows->uncond, n->norm, pass->R, D, eps);
    if (compares)
        ops->rmsnorm(backend, work->uncond, work->before, rows->uncond, NULL, pass->R, D, eps);
    ops->head(backend, &n->head, work->wanted, pass->guided || compares ? work->uncond : NULL,
              pass->R, &query, work->answer, pass->logits ? work->logits : NULL, work->scratch);
    if (compares)
        ops->rmsnorm(backend, work->before, work->wanted, NULL, NULL, pass->R, D, eps);
}

static void run_once(const struct network *n, const struct kv *kv, const struct work *work,
                     const struct pass *pass)
{
    const struct config *config = &n->config;
    struct backend *backend = n->backend;
    const struct rows *rows = &work->device.rows;
    assert((!pass->chosen || (kv && kv->attn)) && (!pass->sifts || work->size.sifted));
    assert(!work->size.latent == !config->latents &&
           (!config->latents || (kv && kv->latents && !kv->attn)));
    assert(pass->T <= work->size.rows && pass->n_seqs <= work->size.seqs &&
           pass->R <= work->size.wanted);
    assert(!config_recurs(config) || (kv && kv->state));
    assert(!config->chains == !work->size.chained);
    const struct offload *cache = kv ? kv->outside : NULL;
    offload_begin(n->offload);
    offload_begin(cache);
    backend->ops->embed(backend, work->x, &n->embed, rows->token, pass->T);
    if (config->chains)
        pass_join(n, work, pass);
    backend->ops->rope_table(backend, work->table, rows->pos, n->inv_freq,
                             config_rope_scale(config), pass->T, config->head_dim);
    if (n->still)
        backend->ops->rope_table(backend, work->still, rows->pos, n->still, 1, pass->T,
                                 config->head_dim);
    for (size_t layer = 0; layer < config->layers; layer++) {
        offload_enter(n->offload, layer);
        offload_enter(cache, layer);
        (kv && kv->attn ? kept_layer : whole_layer)(n, layer, kv, work, pass);
        tap_layer(n, layer, work, pass);
        offload_leave(n->offload, layer);
        offload_leave(cache, layer);
    }
    if (pass->R)
        answer(n, kv, work, pass);
    offload_end(n->offload);
    offload_end(cache);
}

void pass_run(const struct network *n, const struct kv *kv, const struct work *work,
              const struct pass *pass)
{
    struct handicap *handicap = n->handicap;
    run_once(n, kv, work, pass);
    if (handicap && ++handicap->passes % handicap->every == 0)
        run_once(n, kv, work, pass);
}
