/* prior.c - see prior.h. The transformer predicts v at a time t of the cosine schedule. A solver
 * asks for x0 (x without the noise) at a lambda (solver.h): tan(pi t / 2) = e^-lambda, and
 * x0 = alpha x - s v. */
#include "lib/latent/prior.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"

struct dit *prior_open(const char *folder, const struct config *c, struct backend *b, size_t texts,
                       struct err *e)
{
    if (!folder) {
        err_set(e, EXIT_NO_INPUT, "%s: random weights have no " PRIOR_FILE, c->name);
        return NULL;
    }
    char *path = mem_format("%s/" PRIOR_FILE, folder);
    struct dit *d = dit_open(path, b, texts, e);
    const struct dit_shape *s = d ? dit_shape_of(d) : NULL;
    if (d && (s->tokens != c->layers * c->latents || s->values != c->width)) {
        err_set(e, EXIT_BAD_DATA, "%s: expected %zu latents of %zu values, as %s has, got %zu of "
                "%zu", path, c->layers * c->latents, c->width, c->name, s->tokens, s->values);
        dit_free(d);
        d = NULL;
    }
    free(path);
    return d;
}

static void predict(void *ctx, const float *x, double lambda, size_t rows, size_t width, float *x0)
{
    static const double pi = 3.14159265358979323846;
    struct dit *d = ctx;
    double alpha = solver_alpha(lambda), s = solver_s(lambda);
    double *t = mem_alloc(rows * sizeof *t);
    for (size_t i = 0; i < rows; i++)
        t[i] = 2 / pi * atan(exp(-lambda));
    for (size_t i = 0; i < rows; i += dit_batch(d)) {
        size_t n = rows - i < dit_batch(d) ? rows - i : dit_batch(d);
        dit_predict(d, x + i * width, t, n, x0 + i * width);
    }
    for (size_t i = 0; i < rows * width; i++)
        x0[i] = (float)(alpha * x[i] - s * x0[i]);
    free(t);
}

/* Copies by_layer[L, texts, n D] to by_text[texts, L, n D], or back. */
static void transpose(const struct config *c, float *by_layer, float *by_text, size_t texts,
                      int back)
{
    size_t one = c->latents * c->width;
    for (size_t s = 0; s < texts; s++)
        for (size_t l = 0; l < c->layers; l++) {
            float *x = by_layer + (l * texts + s) * one, *y = by_text + (s * c->layers + l) * one;
            memcpy(back ? x : y, back ? y : x, one * sizeof *x);
        }
}

void prior_gather(const struct config *c, const float *z, size_t texts, float *out)
{
    transpose(c, (float *)(uintptr_t)z, out, texts, 0);
}

void prior_scatter(const struct config *c, const float *z, size_t texts, float *out)
{
    transpose(c, out, (float *)(uintptr_t)z, texts, 1);
}

void prior_draw(struct dit *d, const struct config *c, const struct solver *how, uint64_t seed,
                const uint64_t *keys, size_t texts, float *z)
{
    size_t width = c->layers * c->latents * c->width;
    float *x = mem_alloc(texts * width * sizeof *x);
    const struct denoiser of = {predict, d};
    for (size_t s = 0; s < texts; s++) {
        struct rng noise = {seed, keys[s], 0};
        for (size_t i = 0; i < width; i++)
            x[s * width + i] = (float)rng_normal(&noise);
    }
    solver_run(how, &of, x, texts, width);
    dit_from_standard(d, x, texts);
    prior_scatter(c, x, texts, z);
    free(x);
}

double prior_bound(struct dit *d, float *z, size_t n, size_t draws, uint64_t seed)
{
    const struct denoiser of = {predict, d};
    const struct dit_shape *s = dit_shape_of(d);
    struct solver p = SOLVER_DEFAULTS;
    p.seed = seed;
    dit_to_standard(d, z, n);
    return solver_bound(&p, &of, z, n, s->tokens * s->values, draws) + dit_log_deviation(d);
}
