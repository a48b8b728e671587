/* pass.c - see pass.h.
 *
 * All that a pass needs lies in one block of the back end, cut into named shapes: first the index
 * arrays, which have a twin on the host of the same cut and travel in one copy, then activations
 * and scratch. Nothing is allocated while a pass runs.
 */
#include "lib/network/pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { CUT_ALIGN = 256, SLOT_STEP = 256 };

/* ---- one block in named shapes ---- */

struct arena {
    unsigned char *block; /* NULL: only measures */
    size_t at;
};

static void *arena_take(struct arena *k, size_t count, size_t bytes)
{
    void *p = k->block ? k->block + k->at : NULL;
    k->at += (count * bytes + CUT_ALIGN - 1) / CUT_ALIGN * CUT_ALIGN;
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
    r->uncond = arena_ids(k, s->guided * s->wanted);
    x->member = arena_ids(k, s->seqs);
    x->target = arena_ids(k, s->wanted);
    x->ban = arena_ids(k, ADVANCE_STOPS);
    x->quiet = arena_ids(k, ADVANCE_STOPS);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Bytes of work that the neediest operation asks for. */
static size_t scratch_bytes(const struct network *n, const struct work_size *s)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct ops *ops = b->ops;
    size_t T = s->rows, D = c->width, HE = c->heads * c->head_dim, KE = c->kv_heads * c->head_dim;
    size_t most = ops->attention_work(b, T, s->seqs, s->slots, c->heads, c->kv_heads, c->head_dim);
    most = larger(most, ops->matmul_work(b, T, D, HE + 2 * KE));
    most = larger(most, ops->matmul_work(b, T, HE, D));
    most = larger(most, ops->matmul_work(b, T, D, 2 * c->ffn));
    most = larger(most, ops->matmul_work(b, T, c->ffn, D));
    return larger(most, ops->head_work(b, s->wanted, D, c->vocab));
}

/* Names the shapes inside `block`; NULL: only measures. Returns the bytes needed. */
static size_t cut_all(struct work *w, const struct network *n, unsigned char *block)
{
    const struct config *c = &n->config;
    const struct work_size *s = &w->size;
    const size_t A = value_bytes(n->backend->act), D = c->width, E = c->head_dim;
    const size_t T = s->rows, R = s->wanted, fresh = s->cached ? 0 : T * c->kv_heads * E;
    struct arena k = {block, 0};
    arena_index(&k, &w->device, s);
    w->index_bytes = k.at;
    w->answer = arena_take(&k, R, sizeof *w->answer);
    w->logits = arena_take(&k, s->logits * R * c->vocab, sizeof *w->logits);
    w->x = arena_take(&k, T * D, A);
    w->q = arena_take(&k, T * c->heads * E, A);
    w->y = arena_take(&k, T * c->heads * E, A);
    w->fresh = (struct cache){arena_take(&k, fresh, A), NULL, n->backend->act};
    w->fresh.v = arena_take(&k, fresh, A);
    w->gate = arena_take(&k, T * c->ffn, A);
    w->table = arena_take(&k, T * E, sizeof *w->table);
    w->wanted = arena_take(&k, R * D, A);
    w->uncond = arena_take(&k, s->guided * R * D, A);
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
    return w;
}

void work_free(struct work *w, const struct network *n)
{
    if (!w)
        return;
    n->backend->ops->free(n->backend, w->block);
    free(w->host.extra); /* where the index arrays begin */
    free(w);
}

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

/* ---- the pass ---- */

/* Layer l of a cache. */
static struct cache layer_cache(const struct network *n, const struct kv *kv, size_t l)
{
    const struct config *c = &n->config;
    size_t at = l * kv->slots * c->kv_heads * c->head_dim * value_bytes(kv->dtype);
    return (struct cache){(char *)kv->k + at, (char *)kv->v + at, kv->dtype};
}

static void attention_block(const struct network *n, size_t l, const struct kv *kv,
                            const struct work *w, const struct pass *p)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct layer *y = &n->layer[l];
    const struct rows *r = &w->device.rows;
    const struct qkv qkv = {.in = {w->x, y->attn_norm, c->norm_eps},
                            .wq = &y->q,
                            .wk = &y->k,
                            .wv = &y->v,
                            .table = w->table,
                            .q = w->q,
                            .to = kv ? layer_cache(n, kv, l) : w->fresh,
                            .slot = kv ? r->slot : NULL,
                            .heads = c->heads,
                            .kv_heads = c->kv_heads,
                            .head_dim = c->head_dim};
    const struct attn attn = {.q = w->q,
                              .y = w->y,
                              .kv = qkv.to,
                              .half = network_half(n),
                              .pos = r->pos,
                              .seqs = r->seqs,
                              .slots = r->slots,
                              .slot_pos = r->slot_pos,
                              .n_seqs = p->n_seqs,
                              .T = p->T,
                              .max_rows = p->max_rows,
                              .max_slots = p->max_slots,
                              .heads = c->heads,
                              .kv_heads = c->kv_heads,
                              .head_dim = c->head_dim,
                              .mask = p->mask,
                              .mask_block = p->mask_block};
    const struct product o = {&y->o, w->x, 1};
    b->ops->qkv(b, &qkv, p->T, w->scratch);
    b->ops->attention(b, &attn, w->scratch);
    b->ops->matmul(b, &o, 1, (struct input){.x = w->y}, p->T, w->scratch);
}

