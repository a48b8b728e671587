/* test-diffuse.c - compares the sampler with the official algorithm written out naively: all logits
 * of all positions at every step, including steps that commit nothing. Source: the authors'
 * generate.py (github.com/ML-GSAI/LLaDA). */
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/decode/diffuse.h"
#include "lib/decode/pace.h"
#include "lib/network/forward.h"
#include "tests/model/decoded.h"

enum { LEN = 80 };

/* Computes the logits of every position of one sequence: [n, V]. */
static void all_logits(const struct network *n, const int32_t *x, size_t len, float *logits)
{
    int32_t pos[LEN];
    struct head_row answer[LEN];
    struct forward_seq seq = {.rows = len};
    for (size_t i = 0; i < len; i++)
        pos[i] = (int32_t)i;
    struct forward f = {.token = x, .pos = pos, .seqs = &seq, .n_seqs = 1, .mask = MASK_FULL,
                        .wanted = pos, .n_wanted = len};
    struct work *w = work_make(n, &(struct work_size){.rows = len, .seqs = 1, .slots = len,
                                                    .listed = len, .wanted = len, .logits = 1});
    forward(n, NULL, w, &f, answer, logits);
    work_free(w, n);
}

static void guided_logits(const struct network *n, const int32_t *x, size_t prompt, size_t len,
                          double w, float *logits)
{
    size_t V = n->config.vocab;
    all_logits(n, x, len, logits);
    if (!(w > 0))
        return;
    int32_t masked[LEN];
    float *u = mem_zero(len * V, sizeof *u);
    for (size_t i = 0; i < len; i++)
        masked[i] = i < prompt ? (int32_t)n->config.mask : x[i];
    all_logits(n, masked, len, u);
    for (size_t i = 0; i < len * V; i++)
        logits[i] = (float)(u[i] + (1 + w) * ((double)logits[i] - u[i]));
    free(u);
}

/* Returns x0 of one position and its confidence, including the special rules of the two eos
 * options. */
static int32_t decide(const struct network *n, const struct diffuse *d, float *l, uint64_t key,
                      double *confidence)
{
    size_t V = n->config.vocab;
    const struct config *c = &n->config;
    double best = 0, sum = 0, max = -INFINITY;
    int32_t x0 = -1;
    if (d->logits_eos_inf)
        l[c->eos[0]] = -INFINITY;
    for (size_t v = 0; v < V; v++) {
        double u = rng_unit(rng_at(d->seed, key, v)) + 0x1p-54;
        double s = l[v] + (d->temperature > 0 ? -d->temperature * log(-log(u)) : 0);
        if (x0 < 0 || s > best) {
            x0 = (int32_t)v;
            best = s;
        }
    }
    if (d->confidence_eos_eot_inf) {
        if (!(d->temperature > 0))
            l[c->eos[0]] = -INFINITY;
        l[c->eot] = -INFINITY;
    }
    for (size_t v = 0; v < V; v++)
        max = l[v] > max ? l[v] : max;
    for (size_t v = 0; v < V; v++)
        sum += exp(l[v] - max);
    *confidence = exp(l[x0] - max) / sum;
    if (d->order == ORDER_RANDOM)
        *confidence = rng_unit(rng_at(rng_derive(d->seed, "random remasking"), key, 0));
    return x0;
}

