/* trainer.c - parameters and their gradients as one object; see trainer.h.
 *
 * The whole state of a training is in the parameters (values, moments, step); backprop.c holds only
 * one batch. So saving the parameters saves the training. */
#include "lib/train/trainer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/train/documents.h"

enum { STEPS = 16 };

struct trainer {
    struct parameters *parameters;
    struct backprop *backprop;
    struct trainer_how how; /* parts: at least 1 */
    float *sum;             /* [n] with parts: sum of the gradients of earlier parts */
    /* For a latent model. */
    struct posterior posterior;
    struct posterior_fit fit;
    float *weight;  /* [rows] */
    uint64_t *keys; /* [seqs] */
};

static size_t most_seqs(size_t rows) /* of a batch of a latent model */
{
    return rows / TRAINING_ROW_LEAST + 1;
}

/* Most rows of a part. */
static size_t part_rows(size_t rows, const struct trainer_how *how)
{
    size_t part = how->parts > 1 ? rows / how->parts + how->longest : rows;
    return part < rows ? part : rows;
}

struct trainer_need trainer_need(const struct config *c, struct backend *b, size_t rows,
                                 const struct trainer_how *how, enum dtype quant)
{
    size_t part = part_rows(rows, how), seqs = most_seqs(part);
    size_t more = how->parts > 1 ? memory_rounded(parameters_bytes(c)) : 0;
    size_t seen = quant == QUANT_NONE ? 0 : memory_rounded(parameters_bytes(c));
    size_t latents = c->latents ? memory_rounded(posterior_bytes(c, b, seqs)) : 0;
    return (struct trainer_need){memory_rounded(parameters_bytes_trained(c)) + seen + more,
                                 memory_rounded(backprop_bytes(c, b, part, seqs, &how->back)) +
                                     latents};
}

struct trainer *trainer_make(const struct config *c, struct backend *b, uint64_t seed, size_t rows,
                             enum dtype products, struct err *e)
{
    return trainer_make_as(c, b, seed, rows,
                           &(struct trainer_how){.back = {.products = products}}, e);
}

int trainer_check(const struct config *c, struct err *e)
{
    const char *what = c->experts                    ? "experts"
                       : c->taps                     ? "no embedding of its own"
                       : c->rope_dims != c->head_dim ? "a rotation of a part of each head"
                       : c->two_ways ? "two ways to write, which its authors train by two losses,"
                                     : NULL;
    if (what)
        return err_set(e, EXIT_BAD_USAGE, "%s: a %s model with %s cannot be trained", c->name,
                       c->family->name, what);
    if (config_recurs(c) && c->kv_heads != c->heads)
        return err_set(e, EXIT_BAD_USAGE, "%s: mixer %s: expected as many key heads as heads "
                       "(%zu), got %zu", c->name, config_mixer_name(c->mixer), c->heads,
                       c->kv_heads);
    return 0;
}

/* -1: a device cannot train this network in this way. */
static int check_device(const struct config *c, const struct trainer_how *how, struct err *e)
{
    static_assert(ATTENTION_BACK_CUDA_MOST == 128, "as the message says");
    const char *what = c->latents                                ? "latent thoughts"
                       : how->sum                                ? "several processes (--ranks)"
                       : c->head_dim > ATTENTION_BACK_CUDA_MOST  ? "heads of more than 128 values"
                                                                 : NULL;
    return what ? err_set(e, EXIT_BAD_USAGE, "%s: a GPU cannot train with %s: use --device cpu",
                          c->name, what)
                : 0;
}

struct trainer *trainer_make_as(const struct config *c, struct backend *b, uint64_t seed,
                                size_t rows, const struct trainer_how *how, struct err *e)
{
    if (trainer_check(c, e) || (*b->name && check_device(c, how, e)))
        return NULL;
    struct trainer *t = mem_zero(1, sizeof *t);
    size_t part = part_rows(rows, how), seqs = most_seqs(part);
    t->how = *how;
    t->how.parts += !how->parts;
    t->parameters = parameters_make(c, b, train_ops_of(b->ops), seed);
    if (t->parameters && t->how.parts > 1)
        t->sum = b->ops->alloc(b, t->parameters->n * sizeof *t->sum, MEMORY_WEIGHTS);
    if (t->parameters && (t->sum || t->how.parts == 1))
        t->backprop = backprop_make_as(t->parameters, part, seqs, &how->back);
    t->fit = (struct posterior_fit){STEPS, POSTERIOR_RATE, seed};
    t->weight = mem_zero(rows, sizeof *t->weight);
    t->keys = mem_zero(seqs, sizeof *t->keys);
    if (t->backprop && (!c->latents || !posterior_make(&t->posterior, &t->parameters->c, b, seqs)))
        return t;
    err_set(e, EXIT_INTERNAL, "%s: out of memory for training", c->name);
    trainer_free(t);
    return NULL;
}

