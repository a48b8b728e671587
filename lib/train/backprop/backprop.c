/* backprop.c - the loss of a batch and its gradient, written by hand.
 *
 * The forward pass is that of lib/network and keeps what the backward pass needs; the backward pass
 * mirrors it line by line. In the last layer only the rows with a target are queries: the others
 * affect the loss only as keys and values. Checked against finite differences in
 * tests/model/test-train.c.
 *
 * When only the gradient of latents is asked for, the products for gradients of weights are left
 * out, and the backward pass ends where the first layer reads its latents, because nothing below
 * depends on them. */
#include <assert.h>
#include <string.h>

#include "lib/checkpoint/role.h"
#include "lib/train/backprop/backprop_run.h"

/* A batch in work. key: what decides its operations besides the index arrays, for ops.run; it has
 * no padding. */
struct batch_run {
    struct backprop *t;
    const struct train_batch *in;
    struct {
        const void *block;
        size_t seqs, len, scored, of, again;
    } key;
};

static size_t latent_bytes(const struct backprop *t, const struct train_batch *in)
{
    return t->c.layers * backprop_latent_rows(t, in) * t->c.width * sizeof(float);
}

/* ---- query rows ---- */

/* Appends row i of the batch to the query rows; `blocks`: its mask is block-causal. */
static void ask(struct askers *a, const struct train_batch *in, size_t i, int blocks)
{
    a->row[a->n] = (int32_t)i;
    a->last[a->n] = blocks ? in->last[i] : (int32_t)(i % in->len);
    a->pos[a->n++] = (int32_t)(i % in->len);
    a->seqs[i / in->len].rows++;
}

static void begin_sequence(struct askers *a, const struct train_batch *in, size_t s)
{
    a->seqs[s] = (struct attn_seq){(int32_t)a->n, 0, (int32_t)(s * in->len), (int32_t)in->len};
}

static void list_rows(struct lists *x, const struct train_batch *in, int blocks)
{
    x->all.n = x->scored.n = 0;
    for (size_t i = 0; i < in->seqs * in->len; i++) {
        if (i % in->len == 0) {
            begin_sequence(&x->all, in, i / in->len);
            begin_sequence(&x->scored, in, i / in->len);
        }
        x->token[i] = in->token[i];
        x->slots[i] = (int32_t)i;
        x->place[i] = -1;
        ask(&x->all, in, i, blocks);
        if (in->weight[i] != 0) {
            x->target[x->scored.n] = in->target[i];
            x->weight[x->scored.n] = in->weight[i];
            x->place[i] = (int32_t)x->scored.n;
            ask(&x->scored, in, i, blocks);
        }
    }
}

/* The query rows of every sequence, and its latents. */
static void list_latents(const struct backprop *t, struct lists *x, const struct train_batch *in)
{
    const size_t N = t->c.latents;
    for (size_t i = 0; i < in->seqs * N; i++) {
        x->zpos[i] = (int32_t)(i % N * (t->c.context / N));
        x->zslots[i] = (int32_t)i;
    }
    struct askers *const who[] = {&x->all, &x->scored};
    for (int k = 0; k < 2; k++)
        for (size_t s = 0; N && s < in->seqs; s++)
            who[k]->cross[s] = (struct attn_seq){who[k]->seqs[s].row_begin, who[k]->seqs[s].rows,
                                                 (int32_t)(s * N), (int32_t)N};
}

/* Sends the batch to the back end, except its latents. */
static void send_lists(struct backprop *t, const struct train_batch *in)
{
    const struct ops *ops = t->b->ops;
    const size_t E = t->c.head_dim;
    const float scale = config_rope_scale(&t->c);
    list_rows(&t->host, in, t->c.attends == MASK_BLOCK_CAUSAL);
    list_latents(t, &t->host, in);
    t->at.all.n = t->host.all.n;
    t->at.scored.n = t->host.scored.n;
    ops->write(t->b, t->block, t->host_lists, t->list_bytes);
    const struct askers *const who[] = {&t->at.all, &t->at.scored};
    for (int i = 0; i < 2 && who[i]->n; i++)
        ops->rope_table(t->b, who[i]->table, who[i]->pos, t->inv_freq, scale, who[i]->n, E);
    if (t->c.latents)
        ops->rope_table(t->b, t->ztable, t->at.zpos, t->inv_freq, scale,
                        backprop_latent_rows(t, in), E);
}

