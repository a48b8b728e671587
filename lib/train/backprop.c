/* backprop.c - the loss of a batch and its gradient, written by hand.
 *
 * Forward is the pass of lib/network that keeps what the way back needs; backward mirrors it line
 * by line. For y = x W^T: dW = dy^T x and dx = dy W, all three through the strided gemm, so nothing
 * is transposed. In the last layer only the rows with a target ask and go on: all others have no
 * part in the loss but as keys and values, and their terms would be zeros in every sum. Proven
 * against finite differences in tests/model/test-train.c.
 */
#include "lib/train/backprop.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/role.h"

enum { LOGIT_ROWS = 512 }; /* logits of this many rows exist at a time */

/* What a layer's forward pass leaves for its backward pass. */
struct layer_tape {
    float *x, *n1, *k, *v;  /* [T,D] input, its norm; rotated k, v */
    float *q, *y;           /* [R,H*E] rotated q, attention out; R: rows that ask */
    float *mid, *n2;        /* [R,D] the stream after attention, its norm */
    float *gate, *up, *act; /* [R,F]; on the way back the gradient of gate takes its place */
};

/* Rows that ask in a layer: all of the batch, or those with a target. */
struct askers {
    size_t n;
    int32_t *row, *pos; /* [n] which rows, ascending; their positions */
    struct attn_seq *seqs;
    float *table; /* [n, E] their rotation */
};

