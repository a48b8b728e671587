/* test-autoregress.c - compares autoregressive generation with a naive loop that computes the whole
 * text for every token. */
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/decode/autoregress.h"
#include "lib/network/forward.h"
#include "tests/model/decoded.h"

enum { LEN = 64, NEW = 12 };

/* One of the prompts is a single token. */
static const int32_t single[] = {5};
static const struct generation_input texts[PROMPTS] = {
    {prompt_a, 5, 77, 0}, {single, 1, 78, 0}, {prompt_c, 9, 79, 0}};

/* Generates NEW ids, greedily or with noise at temperature T. x gets the prompt and the new ids. */
static void naive(const struct network *n, const struct generation_input *in, double T,
                  uint64_t seed, int32_t *x)
{
    size_t V = n->config.vocab;
    float *l = mem_zero(V, sizeof *l);
    memcpy(x, in->ids, in->n * sizeof *x);
    for (size_t k = 0; k < NEW; k++) {
        size_t len = in->n + k;
        int32_t pos[LEN], last = (int32_t)len - 1;
        for (size_t i = 0; i < len; i++)
            pos[i] = (int32_t)i;
        struct forward_seq seq = {.rows = len};
        struct forward f = {.token = x, .pos = pos, .seqs = &seq, .n_seqs = 1,
                            .mask = MASK_CAUSAL, .wanted = &last, .n_wanted = 1};
        struct head_row row;
        struct work *w = work_make(n, &(struct work_size){.rows = len, .seqs = 1, .slots = len,
                                                        .listed = len, .wanted = 1,
                                                        .logits = 1});
        forward(n, NULL, w, &f, &row, l);
        work_free(w, n);
        double best = -INFINITY;
        for (size_t v = 0; v < V; v++) {
            double u = rng_unit(rng_at(seed, rng_at(in->key, k, 0), v)) + 0x1p-54;
            double s = l[v] - (T > 0 ? T * log(-log(u)) : 0);
            if (s > best) {
                best = s;
                x[len] = (int32_t)v;
            }
        }
    }
    free(l);
}

static struct autoregress settings(void)
{
    return (struct autoregress){.max_new = NEW, .sample = {0, 0, 1}, .cache = 1,
                                .ignore_eos = 1, .prepare = 1, .seed = 9};
}

static int same_as_naive(const struct network *n, const struct autoregress *how)
{
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    autoregress(n, how, texts, PROMPTS, g, &trace);
    int same = 1;
    for (size_t i = 0; i < PROMPTS; i++) {
        int32_t x[LEN];
        naive(n, &texts[i], how->sample.temperature, how->seed, x);
        same &= g[i].n == NEW && !memcmp(g[i].ids, x + texts[i].n, NEW * sizeof *x);
        generation_free(&g[i]);
    }
    return same;
}

static struct generation one(const struct network *n, const struct autoregress *how, size_t i)
{
    struct generation g = {0};
    struct batch_trace trace = {0};
    autoregress(n, how, &texts[i], 1, &g, &trace);
    return g;
}

static void test_naive(const struct network *n)
{
    struct autoregress how = settings();
    ok(same_as_naive(n, &how), "greedy with a cache, a batch of unequal prompts");
    how.cache = 0;
    ok(same_as_naive(n, &how), "greedy without a cache");
    how.sample.temperature = 0.8;
    ok(same_as_naive(n, &how), "T = 0.8 without a cache");
    how.cache = 1;
    ok(same_as_naive(n, &how), "T = 0.8 with a cache");
    how.sample.top_p = 1 - 1e-12; /* uses the filters, which keep everything that can be drawn */
    ok(same_as_naive(n, &how), "filters that remove nothing draw the same tokens");
    how.sample.top_k = 1;
    struct generation g = one(n, &how, 0);
    how = settings();
    struct generation h = one(n, &how, 0);
    ok(!memcmp(g.ids, h.ids, NEW * sizeof *g.ids), "top-k 1 is greedy");
    generation_free(&g);
    generation_free(&h);
}

