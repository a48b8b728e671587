/* test-gumbel.c - tests the kinds of noise: whether draws follow the distribution, how rare an id
 * may be, how large a logit; and what rounding a confidence does to the order of answers. */
#include "kernels/advance.h"
#include "kernels/gumbel.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

static const char *const names[] = {"f64", "f32", "f32x"};

/* ---- draws ---- */

/* Returns the id with the best score, the lowest of equals. */
static int32_t draw(size_t kind, const float *logits, int32_t V, double temperature, uint64_t key)
{
    int32_t best = 0;
    double most = -HUGE_VAL;
    for (int32_t v = 0; v < V; v++) {
        double score = gumbel_score(kind, logits[v], temperature, rng_at(5, key, (uint64_t)v));
        if (score > most) {
            most = score;
            best = v;
        }
    }
    return best;
}

/* Chi-square of draws from a Zipf distribution over 2^17 ids, in bins of equal probability. */
static void chi_square(size_t kind)
{
    enum { V = 1 << 17, DRAWS = 160, BINS = 8 };
    float *logits = mem_alloc(V * sizeof *logits);
    unsigned char *bin = mem_alloc(V);
    double sum = 0, below = 0, expected[BINS] = {0}, chi = 0;
    int count[BINS] = {0};
    for (int v = 0; v < V; v++) {
        logits[v] = (float)(5 - 1.1 * log(1 + v * 37 % V)); /* likely ids between unlikely ones */
        sum += exp((double)logits[v] / 0.9);
    }
    for (int v = 0; v < V; v++) {
        double p = exp((double)logits[v] / 0.9) / sum;
        bin[v] = (unsigned char)(below * BINS < BINS ? below * BINS : BINS - 1);
        expected[bin[v]] += p * DRAWS;
        below += p;
    }
    for (uint64_t i = 0; i < DRAWS; i++)
        count[bin[draw(kind, logits, V, 0.9, i)]]++;
    for (int i = 0; i < BINS; i++)
        chi += (count[i] - expected[i]) * (count[i] - expected[i]) / expected[i];
    ok(chi < 24.3, "%s: %d draws from 2^17 ids, chi-square %.1f of 7 (24.3: 1 in 1000)",
       names[kind], DRAWS, chi);
    free(logits);
    free(bin);
}

/* ---- rare ids ---- */

/* The share of draws in which an id of probability p wins against all others together, divided by
 * p. E is the exponential variable of an id (its score is -log E). The others together have an
 * exponential E too, so the share is the mean of e^(-E (1 - p) / p) over the E of the id. E comes
 * from the score of logit 0 at temperature 1; only uniform values with 1 - u below 40 p matter. */
static double share_of(size_t kind, double p)
{
    enum { STEPS = 400000 };
    double width = 40 * p, sum = 0;
    for (int i = 0; i < STEPS; i++) {
        double v = width * (i + 0.5) / STEPS;
        double score = gumbel_score(kind, 0, 1, ~((uint64_t)(v * 0x1p63) * 2));
        double E = kind == GUMBEL_F32 ? 1 / score : exp(-score);
        sum += exp(-E * (1 - p) / p);
    }
    return sum * width / STEPS / p;
}

static void rare(void)
{
    for (int k = 5; k <= 9; k++) {
        double p = pow(10, -k), x = 0x1p-24 / p, lost = x / (exp(x) - 1);
        ok(fabs(share_of(GUMBEL_F64, p) - 1) < 2e-3 && fabs(share_of(GUMBEL_F32X, p) - 1) < 2e-3,
           "p = 1e-%d: f64 draws %.4f of it, f32x %.4f", k, share_of(GUMBEL_F64, p),
           share_of(GUMBEL_F32X, p));
        ok(fabs(share_of(GUMBEL_F32, p) - lost) < 0.01, "p = 1e-%d: f32 %.4f, by x/(e^x-1) %.4f", k,
           share_of(GUMBEL_F32, p), lost);
    }
    double most[3] = {0};
    for (int i = 0; i < 1000; i++)
        for (size_t kind = 0; kind < 3; kind++) {
            double score = gumbel_score(kind, 0, 1, ~((uint64_t)i << 12));
            if (score < INFINITY) /* f64 can come to a u of 1 */
                most[kind] = fmax(most[kind], kind == GUMBEL_F32 ? log(score) : score);
        }
    ok(most[0] > 35 && most[1] > 16.6 && most[1] < 16.7 && most[2] > 44,
       "the largest noise: f64 %.1f, f32 %.1f, f32x %.1f", most[0], most[1], most[2]);
}

