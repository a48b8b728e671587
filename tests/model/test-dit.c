/* test-dit.c - tests the transformer over latents: its gradient against finite differences; its
 * files, and the refusal of broken ones; that it learns a distribution (a solver turns noise into
 * two clusters); and its bound of a known distribution. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/latent/prior.h"
#include "lib/train/dit.h"
#include "tests/tap.h"

static const struct dit_shape tiny = {.tokens = 3, .values = 5, .width = 12, .layers = 2,
                                      .heads = 3};

static struct backend *host(void)
{
    struct err e = {0};
    struct backend *b = backend_open("cpu", NULL, 2, 0, &e);
    if (!b)
        err_die("test-dit", &e);
    return b;
}

static struct dit *make(const struct dit_shape *s, struct backend *b, size_t batch)
{
    struct err e = {0};
    struct dit *d = dit_make(s, b, 5, batch, &e);
    if (!d)
        err_die("test-dit", &e);
    return d;
}

/* Makes every path carry signal: gates that are 0 at the start would hide what follows them. */
static void enlarge(struct dit *d)
{
    struct rng r = {.seed = 3};
    float *w = dit_values(d);
    for (size_t i = 0; i < dit_parameters(d); i++)
        w[i] += (float)(0.2 * rng_normal(&r));
}

/* In fp32 the difference of two losses has few digits. So each test direction moves all values a
 * little, and the derivative along it is compared with the gradient's part along it. */
static void test_gradient(struct backend *b)
{
    struct dit *d = make(&tiny, b, 4);
    size_t n = dit_parameters(d), values = 4 * tiny.tokens * tiny.values;
    float *w = dit_values(d), *z = mem_alloc(values * sizeof *z), *way = mem_alloc(n * sizeof *way);
    float *was = mem_alloc(n * sizeof *was);
    struct rng r = {.seed = 9};
    double worst = 0;
    enlarge(d);
    for (size_t i = 0; i < values; i++)
        z[i] = (float)rng_normal(&r);
    dit_loss(d, z, 4, 1, 0, 1);
    memcpy(was, w, n * sizeof *w);
    for (int k = 0; k < 40; k++) {
        double along = 0, norm = 0, step = 1e-2;
        size_t from = (size_t)k * n / 40, to = (size_t)(k + 1) * n / 40;
        for (size_t i = from; i < to; i++) {
            way[i] = (float)rng_normal(&r);
            norm += way[i] * way[i];
        }
        for (size_t i = from; i < to; i++)
            along += dit_gradients(d)[i] * (way[i] = (float)(way[i] / sqrt(norm)));
        double side[2];
        for (int s = 0; s < 2; s++) {
            for (size_t i = from; i < to; i++)
                w[i] = was[i] + (float)((s ? -step : step) * way[i]);
            side[s] = dit_loss(d, z, 4, 1, 0, 0);
        }
        memcpy(w + from, was + from, (to - from) * sizeof *w);
        double found = (side[0] - side[1]) / (2 * step);
        worst = fmax(worst, fabs(found - along) / (0.05 + fabs(along)));
    }
    ok(worst < 0.01, "gradient along 40 ways, each over a part of the values: off by %.2g", worst);
    free(z);
    free(way);
    free(was);
    dit_free(d);
}

static void predict(void *ctx, const float *x, double lambda, size_t rows, size_t width, float *x0)
{
    double t[64], alpha = solver_alpha(lambda), s = solver_s(lambda);
    for (size_t r = 0; r < rows; r++)
        t[r] = 2 / 3.14159265358979323846 * atan(exp(-lambda));
    dit_predict(ctx, x, t, rows, x0);
    for (size_t i = 0; i < rows * width; i++)
        x0[i] = (float)(alpha * x[i] - s * x0[i]);
}

/* Draws from two clusters: latent 0 is +1 or -1 in all its values, latent 1 is the opposite. */
static void clusters(float *z, size_t n, const struct dit_shape *s, struct rng *r)
{
    for (size_t i = 0; i < n; i++) {
        double side = rng_below(r, 2) ? 1 : -1;
        for (size_t j = 0; j < s->tokens * s->values; j++)
            z[i * s->tokens * s->values + j] =
                (float)(side * (j / s->values % 2 ? -1 : 1) + 0.1 * rng_normal(r));
    }
}

/* -log N(z; 0, 1) of all values. */
static double normal_nats(const float *z, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += 0.5 * ((double)z[i] * z[i] + log(2 * M_PI));
    return sum;
}

