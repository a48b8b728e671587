/* network.c - loading a network and running rows through it; see network.h.
 *
 * All activations of a pass lie in one block that work_make cuts into named shapes. Nothing else is
 * allocated while a pass runs, apart from two index arrays that grow to the largest pass seen.
 */
#include "lib/model/network.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/model/quantization.h"

/* ---- weights ---- */

static int short_of_memory(const struct network *n, enum role r, struct err *e)
{
    size_t rows, cols;
    role_shape(&n->config, r, &rows, &cols);
    return err_set(
        e, EXIT_FAILED_RECORDS,
        "%s: out of memory for %s [%zu, %zu] (%zu bytes are taken; try --quant, a smaller "
        "--dtype or a larger --mem-cap)",
        n->config.name, role_names[r], rows, cols, n->backend->memory.reserved);
}

static int load_mat(struct network *n, const struct checkpoint *c, enum role r, size_t layer,
                    struct mat *m, struct err *e)
{
    struct weight w = {c, r, layer};
    struct mat_source s = checkpoint_source(&w);
    enum dtype dtype = quant_dtype(n->quant, &n->config, r, n->dtype);
    checkpoint_advise(&w, 1);
    int bad = n->backend->ops->mat_make(n->backend, m, &s, dtype);
    checkpoint_advise(&w, 0);
    return bad ? short_of_memory(n, r, e) : 0;
}

static int load_norm(struct network *n, const struct checkpoint *c, enum role r, size_t layer,
                     float **out, struct err *e)
{
    size_t rows, cols;
    role_shape(&n->config, r, &rows, &cols);
    *out = n->backend->ops->alloc(n->backend, rows * sizeof(float), MEMORY_WEIGHTS);
    if (!*out)
        return short_of_memory(n, r, e);
    checkpoint_floats(c, r, layer, *out);
    return 0;
}

static int load_layer(struct network *n, const struct checkpoint *c, size_t l, struct err *e)
{
    struct layer *y = &n->layer[l];
    return load_norm(n, c, ROLE_ATTN_NORM, l, &y->attn_norm, e) ||
                   load_norm(n, c, ROLE_FFN_NORM, l, &y->ffn_norm, e) ||
                   load_mat(n, c, ROLE_Q, l, &y->q, e) ||
                   load_mat(n, c, ROLE_K, l, &y->k, e) ||
                   load_mat(n, c, ROLE_V, l, &y->v, e) ||
                   load_mat(n, c, ROLE_O, l, &y->o, e) ||
                   load_mat(n, c, ROLE_GATE, l, &y->gate, e) ||
                   load_mat(n, c, ROLE_UP, l, &y->up, e) ||
                   load_mat(n, c, ROLE_DOWN, l, &y->down, e)
               ? -1
               : 0;
}

static const char *const dtype_names[] = {"f32", "bf16", "bf16-f32", "int8", "nf4"};

const char *dtype_name(enum dtype d)
{
    return dtype_names[d];
}

/* *out = the dtype of that name, one of F32..last; `otherwise` for auto. */
static int dtype_named(const char *flag, const char *name, enum dtype last, enum dtype otherwise,
                       enum dtype *out, struct err *e)
{
    *out = otherwise;
    if (!name || !strcmp(name, "auto"))
        return 0;
    for (int d = DTYPE_F32; d <= (int)last; d++)
        if (!strcmp(name, dtype_names[d])) {
            *out = (enum dtype)d;
            return 0;
        }
    return err_set(e, EXIT_BAD_USAGE, "%s: expected auto, f32%s or %s, got '%s'", flag,
                   last == DTYPE_BF16 ? "" : ", bf16", dtype_names[last], name);
}

static int choose_precision(struct network *n, const struct checkpoint *c,
                            const struct precision *p, struct err *e)
{
    enum dtype stored = strcmp(checkpoint_dtype(c), "BF16") ? DTYPE_F32 : DTYPE_BF16_F32;
    enum quant asked = QUANT_NONE;
    if (p->quant && quant_named(p->quant, &asked))
        return err_set(e, EXIT_BAD_USAGE, "--quant: expected none, int8 or nf4, got '%s'",
                       p->quant);
    if (dtype_named("--dtype", p->dtype, DTYPE_BF16_F32, stored, &n->dtype, e) ||
        quant_resolve(&c->config, asked, &n->quant, e))
        return -1;
    int half = n->dtype == DTYPE_BF16 || n->quant != QUANT_NONE;
    return dtype_named("--kv-dtype", p->kv, DTYPE_BF16, half ? DTYPE_BF16 : DTYPE_F32,
                       &n->kv_dtype, e);
}

