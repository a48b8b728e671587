/* backprop.c - the loss of a batch and its gradient, written by hand.
 *
 * The forward pass computes the same formulas as lib/network and keeps the activations that the
 * backward pass reads. The backward pass mirrors the forward pass line by line. In the last layer
 * only the rows with a target are queries, because other rows affect the loss only as keys and
 * values. tests/model/test-train.c checks the gradients against finite differences.
 *
 * With BACKPROP_LATENTS the products for gradients of weights are left out. The backward pass then
 * ends where the first layer reads its latents, because nothing below depends on latents. */
#include <assert.h>
#include <string.h>

#include "lib/checkpoint/role.h"
#include "lib/train/backprop/backprop_run.h"

/* The argument of run_both_ways(). key: the key of ops.run. The key has everything besides the
 * index arrays that determines the operations, and no padding. */
struct batch_run {
    struct backprop *t;
    const struct train_batch *in;
    struct {
        const void *block;
        size_t seqs, len, scored, of, again;
    } key;
};

static size_t latent_bytes(const struct backprop *backprop, const struct train_batch *in)
{
    return backprop->c.layers * backprop_latent_rows(backprop, in) * backprop->c.width *
           sizeof(float);
}

/* ---- query rows ---- */

/* Appends row i of the batch to the query rows. blocks 1: the mask is block-causal. */
static void ask(struct askers *askers, const struct train_batch *in, size_t i, int blocks)
{
    askers->row[askers->n] = (int32_t)i;
    askers->last[askers->n] = blocks ? in->last[i] : (int32_t)(i % in->len);
    askers->pos[askers->n++] = (int32_t)(i % in->len);
    askers->seqs[i / in->len].rows++;
}

static void begin_sequence(struct askers *askers, const struct train_batch *in, size_t s)
{
    askers->seqs[s] = (struct attn_seq){(int32_t)askers->n, 0, (int32_t)(s * in->len),
                                        (int32_t)in->len};
}

static void list_rows(struct lists *lists, const struct train_batch *in, int blocks)
{
    lists->all.n = lists->scored.n = 0;
    for (size_t i = 0; i < in->seqs * in->len; i++) {
        if (i % in->len == 0) {
            begin_sequence(&lists->all, in, i / in->len);
            begin_sequence(&lists->scored, in, i / in->len);
        }
        lists->token[i] = in->token[i];
        lists->slots[i] = (int32_t)i;
        lists->place[i] = -1;
        ask(&lists->all, in, i, blocks);
        if (in->weight[i] != 0) {
            lists->target[lists->scored.n] = in->target[i];
            lists->weight[lists->scored.n] = in->weight[i];
            lists->place[i] = (int32_t)lists->scored.n;
            ask(&lists->scored, in, i, blocks);
        }
    }
}

/* Lists the latents of the batch and, for every sequence, its query rows with its latents. */
static void list_latents(const struct backprop *backprop, struct lists *lists,
                         const struct train_batch *in)
{
    const size_t latents = backprop->c.latents;
    for (size_t i = 0; i < in->seqs * latents; i++) {
        lists->zpos[i] = (int32_t)(i % latents * (backprop->c.context / latents));
        lists->zslots[i] = (int32_t)i;
    }
    struct askers *const who[] = {&lists->all, &lists->scored};
    for (int k = 0; k < 2; k++)
        for (size_t s = 0; latents && s < in->seqs; s++)
            who[k]->cross[s] = (struct attn_seq){who[k]->seqs[s].row_begin, who[k]->seqs[s].rows,
                                                 (int32_t)(s * latents), (int32_t)latents};
}

/* Sends the batch to the back end, except its latents. */
static void send_lists(struct backprop *backprop, const struct train_batch *in)
{
    const struct ops *ops = backprop->b->ops;
    const size_t E = backprop->c.head_dim;
    const float scale = config_rope_scale(&backprop->c);
    list_rows(&backprop->host, in, backprop->c.attends == MASK_BLOCK_CAUSAL);
    list_latents(backprop, &backprop->host, in);
    backprop->at.all.n = backprop->host.all.n;
    backprop->at.scored.n = backprop->host.scored.n;
    ops->write(backprop->b, backprop->block, backprop->host_lists, backprop->list_bytes);
    const struct askers *const who[] = {&backprop->at.all, &backprop->at.scored};
    for (int i = 0; i < 2 && who[i]->n; i++)
        ops->rope_table(backprop->b, who[i]->table, who[i]->pos, backprop->inv_freq, scale,
                        who[i]->n, E);
    if (backprop->c.latents)
        ops->rope_table(backprop->b, backprop->ztable, backprop->at.zpos, backprop->inv_freq, scale,
                        backprop_latent_rows(backprop, in), E);
}

