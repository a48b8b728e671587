/* test-mix.c - tests the choice of a format for each part under a budget: against all possible
 * choices; with noisy losses; and with losses measured on a trained model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/checkpoint/packing/mix.h"
#include "lib/run/probe/calibration.h"
#include "tests/tap.h"

static struct rng rng = {.seed = 31};

/* Draws the units of a network of N / 2 layers: equal sizes in each layer, different losses. */
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

/* The loss of one format for all units. A unit that cannot have it gets the next format with more
 * bytes. */
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

/* Returns 1 if some change to a format with more bytes still fits. */
static int wastes(const struct mix_unit *u, size_t n, double left)
{
    for (size_t i = 0; i < n; i++)
        for (size_t f = 0; f < u[i].chosen; f++)
            if (u[i].bytes[f] - u[i].bytes[u[i].chosen] <= left)
                return 1;
    return 0;
}

/* Returns 1 if mix_raise() keeps to the budget, leaves no bytes that a change could use, and gives
 * no unit fewer bits than the largest uniform choice that fits. */
static int raises(const struct mix_unit *drawn, size_t n, double budget)
{
    struct mix_unit *u = mem_zero(n, sizeof *u);
    double bytes;
    size_t f = 0;
    for (; uniform_loss(drawn, n, f, &bytes) >= 0 && bytes > budget; f++) {}
    memcpy(u, drawn, n * sizeof *u);
    double got = mix_raise(u, n, budget);
    int good = got <= budget && fabs(got - sum(u, n, 1)) < 1e-9 && !wastes(u, n, budget - got);
    for (size_t i = 0; i < n; i++)
        good &= u[i].chosen <= f;
    free(u);
    return good;
}

static void choices(void)
{
    enum { N = 9, TRIALS = 60 };
    struct mix_unit u[N];
    int within = 1, full = 1, never_worse = 1, exact = 0, near = 1, raised = 1;
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
        raised &= raises(u, N, budget);
        exact += sum(u, N, 0) <= best + 1e-9;
        near &= sum(u, N, 0) <= best + 0.25 * uniform_loss(u, N, 2, &bytes);
    }
    ok(within, "the budget holds, and the bytes are those of the choice");
    ok(full, "the rest of the budget is less than any change takes");
    ok(raised, "none of the largest uniform choice that fits is given fewer bits by mix_raise");
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

enum { PARTS_DRAWN = 9, TEXTS_DRAWN = 24 };

/* Draws texts of one length whose losses are `truth` plus noise. *units: the means over the
 * texts. */
static void draw_texts(struct calibration *c, const struct mix_unit *truth, double noise,
                       struct mix_unit *units)
{
    c->n = TEXTS_DRAWN;
    c->text = mem_zero(TEXTS_DRAWN, sizeof *c->text);
    c->tokens = mem_zero(TEXTS_DRAWN, sizeof *c->tokens);
    c->lost = mem_zero(TEXTS_DRAWN, sizeof *c->lost * PARTS_DRAWN * MIX_FORMATS);
    memcpy(units, truth, PARTS_DRAWN * sizeof *units);
    for (size_t u = 0; u < PARTS_DRAWN; u++)
        for (size_t f = 1; f < MIX_FORMATS; f++) {
            double sum = 0;
            for (size_t i = 0; i < TEXTS_DRAWN; i++) {
                double lost = 10 * (truth[u].loss[f] + noise * rng_normal(&rng));
                c->lost[(i * PARTS_DRAWN + u) * MIX_FORMATS + f] = lost;
                c->tokens[i] = 10;
                sum += lost;
            }
            units[u].loss[f] = sum / (10 * TEXTS_DRAWN);
        }
}

/* Draws texts 200 times under the budget of int8 for all units. Returns the number of draws in
 * which some unit has nf4. *lost: the mean of the true loss above that of int8 for all. *chosen:
 * the number of draws in which mix_choose() gives some unit nf4. */
static int trades(const struct mix_unit *truth, double noise, double *lost, int *chosen)
{
    int count = 0;
    double bytes, uniform = uniform_loss(truth, PARTS_DRAWN, 1, &bytes);
    *lost = 0, *chosen = 0;
    for (int t = 0; t < 200; t++) {
        struct calibration c = {0};
        struct mix_unit u[PARTS_DRAWN];
        struct interval gain;
        int nf4 = 0, free_nf4 = 0;
        draw_texts(&c, truth, noise, u);
        calibration_choose(&c, u, PARTS_DRAWN, bytes, &gain);
        for (size_t i = 0; i < PARTS_DRAWN; i++) {
            nf4 |= u[i].chosen == 2;
            *lost += (truth[i].loss[u[i].chosen] - uniform / PARTS_DRAWN) / 200;
        }
        mix_choose(u, PARTS_DRAWN, bytes);
        for (size_t i = 0; i < PARTS_DRAWN; i++)
            free_nf4 |= u[i].chosen == 2;
        count += nf4, *chosen += free_nf4;
        calibration_free(&c);
    }
    return count;
}

static void texts(void)
{
    struct mix_unit truth[PARTS_DRAWN];
    double lost;
    int chosen;
    for (size_t i = 0; i < PARTS_DRAWN; i++)
        truth[i] = (struct mix_unit){.bytes = {400, 202, 106}, .loss = {0, 1e-4, 4e-3}};
    int took = trades(truth, 0.03, &lost, &chosen);
    ok(chosen > 100 && took < 20, "equal parts in noise: %d of 200 take bits from one for another, "
       "%d by the least sum of losses", took, chosen);
    ok(lost < 2e-4, "these mixes lose %.2g nats more than int8 in truth", lost);
    truth[4].loss[1] = 0.05, truth[4].loss[2] = 0.08;
    for (size_t i = 5; i < PARTS_DRAWN; i++)
        truth[i].loss[2] = 2e-4;
    took = trades(truth, 0.01, &lost, &chosen);
    ok(took > 150 && lost < -0.02, "a part that needs its bits has them in %d of 200: %.2g nats",
       took, lost);
    struct calibration one = {.n = 1, .text = mem_zero(1, sizeof *one.text),
                              .tokens = mem_zero(1, sizeof(double)),
                              .lost = mem_zero(PARTS_DRAWN * MIX_FORMATS, sizeof(double))};
    struct interval gain;
    one.tokens[0] = 10;
    double bytes = 0, all = uniform_loss(truth, PARTS_DRAWN, 1, &bytes);
    ok(calibration_choose(&one, truth, PARTS_DRAWN, bytes, &gain) <= bytes && isnan(gain.lo) &&
           fabs(sum(truth, PARTS_DRAWN, 0) - all) < 1e-12, "one text is no evidence");
    ok(isinf(calibration_choose(&one, truth, PARTS_DRAWN, PARTS_DRAWN * 100, &gain)),
       "too small a budget is refused, texts or not");
    calibration_free(&one);
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
    texts();
    listing();
    return tap_done();
}
