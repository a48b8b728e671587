/* trainer.c - parameters and their way back, as one thing; see trainer.h.
 *
 * What a trainer knows of itself lies in parameters.c (values, moments, step); backprop.c only has
 * room for one batch. So saving the parameters saves the training.
 */
#include "lib/train/trainer.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/train/training_batch.h"

enum { STEPS = 16 };

struct trainer {
    struct parameters *parameters;
    struct backprop *backprop;
    /* Of a latent model. */
    struct posterior posterior;
    struct posterior_fit fit;
    float *weight;  /* [rows] */
    uint64_t *keys; /* [seqs] */
};

struct trainer *trainer_make(const struct config *c, struct backend *b, uint64_t seed, size_t rows,
                             enum dtype products, struct err *e)
{
    const struct train_ops *ops = b->ops->train;
    if (!ops) {
        err_set(e, EXIT_NO_DEVICE, "the '%s' back end cannot train: use --device cpu",
                b->ops->name);
        return NULL;
    }
    if (c->qkv_bias || c->qk_norm || c->rope_dims != c->head_dim) {
        err_set(e, EXIT_BAD_USAGE, "%s: a block with biases, norms of heads or partial rotation "
                "cannot be trained", c->name);
        return NULL;
    }
    if (config_recurs(c) && c->kv_heads != c->heads) {
        err_set(e, EXIT_BAD_USAGE, "%s: mixer %s: expected as many key heads as heads (%zu), got "
                "%zu", c->name, config_mixer_name(c->mixer), c->heads, c->kv_heads);
        return NULL;
    }
    struct trainer *t = mem_zero(1, sizeof *t);
    size_t seqs = rows / TRAINING_ROW_LEAST + 1; /* that it can have latents for */
    t->parameters = parameters_make(c, b, ops, seed);
    t->backprop = backprop_make(t->parameters, rows, seqs, products);
    t->fit = (struct posterior_fit){STEPS, POSTERIOR_RATE, seed};
    t->weight = mem_zero(rows, sizeof *t->weight);
    t->keys = mem_zero(seqs, sizeof *t->keys);
    if (t->backprop && (!c->latents || !posterior_make(&t->posterior, &t->parameters->c, b, seqs)))
        return t;
    err_set(e, EXIT_INTERNAL, "%s: out of memory for training it", c->name);
    trainer_free(t);
    return NULL;
}

void trainer_free(struct trainer *t)
{
    if (!t)
        return;
    backprop_free(t->backprop);
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

/* Fast loop and slow step. What is drawn is the step's own: a training that goes on draws what it
 * would have drawn; a loss without gradients draws the same at every step. */
static double latent_loss(struct trainer *t, const struct train_batch *batch, enum backprop_of of)
{
    struct posterior *p = &t->posterior;
    struct train_batch in = *batch;
    size_t rows = in.seqs * in.len, count = 0;
    double kl = 0;
    uint64_t step = of == BACKPROP_LOSS ? 0 : 1 + (uint64_t)t->parameters->step;
    assert(in.seqs <= p->texts);
    for (size_t s = 0; s < in.seqs; s++)
        t->keys[s] = step << 24 | s;
    posterior_start(p, t->fit.seed, t->keys, in.seqs);
    posterior_run(p, t->backprop, &in, &t->fit, t->keys, 0, NULL);
    posterior_draw(p, t->fit.seed, t->keys, in.seqs, POSTERIOR_FRESH);
    for (size_t s = 0; s < in.seqs; s++)
        kl += posterior_kl(p, in.seqs, s);
    for (size_t i = 0; i < rows; i++)
        count += in.weight[i] != 0;
    for (size_t i = 0; i < rows; i++)
        t->weight[i] = in.weight[i] / (float)count;
    in.weight = t->weight;
    in.z = p->z;
    return backprop_loss(t->backprop, &in, of) + kl / (double)count;
}

double trainer_loss(struct trainer *t, const struct train_batch *batch, int gradients)
{
    const enum backprop_of of = gradients ? BACKPROP_PARAMETERS : BACKPROP_LOSS;
    return t->parameters->c.latents ? latent_loss(t, batch, of)
                                    : backprop_loss(t->backprop, batch, of);
}

double trainer_update(struct trainer *t, double rate, double decay, double clip)
{
    return parameters_update(t->parameters, rate, decay, clip);
}

int64_t trainer_step(const struct trainer *t)
{
    return t->parameters->step;
}

int trainer_take(struct trainer *t, const struct checkpoint *from, struct err *e)
{
    const struct config *c = &t->parameters->c, *d = &from->config;
    if (c->width != d->width || c->layers != d->layers || c->heads != d->heads ||
        c->kv_heads != d->kv_heads || c->ffn != d->ffn || c->vocab != d->vocab ||
        c->head_dim != d->head_dim || c->tied != d->tied || d->qkv_bias || d->qk_norm ||
        (config_recurs(d) && (d->mixer != c->mixer || d->rank != c->rank)) ||
        (d->latents && (d->latents != c->latents || d->context != c->context)))
        return err_set(e, EXIT_BAD_DATA, "--init %s: expected the shape that is trained: width "
                       "%zu, layers %zu, heads %zu/%zu, ffn %zu, vocabulary %zu", d->name,
                       c->width, c->layers, c->heads, c->kv_heads, c->ffn, c->vocab);
    for (int k = 0; k < ROLE_COUNT; k++)
        for (size_t l = 0; l < role_layers(c, (enum role)k) && role_layers(d, (enum role)k); l++)
            checkpoint_floats(from, (enum role)k, l, trainer_values(t, (enum role)k, l));
    return 0;
}

float *trainer_values(struct trainer *t, enum role r, size_t layer)
{
    return parameters_values(t->parameters, r, layer);
}

int trainer_save(const struct trainer *t, const char *path, const json_t *note, struct err *e)
{
    return parameters_save(t->parameters, path, note, e);
}

int trainer_restore(struct trainer *t, const char *path, json_t **note, struct err *e)
{
    return parameters_restore(t->parameters, path, note, e);
}
