/* backprop.c - the loss of a batch and its gradient, written by hand.
 *
 * Forward is the pass of lib/network that keeps what the way back needs; backward mirrors it line
 * by line. For y = x W^T: dW += dy^T x and dx = dy W, both through the strided gemm, so nothing is
 * transposed. Proven against finite differences in tests/model/test-train.c.
 */
#include "lib/train/backprop.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/role.h"

enum { LOGIT_ROWS = 512 }; /* logits of this many rows exist at a time */

/* What a layer's forward pass leaves for its backward pass. */
struct layer_tape {
    float *x, *n1, *q, *k, *v, *y; /* input [T,D], its norm, rotated q and k, v, attention out */
    float *mid, *n2, *gate, *up, *act; /* after attention [T,D], its norm, [T,F] each */
};

struct backprop {
    struct config c;
    struct backend *b;
    const struct train_ops *train;
    struct parameters *parameters; /* borrowed */
    size_t rows;                 /* capacity */
    int lacks;                   /* 1: the back end had no memory for all of it */
    struct layer_tape *tape;     /* [L] */
    float *inv_freq, *table;     /* [E/2], [T, E] */
    float *top, *final, *pick;   /* [T,D] last stream; norm and stream of the scored rows */
    float *logits;               /* [LOGIT_ROWS, V] */
    float *dx, *dn, *dq, *dk, *dv, *dy, *dgate, *dup, *scratch;
    double *row_loss;
    int32_t *pos, *slots, *scored; /* [T] */
    int32_t *target;               /* [T] of the scored rows */
    float *weight;                 /* [T] of the scored rows */
    struct attn_seq *seqs;
};

/* ---- room ---- */

static float *room(struct backprop *t, size_t n)
{
    float *p = t->b->ops->alloc(t->b, n * sizeof(float), MEMORY_ACTIVATIONS);
    t->lacks |= !p;
    return p;
}

static void make_tape(struct backprop *t)
{
    const struct config *c = &t->c;
    size_t T = t->rows, D = c->width, HE = c->heads * c->head_dim, KE = c->kv_heads * c->head_dim;
    for (size_t l = 0; l < c->layers; l++) {
        struct layer_tape *y = &t->tape[l];
        float **wide[] = {&y->x, &y->n1, &y->mid, &y->n2};
        for (int i = 0; i < 4; i++)
            *wide[i] = room(t, T * D);
        y->q = room(t, T * HE);
        y->y = room(t, T * HE);
        y->k = room(t, T * KE);
        y->v = room(t, T * KE);
        y->gate = room(t, T * c->ffn);
        y->up = room(t, T * c->ffn);
        y->act = room(t, T * c->ffn);
    }
}