int network_load(struct network *n, struct backend *b, const struct checkpoint *c,
                 const struct precision *p, struct err *e)
{
    *n = (struct network){.config = c->config, .backend = b};
    if (choose_precision(n, c, p, e))
        return -1;
    n->layer = mem_zero(n->config.layers, sizeof *n->layer);
    n->inv_freq = mem_alloc(n->config.head_dim / 2 * sizeof *n->inv_freq);
    config_rope(&n->config, n->inv_freq);
    int bad = load_mat(n, c, ROLE_EMBED, 0, &n->embed, e);
    if (!bad && n->config.tied)
        n->head = n->embed;
    else if (!bad)
        bad = load_mat(n, c, ROLE_HEAD, 0, &n->head, e);
    bad = bad || load_norm(n, c, ROLE_NORM, 0, &n->norm, e);
    for (size_t l = 0; !bad && l < n->config.layers; l++)
        bad = load_layer(n, c, l, e);
    bad = bad || (c->tensors && tensors_unchanged(c->tensors, e));
    if (bad) {
        struct network what = {.config = n->config, .backend = b, .dtype = n->dtype,
                               .kv_dtype = n->kv_dtype, .quant = n->quant};
        network_free(n);
        *n = what;
    }
    return bad ? -1 : 0;
}

void network_free(struct network *n)
{
    if (!n->layer)
        return;
    const struct ops *ops = n->backend->ops;
    for (size_t l = 0; l < n->config.layers; l++) {
        struct layer *y = &n->layer[l];
        struct mat *mats[] = {&y->q, &y->k, &y->v, &y->o, &y->gate, &y->up, &y->down};
        for (size_t i = 0; i < sizeof mats / sizeof *mats; i++)
            ops->mat_free(n->backend, mats[i]);
        ops->free(n->backend, y->attn_norm);
        ops->free(n->backend, y->ffn_norm);
    }
    if (!n->config.tied)
        ops->mat_free(n->backend, &n->head);
    ops->mat_free(n->backend, &n->embed);
    ops->free(n->backend, n->norm);
    free(n->inv_freq);
    free(n->layer);
    *n = (struct network){0};
}

size_t network_weight_bytes(const struct network *n)
{
    return n->backend->memory.kind[MEMORY_WEIGHTS];
}

/* ---- cache ---- */

int kv_make(struct kv *kv, const struct network *n, size_t slots)
{
    const struct config *c = &n->config;
    size_t value = n->kv_dtype == DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
    size_t bytes = c->layers * slots * c->kv_heads * c->head_dim * value;
    const struct ops *ops = n->backend->ops;
    *kv = (struct kv){.slots = slots, .dtype = n->kv_dtype};
    kv->k = ops->alloc(n->backend, bytes, MEMORY_KV);
    kv->v = kv->k ? ops->alloc(n->backend, bytes, MEMORY_KV) : NULL;
    if (!kv->v) {
        kv_free(kv, n);
        return -1;
    }
    kv->pos = mem_zero(slots, sizeof *kv->pos);
    return 0;
}

void kv_free(struct kv *kv, const struct network *n)
{
    n->backend->ops->free(n->backend, kv->k);
    n->backend->ops->free(n->backend, kv->v);
    free(kv->pos);
    *kv = (struct kv){0};
}

/* ---- activations ---- */

struct work {
    float *block;
    size_t rows, slots, logit_rows; /* capacity */
    float *x, *h;                   /* [T, D] the stream, and its norm */
    float *q, *y;                   /* [T, H*E] queries, attention output */
    float *k, *v;                   /* [T, K*E] */
    float *gate;                    /* [T, F] */
    float *table;                   /* [T, E] cosines and sines */
    float *wanted, *uncond;         /* [R, D] */
    float *scratch;                 /* of attention and of the head, by turns */
    int32_t *slots_seen, *slot_pos; /* host, grown: slot lists of all sequences */
    size_t cap_seen, cap_pos;
    struct attn_seq *seqs; /* host, grown */
    size_t cap_seqs;
};

/* Cuts `n` floats off the block, at 64-byte boundaries. */
static float *cut(float *block, size_t *at, size_t n)
{
    float *p = block ? block + *at : NULL;
    *at += (n + 15) / 16 * 16;
    return p;
}