static const struct askers *askers_of(const struct backprop *t, size_t l)
{
    const struct lists *x = &t->at;
    return l + 1 < t->c.layers || x->scored.n == x->all.n ? &x->all : &x->scored;
}

/* ---- the pass ---- */

static void attend(struct backprop *t, struct layer_tape *y, size_t l, const struct train_batch *in)
{
    const struct config *c = &t->c;
    const struct askers *who = askers_of(t, l);
    const float *n1 = y->n1, *stream = y->x;
    size_t T = t->at.all.n;
    backprop_norm(t, y->n1, y->x, ROLE_ATTN_NORM, l, T);
    if (who->n < T) {
        backprop_gather(t, who, t->asked, y->n1, c->width);
        backprop_gather(t, who, y->mid, y->x, c->width);
        n1 = t->asked;
        stream = y->mid;
    }
    backprop_heads(t, y, l, who, n1);
    struct attn a = {.q = y->q, .y = y->y, .kv = {y->k, y->v, DTYPE_F32}, .pos = who->last,
                     .seqs = who->seqs, .slots = t->at.slots, .slot_pos = t->at.all.pos,
                     .n_seqs = in->seqs, .T = who->n, .max_rows = in->len, .max_slots = in->len,
                     .heads = c->heads, .kv_heads = c->kv_heads, .head_dim = c->head_dim,
                     .mask = c->attends == MASK_FULL ? MASK_FULL : MASK_CAUSAL,
                     .window = c->window, .half = t->dtype == DTYPE_BF16};
    t->b->ops->attention(t->b, &a, t->scratch);
    struct gemm o = backprop_linear(t, y->mid, y->y, ROLE_O, l, who->n, stream);
    backprop_multiply(t, &o, 1);
}

/* out = x + FFN(x) of layer l; out NULL: computes only what the backward pass reads. */
static void feed(struct backprop *t, struct layer_tape *y, size_t l, size_t T, float *out)
{
    backprop_norm(t, y->n2, y->crossed, ROLE_FFN_NORM, l, T);
    const struct gemm gated[] = {backprop_linear(t, y->gate, y->n2, ROLE_GATE, l, T, NULL),
                                 backprop_linear(t, y->up, y->n2, ROLE_UP, l, T, NULL)};
    backprop_multiply(t, gated, 2);
    t->b->ops->swiglu(t->b, y->act, y->gate, y->up, T * t->c.ffn);
    if (!out)
        return;
    struct gemm down = backprop_linear(t, out, y->act, ROLE_DOWN, l, T, y->crossed);
    backprop_multiply(t, &down, 1);
}

static void embed(struct backprop *t, const struct train_batch *in)
{
    t->b->ops->rmsnorm(t->b, t->tape[0].x, backprop_values(t, ROLE_EMBED, 0), t->at.token, NULL,
                       in->seqs * in->len, t->c.width, 0);
}

static void run_layer(struct backprop *t, const struct train_batch *in, size_t l, float *out)
{
    /* When only the latents changed, the results before the first layer's latents are still there,
     * unless another layer has used their tape since. */
    const int there = !l && in->again && t->how.every == t->c.layers;
    if (!there && config_recurs(&t->c))
        backprop_mix(t, &t->tape[l], l, askers_of(t, l), in);
    else if (!there)
        attend(t, &t->tape[l], l, in);
    if (t->c.latents)
        backprop_cross(t, &t->tape[l], l, askers_of(t, l), in);
    feed(t, &t->tape[l], l, askers_of(t, l)->n, out);
}

static void run_layers(struct backprop *t, const struct train_batch *in)
{
    if (!in->again)
        embed(t, in);
    for (size_t l = 0; l < t->c.layers; l++)
        run_layer(t, in, l, l + 1 < t->c.layers ? t->tape[l + 1].x : t->top);
}

