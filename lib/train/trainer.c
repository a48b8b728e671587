/* trainer.c - parameters and their way back, as one thing; see trainer.h.
 *
 * What a trainer knows of itself lies in parameters.c (values, moments, step); backprop.c only has
 * room for one batch. So saving the parameters saves the training.
 */
#include "lib/train/trainer.h"

#include <stdlib.h>

#include "lib/base/mem.h"

struct trainer {
    struct parameters *parameters;
    struct backprop *backprop;
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
    struct trainer *t = mem_zero(1, sizeof *t);
    t->parameters = parameters_make(c, b, ops, seed);
    t->backprop = backprop_make(t->parameters, rows, products);
    if (t->backprop)
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
    free(t);
}

double trainer_loss(struct trainer *t, const struct train_batch *batch, int gradients)
{
    return backprop_loss(t->backprop, batch, gradients);
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
        c->head_dim != d->head_dim || c->tied != d->tied || d->qkv_bias || d->qk_norm)
        return err_set(e, EXIT_BAD_DATA, "--init %s: expected the shape that is trained: width "
                       "%zu, layers %zu, heads %zu/%zu, ffn %zu, vocabulary %zu", d->name,
                       c->width, c->layers, c->heads, c->kv_heads, c->ffn, c->vocab);
    for (int k = 0; k < ROLE_COUNT; k++)
        for (size_t l = 0; l < role_layers(c, (enum role)k); l++)
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
