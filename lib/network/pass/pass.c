/* pass.c - the operations of one pass, in order (pass.h).
 *
 * A pass depends only on struct pass and on the index arrays, and allocates and copies nothing
 * while it runs. So a back end may record its operations once and repeat them as long as struct
 * pass stays the same, whatever the index arrays hold. */
#include "lib/network/pass.h"

#include <assert.h>
#include <string.h>

#include "kernels/links.h"
#include "kernels/experts.h"
#include "lib/network/latent.h"
#include "lib/network/pass/pass-layer.h"

enum { SLOT_STEP = 256 };

/* ---- description ---- */

void pass_begin(struct pass *p, const struct network *n, const struct kv *kv, const struct work *w)
{
    memset(p, 0, sizeof *p);
    p->network = n->identity;
    p->block = w->block;
    p->size = w->size;
    if (kv) {
        p->k = kv->k;
        p->v = kv->v;
        p->attn = kv->attn;
        p->outside = kv->outside ? kv->outside->block : NULL;
        p->kv_slots = kv->slots;
        p->kv_dtype = kv->dtype;
    }
}

size_t pass_slots(const struct work *w, size_t n)
{
    size_t step = (n + SLOT_STEP - 1) / SLOT_STEP * SLOT_STEP;
    assert(n <= w->size.slots);
    return step < w->size.slots ? step : w->size.slots;
}

void pass_list_rows(struct work *w, size_t T)
{
    const struct rows *r = &w->host.rows;
    assert(T <= w->size.listed);
    for (size_t t = 0; t < T; t++)
        r->slots[t] = (int32_t)t;
    memcpy(r->slot_pos, r->pos, T * sizeof *r->pos);
}

void pass_write(const struct network *n, struct work *w)
{
    n->backend->ops->write(n->backend, w->block, w->host.extra, w->index_bytes);
}

/* ---- a layer ---- */

/* Writes changed keys and values of layer l back, if they are offloaded: rows slot[0..T), or all
 * slots (NULL). */
static void keep_rows(const struct network *n, size_t l, const struct kv *kv, const int32_t *slot,
                      size_t T)
{
    const struct config *c = &n->config;
    size_t row = c->kv_heads * c->head_dim * dtype_value_bytes(kv->dtype);
    const struct store_rows r = {slot, slot ? T : kv->slots, row, kv->second};
    offload_keep(kv->outside, l, &r);
}

/* The rows that a layer computes: all of the pass, or the chosen ones. */
struct layer_rows {
    act *x; /* [T, D] their residual stream */
    const int32_t *slot, *pos;
    const struct attn_seq *seqs;
    size_t T, max_rows;
};

/* Queries, keys and values of z, one tile of rows after another; `to`, `slot` as in struct qkv. */
static void qkv_block(const struct network *n, size_t l, const struct work *w,
                      const struct layer_rows *z, struct cache to, const int32_t *slot)
{
    const struct config *c = &n->config;
    const struct layer *y = &n->layer[l];
    const size_t E = c->head_dim, kept = c->kv_heads * E * dtype_value_bytes(to.dtype);
    for (size_t t = 0, N; t < z->T; t += N) {
        N = pass_rows_at_once(n, w, t, z->T);
        size_t at = slot ? 0 : t * kept;
        const struct input in = {pass_row_at(n, z->x, t, c->width), y->attn_norm, c->norm_eps};
        const struct input both = {.x = pass_row_at(n, w->joined, t, 2 * c->width)};
        const struct qkv qkv = {.in = c->chains ? both : in, .wq = &y->q, .wk = &y->k, .wv = &y->v,
                                .bias = {y->q_bias, y->k_bias, y->v_bias},
                                .head_gain = {y->q_norm, y->k_norm},
                                .table = (c->unrotated[l] ? w->still : w->table) + t * E,
                                .q = pass_row_at(n, w->q, t, c->heads * E),
                                .to = {(char *)to.k + at, (char *)to.v + at, to.dtype},
                                .slot = slot ? slot + t : NULL, .heads = c->heads,
                                .kv_heads = c->kv_heads, .head_dim = E};
        n->backend->ops->qkv(n->backend, &qkv, N, w->scratch);
    }
}

