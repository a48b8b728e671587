/* posterior.c - see posterior.h. Arrays are [L, texts, n, D], so one text has L pieces of n D
 * values; loops over them use piece_at(). */
#include "lib/train/posterior.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/network/latent.h"

enum { ARRAYS = 10, ALIGN = 64 };

static size_t values_of(const struct config *c, size_t texts)
{
    return (texts * latent_values(c) + ALIGN - 1) / ALIGN * ALIGN;
}

static int is_device(const struct backend *b)
{
    return *b->name != 0;
}

size_t posterior_bytes(const struct config *c, const struct backend *b, size_t texts)
{
    return is_device(b) ? 0 : ARRAYS * values_of(c, texts) * sizeof(float);
}

int posterior_make(struct posterior *p, const struct config *c, struct backend *b, size_t texts)
{
    *p = (struct posterior){.c = c, .b = b, .texts = texts};
    if (is_device(b))
        p->own = mem_zero(ARRAYS * values_of(c, texts), sizeof(float));
    else
        p->block = b->ops->alloc(b, posterior_bytes(c, b, texts), MEMORY_ACTIVATIONS);
    float *at = p->own ? p->own : p->block;
    if (!at)
        return -1;
    float **all[ARRAYS] = {&p->mean,    &p->spread,    &p->eps,       &p->z,         &p->step[0],
                           &p->step[1], &p->moment[0], &p->moment[1], &p->moment[2], &p->moment[3]};
    for (size_t i = 0; i < ARRAYS; i++)
        *all[i] = at + i * values_of(c, texts);
    return 0;
}

void posterior_free(struct posterior *p)
{
    if (p->b)
        p->b->ops->free(p->b, p->block);
    free(p->own);
    *p = (struct posterior){0};
}

/* ---- pieces ---- */

static size_t piece(const struct config *c)
{
    return c->latents * c->width;
}

/* Index of the first value of a text in layer l. */
static size_t piece_at(const struct config *c, size_t texts, size_t l, size_t text)
{
    return (l * texts + text) * piece(c);
}

/* The normal numbers of one text, by (seed, key, draw). */
static void draw_text(const struct posterior *p, float *out, uint64_t seed, uint64_t key,
                      uint64_t draw, size_t texts, size_t text)
{
    struct rng r = {.seed = rng_at(seed, key, draw)};
    for (size_t l = 0; l < p->c->layers; l++) {
        float *x = out + piece_at(p->c, texts, l, text);
        for (size_t i = 0; i < piece(p->c); i++)
            x[i] = (float)rng_normal(&r);
    }
}

void posterior_start(struct posterior *p, uint64_t seed, const uint64_t *keys, size_t texts)
{
    const uint64_t first = rng_derive(seed, "start");
    size_t n = texts * latent_values(p->c);
    for (size_t s = 0; s < texts; s++)
        draw_text(p, p->mean, first, keys[s], 0, texts, s);
    for (size_t i = 0; i < n; i++)
        p->mean[i] *= 0.01f;
    memset(p->spread, 0, n * sizeof *p->spread);
}

void posterior_draw(struct posterior *p, uint64_t seed, const uint64_t *keys, size_t texts,
                    uint64_t draw)
{
    for (size_t s = 0; s < texts; s++)
        draw_text(p, p->eps, seed, keys[s], draw, texts, s);
    for (size_t i = 0; i < texts * latent_values(p->c); i++)
        p->z[i] = p->mean[i] + expf(0.5f * p->spread[i]) * p->eps[i];
}

/* ---- the fit ---- */

void posterior_step(struct posterior *p, struct backprop *t, struct train_batch *in, double rate,
                    int64_t step)
{
    size_t n = in->seqs * latent_values(p->c);
    in->z = p->z;
    backprop_loss(t, in, BACKPROP_LATENTS);
    const float *g = backprop_latents(t);
    for (size_t i = 0; i < n; i++) {
        float variance = expf(p->spread[i]);
        p->step[0][i] = g[i] + p->mean[i];
        p->step[1][i] = 0.5f * (g[i] * p->eps[i] * sqrtf(variance) + variance - 1);
    }
    const struct adamw how = {.rate = rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8,
                              .grad_scale = 1, .step = step};
    const struct train_ops *host = train_ops_of(is_device(p->b) ? ops_cpu(NULL) : p->b->ops);
    host->adamw(p->b, p->mean, p->moment[0], p->moment[1], p->step[0], n, &how);
    host->adamw(p->b, p->spread, p->moment[2], p->moment[3], p->step[1], n, &how);
}

