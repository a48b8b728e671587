/* test-cache.c - compares each policy of --cache and --suffix with its algorithm written out
 * naively, pass by pass, on the prompts of a batch; also compares the cost of the passes. One file
 * because the naive algorithms share model, prompts and bookkeeping. */
#include "kernels/advance.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/decode/diffuse.h"
#include "lib/network/forward.h"
#include "tests/model/decoded.h"

enum { LEN = 64 };

/* A canvas and its cache; the slot of a position has the number of the position. */
struct naive {
    const struct network *n;
    const struct diffuse *how;
    struct kv kv, twin;
    uint64_t key;
    int32_t x[LEN], block, offset; /* position p is p + offset in the mask */
    int fresh[LEN]; /* 1: committed in the previous pass */
    size_t prompt, len;
    int64_t passes, rows;
};

/* Computes the rows of x with row[]; they read the keys with key[]. Keeps their keys and values. */
static void compute(struct naive *v, struct kv *kv, const int32_t *x, const int *row,
                    const int *key, float *logits)
{
    int32_t token[LEN], pos[LEN], slot[LEN], keys[LEN], wanted[LEN];
    struct head_row answer[LEN];
    size_t rows = 0, n_keys = 0, V = v->n->config.vocab;
    for (size_t i = 0; i < v->len; i++) {
        if (row[i]) {
            wanted[rows] = (int32_t)rows;
            token[rows] = x[i];
            slot[rows] = (int32_t)i;
            pos[rows++] = (int32_t)i + v->offset;
        }
        if (key[i])
            keys[n_keys++] = (int32_t)i;
    }
    const struct forward_seq seq = {rows, keys, n_keys, 0};
    struct forward f = {.token = token, .pos = pos, .slot = slot, .seqs = &seq, .n_seqs = 1,
                        .mask = v->n->config.attends, .mask_block = v->n->config.attends_block,
                        .wanted = wanted, .n_wanted = rows};
    const struct work_size size = {.rows = LEN, .seqs = 1, .slots = LEN, .listed = LEN,
                                   .wanted = LEN, .logits = 1, .cached = 1};
    struct work *w = work_make(v->n, &size);
    float *got = mem_alloc(rows * V * sizeof *got);
    forward(v->n, kv, w, &f, answer, got);
    for (size_t k = 0; k < rows; k++)
        memcpy(logits + (size_t)slot[k] * V, got + k * V, V * sizeof *got);
    free(got);
    work_free(w, v->n);
    v->rows += (int64_t)rows;
}

/* The logits of the rows, with guidance if cfg_scale is set. */
static void look(struct naive *v, const int *row, const int *key, float *logits, float *u)
{
    size_t V = v->n->config.vocab;
    double w = v->how->cfg_scale;
    compute(v, &v->kv, v->x, row, key, logits);
    v->passes++;
    if (!(w > 0))
        return;
    int32_t masked[LEN];
    for (size_t i = 0; i < v->len; i++)
        masked[i] = i < v->prompt ? (int32_t)v->n->config.mask : v->x[i];
    compute(v, &v->twin, masked, row, key, u);
    for (size_t i = 0; i < v->len * V; i++)
        if (row[i / V])
            logits[i] = (float)(u[i] + (1 + w) * ((double)logits[i] - u[i]));
}

/* The answer to a row, and its probability. */
static int32_t decide(const float *l, size_t V, double *confidence)
{
    size_t best = 0;
    double sum = 0;
    for (size_t k = 1; k < V; k++)
        best = l[k] > l[best] ? k : best;
    for (size_t k = 0; k < V; k++)
        sum += exp((double)l[k] - l[best]);
    *confidence = 1 / sum;
    return (int32_t)best;
}

/* The threshold of this pass. s: the block's first slot. */
static double threshold_at(const struct naive *v, size_t s, const int *key)
{
    const struct unmask_params *p = &v->how->unmask;
    int masks = 0, slots = 0;
    for (size_t k = s; k < v->len; k++) {
        masks += key[k] && v->x[k] == v->n->config.mask;
        slots += key[k];
    }
    return p->threshold * fma(-p->threshold_decay, (double)(slots - masks) / slots, 1);
}

/* Commits masks before `end` that have a row: the `most` most confident ones, or (most 0) all that
 * reach the threshold, and at least one. */