/* Runs generate.py's algorithm for one prompt. x gets the whole sequence. */
static void official(const struct network *n, const struct diffuse *d,
                     const struct generation_input *in, int32_t *x)
{
    size_t P = in->n, len = P + d->gen_length, V = n->config.vocab, passes = 0;
    size_t blocks = d->gen_length / d->block_length, S = d->steps / blocks;
    float *logits = mem_zero(len * V, sizeof *logits);
    size_t *transfer = mem_zero(S, sizeof *transfer);
    for (size_t i = 0; i < len; i++)
        x[i] = i < P ? in->ids[i] : (int32_t)n->config.mask;
    for (size_t b = 0; b < blocks; b++) {
        pace_uniform(d->block_length, S, transfer);
        for (size_t i = 0; i < S; i++) {
            int32_t x0[LEN];
            double c[LEN];
            guided_logits(n, x, P, len, d->cfg_scale, logits);
            for (size_t k = 0; k < len; k++) {
                c[k] = -INFINITY;
                if (x[k] == n->config.mask && k < P + (b + 1) * d->block_length)
                    x0[k] = decide(n, d, logits + k * V, rng_at(in->key, passes, k - P), &c[k]);
            }
            for (size_t t = 0; t < transfer[i]; t++) {
                size_t best = 0;
                for (size_t k = 1; k < len; k++)
                    best = c[k] > c[best] ? k : best;
                if (c[best] > -INFINITY)
                    x[best] = x0[best];
                c[best] = -INFINITY;
            }
            passes += transfer[i] > 0;
        }
    }
    free(transfer);
    free(logits);
}

static int same_as_official(const struct network *n, const struct diffuse *d)
{
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    diffuse(n, d, prompts, PROMPTS, g, &trace);
    int same = 1;
    for (size_t i = 0; i < PROMPTS; i++) {
        int32_t x[LEN];
        official(n, d, &prompts[i], x);
        same &= g[i].n == d->gen_length &&
                !memcmp(g[i].ids, x + prompts[i].n, g[i].n * sizeof *x);
    }
    for (size_t i = 0; i < PROMPTS; i++)
        generation_free(&g[i]);
    return same;
}

static struct diffuse settings(size_t gen, size_t block, size_t steps)
{
    return (struct diffuse){.gen_length = gen, .block_length = block, .steps = steps,
                            .rule = UNMASK_SCHEDULE, .prepare = 1, .seed = 5};
}

static struct generation one(const struct network *n, const struct diffuse *d, size_t i)
{
    struct generation g = {0};
    struct batch_trace trace = {0};
    diffuse(n, d, &prompts[i], 1, &g, &trace);
    return g;
}

static void test_official(struct network *n)
{
    struct diffuse d = settings(16, 16, 16);
    ok(same_as_official(n, &d), "one block, one token a step: the ids of the official sampler");
    d = settings(16, 8, 6);
    ok(same_as_official(n, &d), "two blocks, 8 masks in 3 steps");
    d = settings(12, 4, 24);
    ok(same_as_official(n, &d), "more steps than masks");
    d = settings(16, 4, 4);
    ok(same_as_official(n, &d), "a block a step");
    d = settings(48, 48, 12);
    ok(same_as_official(n, &d), "a block whose answers grow fewer");
    d = settings(8, 4, 4);
    d.cfg_scale = 1.5;
    ok(same_as_official(n, &d), "classifier-free guidance");
    d = settings(8, 4, 4);
    d.temperature = 0.7;
    ok(same_as_official(n, &d), "temperature");
    d.order = ORDER_RANDOM;
    ok(same_as_official(n, &d), "temperature and random remasking");
    d.cfg_scale = 0.5;
    ok(same_as_official(n, &d), "temperature, random remasking and guidance");
}

/* eos and end-of-turn become ids that this network often chooses, so that the options have an
 * effect. */
static void test_eos_options(struct network *n)
{
    struct diffuse d = settings(16, 8, 8);
    struct generation g = one(n, &d, 0), h;
    n->config.eos[0] = g.ids[0];
    n->config.n_eos = 1;
    n->config.eot = g.ids[15] == g.ids[0] ? g.ids[0] + 1 : g.ids[15];
    d.confidence_eos_eot_inf = 1;
    ok(same_as_official(n, &d), "confidence_eos_eot_inf at T = 0");
    d.temperature = 0.8;
    ok(same_as_official(n, &d), "confidence_eos_eot_inf at T > 0: end-of-turn only");
    d = settings(16, 8, 8);
    d.logits_eos_inf = 1;
    ok(same_as_official(n, &d), "logits_eos_inf");
    h = one(n, &d, 0);
    int met = 0;
    for (size_t i = 0; i < h.n; i++)
        met |= h.ids[i] == n->config.eos[0];
    ok(!met && g.ids[0] == n->config.eos[0], "logits_eos_inf: eos never comes, and did before");
    d.confidence_eos_eot_inf = 1;
    ok(same_as_official(n, &d), "both eos options together: the ids of the official sampler");
    generation_free(&h);

    d = settings(16, 8, 8);
    d.stop_at_eos = 1;
    h = one(n, &d, 0);
    ok(!strcmp(h.stop, "eos") && h.to_eos == 0 && h.n >= 1 && h.n <= 16 &&
           !memcmp(h.ids, g.ids, h.n * sizeof *h.ids),
       "stop_at_eos leaves the readable prefix");
    ok(h.denoise_steps < g.denoise_steps, "stop_at_eos saves steps: %d of %d",
       (int)h.denoise_steps, (int)g.denoise_steps);
    generation_free(&g);
    generation_free(&h);
}