/* The query rows of this layer. */
static const struct askers *askers_of(const struct backprop *backprop, size_t layer)
{
    const struct lists *lists = &backprop->at;
    return layer + 1 < backprop->c.layers || lists->scored.n == lists->all.n ? &lists->all
                                                                             : &lists->scored;
}

/* ---- the pass ---- */

static void attend(struct backprop *backprop, struct layer_tape *tape, size_t layer,
                   const struct train_batch *in)
{
    const struct config *config = &backprop->c;
    const struct askers *who = askers_of(backprop, layer);
    const float *n1 = tape->n1, *stream = tape->x;
    size_t T = backprop->at.all.n;
    backprop_norm(backprop, tape->n1, tape->x, ROLE_ATTN_NORM, layer, T);
    if (who->n < T) {
        backprop_gather(backprop, who, backprop->asked, tape->n1, config->width);
        backprop_gather(backprop, who, tape->mid, tape->x, config->width);
        n1 = backprop->asked;
        stream = tape->mid;
    }
    backprop_heads(backprop, tape, layer, who, n1);
    struct attn attention = {.q = tape->q, .y = tape->y, .kv = {tape->k, tape->v, DTYPE_F32},
                             .pos = who->last, .seqs = who->seqs, .slots = backprop->at.slots,
                             .slot_pos = backprop->at.all.pos, .n_seqs = in->seqs, .T = who->n,
                             .max_rows = in->len, .max_slots = in->len, .heads = config->heads,
                             .kv_heads = config->kv_heads, .head_dim = config->head_dim,
                             .mask = config->attends == MASK_FULL ? MASK_FULL : MASK_CAUSAL,
                             .window = config->window, .half = backprop->dtype == DTYPE_BF16};
    backprop->b->ops->attention(backprop->b, &attention, backprop->scratch);
    struct gemm out = backprop_linear(backprop, tape->mid, tape->y, ROLE_O, layer, who->n, stream);
    backprop_multiply(backprop, &out, 1);
}

/* out = x + FFN(x) of this layer, x = tape->crossed. out NULL: leaves out the last product, which
 * the backward pass does not read. */
static void feed(struct backprop *backprop, struct layer_tape *tape, size_t layer, size_t T,
                 float *out)
{
    backprop_norm(backprop, tape->n2, tape->crossed, ROLE_FFN_NORM, layer, T);
    const struct gemm gated[] = {
        backprop_linear(backprop, tape->gate, tape->n2, ROLE_GATE, layer, T, NULL),
        backprop_linear(backprop, tape->up, tape->n2, ROLE_UP, layer, T, NULL)};
    backprop_multiply(backprop, gated, 2);
    backprop->b->ops->swiglu(backprop->b, tape->act, tape->gate, tape->up, T * backprop->c.ffn);
    if (!out)
        return;
    struct gemm down = backprop_linear(backprop, out, tape->act, ROLE_DOWN, layer, T,
                                       tape->crossed);
    backprop_multiply(backprop, &down, 1);
}

static void embed(struct backprop *backprop, const struct train_batch *in)
{
    backprop->b->ops->rmsnorm(backprop->b, backprop->tape[0].x,
                              backprop_values(backprop, ROLE_EMBED, 0), backprop->at.token, NULL,
                              in->seqs * in->len, backprop->c.width, 0);
}

static void run_layer(struct backprop *backprop, const struct train_batch *in, size_t layer,
                      float *out)
{
    /* If only the latents changed since the last pass, the first layer's results before its
     * attention to latents are still valid, unless a later layer has used the same tape. */
    const int there = !layer && in->again && backprop->how.every == backprop->c.layers;
    if (!there && config_recurs(&backprop->c))
        backprop_mix(backprop, &backprop->tape[layer], layer, askers_of(backprop, layer), in);
    else if (!there)
        attend(backprop, &backprop->tape[layer], layer, in);
    if (backprop->c.latents)
        backprop_cross(backprop, &backprop->tape[layer], layer, askers_of(backprop, layer), in);
    feed(backprop, &backprop->tape[layer], layer, askers_of(backprop, layer)->n, out);
}

static void run_layers(struct backprop *backprop, const struct train_batch *in)
{
    if (!in->again)
        embed(backprop, in);
    for (size_t layer = 0; layer < backprop->c.layers; layer++)
        run_layer(backprop, in, layer,
                  layer + 1 < backprop->c.layers ? backprop->tape[layer + 1].x : backprop->top);
}