/* Before the backward pass of layer l: when l is the last layer of a part whose tapes later parts
 * have overwritten, computes the part again from its kept input. The last part is never
 * overwritten. */
static void run_again(struct backprop *t, const struct train_batch *in, size_t l)
{
    size_t every = t->how.every;
    if (l + 1 == t->c.layers || (l + 1) % every)
        return;
    for (size_t i = l + 1 - every; i <= l; i++)
        run_layer(t, in, i, i < l ? t->tape[i + 1].x : NULL);
}

/* The losses of the scored rows, by blocks of t->logit_rows: head, softmax, loss, and the gradient
 * of the block's stream, before the next block overwrites the logits. With a gradient, t->dx
 * receives the gradient of the last stream. */
static void head_loss(struct backprop *t)
{
    size_t R = t->at.scored.n, D = t->c.width, V = t->c.vocab, most = t->logit_rows;
    for (size_t r = 0; r < R; r += most) {
        size_t n = R - r < most ? R - r : most;
        const float *x = t->top + r * D;
        float *h = t->final, *dh = t->dn, *dx = t->dx + r * D;
        backprop_norm(t, h, x, ROLE_NORM, 0, n);
        const struct gemm head = backprop_linear(t, t->logits, h, ROLE_HEAD, 0, n, NULL);
        backprop_multiply(t, &head, 1);
        t->train->cross_entropy(t->b, t->logits, t->at.target + r, t->at.weight + r, n, V,
                                t->row_loss + r);
        if (t->of == BACKPROP_LOSS)
            continue;
        const struct gemm back[] = {backprop_weights(t, t->logits, h, ROLE_HEAD, 0, n),
                                    backprop_input(t, dh, t->logits, ROLE_HEAD, 0, n, NULL)};
        backprop_multiply(t, back, 2);
        backprop_clear(t, dx, n * D);
        backprop_norm_back(t, dx, dh, x, ROLE_NORM, 0, n);
    }
}

static void feed_back(struct backprop *t, const struct layer_tape *y, size_t l, size_t T)
{
    const struct gemm down[] = {backprop_weights(t, t->dx, y->act, ROLE_DOWN, l, T),
                                backprop_input(t, t->dup, t->dx, ROLE_DOWN, l, T, NULL)};
    backprop_multiply(t, down, 2);
    float *dgate = y->gate;
    t->train->swiglu_back(t->b, dgate, t->dup, t->dup, y->gate, y->up, T * t->c.ffn);
    const struct gemm gated[] = {backprop_weights(t, dgate, y->n2, ROLE_GATE, l, T),
                                 backprop_weights(t, t->dup, y->n2, ROLE_UP, l, T),
                                 backprop_input(t, t->dn, dgate, ROLE_GATE, l, T, NULL),
                                 backprop_input(t, t->dn, t->dup, ROLE_UP, l, T, t->dn)};
    backprop_multiply(t, gated, 4);
    backprop_norm_back(t, t->dx, t->dn, y->crossed, ROLE_FFN_NORM, l, T);
}

static void attend_back(struct backprop *t, const struct layer_tape *y, size_t l,
                        const struct train_batch *in)
{
    const struct config *c = &t->c;
    const struct askers *who = askers_of(t, l);
    const struct gemm o[] = {backprop_weights(t, t->dx, y->y, ROLE_O, l, who->n),
                             backprop_input(t, t->dy, t->dx, ROLE_O, l, who->n, NULL)};
    backprop_multiply(t, o, 2);
    struct attn_back a = {.q = y->q, .k = y->k, .v = y->v, .dy = t->dy, .dq = t->dq, .dk = t->dk,
                          .dv = t->dv, .seqs = who->seqs, .pos = who->last, .n_seqs = in->seqs,
                          .max_slots = in->len, .heads = c->heads, .kv_heads = c->kv_heads,
                          .head_dim = c->head_dim, .causal = c->attends != MASK_FULL,
                          .window = c->window, .half = t->dtype == DTYPE_BF16};
    t->train->attention_back(t->b, &a, t->scratch);
    backprop_heads_back(t, y, l, who);
    backprop_norm_back(t, t->dx, t->dn, y->x, ROLE_ATTN_NORM, l, t->at.all.n);
}

