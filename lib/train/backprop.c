/* backprop.c - the loss of a batch and its gradient, written by hand.
 *
 * Forward is network.c's pass that keeps what the way back needs; backward mirrors it line by line.
 * For y = x W^T: dW += dy^T x and dx = dy W, both through the strided gemm, so nothing is
 * transposed. Proven against finite differences in tests/model/test-train.c.
 */
#include <string.h>

#include "lib/train/train_parts.h"

static void linear(struct trainer *t, float *y, const float *x, enum role r, size_t l, size_t T,
                   int add)
{
    struct product p = {trainer_mat(t, r, l), y, add};
    t->b->ops->matmul(t->b, &p, 1, (struct input){.x = x}, T, t->scratch);
}

/* dW += dy^T x; dx = dy W (or += with `add`; dx may be NULL). */
static void linear_back(struct trainer *t, float *dx, const float *dy, const float *x, enum role r,
                        size_t l, size_t T, int add)
{
    size_t N, K;
    role_shape(&t->c, r, &N, &K);
    const struct ops *ops = t->b->ops;
    ops->gemm(t->b, N, K, T, dy, 1, N, x, K, trainer_gradients(t, r, l), K, 1);
    if (dx)
        ops->gemm(t->b, T, K, N, dy, N, 1, trainer_values(t, r, l), K, dx, K, add);
}

static void norm(struct trainer *t, float *y, const float *x, enum role r, size_t l, size_t T)
{
    t->b->ops->rmsnorm(t->b, y, x, NULL, trainer_values(t, r, l), T, t->c.width, t->c.norm_eps);
}

/* dx += gradient through the norm of x, given dy (dy is overwritten). */
static void norm_back(struct trainer *t, float *dx, float *dy, const float *x, enum role r,
                      size_t l, size_t T)
{
    size_t D = t->c.width;
    t->train->rmsnorm_back(t->b, dy, trainer_gradients(t, r, l), dy, x, trainer_values(t, r, l), T,
                           D, t->c.norm_eps, t->scratch);
    for (size_t i = 0; i < T * D; i++)
        dx[i] += dy[i];
}

static void prepare(struct trainer *t, const struct train_batch *in)
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

static void attend(struct trainer *t, struct layer_tape *y, size_t l, const struct train_batch *in)
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
                     .mask = c->arch == ARCH_LLAMA ? MASK_CAUSAL : MASK_FULL};
    ops->attention(t->b, &a, t->scratch);
    memcpy(y->mid, y->x, T * c->width * sizeof *y->mid);
    linear(t, y->mid, y->y, ROLE_O, l, T, 1);
}

/* x + FFN(x) of layer l into `out`. */
static void feed(struct trainer *t, struct layer_tape *y, size_t l, size_t T, float *out)
{
    norm(t, y->n2, y->mid, ROLE_FFN_NORM, l, T);
    linear(t, y->gate, y->n2, ROLE_GATE, l, T, 0);
    linear(t, y->up, y->n2, ROLE_UP, l, T, 0);
    t->b->ops->swiglu(t->b, y->act, y->gate, y->up, T * t->c.ffn);
    memcpy(out, y->mid, T * t->c.width * sizeof *out);
    linear(t, out, y->act, ROLE_DOWN, l, T, 1);
}

static void run_layers(struct trainer *t, const struct train_batch *in)
{
    size_t T = in->seqs * in->len, D = t->c.width;
    const float *embed = trainer_values(t, ROLE_EMBED, 0);
    for (size_t i = 0; i < T; i++)
        memcpy(t->tape[0].x + i * D, embed + (size_t)in->token[i] * D, D * sizeof *embed);
    for (size_t l = 0; l < t->c.layers; l++) {
        attend(t, &t->tape[l], l, in);
        feed(t, &t->tape[l], l, T, l + 1 < t->c.layers ? t->tape[l + 1].x : t->top);
    }
}

/* Loss over the scored rows, LOGIT_ROWS at a time. With `gradients`, t->dx receives the gradient of
 * the last stream (zero on rows without a target). */
static double head_loss(struct trainer *t, const struct train_batch *in, int gradients)
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

static void feed_back(struct trainer *t, const struct layer_tape *y, size_t l, size_t T)
{
    linear_back(t, t->dup, t->dx, y->act, ROLE_DOWN, l, T, 0);
    t->train->swiglu_back(t->b, t->dgate, t->dup, t->dup, y->gate, y->up, T * t->c.ffn);
    linear_back(t, t->dn, t->dgate, y->n2, ROLE_GATE, l, T, 0);
    linear_back(t, t->dn, t->dup, y->n2, ROLE_UP, l, T, 1);
    norm_back(t, t->dx, t->dn, y->mid, ROLE_FFN_NORM, l, T);
}

static void attend_back(struct trainer *t, const struct layer_tape *y, size_t l,
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
                          .causal = c->arch == ARCH_LLAMA};
    t->train->attention_back(t->b, &a, t->scratch);
    ops->rope(t->b, t->dq, t->table, T, c->heads, c->head_dim, -1);
    ops->rope(t->b, t->dk, t->table, T, c->kv_heads, c->head_dim, -1);
    linear_back(t, t->dn, t->dq, y->n1, ROLE_Q, l, T, 0);
    linear_back(t, t->dn, t->dk, y->n1, ROLE_K, l, T, 1);
    linear_back(t, t->dn, t->dv, y->n1, ROLE_V, l, T, 1);
    norm_back(t, t->dx, t->dn, y->x, ROLE_ATTN_NORM, l, T);
}

double trainer_loss(struct trainer *t, const struct train_batch *in, int gradients)
{
    size_t T = in->seqs * in->len, D = t->c.width;
    trainer_pack(t);
    if (gradients)
        memset(t->g, 0, t->n * sizeof *t->g);
    prepare(t, in);
    run_layers(t, in);
    double loss = head_loss(t, in, gradients);
    if (!gradients)
        return loss;
    for (size_t l = t->c.layers; l-- > 0;) {
        feed_back(t, &t->tape[l], l, T);
        attend_back(t, &t->tape[l], l, in);
    }
    float *dembed = trainer_gradients(t, ROLE_EMBED, 0);
    for (size_t i = 0; i < T; i++)
        for (size_t d = 0; d < D; d++)
            dembed[(size_t)in->token[i] * D + d] += t->dx[i * D + d];
    return loss;
}