/* The number of last layers whose attention shows which rows depend on which (kernels/links.h). */
enum { LINKED_LAYERS = 4 };

static void link_rows(const struct network *n, size_t l, const struct work *w, const struct pass *p)
{
    const struct config *c = &n->config;
    const size_t some = c->layers < LINKED_LAYERS ? c->layers : LINKED_LAYERS;
    const struct links links = {.q = w->q, .kv = w->fresh, .seqs = w->device.rows.seqs,
                                .T = p->T, .heads = c->heads, .kv_heads = c->kv_heads,
                                .head_dim = c->head_dim, .share = 1 / (double)some,
                                .add = l + some > c->layers, .stride = w->size.slots,
                                .map = w->map, .mean = l + 1 == c->layers ? w->mean : NULL};
    if (p->links && l + some >= c->layers)
        n->backend->ops->links(n->backend, &links);
}

static void attention_block(const struct network *n, size_t l, const struct kv *kv,
                            const struct work *w, const struct pass *p, const struct layer_rows *z)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct rows *r = &w->device.rows;
    const int own = !kv || p->sifts; /* keys and values are not cached */
    const struct cache to = own ? w->fresh : kv_layer(kv, n, l);
    const struct attn attn = {.q = w->q, .y = w->y, .kv = to, .half = network_half(n),
                              .pos = z->pos, .seqs = z->seqs, .slots = r->slots,
                              .slot_pos = r->slot_pos, .n_seqs = p->n_seqs, .T = z->T,
                              .max_rows = z->max_rows, .max_slots = p->max_slots, .heads = c->heads,
                              .kv_heads = c->kv_heads, .head_dim = c->head_dim, .mask = p->mask,
                              .mask_block = p->mask_block, .window = c->window,
                              .dense = work_scores(n, &w->size)};
    qkv_block(n, l, w, z, to, own ? NULL : z->slot);
    if (!own)
        keep_rows(n, l, kv, r->slot, p->T); /* and the values of all rows, by which rows were
                                             * chosen */
    link_rows(n, l, w, p);
    b->ops->attention(b, &attn, w->scratch);
    pass_multiply(n, w, &n->layer[l].o, (struct input){.x = w->y}, z->x, 1, z->T);
}

/* w->gate = silu(in Wgate^T) * (in Wup^T), in one operation or (unfused) three. */
static void gate_rows(const struct network *n, size_t l, const struct work *w, struct input in,
                      size_t N)
{
    struct backend *b = n->backend;
    const struct layer *y = &n->layer[l];
    const struct product gate = {&y->gate, w->gate, 0}, up = {&y->up, w->up, 0};
    if (!w->size.how.unfused) {
        b->ops->gated(b, w->gate, in, &y->gate, &y->up, N, w->scratch);
        return;
    }
    b->ops->matmul(b, &gate, 1, in, N, w->scratch);
    b->ops->matmul(b, &up, 1, in, N, w->scratch);
    b->ops->swiglu(b, w->gate, w->gate, w->up, N * config_ffn(&n->config, l));
}

/* x += attention of the rows over their latents. */
static void cross_block(const struct network *n, size_t l, const struct kv *kv,
                        const struct work *w, const struct pass *p)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct layer *y = &n->layer[l];
    struct attn attn = {.q = w->q, .y = w->y, .half = network_half(n), .pos = w->device.rows.pos,
                        .seqs = w->device.cross, .n_seqs = p->n_seqs, .T = p->T,
                        .max_rows = p->max_rows, .heads = c->heads, .kv_heads = c->kv_heads,
                        .head_dim = c->head_dim, .mask = MASK_FULL,
                        .dense = work_scores(n, &w->size)};
    latent_read(kv->latents, n, l, &attn);
    pass_multiply(n, w, &y->cross_q, (struct input){w->x, y->cross_norm, c->norm_eps}, w->q, 0,
                  p->T);
    b->ops->rope(b, w->q, w->table, p->T, c->heads, c->head_dim, 1);
    b->ops->attention(b, &attn, w->scratch);
    pass_multiply(n, w, &y->cross_o, (struct input){.x = w->y}, w->x, 1, p->T);
}