static double rate_at(const struct posterior_fit *fit, size_t i)
{
    double done = fit->steps > 1 ? (double)i / (double)(fit->steps - 1) : 0;
    return fit->rate * (0.1 + 0.9 * 0.5 * (1 + cos(3.141592653589793 * done)));
}

void posterior_run(struct posterior *p, struct backprop *t, struct train_batch *in,
                   const struct posterior_fit *fit, const uint64_t *keys, uint64_t round,
                   double *bound)
{
    size_t bytes = in->seqs * latent_values(p->c) * sizeof(float);
    for (int i = 0; i < 4; i++)
        memset(p->moment[i], 0, bytes);
    in->again = 0;
    for (size_t i = 0; i < fit->steps; i++) {
        for (size_t s = 0; bound && i + 1 == fit->steps && s < in->seqs; s++)
            bound[s] = posterior_kl(p, in->seqs, s);
        posterior_draw(p, fit->seed, keys, in->seqs, round << 32 | i);
        posterior_step(p, t, in, rate_at(fit, i), (int64_t)i + 1);
        in->again = 1;
    }
    in->again = 0;
    for (size_t s = 0; bound && fit->steps && s < in->seqs; s++)
        bound[s] += backprop_losses(t)[s];
}

/* ---- bounds ---- */

double posterior_kl(const struct posterior *p, size_t texts, size_t text)
{
    double sum = 0;
    for (size_t l = 0; l < p->c->layers; l++) {
        size_t at = piece_at(p->c, texts, l, text);
        for (size_t i = at; i < at + piece(p->c); i++)
            sum += 0.5 * ((double)p->mean[i] * p->mean[i] + exp(p->spread[i]) - 1 - p->spread[i]);
    }
    return sum;
}

double posterior_log_q(const struct posterior *p, size_t texts, size_t text)
{
    static const double pi = 3.14159265358979323846;
    double sum = 0;
    for (size_t l = 0; l < p->c->layers; l++) {
        size_t at = piece_at(p->c, texts, l, text);
        for (size_t i = at; i < at + piece(p->c); i++)
            sum -= 0.5 * ((double)p->eps[i] * p->eps[i] + p->spread[i] + log(2 * pi));
    }
    return sum;
}

/* log p(z) - log q(z) of the last draw. */
static double weigh(const struct posterior *p, size_t texts, size_t text)
{
    double sum = 0;
    for (size_t l = 0; l < p->c->layers; l++) {
        size_t at = piece_at(p->c, texts, l, text);
        for (size_t i = at; i < at + piece(p->c); i++)
            sum += 0.5 * ((double)p->eps[i] * p->eps[i] + p->spread[i] -
                          (double)p->z[i] * p->z[i]);
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

/* -log of the mean of exp(x); its standard error follows from that of the mean. */
static struct posterior_bound log_mean_of(double *x, size_t n)
{
    double most = -INFINITY;
    for (size_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (size_t i = 0; i < n; i++)
        x[i] = exp(x[i] - most);
    struct posterior_bound m = mean_of(x, n);
    return (struct posterior_bound){-(most + log(m.nats)), m.se / m.nats};
}

struct posterior_bound posterior_score(struct posterior *p, struct backprop *t,
                                       struct train_batch *in, size_t samples, int iwae,
                                       uint64_t seed, uint64_t key, double *work)
{
    double kl = posterior_kl(p, 1, 0);
    in->z = p->z;
    in->again = 0;
    for (size_t i = 0; i < samples; i++) {
        posterior_draw(p, seed, &key, 1, POSTERIOR_FRESH + i);
        double nats = backprop_loss(t, in, BACKPROP_LOSS);
        work[i] = iwae ? weigh(p, 1, 0) - nats : nats + kl;
        in->again = 1;
    }
    in->again = 0;
    return iwae ? log_mean_of(work, samples) : mean_of(work, samples);
}