static void test_learning(struct backend *b)
{
    const struct dit_shape s = {.tokens = 2, .values = 4, .width = 32, .layers = 2, .heads = 4};
    struct dit *d = make(&s, b, 64);
    float z[64 * 8];
    struct rng r = {.seed = 2};
    double first = 0, last = 0;
    for (int i = 0; i < 300; i++) {
        clusters(z, 64, &s, &r);
        double loss = dit_loss(d, z, 64, 4, (uint64_t)i, 1);
        first += i < 20 ? loss / 20 : 0;
        last += i >= 280 ? loss / 20 : 0;
        dit_update(d, 3e-3, 1, 0.98);
    }
    ok(last < first / 2, "the loss falls: %.3f, then %.3f", first, last);
    dit_use_average(d);
    struct solver p = SOLVER_DEFAULTS;
    const struct denoiser of = {predict, d};
    for (size_t i = 0; i < 64 * 8; i++)
        z[i] = (float)rng_normal(&r);
    solver_run(&p, &of, z, 64, 8);
    int near = 0, plus = 0;
    for (int i = 0; i < 64; i++) {
        double off = 0, side = z[i * 8] > 0 ? 1 : -1;
        for (int j = 0; j < 8; j++)
            off = fmax(off, fabs(z[i * 8 + j] - side * (j / 4 ? -1 : 1)));
        near += off < 0.6;
        plus += side > 0;
    }
    ok(near >= 60 && plus > 16 && plus < 48,
       "samples: %d of 64 in a cluster, %d in the first", near, plus);
    clusters(z, 64, &s, &r);
    double plain = normal_nats(z, 64 * 8) / 64, nats = prior_bound(d, z, 64, 200, 3);
    double entropy = log(2) + 8 * 0.5 * (log(2 * M_PI * 0.01) + 1);
    ok(nats < plain - 4 && nats > entropy,
       "%.2f nats a sample at most, by N(0, 1) %.2f, in truth %.2f", nats, plain, entropy);
    dit_free(d);
}

/* A prior that predicts v = 0 is N(mean, deviation), so its bound is the density of this normal. */
static void test_bound(struct backend *b)
{
    enum { N = 4, EACH = 15 };
    struct dit *d = make(&tiny, b, N);
    struct rng r = {.seed = 4};
    float z[N * EACH], own[N * EACH];
    memset(dit_values(d), 0, dit_parameters(d) * sizeof(float));
    for (int i = 0; i < N * EACH; i++)
        z[i] = (float)(3 + 2 * rng_normal(&r));
    dit_standardize(d, z, N);
    memcpy(own, z, sizeof z);
    dit_to_standard(d, own, N);
    double want = normal_nats(own, N * EACH) / N + dit_log_deviation(d);
    double few = prior_bound(d, memcpy(own, z, sizeof z), N, 5, 1);
    double many = prior_bound(d, memcpy(own, z, sizeof z), N, 500, 2);
    ok(fabs(few - want) < 1e-3 && fabs(many - want) < 1e-3,
       "without a prediction the bound is a normal density: %.5f by 5 draws, %.5f by 500, %.5f",
       few, many, want);
    dit_free(d);
}

static void test_file(struct backend *b)
{
    char path[] = "/tmp/test-dit-XXXXXX";
    close(mkstemp(path));
    struct err e = {0};
    struct dit *d = make(&tiny, b, 2), *again;
    float z[2 * 15], x[2][2 * 15];
    const double t[] = {0.3, 0.8};
    struct rng r = {.seed = 2};
    enlarge(d);
    for (int i = 0; i < 30; i++)
        z[i] = (float)(3 + 2 * rng_normal(&r));
    dit_standardize(d, z, 2);
    memcpy(x[0], z, sizeof z);
    dit_to_standard(d, x[0], 2);
    dit_from_standard(d, x[0], 2);
    double off = 0;
    for (int i = 0; i < 30; i++)
        off = fmax(off, fabs(x[0][i] - z[i]));
    ok(off < 1e-4, "to the standard and back");
    dit_loss(d, z, 2, 1, 0, 1);
    dit_update(d, 0.1, 1, 0.5);
    ok(!dit_save(d, path, 1, &e) && (again = dit_open(path, b, 2, &e)) != NULL, "saved, opened");
    dit_predict(d, z, t, 2, x[0]);
    dit_predict(again, z, t, 2, x[1]);
    ok(!memcmp(x[0], x[1], sizeof x[0]) && dit_step(again) == 1,
       "an opened prior predicts the same bits");
    double a = dit_loss(d, z, 2, 1, 1, 1), c = dit_loss(again, z, 2, 1, 1, 1);
    dit_update(d, 0.1, 1, 0.5);
    dit_update(again, 0.1, 1, 0.5);
    ok(a == c && !memcmp(dit_values(d), dit_values(again), dit_parameters(d) * sizeof(float)),
       "training goes on as if it had not stopped");
    dit_free(again);
    ok(!dit_save(d, path, 0, &e) && (again = dit_open(path, b, 2, &e)) != NULL,
       "the average alone");
    dit_use_average(d);
    dit_predict(d, z, t, 2, x[0]);
    dit_predict(again, z, t, 2, x[1]);
    ok(!memcmp(x[0], x[1], sizeof x[0]), "predicts as the average does");
    dit_free(again);
    ok(!truncate(path, 2000) && !dit_open(path, b, 2, &e) && e.code == EXIT_BAD_DATA,
       "a file that ends early: %s", e.text);
    unlink(path);
    dit_free(d);
}

int main(void)
{
    struct backend *b = host();
    test_gradient(b);
    test_file(b);
    test_learning(b);
    test_bound(b);
    backend_close(b);
    return tap_done();
}