/* Every rule with neutral parameters equals the official sampler with one step a slot. */
static void test_neutral(const struct network *n)
{
    const struct {
        const char *name;
        enum unmask rule;
        struct unmask_params params;
    } way[] = {{"threshold 1", UNMASK_THRESHOLD, {.threshold = 1}},
               {"factor 0", UNMASK_FACTOR, {.factor = 0}},
               {"entropy bound 0", UNMASK_ENTROPY_BOUND, {.entropy_bound = 0}},
               {"hierarchical 1", UNMASK_HIERARCHICAL, {.upper = 1, .lower = 1}},
               {"prophet, a gap that never comes", UNMASK_PROPHET, {.gap = 1e6}},
               {"credit of weight 0, threshold 1", UNMASK_CREDIT,
                {.credit_threshold = 1, .credit_decay = 0.8, .credit_power = 0.2}},
               {"slowfast, never sure, as far as it goes", UNMASK_SLOWFAST, {.slowfast_sure = 1}},
               {"saber, one by one", UNMASK_SABER, {.saber_floor = 1, .saber_least = 1}},
               {"wino, drafts of one", UNMASK_WINO, {.wino_draft = 1, .wino_verify = 1}},
               {"klass, never stable", UNMASK_KLASS, {.kl_history = 1}},
               {"klass, never sure", UNMASK_KLASS, {.conf_threshold = 1, .kl_threshold = 9}}};
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        struct diffuse d = settings(24, 8, 24);
        struct generation g = one(n, &d, 0);
        d.rule = way[i].rule;
        d.unmask = way[i].params;
        struct generation h = one(n, &d, 0);
        ok(g.n == h.n && !memcmp(g.ids, h.ids, g.n * sizeof *g.ids) &&
               g.denoise_steps == h.denoise_steps && h.remasked_tokens == 0,
           "%s: vanilla", way[i].name);
        generation_free(&g);
        generation_free(&h);
    }
    struct diffuse d = settings(24, 8, 12);
    d.rule = UNMASK_PROPHET;
    struct generation g = one(n, &d, 0); /* gap 0: every slot is certain at once */
    ok(g.n == 24 && g.denoise_steps == 3, "prophet, gap 0: a pass a block, %d",
       (int)g.denoise_steps);
    generation_free(&g);
    d = settings(24, 24, 24);
    d.order = ORDER_LEFT_TO_RIGHT;
    g = one(n, &d, 0);
    int one_by_one = g.n_emits == 24;
    for (size_t i = 0; i < g.n_emits; i++)
        one_by_one &= g.emit_tokens[i] == 1;
    ok(one_by_one, "left to right: a token readable with each pass");
    generation_free(&g);
}

/* Runs with `id` as the mask. Returns how many slots still have it at the end; clears *good if a
 * result is wrong. */
