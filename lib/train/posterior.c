/* posterior.c - fits the latents of texts; see posterior.h. Arrays are [L, texts, n, D], so the
 * values of one text are L pieces of n D values. piece_at() finds a piece. */
#include "lib/train/posterior.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/network/latent.h"

enum { ARRAYS = 10, ALIGN = 64 };

static size_t values_of(const struct config *config, size_t texts)
{
    return (texts * latent_values(config) + ALIGN - 1) / ALIGN * ALIGN;
}

static int is_device(const struct backend *backend)
{
    return *backend->name != 0;
}

size_t posterior_bytes(const struct config *config, const struct backend *backend, size_t texts)
{
    return is_device(backend) ? 0 : ARRAYS * values_of(config, texts) * sizeof(float);
}

int posterior_make(struct posterior *posterior, const struct config *config,
                   struct backend *backend, size_t texts)
{
    *posterior = (struct posterior){.c = config, .b = backend, .texts = texts};
    if (is_device(backend))
        posterior->own = mem_zero(ARRAYS * values_of(config, texts), sizeof(float));
    else
        posterior->block = backend->ops->alloc(backend, posterior_bytes(config, backend, texts),
                                               MEMORY_ACTIVATIONS);
    float *at = posterior->own ? posterior->own : posterior->block;
    if (!at)
        return -1;
    float **all[ARRAYS] = {&posterior->mean,    &posterior->spread,    &posterior->eps,
                           &posterior->z,         &posterior->step[0], &posterior->step[1],
                           &posterior->moment[0], &posterior->moment[1], &posterior->moment[2],
                           &posterior->moment[3]};
    for (size_t i = 0; i < ARRAYS; i++)
        *all[i] = at + i * values_of(config, texts);
    return 0;
}

void posterior_free(struct posterior *posterior)
{
    if (posterior->b)
        posterior->b->ops->free(posterior->b, posterior->block);
    free(posterior->own);
    *posterior = (struct posterior){0};
}

/* ---- pieces ---- */

static size_t piece(const struct config *config)
{
    return config->latents * config->width;
}

/* Index of the first value of a text in this layer. */
static size_t piece_at(const struct config *config, size_t texts, size_t layer, size_t text)
{
    return (layer * texts + text) * piece(config);
}

/* out of one text = normal random numbers, a function of (seed, key, draw). */
static void draw_text(const struct posterior *posterior, float *out, uint64_t seed, uint64_t key,
                      uint64_t draw, size_t texts, size_t text)
{
    struct rng rng = {.seed = rng_at(seed, key, draw)};
    for (size_t layer = 0; layer < posterior->c->layers; layer++) {
        float *x = out + piece_at(posterior->c, texts, layer, text);
        for (size_t i = 0; i < piece(posterior->c); i++)
            x[i] = (float)rng_normal(&rng);
    }
}

void posterior_start(struct posterior *posterior, uint64_t seed, const uint64_t *keys, size_t texts)
{
    const uint64_t first = rng_derive(seed, "start");
    size_t n = texts * latent_values(posterior->c);
    for (size_t text = 0; text < texts; text++)
        draw_text(posterior, posterior->mean, first, keys[text], 0, texts, text);
    for (size_t i = 0; i < n; i++)
        posterior->mean[i] *= 0.01f;
    memset(posterior->spread, 0, n * sizeof *posterior->spread);
}

void posterior_draw(struct posterior *posterior, uint64_t seed, const uint64_t *keys, size_t texts,
                    uint64_t draw)
{
    for (size_t text = 0; text < texts; text++)
        draw_text(posterior, posterior->eps, seed, keys[text], draw, texts, text);
    for (size_t i = 0; i < texts * latent_values(posterior->c); i++)
        posterior->z[i] = posterior->mean[i] +
                          expf(0.5f * posterior->spread[i]) * posterior->eps[i];
}

/* ---- the fit ---- */

void posterior_step(struct posterior *posterior, struct backprop *backprop, struct train_batch *in,
                    double rate, int64_t step)
{
    size_t n = in->seqs * latent_values(posterior->c);
    in->z = posterior->z;
    backprop_loss(backprop, in, BACKPROP_LATENTS);
    const float *grad = backprop_latents(backprop);
    for (size_t i = 0; i < n; i++) {
        float variance = expf(posterior->spread[i]);
        posterior->step[0][i] = grad[i] + posterior->mean[i];
        posterior->step[1][i] = 0.5f *
                                (grad[i] * posterior->eps[i] * sqrtf(variance) + variance - 1);
    }
    const struct adamw how = {.rate = rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8,
                              .grad_scale = 1, .step = step};
    const struct train_ops *host = train_ops_of(is_device(posterior->b) ? ops_cpu(NULL)
                                                                        : posterior->b->ops);
    host->adamw(posterior->b, posterior->mean, posterior->moment[0], posterior->moment[1],
                posterior->step[0], n, &how);
    host->adamw(posterior->b, posterior->spread, posterior->moment[2], posterior->moment[3],
                posterior->step[1], n, &how);
}