/* x += the experts of layer l that each row chooses, and the shared one. */
static void experts_block(const struct network *n, size_t l, const struct work *w, act *x, size_t T)
{
    const struct config *c = &n->config;
    const struct layer *y = &n->layer[l];
    struct backend *b = n->backend;
    struct experts a = {.x = w->normed, .router = &y->router, .gate = y->expert,
                        .up = y->expert + c->experts, .down = y->expert + 2 * c->experts,
                        .data = y->table, .n = c->experts, .used = c->used, .active = w->active,
                        .bias = y->router_bias, .groups = c->groups,
                        .groups_used = c->groups_used, .scale = (float)c->router_scale};
    for (size_t t = 0, N; t < T; t += N) {
        N = pass_rows_at_once(n, w, t, T);
        a.y = pass_row_at(n, x, t, c->width);
        b->ops->rmsnorm(b, w->normed, a.y, NULL, y->ffn_norm, N, c->width, c->norm_eps);
        b->ops->experts(b, &a, N, w->scratch);
        if (!c->shared)
            continue;
        const struct product down = {&y->shared_down, a.y, 1};
        b->ops->gated(b, w->gate, (struct input){.x = w->normed}, &y->shared_gate, &y->shared_up,
                      N, w->scratch);
        b->ops->matmul(b, &down, 1, (struct input){.x = w->gate}, N, w->scratch);
    }
}

static void ffn_block(const struct network *n, size_t l, const struct work *w, act *x, size_t T)
{
    struct backend *b = n->backend;
    const struct layer *y = &n->layer[l];
    if (config_mixes(&n->config, l)) {
        experts_block(n, l, w, x, T);
        return;
    }
    for (size_t t = 0, N; t < T; t += N) {
        N = pass_rows_at_once(n, w, t, T);
        act *rows = pass_row_at(n, x, t, n->config.width);
        const struct product down = {&y->down, rows, 1};
        gate_rows(n, l, w, (struct input){rows, y->ffn_norm, n->config.norm_eps}, N);
        b->ops->matmul(b, &down, 1, (struct input){.x = w->gate}, N, w->scratch);
    }
}

/* Caches the chosen keys and values of layer l. */
static void sift_layer(const struct network *n, size_t l, const struct kv *kv,
                       const struct work *w, const struct pass *p)
{
    const struct config *c = &n->config;
    const struct index *x = &w->device;
    const struct sift s = {.q = w->q, .from = w->fresh, .to = kv_layer(kv, n, l),
                           .seqs = x->rows.seqs, .part = x->part, .n_seqs = p->n_seqs, .T = p->T,
                           .max_rows = p->max_rows, .heads = c->heads, .kv_heads = c->kv_heads,
                           .head_dim = c->head_dim};
    n->backend->ops->sift(n->backend, &s, w->scratch);
    keep_rows(n, l, kv, NULL, 0);
}

/* 1: the last feed-forward block runs only on the rows that the head answers. Nothing reads other
 * rows of it, unless outputs are stored or a hook gets them. The result of a row does not depend on
 * the rows beside it (struct variant). Guided passes run it on all rows: their answers are two
 * lists of rows, and two calls would read the matrices twice. */
static int ends_short(const struct network *n, const struct kv *kv, const struct pass *p)
{
    return !(kv && kv->attn) && !n->hook && !p->guided && p->R < p->T;
}