static int stays(struct network *n, const struct diffuse *d, int64_t id, int *good)
{
    int64_t mask = n->config.mask;
    int stayed = 0;
    n->config.mask = id;
    struct generation g = one(n, d, 0);
    for (size_t k = 0; k < g.n; k++)
        stayed += g.ids[k] == id;
    if (stayed) {
        int64_t emitted = 0;
        for (size_t k = 0; k < g.n_emits; k++)
            emitted += g.emit_tokens[k];
        struct diffuse t = *d;
        t.rule = UNMASK_THRESHOLD;
        struct generation h = one(n, &t, 0); /* ends, though the mask id comes again and again */
        const struct diffuse wide = settings(64, 32, 16); /* the second block needs over 32 steps */
        *good &= emitted == 16 && h.n == 16 && same_as_official(n, d) &&
                 same_as_official(n, &wide);
        generation_free(&h);
    }
    generation_free(&g);
    n->config.mask = mask;
    return stayed;
}

/* With another id as the mask, the network sometimes answers with this id. The slot then stays
 * masked and competes again, as in the official code. */
static void test_mask_generated(struct network *n)
{
    struct diffuse d = settings(16, 8, 4);
    int found = 0, good = 1;
    for (int64_t id = 210; id < (int64_t)n->config.vocab && !found; id++)
        if (id != n->config.mask && id != 300)
            found += stays(n, &d, id, &good) > 0;
    ok(found && good, "the mask id generated: as the official code");
}

static void test_rules(struct network *n)
{
    struct diffuse d = settings(16, 8, 16), t = d;
    struct generation g = one(n, &d, 0), h;
    t.rule = UNMASK_THRESHOLD;
    t.unmask.threshold = 1;
    h = one(n, &t, 0);
    ok(h.n == 16 && !memcmp(g.ids, h.ids, 16 * sizeof *g.ids) && h.denoise_steps == 16,
       "threshold 1: one token a step, as the schedule with as many steps");
    generation_free(&h);
    t.unmask.threshold = 0;
    h = one(n, &t, 0);
    ok(h.denoise_steps == 2 && h.n_emits == 2 && h.emit_tokens[0] == 8,
       "threshold 0: one pass a block");
    generation_free(&h);
    t.rule = UNMASK_FACTOR;
    t.unmask.factor = 1.9;
    h = one(n, &t, 0);
    ok(h.n == 16 && h.denoise_steps >= 2 && h.denoise_steps <= 16, "factor ends");
    generation_free(&h);
    generation_free(&g);
}

/* Every order fills the canvas. */
static void test_orders(struct network *n)
{
    struct diffuse d = settings(16, 16, 16);
    for (int i = 0; i < ORDER_COUNT; i++) {
        d.order = (enum order)i;
        d.rule = UNMASK_SCHEDULE;
        struct generation h = one(n, &d, 0);
        ok(h.n == 16 && h.denoise_steps == 16 && h.committed_tokens == 16, "order %d ends", i);
        generation_free(&h);
        d.rule = UNMASK_THRESHOLD;
        d.unmask.threshold = 0;
        struct generation all = one(n, &d, 0);
        ok(all.denoise_steps == 1 && all.n == 16, "order %d: at once it does not matter", i);
        generation_free(&all);
    }
}

static void test_events(struct network *n)
{
    struct diffuse d = settings(16, 8, 12);
    d.temperature = 1;
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    diffuse(n, &d, prompts, PROMPTS, g, &trace);
    int alone = 1, sums = 1, order = 1, counters = 1;
    for (size_t i = 0; i < PROMPTS; i++) {
        struct generation h = one(n, &d, i);
        alone &= h.n == g[i].n && !memcmp(h.ids, g[i].ids, h.n * sizeof *h.ids);
        generation_free(&h);
        int64_t sum = 0;
        for (size_t k = 0; k < g[i].n_emits; k++) {
            sum += g[i].emit_tokens[k];
            order &= k == 0 || g[i].emit_ns[k] > g[i].emit_ns[k - 1];
        }
        sums &= sum == 16 && g[i].committed_tokens == 16;
        order &= g[i].first_commit_ns <= g[i].emit_ns[0] &&
                 g[i].emit_ns[0] <= g[i].first_block_ns &&
                 g[i].first_block_ns < g[i].e2e_ns && g[i].e2e_ns <= trace.makespan_ns &&
                 g[i].emit_ns[g[i].n_emits - 1] == g[i].e2e_ns;
        counters &= g[i].denoise_steps == 12 && g[i].n_steps == 12 &&
                    g[i].canvas_positions == 12 * (int64_t)(prompts[i].n + 16);
    }
    ok(alone, "a batch of unequal prompts gives what each gives alone");
    ok(sums, "emissions and commits add up to the canvas");
    ok(order, "times are in order");
    ok(counters, "steps and positions are counted");
    ok(trace.memory.kind[MEMORY_ACTIVATIONS] > 0 && trace.memory.kind[MEMORY_KV] == 0 &&
           n->backend->memory.kind[MEMORY_ACTIVATIONS] == 0,
       "the trace saw the activations, and they are gone");
    for (size_t i = 0; i < PROMPTS; i++)
        generation_free(&g[i]);
}

