/* room.c - the memory of a forward and backward pass; see backprop_run.h. One function
 * measures the block of the back end and cuts it, so that size and layout agree. */
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/train/backprop/backprop_run.h"

enum { ALIGN = 256 };

static float *room(struct backprop *t, size_t n)
{
    unsigned char *p = t->block ? t->block + t->bytes : NULL;
    t->bytes += (n * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
    return (float *)(void *)p;
}

/* An array that only gradients of matrices read. Each layer has its own, or, when nobody asks for
 * those gradients, all layers share the array of the first. A mixer that recurs reads it for other
 * gradients too. */
static float *input_room(struct backprop *t, size_t l, float *first, size_t n)
{
    return l && t->how.latents && !config_recurs(&t->c) ? first : room(t, n);
}

static void cut_latents(struct backprop *t, struct layer_tape *y, size_t l)
{
    const struct config *c = &t->c;
    size_t T = t->rows, HE = c->heads * c->head_dim, N = t->seqs * c->latents;
    y->nc = input_room(t, l, t->tape->nc, T * c->width);
    y->cq = room(t, T * HE);
    y->cy = input_room(t, l, t->tape->cy, T * HE);
    y->zk = room(t, N * c->kv_heads * c->head_dim);
    y->zv = room(t, N * c->kv_heads * c->head_dim);
    y->crossed = room(t, T * c->width);
}

static void cut_layer(struct backprop *t, struct layer_tape *y, size_t l)
{
    const struct config *c = &t->c;
    size_t T = t->rows, D = c->width, HE = c->heads * c->head_dim, KE = c->kv_heads * c->head_dim;
    y->x = room(t, T * D);
    y->n1 = input_room(t, l, t->tape->n1, T * D);
    y->mid = room(t, T * D);
    y->n2 = input_room(t, l, t->tape->n2, T * D);
    y->q = room(t, T * HE);
    y->y = input_room(t, l, t->tape->y, T * HE);
    y->k = room(t, T * KE);
    y->v = room(t, T * KE);
    y->raw_q = c->qk_norm ? room(t, T * HE) : NULL;
    y->raw_k = c->qk_norm ? room(t, T * KE) : NULL;
    y->gate = room(t, T * c->ffn);
    y->up = room(t, T * c->ffn);
    y->act = input_room(t, l, t->tape->act, T * c->ffn);
    y->crossed = y->mid;
    if (t->seqs)
        cut_latents(t, y, l);
    if (config_recurs(c))
        backprop_mix_tape(t, &y->mix, room);
}

/* The first `every` layers have tapes; layer l + every uses the tape of layer l. The first layer of
 * each part keeps its own input. With RWKV 7 all layers read the values of the first layer, so
 * these are not shared. */
static void cut_tape(struct backprop *t)
{
    size_t every = t->how.every;
    for (size_t l = 0; l < t->c.layers; l++) {
        if (l < every) {
            cut_layer(t, &t->tape[l], l);
            continue;
        }
        t->tape[l] = t->tape[l - every];
        if (l % every == 0)
            t->tape[l].x = room(t, t->rows * t->c.width);
        if (l == every && config_recurs(&t->c))
            t->tape[l].v = room(t, t->rows * t->c.kv_heads * t->c.head_dim);
    }
}

/* Bytes of work for the largest of the three products of any matrix; products of the head have the
 * rows of one block. */
static size_t products_work(const struct backprop *t)
{
    size_t most = 0, N = t->seqs * t->c.latents, all = t->rows > N ? t->rows : N;
    for (int r = 0; r < ROLE_COUNT; r++) {
        size_t rows, cols, T = r == ROLE_HEAD || r == ROLE_EMBED ? t->logit_rows : all;
        role_shape(&t->c, (enum role)r, &rows, &cols);
        const size_t shape[][3] = {{T, rows, cols}, {T, cols, rows}, {rows, cols, T}};
        const int there = role_layers(&t->c, (enum role)r) && !role_is_vector((enum role)r);
        for (int i = 0; i < 3 && there; i++) {
            size_t bytes = t->train->gemm_work(t->b, shape[i][0], shape[i][1], shape[i][2]);
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

static size_t scratch_floats(const struct backprop *t)
{
    const struct config *c = &t->c;
    size_t T = t->rows, longest = T > c->latents ? T : c->latents;
    size_t forward = t->b->ops->attention_work(t->b, T, T, longest, c->heads, c->kv_heads,
                                               c->head_dim, 0);
    size_t product = products_work(t);
    size_t back = t->train->attention_back_work(t->b, T, longest, c->heads, c->head_dim);
    if (config_recurs(c)) {
        size_t mixing = backprop_mix_work(t);
        forward = forward > mixing ? forward : mixing;
    }
    forward = (forward > product ? forward : product) / sizeof(float) + 1;
    return (forward > back ? forward : back) + 2 * T * (c->qk_norm ? c->heads : 1);
}

/* Cuts count * bytes from the block at *at and advances *at; block NULL: only advances. */
static void *part(unsigned char *block, size_t *at, size_t count, size_t bytes)
{
    void *p = block ? block + *at : NULL;
    *at += (count * bytes + ALIGN - 1) / ALIGN * ALIGN;
    return p;
}

/* Cuts the index arrays from a block; block NULL: only measures. Returns their bytes. */
static size_t cut_lists(const struct backprop *t, struct lists *x, unsigned char *block)
{
    const size_t T = t->rows, N = t->seqs * t->c.latents;
    int32_t **const all[] = {&x->all.row,  &x->all.pos,  &x->scored.row,  &x->scored.pos,
                             &x->all.last, &x->token,    &x->scored.last, &x->slots,
                             &x->place,    &x->target};
    struct askers *const who[] = {&x->all, &x->scored};
    size_t at = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = part(block, &at, T, sizeof **all[i]);
    for (int i = 0; i < 2; i++) {
        who[i]->seqs = part(block, &at, T, sizeof *who[i]->seqs);
        who[i]->cross = part(block, &at, t->seqs, sizeof *who[i]->cross);
    }
    x->weight = part(block, &at, T, sizeof *x->weight);
    x->zpos = part(block, &at, N, sizeof *x->zpos);
    x->zslots = part(block, &at, N, sizeof *x->zslots);
    return at;
}

/* Cuts the arrays from t->block; t->block NULL: only measures. */
static void cut_all(struct backprop *t)
{
    const struct config *c = &t->c;
    size_t T = t->rows, D = c->width, E = c->head_dim, HE = c->heads * E, KE = c->kv_heads * E;
    size_t N = t->seqs * c->latents;
    t->bytes = t->list_bytes = cut_lists(t, &t->at, t->block);
    t->inv_freq = room(t, E / 2);
    t->ones = c->qkv_bias ? room(t, T) : NULL;
    float **wide[] = {&t->asked, &t->top, &t->final, &t->dx, &t->dn};
    for (int i = 0; i < 5; i++)
        *wide[i] = room(t, T * D);
    t->dq = room(t, T * HE);
    t->dy = room(t, T * HE);
    t->dk = room(t, T * KE);
    t->dv = room(t, T * KE);
    t->dup = room(t, T * c->ffn);
    t->logits = room(t, t->logit_rows * c->vocab);
    if (config_recurs(c))
        backprop_mix_room(t, room);
    t->at.all.table = room(t, T * E);
    t->at.scored.table = room(t, T * E);
    t->z = room(t, c->layers * N * D);
    t->row_loss = (double *)(void *)room(t, 2 * T);
    t->dz = room(t, c->layers * N * D);
    t->dzk = room(t, N * KE);
    t->dzv = room(t, N * KE);
    t->ztable = room(t, N * E);
    cut_tape(t);
    t->scratch = room(t, scratch_floats(t));
}

/* Allocates memory of the host; writes the frequencies of the rotation, and ones if wanted. */
static void make_host(struct backprop *t)
{
    const struct config *c = &t->c;
    const size_t latents = c->layers * t->seqs * c->latents * c->width * sizeof *t->dz;
    float *inv_freq = mem_alloc(c->head_dim / 2 * sizeof *inv_freq);
    config_rope(c, inv_freq);
    t->b->ops->write(t->b, t->inv_freq, inv_freq, c->head_dim / 2 * sizeof *inv_freq);
    free(inv_freq);
    if (t->ones) {
        float *ones = mem_alloc(t->rows * sizeof *ones);
        for (size_t i = 0; i < t->rows; i++)
            ones[i] = 1;
        t->b->ops->write(t->b, t->ones, ones, t->rows * sizeof *ones);
        free(ones);
    }
    t->host_lists = mem_zero(t->list_bytes, 1);
    cut_lists(t, &t->host, t->host_lists);
    t->answers = mem_zero((size_t)((unsigned char *)t->dz - (unsigned char *)t->row_loss) + latents,
                          1);
    t->loss = mem_zero(t->rows, sizeof *t->loss);
}

static size_t logit_rows(const struct config *c, size_t rows, const struct backprop_how *how)
{
    size_t n = BACKPROP_LOGIT_ROWS;
    while (n * c->vocab > BACKPROP_LOGITS && n > BACKPROP_LOGIT_ROWS_LEAST)
        n /= 2;
    return how->whole_loss || rows < n ? rows : n;
}

static struct backprop *measure_room(const struct config *c, struct backend *b, size_t rows,
                                     size_t seqs, const struct backprop_how *how)
{
    struct backprop *t = mem_zero(1, sizeof *t);
    *t = (struct backprop){.c = *c, .b = b, .train = train_ops_of(b->ops), .rows = rows,
                           .seqs = c->latents ? seqs : 0, .dtype = how->products, .how = *how,
                           .logit_rows = logit_rows(c, rows, how)};
    if (!how->every || how->every > c->layers)
        t->how.every = c->layers;
    t->tape = mem_zero(c->layers, sizeof *t->tape);
    cut_all(t);
    return t;
}

size_t backprop_bytes(const struct config *c, struct backend *b, size_t rows, size_t seqs,
                      const struct backprop_how *how)
{
    struct backprop *t = measure_room(c, b, rows, seqs, how);
    size_t bytes = t->bytes;
    free(t->tape);
    free(t);
    return bytes;
}

struct backprop *backprop_make(struct parameters *p, size_t rows, size_t seqs,
                               enum dtype products)
{
    return backprop_make_as(p, rows, seqs, &(struct backprop_how){.products = products});
}

struct backprop *backprop_make_as(struct parameters *p, size_t rows, size_t seqs,
                                  const struct backprop_how *how)
{
    struct backprop *t = measure_room(&p->c, p->b, rows, seqs, how);
    t->parameters = p;
    t->block = p->b->ops->alloc(p->b, t->bytes, MEMORY_ACTIVATIONS);
    if (!t->block) {
        backprop_free(t);
        return NULL;
    }
    cut_all(t);
    make_host(t);
    return t;
}

void backprop_free(struct backprop *t)
{
    if (!t)
        return;
    t->b->ops->free(t->b, t->block);
    void *host[] = {t->tape, t->host_lists, t->answers, t->loss};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
    free(t);
}