/* ---- large logits ---- */

static void large(void)
{
    const float up[2] = {100, 200}, down[2] = {-200, -110};
    int highest[3] = {0}, lowest[3] = {0};
    for (uint64_t key = 0; key < 1000; key++)
        for (size_t kind = 0; kind < 3; kind++) {
            highest[kind] += draw(kind, up, 2, 1, key) == 1;
            lowest[kind] += draw(kind, down, 2, 1, key) == 1;
        }
    ok(highest[0] == 1000 && highest[2] == 1000, "logits 100 and 200: f64, f32x draw the second");
    ok(highest[1] == 0, "f32 the first: both are infinite, and the lowest id wins");
    ok(lowest[0] == 1000 && lowest[2] == 1000 && lowest[1] == 0,
       "logits -200 and -110: f32 has zeros, the others the order");
    int odd = 0;
    const float logit[] = {-200, -88, 0, 88, 88.8f, 200};
    const uint64_t bits[] = {0, 1, (uint64_t)1 << 40, ~(uint64_t)0, ~(uint64_t)0 << 40};
    for (size_t kind = 0; kind < 3; kind++)
        for (size_t i = 0; i < 6; i++)
            for (size_t j = 0; j < 5; j++)
                for (int t = -300; t <= 3; t += 101)
                    odd += isnan(gumbel_score(kind, logit[i], pow(10, t), bits[j]));
    ok(!odd, "no score is NaN: %d", odd);
}

/* ---- confidences ---- */

/* Simulates steps that order 32 answers by confidence, with confidences as in a late step. Counts
 * the steps in which rounding puts another answer first, and the pairs that tie. Rounding is
 * monotone, so no pair changes its order. */
static void confidences(void)
{
    enum { STEPS = 2000, ANSWERS = 32 };
    int other[3] = {0}, ties[3] = {0}, turned = 0;
    struct rng rng = {.seed = 8};
    for (int s = 0; s < STEPS; s++) {
        double p[ANSWERS];
        for (int i = 0; i < ANSWERS; i++)
            p[i] = 1 - exp(-20 * rng_uniform(&rng));
        for (int r = ROUNDING_F64; r <= ROUNDING_BF16; r++) {
            int first = 0, as = 0;
            for (int i = 1; i < ANSWERS; i++) {
                double x = rounded_confidence((enum rounding)r, p[i]);
                double y = rounded_confidence((enum rounding)r, p[as]);
                first = p[i] > p[first] ? i : first;
                as = x > y ? i : as;
                double before = rounded_confidence((enum rounding)r, p[i - 1]);
                ties[r] += x == before;
                turned += (x > before && p[i] < p[i - 1]) || (x < before && p[i] > p[i - 1]);
            }
            other[r] += first != as;
        }
    }
    ok(other[0] == 0 && ties[0] == 0 && turned == 0,
       "in double no confidences tie and no pair is reversed");
    ok(ties[1] > 0 && ties[2] > 5 * ties[1] && other[2] > other[1],
       "%d pairs: f32 ties %d, bf16 %d; %d steps: another answer is first in %d and %d",
       STEPS * (ANSWERS - 1), ties[1], ties[2], STEPS, other[1], other[2]);
    ok(rounded_confidence(ROUNDING_BF16, 0.9981) == 1 &&
           rounded_confidence(ROUNDING_BF16, 0.9979) == 0.99609375 &&
           rounded_confidence(ROUNDING_F32, 1 - 1e-9) == 1,
       "bf16 knows nothing between 255/256 and 1");
}

int main(void)
{
    for (size_t kind = 0; kind < 3; kind++)
        chi_square(kind);
    rare();
    large();
    confidences();
    return tap_done();
}
