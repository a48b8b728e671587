/* test-head.c - compares the head's streaming reduction with ref on exact logits. D = 1 and x = 1,
 * so the logits are the weights and every choice must be the same id. */
#include "kernels/gumbel.h"
#include "kernels/ops.h"
#include "kernels/sample.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

enum { ROWS = 70 };

static struct backend *open_level(const char *level, size_t threads)
{
    struct backend *b = mem_zero(1, sizeof *b);
    b->ops = strcmp(level, "ref") ? ops_cpu(level) : &ops_ref;
    b->pool = pool_new(threads);
    return b;
}

static struct head_row *run(struct backend *b, const float *logits, size_t V,
                            const struct head_query *q)
{
    struct mat m;
    struct mat_source s = mat_floats(logits, V, 1);
    float ones[ROWS];
    for (int i = 0; i < ROWS; i++)
        ones[i] = 1;
    struct head_row *out = mem_zero(ROWS, sizeof *out);
    float *kept = sample_needs_logits(q, V) || q->tops ? mem_alloc(ROWS * V * sizeof *kept) : NULL;
    void *work = mem_aligned(b->ops->head_work(b, ROWS, 1, V, q->dense));
    b->ops->mat_make(b, &m, &s, DTYPE_F32);
    b->ops->head(b, &m, ones, NULL, ROWS, q, out, kept, work);
    b->ops->mat_free(b, &m);
    free(kept);
    free(work);
    return out;
}

static int same_choice(const struct head_row *x, const struct head_row *y)
{
    return x->id == y->id && x->runner_up == y->runner_up && x->bad == y->bad &&
           x->gap == y->gap;
}

static double apart(const struct head_row *x, const struct head_row *y)
{
    if (!isnan(x->log_prob) != !isnan(y->log_prob) || !isnan(x->entropy) != !isnan(y->entropy) ||
        !isnan(x->runner_up_prob) != !isnan(y->runner_up_prob) ||
        !isnan(x->target_log_prob) != !isnan(y->target_log_prob))
        return INFINITY; /* fmax skips a NaN */
    double d = fabs(x->log_prob - y->log_prob);
    d = fmax(d, fabs((double)x->entropy - y->entropy));
    d = fmax(d, fabs(x->best_log_prob - y->best_log_prob));
    d = fmax(d, fabs((double)x->runner_up_prob - y->runner_up_prob));
    return fmax(d, fabs(x->target_log_prob - y->target_log_prob));
}

/* Compares 2 threads with ref; 1 and 3 threads, and all logits at once, must give the same
 * numbers. */
static void compare(const char *level, const float *logits, size_t V, const struct head_query *q,
                    const char *what)
{
    struct backend *ref = open_level("ref", 1);
    struct head_row *truth = run(ref, logits, V, q), *got[4];
    struct head_query dense = *q;
    dense.dense = 1;
    backend_close(ref);
    for (size_t i = 0; i < 4; i++) {
        struct backend *b = open_level(level, i + 1);
        got[i] = run(b, logits, V, i == 3 ? &dense : q);
        backend_close(b);
    }
    int wrong = 0, unequal = 0;
    double far = 0;
    for (int r = 0; r < ROWS; r++) {
        wrong += !same_choice(&got[1][r], &truth[r]);
        far = fmax(far, apart(&got[1][r], &truth[r]));
        for (int i = 0; i < 4; i += 1 + !i)
            unequal += !same_choice(&got[i][r], &got[1][r]) || apart(&got[i][r], &got[1][r]) != 0;
    }
    ok(wrong == 0 && far < 1e-5, "%s %zu ids, %s: %d choices differ, numbers by %.1e", level, V,
       what, wrong, far);
    ok(unequal == 0, "%s the same at 1, 2 and 3 threads, and with all logits at once", level);
    for (int i = 0; i < 4; i++)
        free(got[i]);
    free(truth);
}

static void noise(const char *level)
{
    const double temperature[] = {1e-9, 0.05, 0.7, 1, 8};
    const double spread[] = {0.01, 1, 4, 20};
    uint64_t keys[ROWS];
    for (int i = 0; i < ROWS; i++)
        keys[i] = 77u + (uint64_t)i * 0x100000001u;
    size_t V = 3000 + 13;
    float *logits = mem_alloc(V * sizeof *logits);
    struct rng rng = {.seed = 5};
    for (int s = 0; s < 4; s++) {
        for (size_t v = 0; v < V; v++)
            logits[v] = (float)(spread[s] * rng_normal(&rng));
        for (int t = 0; t < 5; t++) {
            struct head_query q = {.temperature = temperature[t], .seed = 3, .keys = keys};
            char what[64];
            for (q.gumbel = GUMBEL_F64; q.gumbel <= GUMBEL_F32X; q.gumbel++) {
                snprintf(what, sizeof what, "temperature %g, spread %g, noise %zu",
                         temperature[t], spread[s], q.gumbel);
                compare(level, logits, V, &q, what);
            }
            q = (struct head_query){.temperature = temperature[t], .seed = 3, .keys = keys,
                                    .top_k = (size_t)t * 7, .top_p = 0.8, .drawn = (size_t)t % 2};
            snprintf(what, sizeof what, "filters, temperature %g, spread %g", temperature[t],
                     spread[s]);
            compare(level, logits, V, &q, what);
            q.temperature = 0;
            q.drawn = 1;
            snprintf(what, sizeof what, "filters, greedy, top-k %d, spread %g", t * 7, spread[s]);
            compare(level, logits, V, &q, what);
        }
    }
    free(logits);
}

