/* Drawing a token: filters in the order of Hugging Face, ties, and the distribution of draws. */
#include "lib/decode/sample.h"
#include "tests/tap.h"

enum { V = 6, DRAWS = 20000 };

static void count(const float *logits, struct sample s, int *n)
{
    int32_t work[V];
    memset(n, 0, V * sizeof *n);
    for (uint64_t key = 0; key < DRAWS; key++)
        n[sample_draw(logits, V, &s, 11, key, work)]++;
}

/* Which ids were ever drawn, as bits. */
static int support(const float *logits, struct sample s)
{
    int n[V], bits = 0;
    count(logits, s, n);
    for (int i = 0; i < V; i++)
        bits |= (n[i] > 0) << i;
    return bits;
}

/* Pearson's statistic against softmax(logits / T) over the ids in `bits`. */
static double chi_square(const float *logits, struct sample s, int bits)
{
    int n[V];
    double sum = 0, x2 = 0;
    count(logits, s, n);
    for (int i = 0; i < V; i++)
        sum += bits >> i & 1 ? exp(logits[i] / s.temperature) : 0;
    for (int i = 0; i < V; i++) {
        double want = bits >> i & 1 ? DRAWS * exp(logits[i] / s.temperature) / sum : 0;
        x2 += want > 0 ? (n[i] - want) * (n[i] - want) / want : n[i];
    }
    return x2;
}

static void test_filters(void)
{
    const float p[V] = {logf(0.1f), logf(0.4f), logf(0.05f), logf(0.3f), logf(0.1f), logf(0.05f)};
    ok(support(p, (struct sample){1, 0, 1}) == 0x3f, "no filter: every id comes");
    ok(support(p, (struct sample){1, 2, 1}) == 0x0a, "top-k 2: ids 1 and 3");
    ok(support(p, (struct sample){1, 3, 1}) == 0x1b, "top-k 3: the tie with the third stays");
    ok(support(p, (struct sample){1, 0, 0.4}) == 0x02, "top-p 0.4: exactly that mass is enough");
    ok(support(p, (struct sample){1, 0, 0.41}) == 0x0a, "top-p 0.41: one more");
    ok(support(p, (struct sample){1, 0, 0.75}) == 0x0b, "top-p 0.75: of equals the lower id first");
    ok(support(p, (struct sample){1, 0, 1e-9}) == 0x02, "top-p near 0: the best always stays");
    /* 0.4 / 0.7 = 0.57 after top-k, only 0.4 before: top-p must come second. */
    ok(support(p, (struct sample){1, 2, 0.5}) == 0x02, "top-p works on what top-k left");
    /* At T = 0.5 the probabilities are squared: 0.16 / 0.2750 = 0.58 for id 1. */
    ok(support(p, (struct sample){0.5, 0, 0.55}) == 0x02, "top-p works on the scaled logits");
    ok(support(p, (struct sample){1, 0, 0.55}) == 0x0a, "... and at T = 1 keeps more");
}

/* The 0.999 quantiles of chi-square are 20.5 (5 degrees), 13.8 (2), 10.8 (1). */
static void test_distribution(void)
{
    const float l[V] = {0.5f, 2.0f, -1.0f, 1.5f, 0.0f, 1.0f};
    ok(chi_square(l, (struct sample){1, 0, 1}, 0x3f) < 20.5, "T = 1 draws from the softmax");
    ok(chi_square(l, (struct sample){0.4, 0, 1}, 0x3f) < 20.5, "T = 0.4 draws from softmax(l / T)");
    ok(chi_square(l, (struct sample){2, 3, 1}, 0x2a) < 13.8, "top-k renormalises");
    ok(chi_square(l, (struct sample){1, 2, 0.99}, 0x0a) < 10.8, "top-k and top-p renormalise");
    ok(chi_square(l, (struct sample){1, 0, 1}, 0x1f) > 20.5, "the statistic sees a wrong support");
}

static void test_edges(void)
{
    const float equal[V] = {1, 1, 1, 1, 1, 1};
    const float l[V] = {0.5f, 2.0f, -1.0f, 2.0f, 0.0f, 1.0f};
    const float banned[V] = {-INFINITY, 0, -INFINITY, 0, -INFINITY, 0};
    int32_t work[V];
    struct sample greedy = {0, 2, 0.5}, tiny = {1e-30, 0, 1}, tiny_p = {1e-30, 0, 0.9};
    ok(sample_draw(equal, V, &greedy, 1, 2, work) == 0, "greedy: all equal, the lowest id");
    ok(sample_draw(l, V, &greedy, 1, 2, work) == 1, "greedy: a tie goes to the lower id");
    ok(!sample_needs_logits(&greedy, V), "greedy needs no filter");
    int same = 1;
    for (uint64_t key = 0; key < 100; key++) {
        same &= sample_draw(l + 1, V - 1, &tiny, 1, key, work) ==
                sample_draw(l + 1, V - 1, &greedy, 1, key, work);
        same &= sample_draw(l, V, &tiny_p, 1, key, work) == 1 ||
                sample_draw(l, V, &tiny_p, 1, key, work) == 3;
    }
    ok(same, "T = 1e-30 is greedy");
    ok(support(banned, (struct sample){1, 0, 1}) == 0x2a, "an id with logit -inf never comes");
    ok(support(banned, (struct sample){1, 4, 0.999}) == 0x2a, "... nor through a filter");
    struct sample free_draw = {1, 0, 1}, loose = {1, 5, 1};
    int equal_draws = 1;
    for (uint64_t key = 0; key < 200; key++) {
        int32_t a = sample_draw(l, V, &free_draw, 3, key, work);
        equal_draws &= a == 2 || a == sample_draw(l, V, &loose, 3, key, work);
    }
    ok(equal_draws, "a filter leaves the noise of the others as it is");
}

int main(void)
{
    test_filters();
    test_distribution();
    test_edges();
    return tap_done();
}
