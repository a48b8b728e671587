/* trainer.c - parameters and their gradients as one object; see trainer.h.
 *
 * The whole state of a training is in the parameters (values, moments, step), because struct
 * backprop has only the activations of one batch. So saving the parameters saves the training. */
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
    float *sum;             /* [n] with several parts: sum of the gradients of earlier parts, or the
                             * argument `work` of how.sum() */
    /* For a latent model. */
    struct posterior posterior;
    struct posterior_fit fit;
    float *weight;  /* [rows] */
    uint64_t *keys; /* [seqs] */
};

/* Most sequences of a batch of a latent model (documents_fill_whole). */
static size_t most_seqs(size_t rows)
{
    return rows / TRAINING_ROW_LEAST + 1;
}

/* Most rows of a part. */
static size_t part_rows(size_t rows, const struct trainer_how *how)
{
    size_t part = how->parts > 1 ? rows / how->parts + how->longest : rows;
    return part < rows ? part : rows;
}

struct trainer_need trainer_need(const struct config *config, struct backend *backend, size_t rows,
                                 const struct trainer_how *how, enum dtype quant)
{
    size_t part = part_rows(rows, how), seqs = most_seqs(part);
    size_t more = how->parts > 1 ? memory_rounded(parameters_bytes(config)) : 0;
    size_t seen = quant == QUANT_NONE ? 0 : memory_rounded(parameters_bytes(config));
    size_t latents = config->latents ? memory_rounded(posterior_bytes(config, backend, seqs)) : 0;
    return (struct trainer_need){
        memory_rounded(parameters_bytes_trained(config)) + seen + more,
        memory_rounded(backprop_bytes(config, backend, part, seqs, &how->back)) + latents};
}

struct trainer *trainer_make(const struct config *config, struct backend *backend, uint64_t seed,
                             size_t rows, enum dtype products, struct err *e)
{
    return trainer_make_as(config, backend, seed, rows,
                           &(struct trainer_how){.back = {.products = products}}, e);
}

int trainer_check(const struct config *config, struct err *e)
{
    const char *what = config->experts                         ? "experts"
                       : config->taps                          ? "no embedding of its own"
                       : config->rope_dims != config->head_dim ? "a rotation of a part of each head"
                       : config->rope_divisor[0] > 0
                           ? "a rotation that config.json cannot state (rope_freqs.weight)"
                       : config->two_ways
                           ? "two ways to write, which its authors train by two losses,"
                           : NULL;
    if (what)
        return err_set(e, EXIT_BAD_USAGE, "%s: a %s model with %s cannot be trained", config->name,
                       config->family->name, what);
    if (config_recurs(config) && config->kv_heads != config->heads)
        return err_set(e, EXIT_BAD_USAGE, "%s: mixer %s: expected as many key heads as heads "
                       "(%zu), got %zu", config->name, config_mixer_name(config->mixer),
                       config->heads, config->kv_heads);
    return 0;
}

/* -1: a device cannot train this network in this way. */
static int check_device(const struct config *config, const struct trainer_how *how, struct err *e)
{
    static_assert(ATTENTION_BACK_CUDA_MOST == 128, "as the message says");
    const char *what = config->latents ? "latent thoughts"
                       : how->sum      ? "several processes (--ranks)"
                       : config->head_dim > ATTENTION_BACK_CUDA_MOST
                           ? "heads of more than 128 values"
                           : NULL;
    return what ? err_set(e, EXIT_BAD_USAGE, "%s: a GPU cannot train with %s: use --device cpu",
                          config->name, what)
                : 0;
}

struct trainer *trainer_make_as(const struct config *config, struct backend *backend, uint64_t seed,
                                size_t rows, const struct trainer_how *how, struct err *e)
{
    if (trainer_check(config, e) || (*backend->name && check_device(config, how, e)))
        return NULL;
    struct trainer *trainer = mem_zero(1, sizeof *trainer);
    size_t part = part_rows(rows, how), seqs = most_seqs(part);
    trainer->how = *how;
    trainer->how.parts += !how->parts;
    trainer->parameters = parameters_make(config, backend, train_ops_of(backend->ops), seed);
    if (trainer->parameters && trainer->how.parts > 1)
        trainer->sum = backend->ops->alloc(backend, trainer->parameters->n * sizeof *trainer->sum,
                                           MEMORY_WEIGHTS);
    if (trainer->parameters && (trainer->sum || trainer->how.parts == 1))
        trainer->backprop = backprop_make_as(trainer->parameters, part, seqs, &how->back);
    trainer->fit = (struct posterior_fit){STEPS, POSTERIOR_RATE, seed};
    trainer->weight = mem_zero(rows, sizeof *trainer->weight);
    trainer->keys = mem_zero(seqs, sizeof *trainer->keys);
    if (trainer->backprop &&
        (!config->latents ||
         !posterior_make(&trainer->posterior, &trainer->parameters->c, backend, seqs)))
        return trainer;
    err_set(e, EXIT_INTERNAL, "%s: out of memory for training", config->name);
    trainer_free(trainer);
    return NULL;
}