/* Returns 1 if t has the best ids in order, the lowest of equals first, and their share of all. */
static int are_tops(const struct head_top *t, const float *logits, size_t V)
{
    double sum = 0;
    int good = 1;
    for (size_t v = 0; v < V; v++)
        sum += exp((double)logits[v]);
    for (size_t i = 0, last = V; i < HEAD_TOPS; i++) {
        size_t best = V;
        for (size_t v = 0; v < V; v++)
            if ((last == V || logits[v] < logits[last] ||
                 (logits[v] == logits[last] && v > last)) &&
                (best == V || logits[v] > logits[best]))
                best = v;
        good &= i < V ? t->id[i] == (int32_t)best &&
                            fabs((double)t->prob[i] - exp((double)logits[best]) / sum) < 1e-6
                      : t->id[i] == -1 && t->prob[i] == 0;
        last = best;
    }
    return good;
}

static void tops(const char *level)
{
    size_t sizes[] = {1, 5, 8, 9, 300, 1025};
    struct rng rng = {.seed = 8};
    int good = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t V = sizes[i];
        float *logits = mem_alloc(V * sizeof *logits);
        struct head_top *top = mem_zero(ROWS, sizeof *top);
        struct backend *b = open_level(level, 2);
        for (size_t v = 0; v < V; v++)
            logits[v] = i % 2 ? (float)rng_below(&rng, 4) : (float)rng_normal(&rng);
        free(run(b, logits, V, &(struct head_query){.tops = top}));
        for (int r = 0; r < ROWS; r++)
            good &= are_tops(&top[r], logits, V);
        backend_close(b);
        free(top);
        free(logits);
    }
    ok(good, "%s the most likely ids of a row and their probabilities", level);
}

/* Tests few distinct values, so that the best and the second best are often equal. */
static void ties(const char *level)
{
    size_t sizes[] = {1, 2, 15, 16, 17, 63, 1024, 1025, 2100};
    int32_t target[ROWS];
    struct rng rng = {.seed = 6};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t V = sizes[i];
        float *logits = mem_alloc(V * sizeof *logits);
        for (size_t v = 0; v < V; v++)
            logits[v] = (float)rng_below(&rng, 3);
        for (int r = 0; r < ROWS; r++)
            target[r] = (int32_t)((size_t)r % V);
        struct head_query q = {.target = target};
        compare(level, logits, V, &q, "equal logits");
        free(logits);
    }
}

static void listed(const char *level)
{
    enum { V = 1500 };
    int32_t ban[] = {7, 1030, 0}, quiet[] = {8, 1400};
    float logits[V];
    for (int v = 0; v < V; v++)
        logits[v] = (float)(v * 37 % 101) / 10;
    logits[7] = logits[1030] = 50; /* the largest, but banned */
    logits[8] = 40;                /* may be chosen, but is left out of the probabilities */
    struct head_query q = {.ban = ban, .n_ban = 3, .quiet = quiet, .n_quiet = 2};
    compare(level, logits, V, &q, "banned and quiet ids");
    logits[1030] = NAN;
    struct backend *b = open_level(level, 2);
    struct head_row *rows = run(b, logits, V, &q);
    ok(rows[0].bad && rows[0].id == 8, "%s a NaN is reported even where it is banned", level);
    free(rows);
    backend_close(b);
}

/* A head with rows for some ids gives the answers of a whole head in which the other ids are
 * banned. */
static void some_ids(const char *level, size_t gumbel, double temperature)
{
    enum { V = 3021, FEW = V / 3, EACH = 3 };
    static float all[V], few[FEW];
    int32_t ids[FEW], ban[V - FEW];
    uint64_t keys[ROWS];
    struct rng rng = {.seed = 8};
    size_t banned = 0;
    for (int i = 0; i < ROWS; i++)
        keys[i] = 5u + (uint64_t)i * 0x100000001u;
    for (int32_t v = 0; v < V; v++) {
        all[v] = (float)rng_normal(&rng);
        if (v % EACH == 1) {
            ids[v / EACH] = v;
            few[v / EACH] = all[v];
        } else {
            ban[banned++] = v;
        }
    }
    struct head_query q = {.temperature = temperature, .seed = 3, .keys = keys, .gumbel = gumbel,
                           .ban = ban, .n_ban = banned};
    struct backend *b = open_level(level, 2);
    struct head_row *want = run(b, all, V, &q);
    q.n_ban = 0;
    q.ids = ids;
    struct head_row *got = run(b, few, FEW, &q);
    int wrong = 0, other = 0;
    double far = 0;
    for (int r = 0; r < ROWS; r++) {
        wrong += !same_choice(&got[r], &want[r]);
        other += got[r].id != got[0].id;
        far = fmax(far, apart(&got[r], &want[r]));
    }
    ok(!wrong && far < 1e-6 && !other == !(temperature > 0),
       "%s %d of %d ids, noise %zu, temperature %g: %d wrong, numbers by %.1e", level, FEW, V,
       gumbel, temperature, wrong, far);
    free(want);
    free(got);
    backend_close(b);
}