void trainer_free(struct trainer *t)
{
    if (!t)
        return;
    backprop_free(t->backprop);
    if (t->sum)
        t->parameters->b->ops->free(t->parameters->b, t->sum);
    parameters_free(t->parameters);
    posterior_free(&t->posterior);
    free(t->weight);
    free(t->keys);
    free(t);
}

void trainer_fit(struct trainer *t, const struct posterior_fit *how)
{
    t->fit = *how;
}

static size_t count_scored(const struct train_batch *b)
{
    size_t count = 0;
    for (size_t i = 0; i < b->seqs * b->len; i++)
        count += b->weight[i] != 0;
    return count;
}

/* The fast loop and the slow step, for the sequences from `first` on, of a batch that scores
 * `count` rows. Draws depend on the step, so a resumed training draws the same numbers. A loss
 * without gradients uses the same draws at every step. */
static double latent_loss(struct trainer *t, const struct train_batch *batch, size_t first,
                          size_t count, enum backprop_of of)
{
    struct posterior *p = &t->posterior;
    struct train_batch in = *batch;
    size_t rows = in.seqs * in.len;
    double kl = 0;
    uint64_t step = of == BACKPROP_LOSS ? 0 : 1 + (uint64_t)t->parameters->step;
    assert(in.seqs <= p->texts);
    for (size_t s = 0; s < in.seqs; s++)
        t->keys[s] = step << 24 | (first + s);
    posterior_start(p, t->fit.seed, t->keys, in.seqs);
    posterior_run(p, t->backprop, &in, &t->fit, t->keys, 0, NULL);
    posterior_draw(p, t->fit.seed, t->keys, in.seqs, POSTERIOR_FRESH);
    for (size_t s = 0; s < in.seqs; s++)
        kl += posterior_kl(p, in.seqs, s);
    for (size_t i = 0; i < rows; i++)
        t->weight[i] = in.weight[i] / (float)count;
    in.weight = t->weight;
    in.z = p->z;
    return backprop_loss(t->backprop, &in, of) + kl / (double)count;
}

/* Part p of a batch; the numbers of sequences of two parts differ by at most 1. */
static double part_loss(struct trainer *t, const struct train_batch *batch, size_t p, size_t count,
                        enum backprop_of of)
{
    size_t parts = t->how.parts, first = batch->seqs * p / parts;
    struct train_batch in = *batch;
    in.seqs = batch->seqs * (p + 1) / parts - first;
    in.token += first * in.len;
    in.target += first * in.len;
    in.weight += first * in.len;
    in.last += in.last ? first * in.len : 0;
    const struct parameters *all = t->parameters;
    if (!in.seqs && of == BACKPROP_PARAMETERS)
        all->b->ops->clear(all->b, all->g, all->n * sizeof *all->g);
    if (!in.seqs)
        return 0;
    return t->parameters->c.latents ? latent_loss(t, &in, first, count, of)
                                    : backprop_loss(t->backprop, &in, of);
}

double trainer_loss(struct trainer *t, const struct train_batch *batch, int gradients)
{
    const enum backprop_of of = gradients ? BACKPROP_PARAMETERS : BACKPROP_LOSS;
    size_t parts = t->how.parts, count = count_scored(batch), n = t->parameters->n;
    struct backend *b = t->parameters->b;
    float *g = t->parameters->g;
    parameters_look(t->parameters);
    if (t->how.sum) {
        double loss = part_loss(t, batch, t->how.me, count, of);
        t->how.sum(t->how.ctx, &loss, g, gradients ? n : 0, t->sum);
        return loss;
    }
    double loss = part_loss(t, batch, 0, count, of);
    for (size_t p = 1; p < parts; p++) {
        if (gradients)
            b->ops->copy(b, t->sum, g, n * sizeof *g);
        loss += part_loss(t, batch, p, count, of);
        if (gradients)
            train_ops_of(b->ops)->add(b, g, t->sum, n);
    }
    return loss;
}

