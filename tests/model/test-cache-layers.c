/* test-cache-layers.c - tests the cache policies that work inside the layers, features and sparse.
 * They are compared with both algorithms in doubles (naive-caches.h), and with neutral parameters
 * with the policies that they then equal. The memory that they take is tested too. */
#include "tests/model/naive-caches.h"

static int open_model(struct checkpoint *c, size_t heads)
{
    struct err e = {0};
    int good = !checkpoint_open(c, "synth:tiny-llada", 3, &e);
    c->config.kv_heads = heads;
    return ok(good, "synth:tiny-llada opens %s", e.text);
}

/* Results of the naive algorithm. */
struct answer {
    int32_t ids[PROMPTS][LEN];
    int64_t passes[PROMPTS], rows[PROMPTS], whole;
};

static struct answer answer_of(const struct weights *w, const struct diffuse *d)
{
    struct answer a = {0};
    struct naive *v = mem_zero(1, sizeof *v);
    for (size_t i = 0; i < PROMPTS; i++) {
        *v = (struct naive){.w = w, .how = d};
        naive_run(v, &prompts[i]);
        memcpy(a.ids[i], v->x + v->prompt, d->gen_length * sizeof *v->x);
        a.passes[i] = v->passes;
        a.rows[i] = v->rows;
        a.whole += v->whole;
    }
    free(v);
    return a;
}

static void same_as_naive(const struct network *n, const struct answer *a,
                          const struct diffuse *d, const char *what)
{
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    diffuse(n, d, prompts, PROMPTS, g, &trace);
    int same = 1, work = 1;
    int64_t rows = 0;
    for (size_t i = 0; i < PROMPTS; i++) {
        same &= g[i].n == d->gen_length && !memcmp(g[i].ids, a->ids[i], g[i].n * sizeof *g[i].ids);
        work &= g[i].denoise_steps == a->passes[i] && g[i].rows == a->rows[i];
        rows += g[i].rows;
        generation_free(&g[i]);
    }
    ok(same, "%s %s: the ids of the naive algorithm", n->backend->ops->level, what);
    ok(work, "%s: its passes and rows: %d of %d", what, (int)rows, (int)a->whole);
    ok(trace.memory.kind[MEMORY_KV] == trace.estimate.kv &&
           trace.memory.kind[MEMORY_ACTIVATIONS] == trace.estimate.activations &&
           n->backend->memory.kind[MEMORY_KV] == 0,
       "%s: memory as estimated, and given back", what);
}

static const struct diffuse standard = {.gen_length = 24, .block_length = 8, .steps = 24,
                                        .prepare = 1, .seed = 5};

static const struct {
    const char *what;
    enum caching cache;
    struct cache_params kept;
    double cfg, threshold;
} cases[] = {
    {"features", CACHE_FEATURES,
     {.prompt_refresh = 10, .response_refresh = 4, .update = 0.25}, 0, 0},
    {"sparse", CACHE_SPARSE, {.keep = 0.5, .keep_delay = 1}, 0, 0},
    {"features, one slot", CACHE_FEATURES,
     {.prompt_refresh = 0, .response_refresh = 0, .update = 0}, 0, 0},
    {"features, all slots", CACHE_FEATURES,
     {.prompt_refresh = 7, .response_refresh = 50, .update = 1}, 0, 0},
    {"features, guided", CACHE_FEATURES,
     {.prompt_refresh = 9, .response_refresh = 5, .update = 0.3}, 1.5, 0},
    {"features, threshold", CACHE_FEATURES,
     {.prompt_refresh = 9, .response_refresh = 3, .update = 0.5}, 0, 0.003},
    {"sparse, no delay", CACHE_SPARSE, {.keep = 0.3, .keep_delay = 0}, 0, 0},
    {"sparse, nothing kept", CACHE_SPARSE, {.keep = 0, .keep_delay = 2}, 0, 0},
    {"sparse, guided", CACHE_SPARSE, {.keep = 0.5, .keep_delay = 1}, 1.5, 0},
    {"sparse, threshold", CACHE_SPARSE, {.keep = 0.5, .keep_delay = 1}, 0, 0.003}};
enum { CASES = sizeof cases / sizeof *cases };