static void test_stop(struct network *n)
{
    struct autoregress how = settings();
    struct generation g = one(n, &how, 0), h;
    size_t at = 1;
    while (at < NEW && g.ids[at] == g.ids[0])
        at++;
    n->config.eos[0] = g.ids[at % NEW];
    n->config.n_eos = 1;
    how.ignore_eos = 0;
    h = one(n, &how, 0);
    ok(at < NEW && h.n == at && h.to_eos == at && !strcmp(h.stop, "eos") &&
           !memcmp(h.ids, g.ids, at * sizeof *h.ids),
       "the text ends without the stop id");
    ok(h.n_emits == at && h.n_steps == at + 1 && h.e2e_ns == h.step_ns[at] &&
           h.e2e_ns > h.emit_ns[at - 1],
       "the pass that found the stop id counts");
    generation_free(&h);
    int64_t id = n->config.eos[0];
    for (size_t i = 0; i < CONFIG_MAX_EOS; i++)
        n->config.eos[i] = i == CONFIG_MAX_EOS - 1 ? id : -2; /* no id */
    n->config.n_eos = CONFIG_MAX_EOS;
    h = one(n, &how, 0);
    ok(CONFIG_MAX_EOS == 32 && h.n == at && !strcmp(h.stop, "eos"), "the 32nd stop id ends it");
    generation_free(&h);
    n->config.eos[0] = id;
    n->config.n_eos = 1;
    how.ignore_eos = 1;
    h = one(n, &how, 0);
    ok(h.n == NEW && h.to_eos == at && h.n_emits == NEW, "ignore_eos goes on; to_eos is its place");
    generation_free(&h);
    how.ignore_eos = 0;
    n->config.eos[0] = g.ids[0];
    h = one(n, &how, 0);
    ok(h.n == 0 && h.n_emits == 0 && h.e2e_ns > 0 && !strcmp(h.stop, "eos"), "a stop id at once");
    generation_free(&h);
    struct generation all[PROMPTS] = {0};
    struct batch_trace trace = {0};
    autoregress(n, &how, texts, PROMPTS, all, &trace);
    int same = all[0].n == 0;
    for (size_t i = 0; i < PROMPTS; i++) {
        h = one(n, &how, i);
        same &= h.n == all[i].n && !memcmp(h.ids, all[i].ids, h.n * sizeof *h.ids);
        generation_free(&h);
        generation_free(&all[i]);
    }
    ok(same, "a text that leaves the batch does not touch the others");
    generation_free(&g);
}

static void test_counters(const struct network *n)
{
    struct autoregress how = settings();
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    autoregress(n, &how, texts, PROMPTS, g, &trace);
    int rows = 1, order = 1;
    for (size_t i = 0; i < PROMPTS; i++) {
        rows &= g[i].rows == (int64_t)(texts[i].n + NEW - 1) && g[i].denoise_steps == 0 &&
                g[i].committed_tokens == NEW;
        for (size_t k = 0; k < NEW; k++)
            order &= g[i].emit_tokens[k] == 1 && (!k || g[i].emit_ns[k] > g[i].emit_ns[k - 1]);
        order &= g[i].e2e_ns == g[i].emit_ns[NEW - 1] && g[i].first_block_ns == g[i].emit_ns[0];
        generation_free(&g[i]);
    }
    ok(rows, "with a cache every token is computed once");
    ok(order, "an event a token, in order");
    ok(trace.memory.kind[MEMORY_KV] > 0 && n->backend->memory.kind[MEMORY_KV] == 0,
       "the trace has the bytes of the cache, and the cache is freed");
    how.cache = 0;
    g[0] = one(n, &how, 1);
    ok(g[0].rows == NEW * (NEW + 1) / 2, "without a cache the rows grow: %d", (int)g[0].rows);
    generation_free(&g[0]);
}

static void test_failures(struct network *n)
{
    struct autoregress how = settings();
    n->backend->memory.cap = n->backend->memory.reserved + 4096;
    struct generation g = one(n, &how, 0);
    ok(g.oom && g.n == 0, "memory short: oom");
    generation_free(&g);
    n->backend->memory.cap = 0;
    float was, nan = NAN;
    const struct ops *ops = n->backend->ops;
    ops->read(n->backend, &was, n->norm + 3, sizeof was);
    ops->write(n->backend, n->norm + 3, &nan, sizeof nan);
    g = one(n, &how, 0);
    ok(g.bad && g.n == 0 && g.n_steps == 1, "a NaN is noticed");
    generation_free(&g);
    ops->write(n->backend, n->norm + 3, &was, sizeof was);
    volatile sig_atomic_t stop = 15;
    struct batch_trace trace = {0};
    how.stop = &stop;
    autoregress(n, &how, texts, 1, &g, &trace);
    ok(trace.interrupted && g.n_steps == 1, "a signal ends the batch after the pass");
    generation_free(&g);
}

int main(void)
{
    struct decoded m;
    decoded_open(&m, "synth:tiny-llama", "ref", NULL);
    for (int depth = 1; depth <= 3; depth += 2) {
        decoded_act(&m.ops, depth);
        const struct config was = m.n.config;
        test_naive(&m.n);
        test_counters(&m.n);
        test_stop(&m.n);
        test_failures(&m.n);
        m.n.config = was;
    }
    ok(decoded_prepared > 0, "passes were prepared: %zu", decoded_prepared);
    decoded_close(&m);
    return tap_done();
}