static void commit(struct naive *v, size_t end, size_t most, double threshold, const int *row,
                   const float *logits)
{
    int32_t id[LEN];
    double c[LEN];
    size_t lag = (size_t)v->n->config.logit_shift;
    for (size_t k = 0; k < end; k++) {
        c[k] = -1;
        v->fresh[k] = 0;
        if (k >= v->prompt && row[k - lag] && v->x[k] == v->n->config.mask)
            id[k] = decide(logits + (k - lag) * v->n->config.vocab, v->n->config.vocab, &c[k]);
    }
    for (size_t t = 0; t < (most ? most : LEN); t++) {
        size_t best = 0;
        for (size_t k = 0; k < end; k++)
            best = c[k] > c[best] ? k : best;
        if (c[best] < 0 || (!most && t && c[best] < threshold))
            break;
        v->x[best] = id[best];
        v->fresh[best] = 1;
        c[best] = -1;
    }
}

static int masks(const struct naive *v, size_t from, size_t end)
{
    int n = 0;
    for (size_t k = from; k < end; k++)
        n += v->x[k] == v->n->config.mask;
    return n;
}

/* Returns 1 if position p after block [s, e) exists, by the definition of the suffix. */
static int exists(const struct naive *v, size_t s, size_t e, size_t p)
{
    const struct suffix *x = &v->how->suffix;
    const struct canvas_state c = {.key = v->key, .block = v->block, .len = (int32_t)v->len};
    const struct cache_view view = {.canvas = &c, .begin = (int32_t)s, .end = (int32_t)e};
    switch (x->kind) {
    case SUFFIX_WINDOW: return p < e + (size_t)x->window || p == v->len - 1;
    case SUFFIX_DROPOUT: /* test-lists.c tests the draws */
        return suffix_keeps(x, &view, rng_derive(v->how->seed, "suffix dropout"), (int32_t)p);
    case SUFFIX_GROW: return p < e;
    case SUFFIX_ALL:
    case SUFFIX_COUNT: break;
    }
    return 1;
}

/* Returns 1 if pass `pass` of block [s, e) computes position p, by the definition of the policy. */
static int computes(const struct naive *v, size_t s, size_t e, int pass, size_t p)
{
    const struct cache_params *k = &v->how->kept;
    size_t m = v->n->config.attends_block, b = v->how->block_length;
    size_t in = m ? (s + (size_t)v->offset) % m : 0; /* distance of s from its mask block's start */
    int full = pass == 0 || (k->refresh && pass % k->refresh == 0);
    switch (v->how->cache) {
    case CACHE_PREFIX: return full || p >= s;
    case CACHE_DUAL: return full || (p >= s && p < e);
    case CACHE_VICINITY:
        return full || pass < k->vicinity_warmup ||
               (p + (size_t)k->vicinity_before >= s && p < e + (size_t)k->vicinity_after);
    case CACHE_DELAYED:
        return pass < 2 || (k->delayed_refresh && pass % k->delayed_refresh == 0) ||
               v->fresh[p] || v->x[p] == v->n->config.mask;
    case CACHE_EXACT: /* also the block before; at first also the prompt. m = block_length */
        return p < e && (pass || !v->passes ? !v->passes || p + in >= s : p + b + in >= s);
    case CACHE_FEATURES: /* test-cache-layers.c tests these two */
    case CACHE_SPARSE:
    case CACHE_NONE:
    case CACHE_COUNT: break;
    }
    return 1;
}