/* Bytes of work that the largest product of T rows needs. */
static size_t products_work(const struct network *n, size_t T)
{
    const struct config *c = &n->config;
    const struct ops *ops = n->backend->ops;
    size_t D = c->width, HE = c->heads * c->head_dim, KE = c->kv_heads * c->head_dim;
    size_t need[] = {ops->matmul_work(n->backend, T, D, HE + 2 * KE),
                     ops->matmul_work(n->backend, T, HE, D),
                     ops->matmul_work(n->backend, T, D, 2 * c->ffn),
                     ops->matmul_work(n->backend, T, c->ffn, D)};
    size_t most = 0;
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        most = need[i] > most ? need[i] : most;
    return most;
}

/* Names the shapes inside `block` (NULL: only measures). Returns the floats needed. */
static size_t cut_all(struct work *w, const struct network *n, float *block)
{
    const struct config *c = &n->config;
    const struct ops *ops = n->backend->ops;
    size_t T = w->rows, R = w->logit_rows, E = c->head_dim, at = 0;
    size_t attention = ops->attention_work(n->backend, T, w->slots, E, c->heads / c->kv_heads);
    size_t head = ops->head_work(n->backend, R, c->width, c->vocab);
    size_t product = (products_work(n, T) + sizeof(float) - 1) / sizeof(float);
    head = head > product ? head : product;
    w->x = cut(block, &at, T * c->width);
    w->h = cut(block, &at, T * c->width);
    w->q = cut(block, &at, T * c->heads * E);
    w->y = cut(block, &at, T * c->heads * E);
    w->k = cut(block, &at, T * c->kv_heads * E);
    w->v = cut(block, &at, T * c->kv_heads * E);
    w->gate = cut(block, &at, T * c->ffn);
    w->table = cut(block, &at, T * E);
    w->wanted = cut(block, &at, R * c->width);
    w->uncond = cut(block, &at, R * c->width);
    w->scratch = cut(block, &at, attention > head ? attention : head);
    return at;
}

struct work *work_make(const struct network *n, size_t rows, size_t slots, size_t logit_rows)
{
    struct work *w = mem_zero(1, sizeof *w);
    w->rows = rows;
    w->slots = slots > rows ? slots : rows;
    w->logit_rows = logit_rows;
    size_t floats = cut_all(w, n, NULL);
    w->block = n->backend->ops->alloc(n->backend, floats * sizeof(float), MEMORY_ACTIVATIONS);
    if (!w->block) {
        free(w);
        return NULL;
    }
    cut_all(w, n, w->block);
    return w;
}

void work_free(struct work *w, const struct network *n)
{
    if (!w)
        return;
    n->backend->ops->free(n->backend, w->block);
    free(w->slots_seen);
    free(w->slot_pos);
    free(w->seqs);
    free(w);
}

/* ---- the pass ---- */

static void grow(int32_t **p, size_t *cap, size_t need)
{
    if (need > *cap) {
        *p = mem_resize(*p, need, sizeof **p);
        *cap = need;
    }
}

static size_t count_rows(const struct forward *f)
{
    size_t T = 0;
    for (size_t s = 0; s < f->n_seqs; s++)
        T += f->seqs[s].rows;
    return T;
}

/* Without a cache the keys of a sequence are its own rows: slot = row. */
static void list_rows(struct work *w, const struct forward *f, size_t T)
{
    grow(&w->slots_seen, &w->cap_seen, T);
    grow(&w->slot_pos, &w->cap_pos, T);
    for (size_t t = 0; t < T; t++) {
        w->slots_seen[t] = (int32_t)t;
        w->slot_pos[t] = f->pos[t];
    }
    size_t row = 0;
    for (size_t s = 0; s < f->n_seqs; s++) {
        size_t rows = f->seqs[s].rows;
        w->seqs[s] = (struct attn_seq){row, rows, w->slots_seen + row, w->slot_pos + row, rows};
        row += rows;
    }
}

static void list_slots(struct work *w, const struct forward *f, struct kv *kv, size_t T)
{
    for (size_t t = 0; t < T; t++) {
        assert((size_t)f->slot[t] < kv->slots);
        kv->pos[f->slot[t]] = f->pos[t];
    }
    size_t total = 0, row = 0, at = 0;
    for (size_t s = 0; s < f->n_seqs; s++)
        total += f->seqs[s].n_slots;
    grow(&w->slot_pos, &w->cap_pos, total);
    for (size_t s = 0; s < f->n_seqs; s++) {
        const struct forward_seq *q = &f->seqs[s];
        assert(q->n_slots <= w->slots);
        for (size_t j = 0; j < q->n_slots; j++)
            w->slot_pos[at + j] = kv->pos[q->slots[j]];
        w->seqs[s] = (struct attn_seq){row, q->rows, q->slots, w->slot_pos + at, q->n_slots};
        row += q->rows;
        at += q->n_slots;
    }
}

