/* test-sample.c - tests drawing a token: filters in the order of Hugging Face, ties, and the
 * distribution of draws. */
#include "kernels/sample.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

enum { V = 6, DRAWS = 20000 };

static int32_t draw_by(const float *logits, size_t n, struct head_query q, uint64_t key)
{
    struct head_row out = {.id = 0, .runner_up = -1};
    int32_t work[V];
    q.keys = &key;
    sample_row(logits, n, &q, 0, &out, work);
    return out.id;
}

static int32_t draw(const float *logits, size_t n, const struct sample *s, uint64_t seed,
                    uint64_t key)
{
    return draw_by(logits, n,
                   (struct head_query){.temperature = s->temperature, .top_k = s->top_k,
                                       .top_p = s->top_p, .seed = seed},
                   key);
}

static void count(const float *logits, struct sample s, int *n)
{
    memset(n, 0, V * sizeof *n);
    for (uint64_t key = 0; key < DRAWS; key++)
        n[draw(logits, V, &s, 11, key)]++;
}

/* The ids that were ever drawn, as bits. */
static int support(const float *logits, struct sample s)
{
    int n[V], bits = 0;
    count(logits, s, n);
    for (int i = 0; i < V; i++)
        bits |= (n[i] > 0) << i;
    return bits;
}

/* support(), with top-p as a share of all ids, not of the top k. */
static int support_of_all(const float *logits, size_t top_k, double top_p)
{
    const struct head_query q = {.temperature = 1, .top_k = top_k, .top_p = top_p,
                                 .top_p_of_all = 1, .seed = 11};
    int bits = 0;
    for (uint64_t key = 0; key < DRAWS; key++)
        bits |= 1 << draw_by(logits, V, q, key);
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
    /* id 1 has 0.4 / 0.7 = 0.57 after top-k, only 0.4 before, so top-p must come second */
    ok(support(p, (struct sample){1, 2, 0.5}) == 0x02, "top-p works on what top-k left");
    ok(support_of_all(p, 2, 0.5) == 0x0a, "top-p of all: 0.4 is not enough, 0.7 is");
    ok(support_of_all(p, 2, 0.9) == 0x0a, "top-p of all 0.9: top-k then leaves two of four");
    ok(support_of_all(p, 3, 0.75) == 0x0b, "a tie brings back no id that top-p removed");
    /* At T = 0.5 the probabilities are squared: 0.16 / 0.2750 = 0.58 for id 1. */
    ok(support(p, (struct sample){0.5, 0, 0.55}) == 0x02, "top-p works on the scaled logits");
    ok(support(p, (struct sample){1, 0, 0.55}) == 0x0a, "top-p keeps more at T = 1 than at 0.5");
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
    struct sample tiny = {1e-30, 0, 1}, tiny_p = {1e-30, 0, 0.9};
    const struct head_query greedy = {.top_k = 2, .top_p = 0.5};
    ok(!sample_needs_logits(&greedy, V), "greedy needs no filter");
    const struct head_query measured = {.top_k = 2, .top_p = 0.5, .drawn = 1}, whole = {.drawn = 1};
    ok(sample_needs_logits(&measured, V) && !sample_needs_logits(&whole, V),
       "greedy needs a filter if it is measured among the ids that stay");
    int same = draw(equal, V, &tiny, 1, 2) == 0;
    for (uint64_t key = 0; key < 100; key++) {
        same &= draw(l + 1, V - 1, &tiny, 1, key) == 0;
        same &= draw(l, V, &tiny_p, 1, key) == 1 || draw(l, V, &tiny_p, 1, key) == 3;
    }
    ok(same, "T = 1e-30 is greedy; ties go to the lowest id");
    ok(support(banned, (struct sample){1, 0, 1}) == 0x2a, "an id with logit -inf never comes");
    ok(support(banned, (struct sample){1, 4, 0.999}) == 0x2a,
       "an id with logit -inf never comes through a filter");
    struct sample free_draw = {1, 0, 1}, loose = {1, 5, 1};
    int equal_draws = 1;
    for (uint64_t key = 0; key < 200; key++) {
        int32_t a = draw(l, V, &free_draw, 3, key);
        equal_draws &= a == 2 || a == draw(l, V, &loose, 3, key);
    }
    ok(equal_draws, "a filter does not change the noise of the ids that it keeps");
}