static void naive_run(struct naive *v, const struct generation_input *in)
{
    const struct diffuse *d = v->how;
    size_t V = v->n->config.vocab, blocks = d->gen_length / d->block_length;
    size_t most = d->rule == UNMASK_THRESHOLD ? 0 : d->block_length / (d->steps / blocks);
    const struct config *c = &v->n->config;
    size_t m = c->attends_block, shift = m && !c->attends_from_end ? in->n % d->block_length : 0;
    v->key = in->key;
    v->prompt = in->n;
    v->offset = c->attends_from_end ? (int32_t)((m - in->n % m) % m) : 0;
    v->len = in->n + d->gen_length;
    while (m && (v->len + (size_t)v->offset) % m)
        v->len++; /* up to whole blocks */
    float *logits = mem_zero(2 * LEN * V, sizeof *logits);
    for (size_t i = 0; i < v->len; i++)
        v->x[i] = i < in->n ? in->ids[i] : (int32_t)v->n->config.mask;
    for (size_t end = in->n - shift; end < in->n + d->gen_length; v->block++) {
        size_t s = end > in->n ? end : in->n, e = end += d->block_length;
        e = e < v->len ? e : v->len;
        size_t own = e < in->n + d->gen_length ? e : in->n + d->gen_length; /* end of the answer */
        for (int pass = 0; masks(v, s, own); pass++) {
            int row[LEN] = {0}, key[LEN] = {0};
            size_t asked = c->seeds && !pass && s % m == 0 ? s + 1 : e;
            size_t last = asked < e && d->cache == CACHE_EXACT ? s : e; /* for a seed s is enough */
            for (size_t p = 0; p < v->len; p++) {
                key[p] = exists(v, s, e, p) && (d->cache != CACHE_EXACT || p < last);
                row[p] = key[p] && computes(v, s, e, pass, p);
                int first = p + 1 == s && !(c->seeds && pass && s % m == 0);
                row[p] |= c->logit_shift && p + 1 < asked && (first || v->x[p + 1] == c->mask);
            }
            look(v, row, key, logits, logits + LEN * V);
            commit(v, asked, most, threshold_at(v, s, key), row, logits);
        }
    }
    free(logits);
}

static void same_as_naive(const struct network *n, const struct diffuse *d, const char *what)
{
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    diffuse(n, d, prompts, PROMPTS, g, &trace);
    int same = 1, work = 1;
    int64_t rows = 0, full = 0;
    for (size_t i = 0; i < PROMPTS; i++) {
        struct naive v = {.n = n, .how = d};
        kv_make(&v.kv, n, LEN);
        kv_make(&v.twin, n, LEN);
        naive_run(&v, &prompts[i]);
        same &= g[i].n == d->gen_length &&
                !memcmp(g[i].ids, v.x + v.prompt, g[i].n * sizeof *v.x);
        work &= g[i].denoise_steps == v.passes && g[i].rows == v.rows;
        rows += v.rows;
        full += v.passes * (int64_t)v.len * (d->cfg_scale > 0 ? 2 : 1);
        kv_free(&v.kv, n);
        kv_free(&v.twin, n);
        generation_free(&g[i]);
    }
    ok(same, "%s: the ids of the naive algorithm", what);
    ok(work, "%s: its passes and rows: %d of %d", what, (int)rows, (int)full);
    ok(trace.memory.kind[MEMORY_KV] == trace.estimate.kv &&
           trace.memory.kind[MEMORY_ACTIVATIONS] == trace.estimate.activations &&
           (trace.estimate.kv > 0) == (d->cache != CACHE_NONE) &&
           n->backend->memory.kind[MEMORY_KV] == 0,
       "%s: memory as estimated, and given back", what);
}

static void test_policy(const struct network *n, enum caching cache)
{
    const char *name = cache_policies[cache]->name;
    char what[80];
    struct diffuse d = {.gen_length = 24, .block_length = 8, .steps = 12, .cache = cache,
                        .kept = {.vicinity_before = 3, .vicinity_after = 5, .vicinity_warmup = 2,
                                 .delayed_refresh = 3},
                        .prepare = 1, .seed = 5};
    snprintf(what, sizeof what, "%s, three blocks by schedule", name);
    same_as_naive(n, &d, what);
    d.cfg_scale = 1.5;
    snprintf(what, sizeof what, "%s, guided", name);
    same_as_naive(n, &d, what);
    d.cfg_scale = 0;
    d.kept.refresh = 2;
    snprintf(what, sizeof what, "%s, refreshed", name);
    same_as_naive(n, &d, what);
    d.rule = UNMASK_THRESHOLD;
    for (int i = 0; i < 4; i++) { /* canvases of a batch fill their blocks at different paces */
        d.unmask.threshold = (const double[]){0.002, 0.003, 0.0031, 1}[i];
        d.kept.refresh = i % 2 ? 0 : 3;
        snprintf(what, sizeof what, "%s, threshold %g", name, d.unmask.threshold);
        same_as_naive(n, &d, what);
    }
}