void trainer_free(struct trainer *trainer)
{
    if (!trainer)
        return;
    backprop_free(trainer->backprop);
    if (trainer->sum)
        trainer->parameters->b->ops->free(trainer->parameters->b, trainer->sum);
    parameters_free(trainer->parameters);
    posterior_free(&trainer->posterior);
    free(trainer->weight);
    free(trainer->keys);
    free(trainer);
}

void trainer_fit(struct trainer *trainer, const struct posterior_fit *how)
{
    trainer->fit = *how;
}

static size_t count_scored(const struct train_batch *batch)
{
    size_t count = 0;
    for (size_t i = 0; i < batch->seqs * batch->len; i++)
        count += batch->weight[i] != 0;
    return count;
}

/* The fast loop and the slow step (trainer.h) of one part of a batch. first: number of its first
 * sequence in the batch. count: scored rows of the whole batch. Draws depend on the step, so a
 * resumed training draws the same numbers. A loss without gradients uses the same draws at every
 * step. */
static double latent_loss(struct trainer *trainer, const struct train_batch *batch, size_t first,
                          size_t count, enum backprop_of of)
{
    struct posterior *posterior = &trainer->posterior;
    struct train_batch in = *batch;
    size_t rows = in.seqs * in.len;
    double kl = 0;
    uint64_t step = of == BACKPROP_LOSS ? 0 : 1 + (uint64_t)trainer->parameters->step;
    assert(in.seqs <= posterior->texts);
    for (size_t text = 0; text < in.seqs; text++)
        trainer->keys[text] = step << 24 | (first + text);
    posterior_start(posterior, trainer->fit.seed, trainer->keys, in.seqs);
    posterior_run(posterior, trainer->backprop, &in, &trainer->fit, trainer->keys, 0, NULL);
    posterior_draw(posterior, trainer->fit.seed, trainer->keys, in.seqs, POSTERIOR_FRESH);
    for (size_t text = 0; text < in.seqs; text++)
        kl += posterior_kl(posterior, in.seqs, text);
    for (size_t i = 0; i < rows; i++)
        trainer->weight[i] = in.weight[i] / (float)count;
    in.weight = trainer->weight;
    in.z = posterior->z;
    return backprop_loss(trainer->backprop, &in, of) + kl / (double)count;
}

/* The loss of one part of a batch. Parts have equal numbers of sequences, or numbers that differ by
 * one. A part without sequences has loss 0. */
static double part_loss(struct trainer *trainer, const struct train_batch *batch, size_t part,
                        size_t count, enum backprop_of of)
{
    size_t parts = trainer->how.parts, first = batch->seqs * part / parts;
    struct train_batch in = *batch;
    in.seqs = batch->seqs * (part + 1) / parts - first;
    in.token += first * in.len;
    in.target += first * in.len;
    in.weight += first * in.len;
    in.last += in.last ? first * in.len : 0;
    const struct parameters *all = trainer->parameters;
    if (!in.seqs && of == BACKPROP_PARAMETERS)
        all->b->ops->clear(all->b, all->g, all->n * sizeof *all->g);
    if (!in.seqs)
        return 0;
    return trainer->parameters->c.latents ? latent_loss(trainer, &in, first, count, of)
                                          : backprop_loss(trainer->backprop, &in, of);
}

double trainer_loss(struct trainer *trainer, const struct train_batch *batch, int gradients)
{
    const enum backprop_of of = gradients ? BACKPROP_PARAMETERS : BACKPROP_LOSS;
    size_t parts = trainer->how.parts, count = count_scored(batch), n = trainer->parameters->n;
    struct backend *backend = trainer->parameters->b;
    float *grads = trainer->parameters->g;
    parameters_look(trainer->parameters);
    if (trainer->how.sum) {
        double loss = part_loss(trainer, batch, trainer->how.me, count, of);
        trainer->how.sum(trainer->how.ctx, &loss, grads, gradients ? n : 0, trainer->sum);
        return loss;
    }
    double loss = part_loss(trainer, batch, 0, count, of);
    for (size_t part = 1; part < parts; part++) {
        if (gradients)
            backend->ops->copy(backend, trainer->sum, grads, n * sizeof *grads);
        loss += part_loss(trainer, batch, part, count, of);
        if (gradients)
            train_ops_of(backend->ops)->add(backend, grads, trainer->sum, n);
    }
    return loss;
}