/* At T = 0.5 ids 1 and 3 have 0.16 / 0.275 and 0.09 / 0.275 of all, and 0.64 and 0.36 of what top-k
 * 2 leaves. The model itself gives them 0.4 and 0.3. */
static void test_measures(void)
{
    const float p[V] = {logf(0.1f), logf(0.4f), logf(0.05f), logf(0.3f), logf(0.1f), logf(0.05f)};
    double worst = 0;
    for (uint64_t key = 0; key < 400; key++) {
        struct head_query q = {.temperature = 0.5, .seed = 3, .keys = &key};
        for (q.drawn = 0; q.drawn < 2; q.drawn++)
            for (q.top_k = 0; q.top_k < 3; q.top_k += 2) {
                struct head_row out = {.id = 1, .runner_up = 3};
                int32_t work[V];
                sample_row(p, V, &q, 0, &out, work);
                double sum = q.top_k ? 0.25 : 0.275, model = exp(p[out.id]);
                double want = q.drawn ? model * model / sum : model;
                double next = q.drawn ? 0.09 / sum : 0.3;
                worst = fmax(worst, fabs(exp(out.log_prob) - want));
                worst = fmax(worst, fabs((double)out.runner_up_prob - next));
                worst = fmax(worst, fabs(exp(out.best_log_prob) - (q.drawn ? 0.16 / sum : 0.4)));
                if (q.drawn && q.top_k)
                    worst = fmax(worst, fabs((double)out.entropy + 0.64 * log(0.64) +
                                             0.36 * log(0.36)));
            }
    }
    ok(worst < 1e-6, "confidences by the model and by the filter err by %.1e", worst);
}

/* Tests the measures at temperature 0 in a row whose best id is 1. next: the share of id 3. */
static int measured_as(struct head_query q, double best, double next, double entropy)
{
    const float p[V] = {logf(0.1f), logf(0.4f), logf(0.05f), logf(0.3f), logf(0.1f), logf(0.05f)};
    struct head_row out = {.id = 1, .runner_up = 3};
    int32_t work[V];
    q.drawn = 1;
    sample_row(p, V, &q, 0, &out, work);
    return out.id == 1 && fabs((double)out.prob - best) < 1e-6 &&
           fabs((double)out.runner_up_prob - next) < 1e-6 &&
           fabs((double)out.entropy - entropy) < 1e-6;
}

/* In Dream the filters change no greedy choice, but they change all measures of it. */
static void test_greedy(void)
{
    const double a = 0.4 / 0.7, two = -a * log(a) - (1 - a) * log(1 - a), best = 0.4 / 0.9;
    const double four = -best * log(best) - log(1.0 / 3) / 3 - 2 * log(1.0 / 9) / 9;
    const int32_t quiet = 1;
    ok(measured_as((struct head_query){.top_k = 2}, a, 1 - a, two), "T = 0: share of top-k 2");
    ok(measured_as((struct head_query){.top_k = 3}, best, 0.3 / 0.9, four),
       "T = 0: share of top-k 3, a tie");
    ok(measured_as((struct head_query){.top_p = 0.65}, a, 1 - a, two), "T = 0: share of top-p");
    ok(measured_as((struct head_query){.top_k = 1}, 1, 0, 0), "T = 0: one id is sure");
    ok(measured_as((struct head_query){.top_k = 2, .top_p = 0.5}, 1, 0, 0), "top-k, then top-p");
    ok(measured_as((struct head_query){.top_k = 2, .top_p = 0.5, .top_p_of_all = 1}, a, 1 - a, two),
       "top-p of all, then top-k");
    ok(measured_as((struct head_query){.top_k = 1, .quiet = &quiet, .n_quiet = 1}, 0, 0, 0),
       "only a quiet id stays: its measures are 0");
}

int main(void)
{
    test_greedy();
    test_measures();
    test_filters();
    test_distribution();
    test_edges();
    return tap_done();
}