/* ---- a batch ---- */

/* Only operations of the back end. */
static void run_both_ways(void *ctx)
{
    const struct batch_run *r = ctx;
    struct backprop *t = r->t;
    const struct train_batch *in = r->in;
    const int latents = t->of == BACKPROP_LATENTS;
    const int of_parameters = t->of == BACKPROP_PARAMETERS;
    if (!t->at.scored.n) { /* a text of one token: no gradient */
        backprop_clear(t, t->dz, latent_bytes(t, in) / sizeof *t->dz);
        if (of_parameters)
            backprop_clear(t, t->parameters->g, t->parameters->n);
        return;
    }
    if (of_parameters)
        parameters_clear_gradients(t->parameters);
    run_layers(t, in);
    head_loss(t);
    for (size_t l = t->c.layers; t->of != BACKPROP_LOSS && l-- > 0;) {
        run_again(t, in, l);
        feed_back(t, &t->tape[l], l, askers_of(t, l)->n);
        if (t->c.latents)
            backprop_cross_back(t, &t->tape[l], l, askers_of(t, l), in);
        if ((l || !latents) && config_recurs(&t->c))
            backprop_mix_back(t, &t->tape[l], l, askers_of(t, l), in);
        else if (l || !latents)
            attend_back(t, &t->tape[l], l, in);
    }
    if (of_parameters)
        t->train->embed_back(t->b, backprop_sum(t, ROLE_EMBED, 0), t->dx, t->at.token,
                             in->seqs * in->len, t->c.vocab, t->c.width);
}

/* Sends the batch; returns it with the key of its operations. */
static struct batch_run ask_of(struct backprop *t, const struct train_batch *in,
                               enum backprop_of of)
{
    assert(of != BACKPROP_PARAMETERS || !t->how.latents);
    t->of = of;
    if (!in->again)
        send_lists(t, in);
    if (t->c.latents)
        t->b->ops->write(t->b, t->z, in->z, latent_bytes(t, in));
    return (struct batch_run){t, in, {t->block, in->seqs, in->len, t->at.scored.n, of,
                                      (size_t)in->again}};
}

double backprop_loss(struct backprop *t, const struct train_batch *in, enum backprop_of of)
{
    struct batch_run r = ask_of(t, in, of);
    const size_t R = t->host.scored.n, dz = (size_t)((unsigned char *)t->dz -
                                                     (unsigned char *)t->row_loss);
    const double *row = (const double *)(const void *)t->answers;
    const int wants = t->c.latents && of != BACKPROP_LOSS;
    double loss = 0;
    if (of == BACKPROP_LATENTS || R == t->host.all.n)
        t->b->ops->run(t->b, &r.key, sizeof r.key, run_both_ways, &r);
    else
        run_both_ways(&r); /* not recorded: the next batch rarely scores as many rows */
    t->b->ops->read(t->b, t->answers, t->row_loss,
                    wants ? dz + latent_bytes(t, in) : R * sizeof *row);
    memset(t->loss, 0, in->seqs * sizeof *t->loss);
    for (size_t i = 0; i < R; i++) {
        t->loss[(size_t)t->host.scored.row[i] / in->len] += row[i];
        loss += row[i];
    }
    return loss;
}

/* The first step of a fit, and the later ones, which are replayed. */
void backprop_prepare(struct backprop *t, struct train_batch *in)
{
    for (in->again = 0; t->b->ops->prepare && in->again < 2; in->again++) {
        struct batch_run r = ask_of(t, in, BACKPROP_LATENTS);
        t->b->ops->prepare(t->b, &r.key, sizeof r.key, run_both_ways, &r);
    }
    in->again = 0;
}

const float *backprop_latents(const struct backprop *t)
{
    return (const float *)(const void *)(t->answers + ((unsigned char *)t->dz -
                                                       (unsigned char *)t->row_loss));
}

const double *backprop_losses(const struct backprop *t)
{
    return t->loss;
}