/* Keeps the stream behind layer l, if it is asked for; it is not for the last layer. */
static void tap_layer(const struct network *n, size_t l, const struct work *w, const struct pass *p)
{
    const size_t D = n->config.width;
    for (size_t i = 0; i < p->size.taps; i++)
        if (p->size.tap[i] == l)
            n->backend->ops->rmsnorm(n->backend, pass_row_at(n, w->taps, i * w->size.rows, D), w->x,
                                     NULL, NULL, p->T, D, 0);
}

static void whole_layer(const struct network *n, size_t l, const struct kv *kv,
                        const struct work *w, const struct pass *p)
{
    const struct rows *r = &w->device.rows;
    const struct layer_rows all = {w->x, r->slot, r->pos, r->seqs, p->T, p->max_rows};
    if (config_recurs(&n->config))
        pass_mix(n, l, kv, w, p);
    else
        attention_block(n, l, kv, w, p, &all);
    if (p->sifts)
        sift_layer(n, l, kv, w, p);
    if (w->size.latent)
        cross_block(n, l, kv, w, p);
    if (l + 1 == n->config.layers && ends_short(n, kv, p)) {
        if (p->R) {
            n->backend->ops->rmsnorm(n->backend, w->wanted, w->x, r->wanted, NULL, p->R,
                                     n->config.width, 0);
            ffn_block(n, l, w, w->wanted, p->R);
        }
        return;
    }
    ffn_block(n, l, w, w->x, p->T);
    if (n->hook)
        n->hook->hear(n->hook->ctx, l, w->y, w->gate, p->T);
}

/* ---- a layer whose outputs are stored ---- */

/* w->rows = the rows of layer l to compute. Values are computed for all rows, to compare them. */
static void choose_rows(const struct network *n, size_t l, const struct kv *kv,
                        const struct work *w, const struct pass *p)
{
    const struct config *c = &n->config;
    const struct layer *y = &n->layer[l];
    const struct index *x = &w->device;
    struct backend *b = n->backend;
    const struct cache to = kv_layer(kv, n, l);
    const struct product v = {&y->v, w->q, 0}; /* queries come later, and are at least as wide */
    const struct drift d = {.v = w->q, .bias = y->v_bias, .kept = to.v, .dtype = to.dtype,
                            .slot = x->rows.slot, .pos = x->rows.pos, .seqs = x->rows.seqs,
                            .part = x->part, .n_seqs = p->n_seqs, .T = p->T,
                            .max_rows = p->max_rows, .n = c->kv_heads * c->head_dim, .to = w->rows};
    b->ops->matmul(b, &v, 1, (struct input){w->x, y->attn_norm, c->norm_eps}, p->T, w->scratch);
    b->ops->choose(b, &d, w->scratch);
    b->ops->rope_table(b, w->table, w->rows.pos, n->inv_freq, config_rope_scale(c), p->chosen,
                       c->head_dim);
}

/* Copies the stream of the computed rows into w->sum; row NULL: all rows. */
static void gather(const struct network *n, const struct work *w, const int32_t *row, size_t T)
{
    n->backend->ops->rmsnorm(n->backend, w->sum, w->x, row, NULL, T, n->config.width, 0);
}

/* Adds the outputs of layer l to w->x: new ones from w->sum, stored ones for the other rows. */
static void settle(const struct network *n, size_t l, act *kept, const struct kv *kv,
                   const struct work *w, const struct pass *p, int some)
{
    size_t D = n->config.width, value = dtype_value_bytes(n->backend->act);
    const struct outputs o = {.x = w->x, .sum = w->sum,
                              .kept = (char *)kept + l * kv->slots * D * value,
                              .place = some ? w->rows.place : NULL, .slot = w->device.rows.slot,
                              .T = p->T, .D = D};
    n->backend->ops->settle(n->backend, &o);
}

/* The first layer computes all rows, as the authors' code of dLLM-Cache does, because its values
 * only show whether the token changed. */