static void test_suffixes(const struct network *n)
{
    static const struct suffix list[] = {{SUFFIX_ALL, 0, 0, 0}, {SUFFIX_WINDOW, 3, 0, 0},
                                         {SUFFIX_DROPOUT, 12, 2, 2}, {SUFFIX_GROW, 0, 0, 0}};
    char what[80];
    for (size_t k = 0; k < sizeof list / sizeof *list; k++)
        for (int cache = 0; cache < CACHE_EXACT; cache++) {
            struct diffuse d = {.gen_length = 24, .block_length = 8, .steps = 12,
                                .cache = (enum caching)cache, .kept = cache_usual,
                                .suffix = list[k], .prepare = 1, .seed = 5};
            snprintf(what, sizeof what, "suffix %d, %s", (int)list[k].kind,
                     cache_policies[cache]->name);
            same_as_naive(n, &d, what);
            d.rule = UNMASK_THRESHOLD;
            d.unmask.threshold = 0.0032;
            d.unmask.threshold_decay = 0.3;
            snprintf(what, sizeof what, "suffix %d, %s, a threshold that falls",
                     (int)list[k].kind, cache_policies[cache]->name);
            same_as_naive(n, &d, what);
        }
}

/* Returns 1 if runs with *d and *e give equal ids. rows[]: the number of rows that each run
 * took. */
static int same_ids(const struct network *n, const struct diffuse *d, const struct diffuse *e,
                    int64_t rows[2])
{
    struct generation g[2][PROMPTS] = {0};
    struct batch_trace trace[2] = {0};
    int same = 1;
    rows[0] = rows[1] = 0;
    diffuse(n, d, prompts, PROMPTS, g[0], &trace[0]);
    diffuse(n, e, prompts, PROMPTS, g[1], &trace[1]);
    for (size_t i = 0; i < PROMPTS; i++) {
        same &= g[0][i].n == d->gen_length && g[1][i].n == g[0][i].n &&
                !memcmp(g[0][i].ids, g[1][i].ids, g[0][i].n * sizeof *g[0][i].ids) &&
                g[0][i].denoise_steps == g[1][i].denoise_steps;
        for (size_t k = 0; k < 2; k++) {
            rows[k] += g[k][i].rows;
            generation_free(&g[k][i]);
        }
    }
    return same;
}

/* With neutral parameters each method equals another method. */
static void test_neutral(const struct network *n)
{
    struct diffuse none = {.gen_length = 24, .block_length = 8, .steps = 12, .prepare = 1,
                           .seed = 5};
    struct diffuse d = none, dual = none;
    int64_t rows[2];
    d.cache = CACHE_DELAYED;
    d.kept.delayed_refresh = 1;
    ok(same_ids(n, &none, &d, rows) && rows[0] == rows[1], "delayed, all at each pass: none");
    dual.cache = CACHE_DUAL;
    d.cache = CACHE_VICINITY;
    d.kept.vicinity_warmup = 1;
    ok(same_ids(n, &dual, &d, rows) && rows[0] == rows[1], "vicinity of nothing: dual");
    dual.kept.refresh = 1;
    ok(same_ids(n, &none, &dual, rows) && rows[0] == rows[1], "dual, all at each pass: none");
    d = none;
    d.suffix = (struct suffix){SUFFIX_WINDOW, 24, 0, 0};
    ok(same_ids(n, &none, &d, rows) && rows[0] == rows[1], "a window as long as the canvas: all");
    d.suffix = (struct suffix){SUFFIX_DROPOUT, 24, 0, 3};
    ok(same_ids(n, &none, &d, rows) && rows[0] == rows[1], "dropout of a flat density: all");
    none.suffix = (struct suffix){SUFFIX_GROW, 0, 0, 0};
    d.suffix = (struct suffix){SUFFIX_DROPOUT, 24, 0, 0};
    ok(same_ids(n, &none, &d, rows) && rows[0] == rows[1], "dropout of all: grow");
}

/* Under a block-causal mask: compares runs without a cache with the naive algorithm. The exact
 * cache gives the same ids with fewer rows, however the blocks of canvas and mask lie to each
 * other. */