/* Call before the backward pass of this layer. If the layer is the last of a part (`every` layers),
 * later parts have overwritten the tapes of the part: computes the part again from its kept input.
 * The last part is never overwritten. */
static void run_again(struct backprop *backprop, const struct train_batch *in, size_t layer)
{
    size_t every = backprop->how.every;
    if (layer + 1 == backprop->c.layers || (layer + 1) % every)
        return;
    for (size_t i = layer + 1 - every; i <= layer; i++)
        run_layer(backprop, in, i, i < layer ? backprop->tape[i + 1].x : NULL);
}

/* Sets backprop->row_loss and, unless only the loss is wanted, backprop->dx = the gradient of
 * backprop->top. Blocks of backprop->logit_rows rows run one after another: head, softmax, loss and
 * gradient of a block come before the next block overwrites the logits. */
static void head_loss(struct backprop *backprop)
{
    size_t scored = backprop->at.scored.n, D = backprop->c.width, V = backprop->c.vocab,
           most = backprop->logit_rows;
    for (size_t row = 0; row < scored; row += most) {
        size_t n = scored - row < most ? scored - row : most;
        const float *x = backprop->top + row * D;
        float *normed = backprop->final, *dh = backprop->dn, *dx = backprop->dx + row * D;
        backprop_norm(backprop, normed, x, ROLE_NORM, 0, n);
        const struct gemm head = backprop_linear(backprop, backprop->logits, normed, ROLE_HEAD, 0,
                                                 n, NULL);
        backprop_multiply(backprop, &head, 1);
        backprop->train->cross_entropy(backprop->b, backprop->logits, backprop->at.target + row,
                                       backprop->at.weight + row, n, V, backprop->row_loss + row);
        if (backprop->of == BACKPROP_LOSS)
            continue;
        const struct gemm back[] = {
            backprop_weights(backprop, backprop->logits, normed, ROLE_HEAD, 0, n),
            backprop_input(backprop, dh, backprop->logits, ROLE_HEAD, 0, n, NULL)};
        backprop_multiply(backprop, back, 2);
        backprop_clear(backprop, dx, n * D);
        backprop_norm_back(backprop, dx, dh, x, ROLE_NORM, 0, n);
    }
}

static void feed_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                      size_t T)
{
    const struct gemm down[] = {
        backprop_weights(backprop, backprop->dx, tape->act, ROLE_DOWN, layer, T),
        backprop_input(backprop, backprop->dup, backprop->dx, ROLE_DOWN, layer, T, NULL)};
    backprop_multiply(backprop, down, 2);
    float *dgate = tape->gate;
    backprop->train->swiglu_back(backprop->b, dgate, backprop->dup, backprop->dup, tape->gate,
                                 tape->up, T * backprop->c.ffn);
    const struct gemm gated[] = {
        backprop_weights(backprop, dgate, tape->n2, ROLE_GATE, layer, T),
        backprop_weights(backprop, backprop->dup, tape->n2, ROLE_UP, layer, T),
        backprop_input(backprop, backprop->dn, dgate, ROLE_GATE, layer, T, NULL),
        backprop_input(backprop, backprop->dn, backprop->dup, ROLE_UP, layer, T, backprop->dn)};
    backprop_multiply(backprop, gated, 4);
    backprop_norm_back(backprop, backprop->dx, backprop->dn, tape->crossed, ROLE_FFN_NORM, layer,
                       T);
}

static void attend_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                        const struct train_batch *in)
{
    const struct config *config = &backprop->c;
    const struct askers *who = askers_of(backprop, layer);
    const struct gemm out[] = {
        backprop_weights(backprop, backprop->dx, tape->y, ROLE_O, layer, who->n),
        backprop_input(backprop, backprop->dy, backprop->dx, ROLE_O, layer, who->n, NULL)};
    backprop_multiply(backprop, out, 2);
    struct attn_back back = {.q = tape->q, .k = tape->k, .v = tape->v, .dy = backprop->dy,
                             .dq = backprop->dq, .dk = backprop->dk, .dv = backprop->dv,
                             .seqs = who->seqs, .pos = who->last, .n_seqs = in->seqs,
                             .max_slots = in->len, .heads = config->heads,
                             .kv_heads = config->kv_heads, .head_dim = config->head_dim,
                             .causal = config->attends != MASK_FULL, .window = config->window,
                             .half = backprop->dtype == DTYPE_BF16};
    backprop->train->attention_back(backprop->b, &back, backprop->scratch);
    backprop_heads_back(backprop, tape, layer, who);
    backprop_norm_back(backprop, backprop->dx, backprop->dn, tape->x, ROLE_ATTN_NORM, layer,
                       backprop->at.all.n);
}