static void kept_layer(const struct network *n, size_t l, const struct kv *kv,
                       const struct work *w, const struct pass *p)
{
    const struct index *x = &w->device;
    const struct rows *r = &x->rows;
    const int some = l > 0 && p->chosen;
    const struct layer_rows z =
        some ? (struct layer_rows){w->sum, w->rows.slot, w->rows.pos, x->some, p->chosen,
                                   p->max_chosen}
             : (struct layer_rows){w->sum, r->slot, r->pos, r->seqs, p->T, p->max_rows};
    const int32_t *row = some ? w->rows.row : NULL;
    if (some)
        choose_rows(n, l, kv, w, p);
    gather(n, w, row, z.T);
    attention_block(n, l, kv, w, p, &z);
    settle(n, l, kv->attn, kv, w, p, some);
    gather(n, w, row, z.T);
    ffn_block(n, l, w, w->sum, z.T);
    settle(n, l, kv->ffn, kv, w, p, some);
}

/* ---- from tokens to answers ---- */

static void answer(const struct network *n, const struct kv *kv, const struct work *w,
                   const struct pass *p)
{
    const struct rows *r = &w->device.rows;
    struct backend *b = n->backend;
    const struct ops *ops = b->ops;
    size_t D = n->config.width;
    double eps = n->config.norm_eps;
    const int there = ends_short(n, kv, p); /* w->wanted holds the stream */
    if (n->config.chains)
        pass_keep_states(n, w, there ? w->wanted : w->x, there ? NULL : r->wanted, p->R);
    ops->rmsnorm(b, w->wanted, there ? w->wanted : w->x, there ? NULL : r->wanted, n->norm, p->R,
                 D, eps);
    int compares = p->query.divergence != 0;
    struct head_query query = p->query;
    query.dense = w->size.how.dense_head;
    query.ids = n->ids;
    if (p->guided)
        ops->rmsnorm(b, w->uncond, w->x, r->uncond, n->norm, p->R, D, eps);
    if (compares)
        ops->rmsnorm(b, w->uncond, w->before, r->uncond, NULL, p->R, D, eps);
    ops->head(b, &n->head, w->wanted, p->guided || compares ? w->uncond : NULL, p->R, &query,
              w->answer, p->logits ? w->logits : NULL, w->scratch);
    if (compares)
        ops->rmsnorm(b, w->before, w->wanted, NULL, NULL, p->R, D, eps);
}

static void run_once(const struct network *n, const struct kv *kv, const struct work *w,
                     const struct pass *p)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct rows *r = &w->device.rows;
    assert((!p->chosen || (kv && kv->attn)) && (!p->sifts || w->size.sifted));
    assert(!w->size.latent == !c->latents && (!c->latents || (kv && kv->latents && !kv->attn)));
    assert(p->T <= w->size.rows && p->n_seqs <= w->size.seqs && p->R <= w->size.wanted);
    assert(!config_recurs(c) || (kv && kv->state));
    assert(!c->chains == !w->size.chained);
    const struct offload *cache = kv ? kv->outside : NULL;
    offload_begin(n->offload);
    offload_begin(cache);
    b->ops->embed(b, w->x, &n->embed, r->token, p->T);
    if (c->chains)
        pass_join(n, w, p);
    b->ops->rope_table(b, w->table, r->pos, n->inv_freq, config_rope_scale(c), p->T, c->head_dim);
    if (n->still)
        b->ops->rope_table(b, w->still, r->pos, n->still, 1, p->T, c->head_dim);
    for (size_t l = 0; l < c->layers; l++) {
        offload_enter(n->offload, l);
        offload_enter(cache, l);
        (kv && kv->attn ? kept_layer : whole_layer)(n, l, kv, w, p);
        tap_layer(n, l, w, p);
        offload_leave(n->offload, l);
        offload_leave(cache, l);
    }
    if (p->R)
        answer(n, kv, w, p);
    offload_end(n->offload);
    offload_end(cache);
}

void pass_run(const struct network *n, const struct kv *kv, const struct work *w,
              const struct pass *p)
{
    struct handicap *h = n->handicap;
    run_once(n, kv, w, p);
    if (h && ++h->passes % h->every == 0)
        run_once(n, kv, w, p);
}
