/* prior.c - draws and bounds with a learned prior; see prior.h. The transformer predicts v at a
 * time t of the cosine schedule (lib/train/dit.h). A solver needs x0 at a lambda (solver.h):
 * tan(pi t / 2) = e^-lambda, and x0 = alpha x - s v. */
#include "lib/latent/prior.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"

struct dit *prior_open(const char *folder, const struct config *config, struct backend *backend,
                       size_t texts, struct err *e)
{
    if (!folder) {
        err_set(e, EXIT_NO_INPUT, "%s: random weights have no " PRIOR_FILE, config->name);
        return NULL;
    }
    char *path = mem_format("%s/" PRIOR_FILE, folder);
    struct dit *dit = dit_open(path, backend, texts, e);
    const struct dit_shape *shape = dit ? dit_shape_of(dit) : NULL;
    if (dit &&
        (shape->tokens != config->layers * config->latents || shape->values != config->width)) {
        err_set(e, EXIT_BAD_DATA, "%s: expected %zu latents of %zu values, as %s has, got %zu of "
                "%zu", path, config->layers * config->latents, config->width, config->name,
                shape->tokens, shape->values);
        dit_free(dit);
        dit = NULL;
    }
    free(path);
    return dit;
}

/* The function struct denoiser.predict; ctx: the struct dit. */
static void predict(void *ctx, const float *x, double lambda, size_t rows, size_t width, float *x0)
{
    static const double pi = 3.14159265358979323846;
    struct dit *dit = ctx;
    double alpha = solver_alpha(lambda), sigma = solver_s(lambda);
    double *times = mem_alloc(rows * sizeof *times);
    for (size_t i = 0; i < rows; i++)
        times[i] = 2 / pi * atan(exp(-lambda));
    for (size_t i = 0; i < rows; i += dit_batch(dit)) {
        size_t n = rows - i < dit_batch(dit) ? rows - i : dit_batch(dit);
        dit_predict(dit, x + i * width, times, n, x0 + i * width);
    }
    for (size_t i = 0; i < rows * width; i++)
        x0[i] = (float)(alpha * x[i] - sigma * x0[i]);
    free(times);
}

/* Copies by_layer[L, texts, n D] to by_text[texts, L, n D]; back 1: by_text to by_layer. */
static void transpose(const struct config *config, float *by_layer, float *by_text, size_t texts,
                      int back)
{
    size_t one = config->latents * config->width;
    for (size_t s = 0; s < texts; s++)
        for (size_t layer = 0; layer < config->layers; layer++) {
            float *x = by_layer + (layer * texts + s) * one,
                  *y = by_text + (s * config->layers + layer) * one;
            memcpy(back ? x : y, back ? y : x, one * sizeof *x);
        }
}

void prior_gather(const struct config *config, const float *z, size_t texts, float *out)
{
    transpose(config, (float *)(uintptr_t)z, out, texts, 0);
}

void prior_scatter(const struct config *config, const float *z, size_t texts, float *out)
{
    transpose(config, out, (float *)(uintptr_t)z, texts, 1);
}

void prior_draw(struct dit *dit, const struct config *config, const struct solver *how,
                uint64_t seed, const uint64_t *keys, size_t texts, float *latents)
{
    size_t width = config->layers * config->latents * config->width;
    float *x = mem_alloc(texts * width * sizeof *x);
    const struct denoiser of = {predict, dit};
    for (size_t text = 0; text < texts; text++) {
        struct rng noise = {seed, keys[text], 0};
        for (size_t i = 0; i < width; i++)
            x[text * width + i] = (float)rng_normal(&noise);
    }
    solver_run(how, &of, x, texts, width);
    dit_from_standard(dit, x, texts);
    prior_scatter(config, x, texts, latents);
    free(x);
}

double prior_bound(struct dit *dit, float *z, size_t n, size_t draws, uint64_t seed)
{
    const struct denoiser of = {predict, dit};
    const struct dit_shape *shape = dit_shape_of(dit);
    struct solver solver = SOLVER_DEFAULTS;
    solver.seed = seed;
    dit_to_standard(dit, z, n);
    return solver_bound(&solver, &of, z, n, shape->tokens * shape->values, draws) +
           dit_log_deviation(dit);
}