static struct diffuse case_of(size_t i)
{
    struct diffuse d = standard;
    d.cache = cases[i].cache;
    d.kept = cases[i].kept;
    d.cfg_scale = cases[i].cfg;
    d.rule = cases[i].threshold > 0 ? UNMASK_THRESHOLD : UNMASK_SCHEDULE;
    d.unmask.threshold = cases[i].threshold;
    return d;
}

/* The answers to the first n cases, by a naive network with `heads` key heads. */
static struct answer *answers_of(size_t heads, size_t n)
{
    struct answer *a = mem_alloc(n * sizeof *a);
    struct checkpoint c;
    if (!open_model(&c, heads))
        exit(tap_done());
    struct weights w = weights_of(&c);
    for (size_t i = 0; i < n; i++) {
        const struct diffuse d = case_of(i);
        a[i] = answer_of(&w, &d);
    }
    weights_free(&w);
    checkpoint_close(&c);
    return a;
}

/* Generates answers; returns the memory of the cache. */
static size_t run_as(const struct network *n, const struct diffuse *d, int32_t ids[][LEN])
{
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    diffuse(n, d, prompts, PROMPTS, g, &trace);
    for (size_t i = 0; i < PROMPTS; i++) {
        memcpy(ids[i], g[i].ids, g[i].n * sizeof *g[i].ids);
        generation_free(&g[i]);
    }
    return trace.memory.kind[MEMORY_KV];
}

/* With parameters that leave nothing out, a policy gives the ids of the policy that it then
 * equals. */
static void test_neutral(const struct network *n)
{
    int32_t a[PROMPTS][LEN] = {0}, b[PROMPTS][LEN] = {0};
    for (int rule = 0; rule < 2; rule++) {
        struct diffuse d = standard;
        d.rule = rule ? UNMASK_THRESHOLD : UNMASK_SCHEDULE;
        d.unmask.threshold = 0.003;
        run_as(n, &d, a);
        d.cache = CACHE_FEATURES;
        d.kept = (struct cache_params){.prompt_refresh = 1, .response_refresh = 1, .update = 0.25};
        run_as(n, &d, b);
        ok(!memcmp(a, b, sizeof a), "%s features of every pass: as none, rule %d",
           n->backend->ops->level, rule);
        d.cache = CACHE_DUAL;
        size_t dual = run_as(n, &d, a);
        d.cache = CACHE_SPARSE;
        d.kept = (struct cache_params){.keep = 1};
        size_t all = run_as(n, &d, b);
        ok(!memcmp(a, b, sizeof a) && all == dual, "%s sparse that keeps all: as dual, rule %d",
           n->backend->ops->level, rule);
        d.kept.keep = 0.25;
        size_t quarter = run_as(n, &d, b);
        ok(quarter < dual / 2 && (rule || memcmp(a, b, sizeof a)),
           "%s sparse that keeps a quarter: %zu bytes of %zu", n->backend->ops->level, quarter,
           dual);
    }
}

/* Tests the first n cases with a network of `heads` key heads. depth: passes in flight. */
static void test_backend(const char *device, const char *level, size_t heads,
                         const struct answer *a, size_t n_cases, int depth)
{
    struct err e = {0};
    struct checkpoint c;
    struct network n;
    struct backend *b = backend_open(device, level, 2, 0, NULL);
    struct ops ops = *b->ops;
    b->ops = &ops;
    decoded_act(&ops, depth);
    if (open_model(&c, heads) &&
        ok(!network_load(&n, b, &c, &(struct precision){.dtype = "f32"}, &e), "%s", e.text)) {
        for (size_t i = 0; i < n_cases; i++) {
            const struct diffuse d = case_of(i);
            same_as_naive(&n, &a[i], &d, cases[i].what);
        }
        test_neutral(&n);
        network_free(&n);
    }
    checkpoint_close(&c);
    backend_close(b);
}

int main(void)
{
    enum { FEW = 2 };
    struct answer *grouped = answers_of(2, CASES), *plain = answers_of(4, FEW);
    test_backend("ref", NULL, 4, plain, FEW, 1);
    test_backend("ref", NULL, 2, grouped, CASES, 3);
    for (size_t i = 0; ops_cpu_at(i); i++)
        test_backend("cpu", ops_cpu_at(i)->level, 2, grouped, i ? FEW : CASES, 1);
    free(grouped);
    free(plain);
    return tap_done();
}