int trainer_quantize(struct trainer *trainer, enum dtype quant, struct err *e)
{
    if (*trainer->parameters->b->name)
        return err_set(e, EXIT_BAD_USAGE, "%s: a GPU cannot train with rounded weights (--qat): "
                       "use --device cpu", trainer->parameters->c.name);
    return parameters_quantize(trainer->parameters, quant, e);
}

double trainer_update(struct trainer *trainer, double rate, double decay, double clip)
{
    return parameters_update(trainer->parameters, rate, decay, clip);
}

void trainer_share(struct trainer *trainer, void (*share)(void *ctx, void *x, size_t bytes),
                   void *ctx)
{
    struct parameters *parameters = trainer->parameters;
    float *own[] = {parameters->w, parameters->m1, parameters->m2};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        share(ctx, own[i], parameters->n * sizeof *parameters->w);
    share(ctx, &parameters->step, sizeof parameters->step);
}

int64_t trainer_step(const struct trainer *trainer)
{
    return trainer->parameters->step;
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

static void take_values(struct parameters *parameters, const struct checkpoint *from,
                        enum role role, size_t layer, const struct new_rows *added)
{
    size_t rows, cols;
    float *to = parameters_values(parameters, role, layer),
          *x = parameters_on_host(parameters, role, layer);
    role_shape(&parameters->c, role, &rows, &cols);
    checkpoint_floats(from, role, layer, x);
    if (role == ROLE_EMBED || role == ROLE_HEAD)
        put_mean(x, rows, cols, added->first, added->end);
    if (x != to)
        parameters->b->ops->write(parameters->b, to, x, rows * cols * sizeof *x);
}

int trainer_take(struct trainer *trainer, const struct checkpoint *from,
                 const struct new_rows *added, struct err *e)
{
    const struct config *own = &trainer->parameters->c, *other = &from->config;
    const size_t vocab = added->end > other->vocab ? added->end : other->vocab;
    if (own->width != other->width || own->layers != other->layers || own->heads != other->heads ||
        own->kv_heads != other->kv_heads || own->ffn != other->ffn || own->vocab != vocab ||
        own->head_dim != other->head_dim || own->tied != other->tied ||
        own->qkv_bias != other->qkv_bias || own->qk_norm != other->qk_norm ||
        memcmp(own->unrotated, other->unrotated, own->layers) ||
        (config_recurs(other) && (other->mixer != own->mixer || other->rank != own->rank)) ||
        (other->latents && (other->latents != own->latents || other->context != own->context)))
        return err_set(e, EXIT_BAD_DATA, "--init %s: expected the shape that is trained: width "
                       "%zu, layers %zu, heads %zu/%zu, ffn %zu, vocabulary %zu", other->name,
                       own->width, own->layers, own->heads, own->kv_heads, own->ffn, own->vocab);
    for (int k = 0; k < ROLE_COUNT; k++)
        for (size_t layer = 0;
             layer < role_layers(own, (enum role)k) && role_layers(other, (enum role)k); layer++)
            take_values(trainer->parameters, from, (enum role)k, layer, added);
    return 0;
}

float *trainer_values(struct trainer *trainer, enum role role, size_t layer)
{
    return parameters_on_host(trainer->parameters, role, layer);
}

void trainer_hash(struct trainer *trainer, char hex[65])
{
    const struct config *config = &trainer->parameters->c;
    struct hash *hash = hash_new();
    for (size_t layer = 0; layer < config->layers; layer++)
        for (int k = 0; k < ROLE_COUNT; k++) {
            size_t rows, cols;
            enum role role = (enum role)k;
            role_shape(config, role, &rows, &cols);
            if (role_layers(config, role))
                hash_add(hash, trainer_values(trainer, role, layer), rows * cols * sizeof(float));
        }
    hash_hex(hash, hex);
    hash_free(hash);
}

int trainer_save(const struct trainer *trainer, const char *path, const json_t *note, struct err *e)
{
    return parameters_save(trainer->parameters, path, note, e);
}

int trainer_restore(struct trainer *trainer, const char *path, json_t **note, struct err *e)
{
    return parameters_restore(trainer->parameters, path, note, e);
}