static void subsets(const char *level)
{
    some_ids(level, GUMBEL_F64, 0);
    for (size_t gumbel = GUMBEL_F64; gumbel <= GUMBEL_F32X; gumbel++)
        some_ids(level, gumbel, 1.5);
}

/* KL(softmax(l) || softmax(before)) without the ids of q's lists. */
static double divergence_of(const float *l, const float *before, int n, const struct head_query *q)
{
    double sum[2] = {0}, d = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int v = 0; v < n; v++) {
            int counts = 1;
            for (size_t i = 0; i < q->n_ban; i++)
                counts &= v != q->ban[i];
            for (size_t i = 0; i < q->n_quiet; i++)
                counts &= v != q->quiet[i];
            double p = counts ? exp((double)l[v]) : 0, was = counts ? exp((double)before[v]) : 0;
            if (pass == 0) {
                sum[0] += p;
                sum[1] += was;
            } else if (counts) {
                d += p / sum[0] * log(p / sum[0] / (was / sum[1]));
            }
        }
    return d;
}

/* Row r is compared with the other column, row 0 with itself. */
static void diverge(const char *level, size_t V, double spread, int lists)
{
    const int32_t ban[] = {0, 7}, quiet[] = {3, 1400};
    struct head_query q = {.divergence = 1, .ban = ban, .quiet = quiet};
    q.n_ban = q.n_quiet = lists ? 2 : 0;
    struct backend *b = open_level(level, 2);
    struct rng rng = {.seed = V};
    float *w = mem_alloc(2 * V * sizeof *w), *l = mem_alloc(2 * V * sizeof *l), x[2 * ROWS] = {0};
    float xu[2 * ROWS] = {0};
    for (size_t v = 0; v < V; v++) {
        w[2 * v] = l[v] = (float)(spread * rng_normal(&rng));
        w[2 * v + 1] = l[V + v] = l[v] + (float)rng_normal(&rng) / 4;
    }
    for (int r = 0; r < ROWS; r++) {
        x[2 * r] = 1;
        xu[2 * r + (r > 0)] = 1;
    }
    struct mat m;
    struct mat_source s = mat_floats(w, V, 2);
    struct head_row out[ROWS], plain[ROWS];
    void *work = mem_aligned(b->ops->head_work(b, ROWS, 2, V, q.dense));
    b->ops->mat_make(b, &m, &s, DTYPE_F32);
    b->ops->head(b, &m, x, xu, ROWS, &q, out, NULL, work);
    struct head_row dense[ROWS];
    q.dense = 1;
    void *more = mem_aligned(b->ops->head_work(b, ROWS, 2, V, 2));
    b->ops->head(b, &m, x, xu, ROWS, &q, dense, NULL, more);
    free(more);
    q.divergence = q.dense = 0;
    b->ops->head(b, &m, x, NULL, ROWS, &q, plain, NULL, work);
    b->ops->mat_free(b, &m);
    double true_one = divergence_of(l, l + V, (int)V, &q), far = 0;
    int others = 0;
    for (int r = 0; r < ROWS; r++) {
        far = fmax(far, fabs((double)out[r].divergence - (r ? true_one : 0)));
        others += out[r].id != plain[r].id || apart(&out[r], &plain[r]) != 0 ||
                  plain[r].divergence != 0 || dense[r].id != out[r].id ||
                  memcmp(&dense[r].divergence, &out[r].divergence, sizeof(float)) != 0;
    }
    ok(far < 1e-6 && out[0].divergence < 1e-6 && !others,
       "%s %zu ids, spread %g%s: divergence %g, off by %.1e, of itself %g; the rest is as ever",
       level, V, spread, lists ? ", lists" : "", true_one, far, (double)out[0].divergence);
    backend_close(b);
    free(work);
    free(w);
    free(l);
}

static void divergences(const char *level)
{
    const size_t sizes[] = {1, 15, 64, 1024, 1025, 3013};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int s = 0; s < 3; s++) {
            diverge(level, sizes[i], (const double[]){0.1, 2, 15}[s], 0);
            if (sizes[i] > 1400)
                diverge(level, sizes[i], (const double[]){0.1, 2, 15}[s], 1);
        }
}

int main(void)
{
    size_t ran = 0;
    for (const struct ops *ops; (ops = ops_cpu_at(ran)); ran++) {
        noise(ops->level);
        ties(ops->level);
        listed(ops->level);
        divergences(ops->level);
        tops(ops->level);
        subsets(ops->level);
    }
    subsets("ref");
    divergences("ref");
    tops("ref");
    ok(ran > 0, "at least one level runs");
    return tap_done();
}