static void test_exact(struct network *n)
{
    static const struct { size_t block, mask; int end, lag, seeds; } list[] = {
        {8, 8, 0, 0, 0}, {4, 8, 0, 0, 0}, {12, 4, 0, 0, 0}, {6, 4, 0, 0, 0}, {8, 8, 1, 0, 0},
        {4, 8, 1, 1, 0}, {8, 8, 0, 1, 0}, {8, 8, 0, 1, 1}, {4, 8, 0, 1, 1}};
    const struct config was = n->config;
    char what[80];
    n->config.attends = MASK_BLOCK_CAUSAL;
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        struct diffuse d = {.gen_length = 24, .block_length = list[k].block, .steps = 12,
                            .prepare = 1, .seed = 5}, e;
        int64_t rows[2];
        n->config.attends_block = list[k].mask;
        n->config.attends_from_end = list[k].end;
        n->config.logit_shift = list[k].lag;
        n->config.seeds = list[k].seeds;
        for (int rule = 0; rule < 3; rule++) {
            d.rule = rule ? UNMASK_THRESHOLD : UNMASK_SCHEDULE;
            d.unmask.threshold = rule == 1 ? 0.0031 : 0.0035;
            e = d;
            e.cache = CACHE_EXACT;
            snprintf(what, sizeof what, "blocks of %zu in those of %zu%s%s%s, rule %d",
                     d.block_length, list[k].mask, list[k].end ? " from the end" : "",
                     list[k].lag ? ", shifted" : "", list[k].seeds ? ", seeded" : "", rule);
            same_as_naive(n, &d, what);
            ok(same_ids(n, &d, &e, rows) && rows[1] < rows[0], "exact, %s: %d of %d rows", what,
               (int)rows[1], (int)rows[0]);
            if (list[k].block == list[k].mask)
                same_as_naive(n, &e, "exact, by its definition");
            e.cache = CACHE_NONE;
            e.suffix.kind = SUFFIX_GROW;
            ok(list[k].block % list[k].mask || (same_ids(n, &d, &e, rows) && rows[1] < rows[0]),
               "%s: what comes after the block changes nothing", what);
        }
    }
    n->config = was;
}

/* If finished blocks are read from left to right, the kept keys and values are exact too, also when
 * a block is filled in parts. */
static void test_two_ways(struct network *n)
{
    const struct config was = n->config;
    int64_t rows[2];
    n->config.attends = MASK_BLOCK_CAUSAL;
    n->config.attends_block = 8;
    n->config.attends_from_end = n->config.seeds = n->config.two_ways = 1;
    for (size_t block = 4; block <= 8; block += 4)
        for (int rule = 0; rule < 2; rule++) {
            struct diffuse d = {.gen_length = 24, .block_length = block, .steps = 12, .prepare = 1,
                                .seed = 5, .rule = rule ? UNMASK_THRESHOLD : UNMASK_SCHEDULE,
                                .unmask.threshold = 0.0031}, e = d;
            e.cache = CACHE_EXACT;
            ok(same_ids(n, &d, &e, rows) && rows[1] < rows[0],
               "exact, blocks of 8 read from left to right, parts of %zu, rule %d: %d of %d rows",
               block, rule, (int)rows[1], (int)rows[0]);
        }
    n->config = was;
}

/* Returns 1 if six prompts, run two at a time, each have the answer, steps and rows that they have
 * alone. *waited: some prompts joined after another one had ended, while the rest of the batch was
 * at another step. With arrivals prompts come some passes apart; *early: the second prompt joined
 * before the first one ended. */