/* The learning rate of step i of the fit: a cosine from fit->rate to a tenth of it. */
static double rate_at(const struct posterior_fit *fit, size_t i)
{
    double done = fit->steps > 1 ? (double)i / (double)(fit->steps - 1) : 0;
    return fit->rate * (0.1 + 0.9 * 0.5 * (1 + cos(3.141592653589793 * done)));
}

void posterior_run(struct posterior *posterior, struct backprop *backprop, struct train_batch *in,
                   const struct posterior_fit *fit, const uint64_t *keys, uint64_t round,
                   double *bound)
{
    size_t bytes = in->seqs * latent_values(posterior->c) * sizeof(float);
    for (int i = 0; i < 4; i++)
        memset(posterior->moment[i], 0, bytes);
    in->again = 0;
    for (size_t i = 0; i < fit->steps; i++) {
        for (size_t text = 0; bound && i + 1 == fit->steps && text < in->seqs; text++)
            bound[text] = posterior_kl(posterior, in->seqs, text);
        posterior_draw(posterior, fit->seed, keys, in->seqs, round << 32 | i);
        posterior_step(posterior, backprop, in, rate_at(fit, i), (int64_t)i + 1);
        in->again = 1;
    }
    in->again = 0;
    for (size_t text = 0; bound && fit->steps && text < in->seqs; text++)
        bound[text] += backprop_losses(backprop)[text];
}

/* ---- bounds ---- */

double posterior_kl(const struct posterior *posterior, size_t texts, size_t text)
{
    double sum = 0;
    for (size_t layer = 0; layer < posterior->c->layers; layer++) {
        size_t at = piece_at(posterior->c, texts, layer, text);
        for (size_t i = at; i < at + piece(posterior->c); i++)
            sum += 0.5 * ((double)posterior->mean[i] * posterior->mean[i] +
                          exp(posterior->spread[i]) - 1 - posterior->spread[i]);
    }
    return sum;
}

double posterior_log_q(const struct posterior *posterior, size_t texts, size_t text)
{
    static const double pi = 3.14159265358979323846;
    double sum = 0;
    for (size_t layer = 0; layer < posterior->c->layers; layer++) {
        size_t at = piece_at(posterior->c, texts, layer, text);
        for (size_t i = at; i < at + piece(posterior->c); i++)
            sum -= 0.5 * ((double)posterior->eps[i] * posterior->eps[i] + posterior->spread[i] +
                          log(2 * pi));
    }
    return sum;
}

/* log p(z) - log q(z) of the last draw. */
static double weigh(const struct posterior *posterior, size_t texts, size_t text)
{
    double sum = 0;
    for (size_t layer = 0; layer < posterior->c->layers; layer++) {
        size_t at = piece_at(posterior->c, texts, layer, text);
        for (size_t i = at; i < at + piece(posterior->c); i++)
            sum += 0.5 * ((double)posterior->eps[i] * posterior->eps[i] + posterior->spread[i] -
                          (double)posterior->z[i] * posterior->z[i]);
    }
    return sum;
}

/* Mean and standard error of x[0..n-1]. */
static struct posterior_bound mean_of(const double *x, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return (struct posterior_bound){
        mean, n > 1 ? sqrt(squares / (double)(n - 1) / (double)n) : (double)NAN};
}

/* -log of the mean of exp(x[0..n-1]); x is overwritten. The standard error is that of the mean,
 * divided by the mean (first order). */
static struct posterior_bound log_mean_of(double *x, size_t n)
{
    double most = -INFINITY;
    for (size_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (size_t i = 0; i < n; i++)
        x[i] = exp(x[i] - most);
    struct posterior_bound bound = mean_of(x, n);
    return (struct posterior_bound){-(most + log(bound.nats)), bound.se / bound.nats};
}

struct posterior_bound posterior_score(struct posterior *posterior, struct backprop *backprop,
                                       struct train_batch *in, size_t samples, int iwae,
                                       uint64_t seed, uint64_t key, double *work)
{
    double kl = posterior_kl(posterior, 1, 0);
    in->z = posterior->z;
    in->again = 0;
    for (size_t i = 0; i < samples; i++) {
        posterior_draw(posterior, seed, &key, 1, POSTERIOR_FRESH + i);
        double nats = backprop_loss(backprop, in, BACKPROP_LOSS);
        work[i] = iwae ? weigh(posterior, 1, 0) - nats : nats + kl;
        in->again = 1;
    }
    in->again = 0;
    return iwae ? log_mean_of(work, samples) : mean_of(work, samples);
}