struct backprop {
    struct config c;
    struct backend *b;
    const struct train_ops *train;
    struct parameters *parameters; /* borrowed */
    size_t rows;                 /* capacity */
    enum dtype dtype;            /* of the products */
    int lacks;                   /* 1: the back end had no memory for all of it */
    struct layer_tape *tape;     /* [L] */
    struct askers all, scored;
    float *inv_freq;             /* [E/2] */
    float *asked;                /* [R,D] rows of n1 that ask in the last layer */
    float *top, *final;          /* [R,D] last stream of the scored rows, and its norm */
    float *logits;               /* [LOGIT_ROWS, V] */
    float *dx, *dn, *dq, *dk, *dv, *dy, *dup, *scratch;
    double *row_loss;
    int32_t *slots, *target; /* [T]; [R] of the scored rows */
    float *weight;           /* [R] */
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

/* Bytes of work that the largest of the three products of any matrix needs. */
static size_t products_work(const struct backprop *t)
{
    size_t most = 0, T = t->rows;
    for (int r = 0; r < ROLE_COUNT; r++) {
        size_t N, K;
        role_shape(&t->c, (enum role)r, &N, &K);
        const size_t shape[][3] = {{T, N, K}, {T, K, N}, {N, K, T}};
        for (int i = 0; i < 3 && !role_is_vector((enum role)r); i++) {
            size_t bytes = t->b->ops->gemm_work(t->b, shape[i][0], shape[i][1], shape[i][2]);
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

static void make_askers(struct backprop *t, struct askers *a)
{
    a->table = room(t, t->rows * t->c.head_dim);
    a->row = mem_zero(t->rows, sizeof *a->row);
    a->pos = mem_zero(t->rows, sizeof *a->pos);
    a->seqs = mem_zero(t->rows, sizeof *a->seqs);
}

static void make_room(struct backprop *t)
{
    const struct config *c = &t->c;
    size_t T = t->rows, D = c->width, E = c->head_dim, HE = c->heads * E, KE = c->kv_heads * E;
    size_t forward = t->b->ops->attention_work(t->b, T, T, T, c->heads, c->kv_heads, E, 0);
    size_t product = products_work(t), back = t->train->attention_back_work(t->b, T, E);
    forward = (forward > product ? forward : product) / sizeof(float) + 1;
    float **wide[] = {&t->asked, &t->top, &t->final, &t->dx, &t->dn};
    for (int i = 0; i < 5; i++)
        *wide[i] = room(t, T * D);
    t->dq = room(t, T * HE);
    t->dy = room(t, T * HE);
    t->dk = room(t, T * KE);
    t->dv = room(t, T * KE);
    t->dup = room(t, T * c->ffn);
    t->logits = room(t, LOGIT_ROWS * c->vocab);
    t->scratch = room(t, (forward > back ? forward : back) + 2 * T);
    t->inv_freq = mem_alloc(E / 2 * sizeof(float));
    t->row_loss = mem_zero(T, sizeof *t->row_loss);
    t->slots = mem_zero(T, sizeof *t->slots);
    t->target = mem_zero(T, sizeof *t->target);
    t->weight = mem_zero(T, sizeof *t->weight);
    make_askers(t, &t->all);
    make_askers(t, &t->scored);
    make_tape(t);
}

struct backprop *backprop_make(struct parameters *p, size_t rows, enum dtype products)
{
    struct backprop *t = mem_zero(1, sizeof *t);
    *t = (struct backprop){.c = p->c, .b = p->b, .train = p->ops, .parameters = p, .rows = rows,
                           .dtype = products};
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
    float *blocks[] = {t->asked, t->top, t->final, t->logits,  t->dx,        t->dn,          t->dq,
                       t->dk,    t->dv,  t->dy,    t->dup,     t->scratch,   t->all.table,
                       t->scored.table};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        ops->free(t->b, blocks[i]);
    void *host[] = {t->tape,     t->inv_freq, t->row_loss,   t->slots,      t->target,
                    t->weight,   t->all.row,  t->all.pos,    t->all.seqs,   t->scored.row,
                    t->scored.pos, t->scored.seqs};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
    free(t);
}

/* ---- parts of a pass ---- */

static float *values_of(struct backprop *t, enum role r, size_t l)
{
    return parameters_values(t->parameters, r, l);
}

static float *gradients_of(struct backprop *t, enum role r, size_t l)
{
    return parameters_gradients(t->parameters, r, l);
}

/* y = x W^T + plus (NULL: nothing), for T rows. */
static struct gemm linear(struct backprop *t, float *y, const float *x, enum role r, size_t l,
                          size_t T, const float *plus)
{
    size_t N, K;
    role_shape(&t->c, r, &N, &K);
    return (struct gemm){.M = T, .N = N, .K = K, .a = {x, K, 1}, .b = {values_of(t, r, l), K, 1},
                         .c = y, .plus = plus, .ldc = N, .dtype = t->dtype};
}

/* Its way back to the input: dx = dy W + plus. */
static struct gemm input_back(struct backprop *t, float *dx, const float *dy, enum role r, size_t l,
                              size_t T, const float *plus)
{
    size_t N, K;
    role_shape(&t->c, r, &N, &K);
    return (struct gemm){.M = T, .N = K, .K = N, .a = {dy, N, 1}, .b = {values_of(t, r, l), 1, K},
                         .c = dx, .plus = plus, .ldc = K, .dtype = t->dtype};
}

/* And to the weights: dW = dy^T x, or += where gradients are summed up. */
static struct gemm weights_back(struct backprop *t, const float *dy, const float *x, enum role r,
                                size_t l, size_t T)
{
    size_t N, K;
    role_shape(&t->c, r, &N, &K);
    float *dw = gradients_of(t, r, l);
    return (struct gemm){.M = N, .N = K, .K = T, .a = {dy, 1, N}, .b = {x, 1, K},
                         .c = dw, .plus = role_per_layer(r) ? NULL : dw, .ldc = K,
                         .dtype = t->dtype};
}

static void multiply(struct backprop *t, const struct gemm *g, size_t n)
{
    t->b->ops->gemm(t->b, g, n, t->scratch);
}

static void norm(struct backprop *t, float *y, const float *x, enum role r, size_t l, size_t T)
{
    t->b->ops->rmsnorm(t->b, y, x, NULL, values_of(t, r, l), T, t->c.width, t->c.norm_eps);
}

/* dx += gradient through the norm of x, given dy. */
static void norm_back(struct backprop *t, float *dx, const float *dy, const float *x, enum role r,
                      size_t l, size_t T)
{
    t->train->rmsnorm_back(t->b, dx, gradients_of(t, r, l), dy, x, values_of(t, r, l), T,
                           t->c.width, t->c.norm_eps, t->scratch);
}

/* ---- rows that ask ---- */

/* Row i of the batch, at its position in sequence s, asks after those that asked so far. */
static void ask(struct askers *a, const struct train_batch *in, size_t i)
{
    a->row[a->n] = (int32_t)i;
    a->pos[a->n++] = (int32_t)(i % in->len);
    a->seqs[i / in->len].rows++;
}

static void list_askers(struct backprop *t, const struct train_batch *in)
{
    int32_t len = (int32_t)in->len;
    t->all.n = t->scored.n = 0;
    for (size_t i = 0; i < in->seqs * in->len; i++) {
        size_t s = i / in->len;
        if (i % in->len == 0) {
            t->all.seqs[s] = (struct attn_seq){(int32_t)t->all.n, 0, (int32_t)i, len};
            t->scored.seqs[s] = (struct attn_seq){(int32_t)t->scored.n, 0, (int32_t)i, len};
        }
        t->slots[i] = (int32_t)i;
        ask(&t->all, in, i);
        if (in->weight[i] != 0) {
            t->target[t->scored.n] = in->target[i];
            t->weight[t->scored.n] = in->weight[i];
            ask(&t->scored, in, i);
        }
    }
}

static void prepare(struct backprop *t, const struct train_batch *in)
{
    list_askers(t, in);
    struct askers *a[] = {&t->all, &t->scored};
    for (int i = 0; i < (t->scored.n < t->all.n ? 2 : 1); i++)
        t->b->ops->rope_table(t->b, a[i]->table, a[i]->pos, t->inv_freq, a[i]->n, t->c.head_dim);
}

static const struct askers *askers_of(const struct backprop *t, size_t l)
{
    return l + 1 < t->c.layers || t->scored.n == t->all.n ? &t->all : &t->scored;
}

/* out[n, wide] = the rows of x[T, wide] that ask. */
static void gather(const struct askers *a, float *out, const float *x, size_t wide)
{
    for (size_t i = 0; i < a->n; i++)
        memcpy(out + i * wide, x + (size_t)a->row[i] * wide, wide * sizeof *out);
}

/* The way back, in place: x[T, wide], zeros in the other rows. From the last row on, so that each
 * row has left its place when another one comes there. */
static void spread(const struct askers *a, float *x, size_t T, size_t wide)
{
    size_t i = a->n;
    for (size_t row = T; row-- > 0;)
        if (!i || (size_t)a->row[i - 1] != row)
            memset(x + row * wide, 0, wide * sizeof *x);
        else if (--i != row)
            memcpy(x + row * wide, x + i * wide, wide * sizeof *x);
}

/* ---- the pass ---- */

static void attend(struct backprop *t, struct layer_tape *y, size_t l, const struct train_batch *in)
{
    const struct config *c = &t->c;
    const struct ops *ops = t->b->ops;
    const struct askers *who = askers_of(t, l);
    const float *n1 = y->n1, *stream = y->x;
    size_t T = t->all.n;
    norm(t, y->n1, y->x, ROLE_ATTN_NORM, l, T);
    if (who->n < T) {
        gather(who, t->asked, y->n1, c->width);
        gather(who, y->mid, y->x, c->width);
        n1 = t->asked;
        stream = y->mid;
    }
    const struct gemm qkv[] = {linear(t, y->q, n1, ROLE_Q, l, who->n, NULL),
                               linear(t, y->k, y->n1, ROLE_K, l, T, NULL),
                               linear(t, y->v, y->n1, ROLE_V, l, T, NULL)};
    multiply(t, qkv, 3);
    ops->rope(t->b, y->q, who->table, who->n, c->heads, c->head_dim, 1);
    ops->rope(t->b, y->k, t->all.table, T, c->kv_heads, c->head_dim, 1);
    struct attn a = {.q = y->q,
                     .y = y->y,
                     .kv = {y->k, y->v, DTYPE_F32},
                     .pos = who->pos,
                     .seqs = who->seqs,
                     .slots = t->slots,
                     .slot_pos = t->all.pos,
                     .n_seqs = in->seqs,
                     .T = who->n,
                     .max_rows = in->len,
                     .max_slots = in->len,
                     .heads = c->heads,
                     .kv_heads = c->kv_heads,
                     .head_dim = c->head_dim,
                     .mask = c->attends,
                     .half = t->dtype == DTYPE_BF16};
    ops->attention(t->b, &a, t->scratch);
    struct gemm o = linear(t, y->mid, y->y, ROLE_O, l, who->n, stream);
    multiply(t, &o, 1);
}

/* x + FFN(x) of layer l into `out`. */
static void feed(struct backprop *t, struct layer_tape *y, size_t l, size_t T, float *out)
{
    norm(t, y->n2, y->mid, ROLE_FFN_NORM, l, T);
    const struct gemm gated[] = {linear(t, y->gate, y->n2, ROLE_GATE, l, T, NULL),
                                 linear(t, y->up, y->n2, ROLE_UP, l, T, NULL)};
    multiply(t, gated, 2);
    t->b->ops->swiglu(t->b, y->act, y->gate, y->up, T * t->c.ffn);
    struct gemm down = linear(t, out, y->act, ROLE_DOWN, l, T, y->mid);
    multiply(t, &down, 1);
}

static void run_layers(struct backprop *t, const struct train_batch *in)
{
    size_t T = in->seqs * in->len, D = t->c.width;
    const float *embed = values_of(t, ROLE_EMBED, 0);
    for (size_t i = 0; i < T; i++)
        memcpy(t->tape[0].x + i * D, embed + (size_t)in->token[i] * D, D * sizeof *embed);
    for (size_t l = 0; l < t->c.layers; l++) {
        float *out = l + 1 < t->c.layers ? t->tape[l + 1].x : t->top;
        attend(t, &t->tape[l], l, in);
        feed(t, &t->tape[l], l, askers_of(t, l)->n, out);
    }
}

/* Loss over the scored rows, LOGIT_ROWS at a time. With `gradients`, t->dx receives the gradient of
 * the last stream. */
static double head_loss(struct backprop *t, int gradients)
{
    size_t R = t->scored.n, D = t->c.width, V = t->c.vocab;
    double loss = 0;
    for (size_t r = 0; r < R; r += LOGIT_ROWS) {
        size_t n = R - r < LOGIT_ROWS ? R - r : LOGIT_ROWS;
        const float *x = t->top + r * D;
        float *h = t->final, *dh = t->dn, *dx = t->dx + r * D;
        norm(t, h, x, ROLE_NORM, 0, n);
        struct gemm head = linear(t, t->logits, h, ROLE_HEAD, 0, n, NULL);
        multiply(t, &head, 1);
        loss += t->train->cross_entropy(t->b, t->logits, t->target + r, t->weight + r, n, V,
                                        t->row_loss);
        if (!gradients)
            continue;
        const struct gemm back[] = {weights_back(t, t->logits, h, ROLE_HEAD, 0, n),
                                    input_back(t, dh, t->logits, ROLE_HEAD, 0, n, NULL)};
        multiply(t, back, 2);
        memset(dx, 0, n * D * sizeof *dx);
        norm_back(t, dx, dh, x, ROLE_NORM, 0, n);
    }
    return loss;
}

static void feed_back(struct backprop *t, const struct layer_tape *y, size_t l, size_t T)
{
    const struct gemm down[] = {weights_back(t, t->dx, y->act, ROLE_DOWN, l, T),
                                input_back(t, t->dup, t->dx, ROLE_DOWN, l, T, NULL)};
    multiply(t, down, 2);
    float *dgate = y->gate;
    t->train->swiglu_back(t->b, dgate, t->dup, t->dup, y->gate, y->up, T * t->c.ffn);
    const struct gemm gated[] = {weights_back(t, dgate, y->n2, ROLE_GATE, l, T),
                                 weights_back(t, t->dup, y->n2, ROLE_UP, l, T),
                                 input_back(t, t->dn, dgate, ROLE_GATE, l, T, NULL),
                                 input_back(t, t->dn, t->dup, ROLE_UP, l, T, t->dn)};
    multiply(t, gated, 4);
    norm_back(t, t->dx, t->dn, y->mid, ROLE_FFN_NORM, l, T);
}

static void attend_back(struct backprop *t, const struct layer_tape *y, size_t l,
                        const struct train_batch *in)
{
    const struct config *c = &t->c;
    const struct ops *ops = t->b->ops;
    const struct askers *who = askers_of(t, l);
    size_t T = t->all.n, D = c->width;
    const struct gemm o[] = {weights_back(t, t->dx, y->y, ROLE_O, l, who->n),
                             input_back(t, t->dy, t->dx, ROLE_O, l, who->n, NULL)};
    multiply(t, o, 2);
    struct attn_back a = {.q = y->q,
                          .k = y->k,
                          .v = y->v,
                          .dy = t->dy,
                          .dq = t->dq,
                          .dk = t->dk,
                          .dv = t->dv,
                          .seqs = who->seqs,
                          .pos = who->pos,
                          .n_seqs = in->seqs,
                          .max_slots = in->len,
                          .heads = c->heads,
                          .kv_heads = c->kv_heads,
                          .head_dim = c->head_dim,
                          .causal = c->attends == MASK_CAUSAL,
                          .half = t->dtype == DTYPE_BF16};
    t->train->attention_back(t->b, &a, t->scratch);
    ops->rope(t->b, t->dq, who->table, who->n, c->heads, c->head_dim, -1);
    ops->rope(t->b, t->dk, t->all.table, T, c->kv_heads, c->head_dim, -1);
    const float *n1 = who->n < T ? t->asked : y->n1;
    const struct gemm q[] = {weights_back(t, t->dq, n1, ROLE_Q, l, who->n),
                             input_back(t, t->dn, t->dq, ROLE_Q, l, who->n, NULL)};
    multiply(t, q, 2);
    if (who->n < T) {
        spread(who, t->dn, T, D);
        spread(who, t->dx, T, D);
    }
    const struct gemm kv[] = {weights_back(t, t->dk, y->n1, ROLE_K, l, T),
                              weights_back(t, t->dv, y->n1, ROLE_V, l, T),
                              input_back(t, t->dn, t->dk, ROLE_K, l, T, t->dn),
                              input_back(t, t->dn, t->dv, ROLE_V, l, T, t->dn)};
    multiply(t, kv, 4);
    norm_back(t, t->dx, t->dn, y->x, ROLE_ATTN_NORM, l, T);
}

double backprop_loss(struct backprop *t, const struct train_batch *in, int gradients)
{
    size_t D = t->c.width;
    if (gradients)
        parameters_clear_gradients(t->parameters);
    prepare(t, in);
    run_layers(t, in);
    double loss = head_loss(t, gradients);
    if (!gradients)
        return loss;
    for (size_t l = t->c.layers; l-- > 0;) {
        feed_back(t, &t->tape[l], l, askers_of(t, l)->n);
        attend_back(t, &t->tape[l], l, in);
    }
    float *dembed = gradients_of(t, ROLE_EMBED, 0);
    for (size_t i = 0; i < in->seqs * in->len; i++)
        for (size_t d = 0; d < D; d++)
            dembed[(size_t)in->token[i] * D + d] += t->dx[i * D + d];
    return loss;
}