static void attention_block(const struct network *n, size_t l, struct kv *kv, struct work *w,
                            const struct forward *f, size_t T)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct ops *ops = b->ops;
    const struct layer *y = &n->layer[l];
    size_t E = c->head_dim, KE = c->kv_heads * E;
    ops->rmsnorm(b, w->h, w->x, y->attn_norm, T, c->width, c->norm_eps);
    struct product qkv[] = {{&y->q, w->q, 0}, {&y->k, w->k, 0}, {&y->v, w->v, 0}};
    ops->matmul(b, qkv, 3, w->h, T, w->scratch);
    ops->rope(b, w->q, w->table, T, c->heads, E, 1);
    ops->rope(b, w->k, w->table, T, c->kv_heads, E, 1);
    const void *k = w->k, *v = w->v;
    if (kv) {
        size_t bytes = kv->slots * KE * (kv->dtype == DTYPE_F32 ? sizeof(float) : 2);
        void *ck = (char *)kv->k + l * bytes, *cv = (char *)kv->v + l * bytes;
        ops->store(b, ck, kv->dtype, w->k, f->slot, T, KE);
        ops->store(b, cv, kv->dtype, w->v, f->slot, T, KE);
        k = ck;
        v = cv;
    }
    struct attn a = {.q = w->q,
                     .y = w->y,
                     .k = k,
                     .v = v,
                     .kv_dtype = kv ? kv->dtype : DTYPE_F32,
                     .half = n->dtype == DTYPE_BF16 || n->quant != QUANT_NONE,
                     .pos = f->pos,
                     .seqs = w->seqs,
                     .n_seqs = f->n_seqs,
                     .heads = c->heads,
                     .kv_heads = c->kv_heads,
                     .head_dim = E,
                     .mask = f->mask,
                     .mask_block = f->mask_block};
    ops->attention(b, &a, w->scratch);
    struct product o = {&y->o, w->x, 1};
    ops->matmul(b, &o, 1, w->y, T, w->scratch);
}

static void ffn_block(const struct network *n, size_t l, struct work *w, size_t T)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct ops *ops = b->ops;
    const struct layer *y = &n->layer[l];
    ops->rmsnorm(b, w->h, w->x, y->ffn_norm, T, c->width, c->norm_eps);
    struct product down = {&y->down, w->x, 1};
    ops->gated(b, w->gate, w->h, &y->gate, &y->up, T, w->scratch);
    ops->matmul(b, &down, 1, w->gate, T, w->scratch);
}

void forward(const struct network *n, struct kv *kv, struct work *w, const struct forward *f,
             struct head_row *out, float *logits)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct ops *ops = b->ops;
    size_t T = count_rows(f), R = f->n_wanted, D = c->width;
    assert(T <= w->rows && R <= w->logit_rows);
    if (f->n_seqs > w->cap_seqs) {
        w->seqs = mem_resize(w->seqs, f->n_seqs, sizeof *w->seqs);
        w->cap_seqs = f->n_seqs;
    }
    if (kv)
        list_slots(w, f, kv, T);
    else
        list_rows(w, f, T);
    ops->embed(b, w->x, &n->embed, f->token, T);
    ops->rope_table(b, w->table, f->pos, n->inv_freq, T, c->head_dim);
    for (size_t l = 0; l < c->layers; l++) {
        attention_block(n, l, kv, w, f, T);
        ffn_block(n, l, w, T);
    }
    if (!R)
        return;
    ops->gather(b, w->wanted, w->x, f->wanted, R, D);
    ops->rmsnorm(b, w->wanted, w->wanted, n->norm, R, D, c->norm_eps);
    if (f->uncond) {
        ops->gather(b, w->uncond, w->x, f->uncond, R, D);
        ops->rmsnorm(b, w->uncond, w->uncond, n->norm, R, D, c->norm_eps);
    }
    ops->head(b, &n->head, w->wanted, f->uncond ? w->uncond : NULL, R, &f->query, out, logits,
              w->scratch);
}