/* Bytes of work that the largest product needs. */
static size_t products_work(const struct backprop *t)
{
    size_t most = 0;
    for (int r = 0; r < ROLE_COUNT; r++) {
        size_t N, K;
        role_shape(&t->c, (enum role)r, &N, &K);
        size_t bytes = role_is_vector((enum role)r)
                           ? 0
                           : t->b->ops->matmul_work(t->b, t->rows, K, N);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void make_room(struct backprop *t)
{
    const struct config *c = &t->c;
    size_t T = t->rows, D = c->width, E = c->head_dim, HE = c->heads * E, KE = c->kv_heads * E;
    size_t forward = t->b->ops->attention_work(t->b, T, T, T, c->heads, c->kv_heads, E);
    size_t product = products_work(t), back = t->train->attention_back_work(t->b, T, E);
    forward = (forward > product ? forward : product) / sizeof(float) + 1;
    float **wide[] = {&t->top, &t->final, &t->pick, &t->dx, &t->dn};
    for (int i = 0; i < 5; i++)
        *wide[i] = room(t, T * D);
    t->dq = room(t, T * HE);
    t->dy = room(t, T * HE);
    t->dk = room(t, T * KE);
    t->dv = room(t, T * KE);
    t->dgate = room(t, T * c->ffn);
    t->dup = room(t, T * c->ffn);
    t->table = room(t, T * E);
    t->logits = room(t, LOGIT_ROWS * c->vocab);
    t->scratch = room(t, (forward > back ? forward : back) + 2 * T);
    t->inv_freq = mem_alloc(E / 2 * sizeof(float));
    t->row_loss = mem_zero(T, sizeof *t->row_loss);
    t->pos = mem_zero(T, sizeof *t->pos);
    t->slots = mem_zero(T, sizeof *t->slots);
    t->scored = mem_zero(T, sizeof *t->scored);
    t->target = mem_zero(T, sizeof *t->target);
    t->weight = mem_zero(T, sizeof *t->weight);
    t->seqs = mem_zero(T, sizeof *t->seqs);
    make_tape(t);
}

struct backprop *backprop_make(struct parameters *p, size_t rows)
{
    struct backprop *t = mem_zero(1, sizeof *t);
    *t = (struct backprop){.c = p->c, .b = p->b, .train = p->ops, .parameters = p, .rows = rows};
    t->tape = mem_zero(p->c.layers, sizeof *t->tape);
    make_room(t);
    config_rope(&p->c, t->inv_freq);
    if (!t->lacks)
        return t;
    backprop_free(t);
    return NULL;
}

void backprop_free(struct backprop *t)
{
    if (!t)
        return;
    const struct ops *ops = t->b->ops;
    for (size_t l = 0; l < t->c.layers; l++) {
        struct layer_tape *y = &t->tape[l];
        float *tape[] = {y->x,   y->n1, y->q,    y->k,  y->v,  y->y,
                         y->mid, y->n2, y->gate, y->up, y->act};
        for (size_t i = 0; i < sizeof tape / sizeof *tape; i++)
            ops->free(t->b, tape[i]);
    }
    float *blocks[] = {t->top, t->final, t->pick, t->logits, t->dx,  t->dn,      t->dq,
                       t->dk,  t->dv,    t->dy,   t->dgate,  t->dup, t->scratch, t->table};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        ops->free(t->b, blocks[i]);
    void *host[] = {t->tape,   t->inv_freq, t->row_loss, t->pos, t->slots,
                    t->scored, t->target,   t->weight,   t->seqs};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
    free(t);
}

/* ---- forward and back ---- */

static float *values_of(struct backprop *t, enum role r, size_t l)
{
    return parameters_values(t->parameters, r, l);
}

static float *gradients_of(struct backprop *t, enum role r, size_t l)
{
    return parameters_gradients(t->parameters, r, l);
}

static void linear(struct backprop *t, float *y, const float *x, enum role r, size_t l, size_t T,
                   int add)
{
    struct product p = {parameters_mat(t->parameters, r, l), y, add};
    t->b->ops->matmul(t->b, &p, 1, (struct input){.x = x}, T, t->scratch);
}

/* dW += dy^T x; dx = dy W (or += with `add`; dx may be NULL). */
static void linear_back(struct backprop *t, float *dx, const float *dy, const float *x, enum role r,
                        size_t l, size_t T, int add)
{
    size_t N, K;
    role_shape(&t->c, r, &N, &K);
    const struct ops *ops = t->b->ops;
    ops->gemm(t->b, N, K, T, dy, 1, N, x, K, gradients_of(t, r, l), K, 1);
    if (dx)
        ops->gemm(t->b, T, K, N, dy, N, 1, values_of(t, r, l), K, dx, K, add);
}

static void norm(struct backprop *t, float *y, const float *x, enum role r, size_t l, size_t T)
{
    t->b->ops->rmsnorm(t->b, y, x, NULL, values_of(t, r, l), T, t->c.width, t->c.norm_eps);
}

/* dx += gradient through the norm of x, given dy (dy is overwritten). */
static void norm_back(struct backprop *t, float *dx, float *dy, const float *x, enum role r,
                      size_t l, size_t T)
{
    size_t D = t->c.width;
    t->train->rmsnorm_back(t->b, dy, gradients_of(t, r, l), dy, x, values_of(t, r, l), T,
                           D, t->c.norm_eps, t->scratch);
    for (size_t i = 0; i < T * D; i++)
        dx[i] += dy[i];
}

static void prepare(struct backprop *t, const struct train_batch *in)
{
    size_t T = in->seqs * in->len;
    int32_t len = (int32_t)in->len;
    for (size_t i = 0; i < T; i++) {
        t->pos[i] = (int32_t)(i % in->len);
        t->slots[i] = (int32_t)i;
    }
    for (int32_t s = 0; s < (int32_t)in->seqs; s++)
        t->seqs[s] = (struct attn_seq){s * len, len, s * len, len};
    t->b->ops->rope_table(t->b, t->table, t->pos, t->inv_freq, T, t->c.head_dim);
}

static void attend(struct backprop *t, struct layer_tape *y, size_t l, const struct train_batch *in)
{
    const struct config *c = &t->c;
    const struct ops *ops = t->b->ops;
    size_t T = in->seqs * in->len;
    norm(t, y->n1, y->x, ROLE_ATTN_NORM, l, T);
    linear(t, y->q, y->n1, ROLE_Q, l, T, 0);
    linear(t, y->k, y->n1, ROLE_K, l, T, 0);
    linear(t, y->v, y->n1, ROLE_V, l, T, 0);
    ops->rope(t->b, y->q, t->table, T, c->heads, c->head_dim, 1);
    ops->rope(t->b, y->k, t->table, T, c->kv_heads, c->head_dim, 1);
    struct attn a = {.q = y->q,
                     .y = y->y,
                     .kv = {y->k, y->v, DTYPE_F32},
                     .pos = t->pos,
                     .seqs = t->seqs,
                     .slots = t->slots,
                     .slot_pos = t->pos,
                     .n_seqs = in->seqs,
                     .T = T,
                     .max_rows = in->len,
                     .max_slots = in->len,
                     .heads = c->heads,
                     .kv_heads = c->kv_heads,
                     .head_dim = c->head_dim,
                     .mask = c->attends};
    ops->attention(t->b, &a, t->scratch);
    memcpy(y->mid, y->x, T * c->width * sizeof *y->mid);
    linear(t, y->mid, y->y, ROLE_O, l, T, 1);
}

/* x + FFN(x) of layer l into `out`. */
static void feed(struct backprop *t, struct layer_tape *y, size_t l, size_t T, float *out)
{
    norm(t, y->n2, y->mid, ROLE_FFN_NORM, l, T);
    linear(t, y->gate, y->n2, ROLE_GATE, l, T, 0);
    linear(t, y->up, y->n2, ROLE_UP, l, T, 0);
    t->b->ops->swiglu(t->b, y->act, y->gate, y->up, T * t->c.ffn);
    memcpy(out, y->mid, T * t->c.width * sizeof *out);
    linear(t, out, y->act, ROLE_DOWN, l, T, 1);
}

static void run_layers(struct backprop *t, const struct train_batch *in)
{
    size_t T = in->seqs * in->len, D = t->c.width;
    const float *embed = values_of(t, ROLE_EMBED, 0);
    for (size_t i = 0; i < T; i++)
        memcpy(t->tape[0].x + i * D, embed + (size_t)in->token[i] * D, D * sizeof *embed);
    for (size_t l = 0; l < t->c.layers; l++) {
        attend(t, &t->tape[l], l, in);
        feed(t, &t->tape[l], l, T, l + 1 < t->c.layers ? t->tape[l + 1].x : t->top);
    }
}

/* Loss over the scored rows, LOGIT_ROWS at a time. With `gradients`, t->dx receives the gradient of
 * the last stream (zero on rows without a target). */
static double head_loss(struct backprop *t, const struct train_batch *in, int gradients)
{
    size_t T = in->seqs * in->len, R = 0, D = t->c.width, V = t->c.vocab;
    for (size_t i = 0; i < T; i++)
        if (in->weight[i] != 0) {
            t->target[R] = in->target[i];
            t->weight[R] = in->weight[i];
            t->scored[R++] = (int32_t)i;
        }
    memset(t->dx, 0, T * D * sizeof *t->dx);
    double loss = 0;
    for (size_t r = 0; r < R; r += LOGIT_ROWS) {
        size_t n = R - r < LOGIT_ROWS ? R - r : LOGIT_ROWS;
        float *x = t->pick, *h = t->final, *dh = t->dn;
        t->b->ops->rmsnorm(t->b, x, t->top, t->scored + r, NULL, n, D, 0); /* only gathered */
        norm(t, h, x, ROLE_NORM, 0, n);
        linear(t, t->logits, h, ROLE_HEAD, 0, n, 0);
        loss += t->train->cross_entropy(t->b, t->logits, t->target + r, t->weight + r, n, V,
                                        t->row_loss);
        if (!gradients)
            continue;
        linear_back(t, dh, t->logits, h, ROLE_HEAD, 0, n, 0);
        float *dx = t->final; /* h is done with */
        memset(dx, 0, n * D * sizeof *dx);
        norm_back(t, dx, dh, x, ROLE_NORM, 0, n);
        for (size_t i = 0; i < n; i++)
            memcpy(t->dx + (size_t)t->scored[r + i] * D, dx + i * D, D * sizeof *dx);
    }
    return loss;
}

static void feed_back(struct backprop *t, const struct layer_tape *y, size_t l, size_t T)
{
    linear_back(t, t->dup, t->dx, y->act, ROLE_DOWN, l, T, 0);
    t->train->swiglu_back(t->b, t->dgate, t->dup, t->dup, y->gate, y->up, T * t->c.ffn);
    linear_back(t, t->dn, t->dgate, y->n2, ROLE_GATE, l, T, 0);
    linear_back(t, t->dn, t->dup, y->n2, ROLE_UP, l, T, 1);
    norm_back(t, t->dx, t->dn, y->mid, ROLE_FFN_NORM, l, T);
}

static void attend_back(struct backprop *t, const struct layer_tape *y, size_t l,
                        const struct train_batch *in)
{
    const struct config *c = &t->c;
    const struct ops *ops = t->b->ops;
    size_t T = in->seqs * in->len;
    linear_back(t, t->dy, t->dx, y->y, ROLE_O, l, T, 0);
    struct attn_back a = {.q = y->q,
                          .k = y->k,
                          .v = y->v,
                          .dy = t->dy,
                          .dq = t->dq,
                          .dk = t->dk,
                          .dv = t->dv,
                          .seqs = in->seqs,
                          .len = in->len,
                          .heads = c->heads,
                          .kv_heads = c->kv_heads,
                          .head_dim = c->head_dim,
                          .causal = c->attends == MASK_CAUSAL};
    t->train->attention_back(t->b, &a, t->scratch);
    ops->rope(t->b, t->dq, t->table, T, c->heads, c->head_dim, -1);
    ops->rope(t->b, t->dk, t->table, T, c->kv_heads, c->head_dim, -1);
    linear_back(t, t->dn, t->dq, y->n1, ROLE_Q, l, T, 0);
    linear_back(t, t->dn, t->dk, y->n1, ROLE_K, l, T, 1);
    linear_back(t, t->dn, t->dv, y->n1, ROLE_V, l, T, 1);
    norm_back(t, t->dx, t->dn, y->x, ROLE_ATTN_NORM, l, T);
}

double backprop_loss(struct backprop *t, const struct train_batch *in, int gradients)
{
    size_t T = in->seqs * in->len, D = t->c.width;
    parameters_pack(t->parameters);
    if (gradients)
        parameters_clear_gradients(t->parameters);
    prepare(t, in);
    run_layers(t, in);
    double loss = head_loss(t, in, gradients);
    if (!gradients)
        return loss;
    for (size_t l = t->c.layers; l-- > 0;) {
        feed_back(t, &t->tape[l], l, T);
        attend_back(t, &t->tape[l], l, in);
    }
    float *dembed = gradients_of(t, ROLE_EMBED, 0);
    for (size_t i = 0; i < T; i++)
        for (size_t d = 0; d < D; d++)
            dembed[(size_t)in->token[i] * D + d] += t->dx[i * D + d];
    return loss;
}
