/* test-mix.c - a format for each part under a budget: the choice against every choice there is, and
 * what is measured of a trained model. */
#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/checkpoint/mix.h"
#include "tests/tap.h"

static struct rng rng = {.seed = 31};

/* Units as a network of N / 2 layers has them: sizes in common, losses of their own. */
static void draw(struct mix_unit *u, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double size = i == n - 1 ? 50 : i % 2 ? 300 : 100, nf4 = exp(2 * rng_normal(&rng));
        u[i] = (struct mix_unit){.bytes = {2 * size, size * 1.01, size * 0.53},
                                 .loss = {0, nf4 * rng_uniform(&rng), nf4}};
        if (i == n - 1)
            u[i].bytes[2] = INFINITY;
    }
}

/* The least loss of all choices within the budget, by trying each. */
static double least_loss(const struct mix_unit *u, size_t n, double budget)
{
    double best = INFINITY;
    size_t all = 1;
    for (size_t i = 0; i < n; i++)
        all *= MIX_FORMATS;
    for (size_t k = 0; k < all; k++) {
        double bytes = 0, loss = 0;
        size_t rest = k;
        for (size_t i = 0; i < n; i++, rest /= MIX_FORMATS) {
            bytes += u[i].bytes[rest % MIX_FORMATS];
            loss += u[i].loss[rest % MIX_FORMATS];
        }
        if (bytes <= budget && loss < best)
            best = loss;
    }
    return best;
}

static double sum(const struct mix_unit *u, size_t n, int bytes)
{
    double s = 0;
    for (size_t i = 0; i < n; i++)
        s += bytes ? u[i].bytes[u[i].chosen] : u[i].loss[u[i].chosen];
    return s;
}

/* The loss of one format for all, or of the next of more bytes where it cannot be. */
static double uniform_loss(const struct mix_unit *u, size_t n, size_t f, double *bytes)
{
    double loss = 0;
    *bytes = 0;
    for (size_t i = 0; i < n; i++) {
        size_t g = isfinite(u[i].bytes[f]) ? f : f - 1;
        *bytes += u[i].bytes[g];
        loss += u[i].loss[g];
    }
    return loss;
}

/* 1: some change to more bytes still fits. */
static int wastes(const struct mix_unit *u, size_t n, double left)
{
    for (size_t i = 0; i < n; i++)
        for (size_t f = 0; f < u[i].chosen; f++)
            if (u[i].bytes[f] - u[i].bytes[u[i].chosen] <= left)
                return 1;
    return 0;
}

static void choices(void)
{
    enum { N = 9, TRIALS = 60 };
    struct mix_unit u[N];
    int within = 1, full = 1, never_worse = 1, exact = 0, near = 1;
    for (int t = 0; t < TRIALS; t++) {
        draw(u, N);
        double bytes, least;
        uniform_loss(u, N, 2, &least);
        double budget = least * (1 + 3 * rng_uniform(&rng));
        double got = mix_choose(u, N, budget), best = least_loss(u, N, budget);
        within &= got <= budget && fabs(got - sum(u, N, 1)) < 1e-9;
        full &= !wastes(u, N, budget - got);
        for (size_t f = 0; f < MIX_FORMATS; f++) {
            double loss = uniform_loss(u, N, f, &bytes);
            never_worse &= bytes > budget || sum(u, N, 0) <= loss + 1e-9;
        }
        exact += sum(u, N, 0) <= best + 1e-9;
        near &= sum(u, N, 0) <= best + 0.25 * uniform_loss(u, N, 2, &bytes);
    }
    ok(within, "the budget holds, and the bytes are those of the choice");
    ok(full, "what is left of it is less than any change takes");
    ok(never_worse, "no uniform choice that fits loses less");
    ok(exact > TRIALS / 3 && near, "%d of %d are the best there is, the others near", exact,
       TRIALS);
}

static void ends(void)
{
    enum { N = 9 };
    struct mix_unit u[N];
    double least, most, bytes;
    int all = 1;
    draw(u, N);
    uniform_loss(u, N, 2, &least);
    uniform_loss(u, N, 0, &most);
    ok(isinf(mix_choose(u, N, least - 1)), "too small a budget is refused");
    bytes = mix_choose(u, N, least);
    for (size_t i = 0; i < N; i++)
        all &= u[i].chosen == (i == N - 1 ? 1 : 2);
    ok(all && fabs(bytes - least) < 1e-9, "the least budget: nf4, and int8 where that cannot be");
    bytes = mix_choose(u, N, most);
    for (size_t i = 0; i < N; i++)
        all &= u[i].chosen == 0;
    ok(all && fabs(bytes - most) < 1e-9, "enough: everything stays");
    draw(u, N);
    u[2].loss[1] = -0.5, u[2].loss[2] = -1;
    mix_choose(u, N, most);
    ok(u[2].loss[1] >= 0 && u[2].loss[2] >= 0 && u[2].chosen == 0,
       "a measured gain of fewer bits is noise");
}

static void listing(void)
{
    struct checkpoint c;
    struct err e = {0};
    if (checkpoint_open(&c, "data/models/llama-demo", 0, &e))
        exit(1);
    size_t n = mix_count(&c.config);
    struct mix_unit *u = mem_zero(n, sizeof *u);
    struct pool *pool = pool_new(2);
    double stays = mix_list(u, &c), all = stays;
    for (size_t i = 0; i < n; i++)
        all += u[i].bytes[0];
    double stored = 0;
    for (size_t i = 0; i < safetensors_count(c.tensors); i++)
        stored += (double)safetensors_at(c.tensors, i)->bytes;
    ok(n == 9 && fabs(all - stored) < 0.5, "units and what stays are all %.0f bytes of the model",
       stored);
    ok(u[1].part == PART_FFN && u[1].layer == 0 && u[1].parameters == 3 * 832 * 256 &&
           u[8].part == PART_HEAD && isinf(u[8].bytes[2]) && u[2].layer == 1,
       "two parts a layer, and the head, which nf4 leaves to int8");
    ok(!mix_errors(u, &c, pool, &e) && u[1].loss[1] > 0 && u[1].loss[2] > 50 * u[1].loss[1] &&
           u[8].loss[1] > 0, "squared errors: int8 %.3g, nf4 %.3g", u[1].loss[1], u[1].loss[2]);
    u[3].chosen = 2;
    u[8].chosen = 1;
    mix_apply(u, n, &c.config);
    ok(c.config.mix[1][PART_FFN] == DTYPE_NF4 && c.config.mix[0][PART_HEAD] == DTYPE_INT8 &&
           c.config.mix[0][PART_FFN] == QUANT_NONE, "the config says what was chosen");
    pool_free(pool);
    free(u);
    checkpoint_close(&c);
}

int main(void)
{
    choices();
    ends();
    listing();
    return tap_done();
}