/* ---- a batch ---- */

/* The forward and backward pass of a struct batch_run. Calls only operations of the back end, so
 * ops.run may record it. */
static void run_both_ways(void *ctx)
{
    const struct batch_run *run = ctx;
    struct backprop *backprop = run->t;
    const struct train_batch *in = run->in;
    const int latents = backprop->of == BACKPROP_LATENTS;
    const int of_parameters = backprop->of == BACKPROP_PARAMETERS;
    if (!backprop->at.scored.n) { /* texts of one token have no target, so gradients are 0 */
        backprop_clear(backprop, backprop->dz, latent_bytes(backprop, in) / sizeof *backprop->dz);
        if (of_parameters)
            backprop_clear(backprop, backprop->parameters->g, backprop->parameters->n);
        return;
    }
    if (of_parameters)
        parameters_clear_gradients(backprop->parameters);
    run_layers(backprop, in);
    head_loss(backprop);
    for (size_t layer = backprop->c.layers; backprop->of != BACKPROP_LOSS && layer-- > 0;) {
        run_again(backprop, in, layer);
        feed_back(backprop, &backprop->tape[layer], layer, askers_of(backprop, layer)->n);
        if (backprop->c.latents)
            backprop_cross_back(backprop, &backprop->tape[layer], layer, askers_of(backprop, layer),
                                in);
        if ((layer || !latents) && config_recurs(&backprop->c))
            backprop_mix_back(backprop, &backprop->tape[layer], layer, askers_of(backprop, layer),
                              in);
        else if (layer || !latents)
            attend_back(backprop, &backprop->tape[layer], layer, in);
    }
    if (of_parameters)
        backprop->train->embed_back(backprop->b, backprop_sum(backprop, ROLE_EMBED, 0),
                                    backprop->dx, backprop->at.token, in->seqs * in->len,
                                    backprop->c.vocab, backprop->c.width);
}

/* Sends the batch to the back end. Returns the argument of run_both_ways(). */
static struct batch_run ask_of(struct backprop *backprop, const struct train_batch *in,
                               enum backprop_of of)
{
    assert(of != BACKPROP_PARAMETERS || !backprop->how.latents);
    backprop->of = of;
    if (!in->again)
        send_lists(backprop, in);
    if (backprop->c.latents)
        backprop->b->ops->write(backprop->b, backprop->z, in->z, latent_bytes(backprop, in));
    return (struct batch_run){backprop, in, {backprop->block, in->seqs, in->len,
                                             backprop->at.scored.n, of, (size_t)in->again}};
}

double backprop_loss(struct backprop *backprop, const struct train_batch *in, enum backprop_of of)
{
    struct batch_run run = ask_of(backprop, in, of);
    const size_t scored = backprop->host.scored.n,
                 dz = (size_t)((unsigned char *)backprop->dz - (unsigned char *)backprop->row_loss);
    const double *row = (const double *)(const void *)backprop->answers;
    const int wants = backprop->c.latents && of != BACKPROP_LOSS;
    double loss = 0;
    if (of == BACKPROP_LATENTS || scored == backprop->host.all.n)
        backprop->b->ops->run(backprop->b, &run.key, sizeof run.key, run_both_ways, &run);
    else
        run_both_ways(&run); /* not recorded: the next batch rarely scores as many rows */
    backprop->b->ops->read(backprop->b, backprop->answers, backprop->row_loss,
                           wants ? dz + latent_bytes(backprop, in) : scored * sizeof *row);
    memset(backprop->loss, 0, in->seqs * sizeof *backprop->loss);
    for (size_t i = 0; i < scored; i++) {
        backprop->loss[(size_t)backprop->host.scored.row[i] / in->len] += row[i];
        loss += row[i];
    }
    return loss;
}

/* Prepares two passes: of the first step of a fit (again 0) and of all later steps (again 1). */
void backprop_prepare(struct backprop *backprop, struct train_batch *in)
{
    for (in->again = 0; backprop->b->ops->prepare && in->again < 2; in->again++) {
        struct batch_run run = ask_of(backprop, in, BACKPROP_LATENTS);
        backprop->b->ops->prepare(backprop->b, &run.key, sizeof run.key, run_both_ways, &run);
    }
    in->again = 0;
}

const float *backprop_latents(const struct backprop *backprop)
{
    return (const float *)(const void *)(backprop->answers + ((unsigned char *)backprop->dz -
                                                              (unsigned char *)backprop->row_loss));
}

const double *backprop_losses(const struct backprop *backprop)
{
    return backprop->loss;
}