static int joins(const struct network *n, struct diffuse d, int *waited, int *early)
{
    enum { INPUTS = 2 * PROMPTS };
    struct generation_input in[INPUTS];
    struct generation g[INPUTS] = {0};
    struct batch_trace trace = {0};
    for (size_t i = 0; i < INPUTS; i++) {
        in[i] = prompts[i % PROMPTS];
        in[i].key += i;
        in[i].due_ns = d.arrivals ? (int64_t)(i < 2 ? i : i * 500000) : 0;
    }
    d.alive = 2;
    diffuse(n, &d, in, INPUTS, g, &trace);
    const struct memory_estimate e = diffuse_estimate(n, &d, in, INPUTS);
    int same = trace.memory.kind[MEMORY_KV] == e.kv &&
               trace.memory.kind[MEMORY_ACTIVATIONS] == e.activations &&
               !g[0].admit_ns && (d.arrivals || !g[1].admit_ns);
    for (size_t i = 0; i < INPUTS; i++) {
        struct generation h = {0};
        struct batch_trace alone = {0};
        struct diffuse single = d;
        single.alive = 0;
        single.arrivals = 0;
        diffuse(n, &single, &in[i], 1, &h, &alone);
        same &= g[i].n == h.n && !memcmp(g[i].ids, h.ids, h.n * sizeof *h.ids) &&
                g[i].denoise_steps == h.denoise_steps && g[i].rows == h.rows &&
                g[i].remasked_tokens == h.remasked_tokens && (i < 2 || g[i].admit_ns > 0) &&
                g[i].e2e_ns == g[i].emit_ns[g[i].n_emits - 1] &&
                (!d.arrivals || (g[i].admit_ns == in[i].due_ns && g[i].queue_ns >= 0 &&
                                 g[i].queue_ns < g[i].emit_ns[0]));
        *waited |= i > 1 && g[i].denoise_steps != g[0].denoise_steps;
        generation_free(&h);
    }
    *early = d.arrivals && g[1].queue_ns + 1 < g[0].e2e_ns;
    for (size_t i = 0; i < INPUTS; i++)
        generation_free(&g[i]);
    return same;
}

static void test_admit(struct network *n)
{
    static const enum unmask rules[] = {UNMASK_SCHEDULE, UNMASK_THRESHOLD, UNMASK_CREDIT,
                                        UNMASK_SLOWFAST, UNMASK_SABER, UNMASK_WINO, UNMASK_KLASS};
    const struct config was = n->config;
    int same = 0, runs = 0, waited = 0, early = 0, one = 0;
    for (int cache = 0; cache < CACHE_COUNT; cache++)
        for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
            struct diffuse d = {.gen_length = 16, .block_length = 8, .steps = 8, .rule = rules[k],
                                .cache = (enum caching)cache, .kept = cache_usual, .prepare = 1,
                                .seed = 5,
                                .unmask = {.threshold = 0.0031, .credit_threshold = 0.0035,
                                           .credit_weight = 0.7, .credit_decay = 0.8,
                                           .credit_power = 0.2, .slowfast_sure = 0.003,
                                           .slowfast_reach = 0.0031, .saber_least = 2,
                                           .wino_draft = 0.003, .wino_verify = 0.9,
                                           .conf_threshold = 0.003, .kl_threshold = 0.01,
                                           .kl_history = 1}};
            n->config.attends = cache_policies[cache]->causal ? MASK_BLOCK_CAUSAL : was.attends;
            n->config.attends_block = cache_policies[cache]->causal ? 8 : was.attends_block;
            d.temperature = k % 2 && rules[k] != UNMASK_WINO ? 0.3 : 0;
            for (d.arrivals = 0; d.arrivals < 2 && !diffuse_check(&d, &n->config, NULL);
                 d.arrivals++) {
                same += joins(n, d, &waited, &one);
                early |= one && cache == CACHE_NONE && rules[k] == UNMASK_SCHEDULE;
                runs++;
            }
            n->config = was;
        }
    ok(same == runs && runs > 80 && waited, "a prompt that joins has the answer that it has alone: "
       "%d of %d caches and rules", same, runs);
    ok(early, "a prompt that comes takes a free place after the next pass");
}

int main(void)
{
    struct decoded m;
    decoded_open_fast(&m, "synth:tiny-llada");
    m.n.config.attends_prompt = 0; /* the naive algorithm also has blocks in the prompt */
    for (int depth = 1; depth <= 3; depth += 2) {
        decoded_act(&m.ops, depth);
        for (int i = 0; i < CACHE_EXACT; i++) /* CACHE_EXACT needs another mask */
            test_policy(&m.n, (enum caching)i);
        test_suffixes(&m.n);
        test_neutral(&m.n);
        test_exact(&m.n);
        test_two_ways(&m.n);
        test_admit(&m.n);
    }
    ok(decoded_prepared > 0, "passes were prepared: %zu", decoded_prepared);
    decoded_close(&m);
    return tap_done();
}