static void test_failures(struct network *n)
{
    struct diffuse d = settings(16, 8, 4);
    n->backend->memory.cap = n->backend->memory.reserved + 4096;
    struct generation g = one(n, &d, 0);
    ok(g.oom && g.n == 0, "memory short: oom");
    generation_free(&g);
    n->backend->memory.cap = 0;
    float was, nan = NAN;
    const struct ops *ops = n->backend->ops;
    ops->read(n->backend, &was, n->norm + 3, sizeof was);
    ops->write(n->backend, n->norm + 3, &nan, sizeof nan);
    g = one(n, &d, 0);
    ok(g.bad && g.n == 0, "a NaN is noticed");
    generation_free(&g);
    ops->write(n->backend, n->norm + 3, &was, sizeof was);
    volatile sig_atomic_t stop = 15;
    struct batch_trace trace = {0};
    d.stop = &stop;
    diffuse(n, &d, prompts, 1, &g, &trace);
    ok(trace.interrupted && g.n_steps == 1, "a signal ends the batch after the pass");
    generation_free(&g);
}

static void test_check(void)
{
    const size_t bad[][3] = {{0, 1, 1}, {16, 5, 16}, {16, 4, 6}, {8, 16, 16}, {8, 4, 0}};
    int refused = 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct diffuse d = settings(bad[i][0], bad[i][1], bad[i][2]);
        struct err e = {0};
        refused &= diffuse_check(&d, NULL, &e) && e.code == EXIT_BAD_USAGE;
    }
    struct diffuse d = settings(1, 1, 1);
    ok(refused && !diffuse_check(&d, NULL, NULL), "constraints on lengths and steps");
    struct err e = {0};
    d.rule = UNMASK_CREDIT;
    d.temperature = 0.5;
    ok(diffuse_check(&d, NULL, &e) && e.code == EXIT_BAD_USAGE, "credit and temperature: %s",
       e.text);
    d.rule = UNMASK_WINO;
    ok(!diffuse_check(&d, NULL, NULL), "wino may draw");
    d.cfg_scale = 1;
    ok(diffuse_check(&d, NULL, &e) && e.code == EXIT_BAD_USAGE, "wino and guidance: %s", e.text);
    d.cfg_scale = 0;
    d.cache = CACHE_SPARSE;
    ok(diffuse_check(&d, NULL, &e) && e.code == EXIT_BAD_USAGE, "wino and sparse: %s", e.text);
    d.cache = CACHE_NONE;
    d.cfg_scale = 1;
    d.rule = UNMASK_SABER;
    ok(!diffuse_check(&d, NULL, NULL), "saber may be guided");
}

int main(void)
{
    struct decoded m;
    decoded_open_fast(&m, "synth:tiny-llada");
    for (int depth = 1; depth <= 3; depth += 2) {
        decoded_act(&m.ops, depth);
        const struct config was = m.n.config;
        test_official(&m.n);
        test_rules(&m.n);
        test_orders(&m.n);
        test_events(&m.n);
        test_neutral(&m.n);
        test_mask_generated(&m.n);
        test_eos_options(&m.n);
        test_failures(&m.n);
        m.n.config = was;
    }
    test_check();
    ok(decoded_prepared > 0, "passes were prepared: %zu", decoded_prepared);
    decoded_close(&m);
    return tap_done();
}