int trainer_quantize(struct trainer *t, enum dtype quant, struct err *e)
{
    if (*t->parameters->b->name)
        return err_set(e, EXIT_BAD_USAGE, "%s: a GPU cannot train with rounded weights (--qat): "
                       "use --device cpu", t->parameters->c.name);
    return parameters_quantize(t->parameters, quant, e);
}

double trainer_update(struct trainer *t, double rate, double decay, double clip)
{
    return parameters_update(t->parameters, rate, decay, clip);
}

void trainer_share(struct trainer *t, void (*share)(void *ctx, void *x, size_t bytes), void *ctx)
{
    struct parameters *p = t->parameters;
    float *own[] = {p->w, p->m1, p->m2};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        share(ctx, own[i], p->n * sizeof *p->w);
    share(ctx, &p->step, sizeof p->step);
}

int64_t trainer_step(const struct trainer *t)
{
    return t->parameters->step;
}

/* Rows first..end of x become the mean of the other rows. */
static void put_mean(float *x, size_t rows, size_t cols, size_t first, size_t end)
{
    const size_t others = rows - (end - first);
    for (size_t j = 0; first < end && others && j < cols; j++) {
        double sum = 0;
        for (size_t i = 0; i < rows; i++)
            sum += i < first || i >= end ? x[i * cols + j] : 0;
        for (size_t i = first; i < end; i++)
            x[i * cols + j] = (float)(sum / (double)others);
    }
}

static void take_values(struct parameters *p, const struct checkpoint *from, enum role r, size_t l,
                        const struct new_rows *added)
{
    size_t rows, cols;
    float *to = parameters_values(p, r, l), *x = parameters_on_host(p, r, l);
    role_shape(&p->c, r, &rows, &cols);
    checkpoint_floats(from, r, l, x);
    if (r == ROLE_EMBED || r == ROLE_HEAD)
        put_mean(x, rows, cols, added->first, added->end);
    if (x != to)
        p->b->ops->write(p->b, to, x, rows * cols * sizeof *x);
}

int trainer_take(struct trainer *t, const struct checkpoint *from, const struct new_rows *added,
                 struct err *e)
{
    const struct config *c = &t->parameters->c, *d = &from->config;
    const size_t vocab = added->end > d->vocab ? added->end : d->vocab;
    if (c->width != d->width || c->layers != d->layers || c->heads != d->heads ||
        c->kv_heads != d->kv_heads || c->ffn != d->ffn || c->vocab != vocab ||
        c->head_dim != d->head_dim || c->tied != d->tied || c->qkv_bias != d->qkv_bias ||
        c->qk_norm != d->qk_norm || memcmp(c->unrotated, d->unrotated, c->layers) ||
        (config_recurs(d) && (d->mixer != c->mixer || d->rank != c->rank)) ||
        (d->latents && (d->latents != c->latents || d->context != c->context)))
        return err_set(e, EXIT_BAD_DATA, "--init %s: expected the shape that is trained: width "
                       "%zu, layers %zu, heads %zu/%zu, ffn %zu, vocabulary %zu", d->name,
                       c->width, c->layers, c->heads, c->kv_heads, c->ffn, c->vocab);
    for (int k = 0; k < ROLE_COUNT; k++)
        for (size_t l = 0; l < role_layers(c, (enum role)k) && role_layers(d, (enum role)k); l++)
            take_values(t->parameters, from, (enum role)k, l, added);
    return 0;
}

float *trainer_values(struct trainer *t, enum role r, size_t layer)
{
    return parameters_on_host(t->parameters, r, layer);
}

void trainer_hash(struct trainer *t, char hex[65])
{
    const struct config *c = &t->parameters->c;
    struct hash *h = hash_new();
    for (size_t l = 0; l < c->layers; l++)
        for (int k = 0; k < ROLE_COUNT; k++) {
            size_t rows, cols;
            enum role r = (enum role)k;
            role_shape(c, r, &rows, &cols);
            if (role_layers(c, r))
                hash_add(h, trainer_values(t, r, l), rows * cols * sizeof(float));
        }
    hash_hex(h, hex);
    hash_free(h);
}

int trainer_save(const struct trainer *t, const char *path, const json_t *note, struct err *e)
{
    return parameters_save(t->parameters, path, note, e);
}

int trainer_restore(struct trainer *t, const char *path, json_t **note, struct err *e)
{
    return parameters_restore(t->parameters, path, note, e);
}