static void ffn_block(const struct network *n, size_t l, const struct work *w, size_t T)
{
    struct backend *b = n->backend;
    const struct layer *y = &n->layer[l];
    const struct input in = {w->x, y->ffn_norm, n->config.norm_eps};
    const struct product down = {&y->down, w->x, 1};
    b->ops->gated(b, w->gate, in, &y->gate, &y->up, T, w->scratch);
    b->ops->matmul(b, &down, 1, (struct input){.x = w->gate}, T, w->scratch);
}

static void answer(const struct network *n, const struct work *w, const struct pass *p)
{
    const struct rows *r = &w->device.rows;
    struct backend *b = n->backend;
    const struct ops *ops = b->ops;
    size_t D = n->config.width;
    double eps = n->config.norm_eps;
    ops->rmsnorm(b, w->wanted, w->x, r->wanted, n->norm, p->R, D, eps);
    if (p->guided)
        ops->rmsnorm(b, w->uncond, w->x, r->uncond, n->norm, p->R, D, eps);
    ops->head(b, &n->head, w->wanted, p->guided ? w->uncond : NULL, p->R, &p->query, w->answer,
              p->logits ? w->logits : NULL, w->scratch);
}

void pass_run(const struct network *n, const struct kv *kv, const struct work *w,
              const struct pass *p)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct rows *r = &w->device.rows;
    assert(p->T <= w->size.rows && p->n_seqs <= w->size.seqs && p->R <= w->size.wanted);
    b->ops->embed(b, w->x, &n->embed, r->token, p->T);
    b->ops->rope_table(b, w->table, r->pos, n->inv_freq, p->T, c->head_dim);
    for (size_t l = 0; l < c->layers; l++) {
        attention_block(n, l, kv, w, p);
        ffn_block(n, l, w, p->T);
    }
    if (p->R)
        answer(n, w, p);
}

/* ---- all at once ---- */

static void copy_ids(int32_t *to, const int32_t *from, size_t n)
{
    if (n)
        memcpy(to, from, n * sizeof *to);
}

/* The sequences of f, and for a cache their slots with the position that each one holds. */
static void list_seqs(const struct forward *f, const struct kv *kv, struct work *w, struct pass *p)
{
    const struct rows *r = &w->host.rows;
    size_t row = 0, at = 0;
    assert(f->n_seqs <= w->size.seqs);
    for (size_t s = 0; s < f->n_seqs; s++) {
        const struct forward_seq *q = &f->seqs[s];
        size_t n_slots = kv ? q->n_slots : q->rows;
        assert(row + q->rows <= w->size.rows && (!kv || at + n_slots <= w->size.listed));
        r->seqs[s] = (struct attn_seq){(int32_t)row, (int32_t)q->rows, (int32_t)(kv ? at : row),
                                       (int32_t)n_slots};
        for (size_t j = 0; kv && j < n_slots; j++, at++) {
            r->slots[at] = q->slots[j];
            r->slot_pos[at] = kv->pos[q->slots[j]];
        }
        p->max_rows = larger(p->max_rows, q->rows);
        p->max_slots = larger(p->max_slots, n_slots);
        row += q->rows;
    }
    p->max_slots = pass_slots(w, p->max_slots);
}

static void describe_rows(const struct forward *f, struct kv *kv, struct work *w, struct pass *p)
{
    const struct rows *r = &w->host.rows;
    for (size_t s = 0; s < f->n_seqs; s++)
        p->T += f->seqs[s].rows;
    assert(p->T <= w->size.rows && (kv || !w->size.cached));
    copy_ids(r->token, f->token, p->T);
    copy_ids(r->pos, f->pos, p->T);
    for (size_t t = 0; kv && t < p->T; t++) {
        assert((size_t)f->slot[t] < kv->slots);
        kv->pos[f->slot[t]] = f->pos[t];
        r->slot[t] = f->slot[t];
    }
    if (!kv)
        pass_list_rows(w, p->T);
    p->n_seqs = f->n_seqs;
    p->mask = f->mask;
    p->mask_block = f->mask_block;
    list_seqs(f, kv, w, p);
}

static void describe_answers(const struct forward *f, struct work *w, struct pass *p)
{
    const struct index *h = &w->host, *t = &w->device;
    const struct head_query *q = &f->query;
    size_t R = p->R = f->n_wanted;
    assert(R <= w->size.wanted && (!f->uncond || w->size.guided));
    assert(q->n_ban <= ADVANCE_STOPS && q->n_quiet <= ADVANCE_STOPS);
    copy_ids(h->rows.wanted, f->wanted, R);
    copy_ids(h->rows.uncond, f->uncond, f->uncond ? R : 0);
    copy_ids(h->target, q->target, q->target ? R : 0);
    copy_ids(h->ban, q->ban, q->n_ban);
    copy_ids(h->quiet, q->quiet, q->n_quiet);
    if (q->keys && R)
        memcpy(h->rows.key, q->keys, R * sizeof *q->keys);
    p->guided = f->uncond != NULL;
    p->query = *q;
    p->query.keys = q->keys ? t->rows.key : NULL;
    p->query.target = q->target ? t->target : NULL;
    p->query.ban = t->ban;
    p->query.quiet = t->quiet;
}

void forward(const struct network *n, struct kv *kv, struct work *w, const struct forward *f,
             struct head_row *out, float *logits)
{
    struct backend *b = n->backend;
    struct pass p;
    pass_begin(&p, n, kv, w);
    describe_rows(f, kv, w, &p);
    describe_answers(f, w, &p);
    p.logits = logits != NULL;
    assert(!logits || w->size.logits);
    pass_write(n, w);
    pass_run(n, kv, w, &p);
    b->ops->read(b, out, w->answer, p.R * sizeof *out);
    if (logits)
        b->ops->read(b, logits, w->logits, p.R * n->config.vocab * sizeof *logits);
}
