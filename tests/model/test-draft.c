/* test-draft.c - tests that drafted steps change only the number of passes: random prompts, rules,
 * orders, caches, lengths, batches and seeds, each with and without drafts. The weights are random,
 * and so are the answers to drafts, but enough drafts are right to test several steps in one
 * pass. */
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/decode/diffuse.h"
#include "tests/model/decoded.h"

enum { MOST = 3, LONG = 12, CASES = 300, OTHERS = 60 };

struct game {
    struct rng rng;
    int32_t ids[MOST][LONG];
    struct generation_input in[MOST];
    size_t batch;
    struct diffuse how;
};

static size_t upto(struct game *g, size_t n)
{
    return (size_t)rng_below(&g->rng, n + 1);
}

static void deal_prompts(struct game *g, const struct network *n)
{
    g->batch = 1 + upto(g, MOST - 1);
    for (size_t i = 0; i < g->batch; i++) {
        g->in[i] = (struct generation_input){g->ids[i], 1 + upto(g, LONG - 1), rng_next(&g->rng),
                                             0};
        for (size_t k = 0; k < LONG; k++)
            g->ids[i][k] = (int32_t)upto(g, (size_t)n->config.mask - 1);
    }
}

/* Draws a rule with parameters that commit sometimes few and sometimes many slots. */
static void deal_rule(struct game *g)
{
    static const enum unmask rules[] = {UNMASK_SCHEDULE, UNMASK_SCHEDULE, UNMASK_THRESHOLD,
                                        UNMASK_FACTOR, UNMASK_ENTROPY_BOUND, UNMASK_HIERARCHICAL,
                                        UNMASK_PROPHET, UNMASK_SLOWFAST};
    struct unmask_params *p = &g->how.unmask;
    g->how.rule = rules[upto(g, sizeof rules / sizeof *rules - 1)];
    p->threshold = (const double[]){0.002, 0.003, 0.0031, 1}[upto(g, 3)];
    p->factor = upto(g, 1) ? 1.5 : 1.99;
    p->entropy_bound = upto(g, 1) ? 3 : 8;
    p->upper = 0.004;
    p->lower = 0.003;
    p->gap = 0.02;
    p->slowfast_reach = 0.003;
    p->slowfast_sure = 0.0031;
}

/* Draws the cache policy: the positions that a pass computes, and the masks that exist for it. */
static void deal_cache(struct game *g)
{
    struct diffuse *d = &g->how;
    const struct cache_policy *p;
    do
        p = cache_policies[d->cache = (enum caching)upto(g, CACHE_COUNT - 1)];
    while (p->causal || p->outputs || p->slots);
    d->kept = cache_usual;
    d->kept.refresh = (int32_t)upto(g, 3);
    d->kept.vicinity_before = d->kept.vicinity_after = (int32_t)upto(g, 4);
    d->kept.vicinity_warmup = 1 + (int32_t)upto(g, 2);
    d->kept.delayed_refresh = (int32_t)upto(g, 4);
    d->suffix = (struct suffix){(enum suffix_kind)(upto(g, 2) ? 0 : upto(g, SUFFIX_COUNT - 1)),
                                1 + (int32_t)upto(g, 8), 4, 2};
    d->unmask.threshold_decay = upto(g, 2) ? 0 : 0.3;
}

static void deal(struct game *g, const struct network *n)
{
    struct diffuse *d = &g->how;
    size_t blocks = 1 + upto(g, 2);
    *d = (struct diffuse){.draft = 2 + upto(g, 4), .seed = rng_next(&g->rng)};
    deal_prompts(g, n);
    deal_rule(g);
    d->block_length = 2 + upto(g, 5);
    d->gen_length = blocks * d->block_length;
    d->steps = blocks * (1 + upto(g, d->block_length));
    d->order = (enum order)upto(g, ORDER_COUNT - (d->rule == UNMASK_SCHEDULE ? 1 : 2));
    deal_cache(g);
    d->temperature = upto(g, 3) ? 0 : 0.05;
    d->cfg_scale = upto(g, 5) ? 0 : 0.5;
    d->stop_at_eos = upto(g, 3) == 0;
    d->prepare = 1;
}

struct tally {
    int cases, alike;
    int64_t passes, spared, drafted;
};

static int64_t sum(const int32_t *v, size_t n)
{
    int64_t s = 0;
    for (size_t i = 0; i < n; i++)
        s += v[i];
    return s;
}

/* Returns 1 if both generations are alike. a: with drafts, b: without. */
static int alike(const struct generation *a, const struct generation *b)
{
    return a->n == b->n && !memcmp(a->ids, b->ids, a->n * sizeof *a->ids) &&
           a->to_eos == b->to_eos && a->committed_tokens == b->committed_tokens &&
           sum(a->emit_tokens, a->n_emits) == sum(b->emit_tokens, b->n_emits) &&
           sum(a->commit_tokens, a->n_commits) == a->committed_tokens &&
           a->denoise_steps + a->accepted_steps == b->denoise_steps &&
           a->n_steps == (size_t)a->denoise_steps && a->accepted_steps <= a->drafted_steps &&
           a->rows >= a->canvas_positions && b->drafted_steps == 0 && !a->bad && !a->oom;
}

static void play(struct game *g, const struct network *n, struct tally *t)
{
    struct generation with[MOST] = {0}, without[MOST] = {0};
    struct batch_trace trace = {0}, plain = {0};
    struct diffuse vanilla = g->how;
    vanilla.draft = upto(g, 1); /* 0 and 1 mean the same */
    diffuse(n, &g->how, g->in, g->batch, with, &trace);
    diffuse(n, &vanilla, g->in, g->batch, without, &plain);
    int same = trace.memory.kind[MEMORY_KV] == trace.estimate.kv &&
               trace.memory.kind[MEMORY_ACTIVATIONS] == trace.estimate.activations;
    for (size_t i = 0; i < g->batch; i++) {
        same &= alike(&with[i], &without[i]);
        t->passes += without[i].denoise_steps;
        t->spared += with[i].accepted_steps;
        t->drafted += with[i].drafted_steps;
        generation_free(&with[i]);
        generation_free(&without[i]);
    }
    if (!same)
        printf("# case %d: rule %d order %d cache %d gen %zu block %zu steps %zu batch %zu draft "
               "%zu temperature %g cfg %g\n", t->cases, (int)g->how.rule, (int)g->how.order,
               (int)g->how.cache, g->how.gen_length, g->how.block_length, g->how.steps, g->batch,
               g->how.draft, g->how.temperature, g->how.cfg_scale);
    t->alike += same;
    t->cases++;
}

/* depth 3: acts as a device, whose passes are prepared and may be several in flight. */
static void test_device(const char *name, int depth, int cases, uint64_t seed)
{
    struct decoded m;
    decoded_open(&m, "synth:tiny-llada", name, NULL);
    decoded_act(&m.ops, depth);
    static struct game g;
    struct tally t = {0};
    g.rng = (struct rng){.seed = seed};
    m.n.config.eos[0] = 17; /* an id that now and then ends an answer early */
    for (int i = 0; i < cases; i++) {
        deal(&g, &m.n);
        play(&g, &m.n, &t);
    }
    ok(t.alike == cases && t.spared > t.passes / 20 && t.drafted > t.spared,
       "%s, depth %d: %d of %d alike; of %d steps %d were right ahead, of %d tried", name, depth,
       t.alike, cases, (int)t.passes, (int)t.spared, (int)t.drafted);
    decoded_close(&m);
}

static void test_check(void)
{
    struct err e = {0};
    struct diffuse d = {.gen_length = 8, .block_length = 8, .rule = UNMASK_THRESHOLD, .draft = 1};
    ok(!diffuse_check(&d, NULL, &e), "draft 1 is accepted and means no draft");
    static const enum unmask not[] = {UNMASK_CREDIT, UNMASK_SABER, UNMASK_WINO};
    d.draft = 2;
    for (size_t i = 0; i < sizeof not / sizeof *not; i++) {
        e = (struct err){0};
        d.rule = not[i];
        ok(diffuse_check(&d, NULL, &e) && strstr(e.text, "draft-steps 2"), "rule %d: %s",
           (int)not[i], e.text);
    }
    e = (struct err){0};
    d.rule = UNMASK_THRESHOLD;
    d.cache = CACHE_FEATURES;
    ok(diffuse_check(&d, NULL, &e) && strstr(e.text, "draft-steps 2"), "%s", e.text);
}

int main(void)
{
    test_check();
    test_device("cpu", 1, CASES, 1);
    test_device("cpu", 3, OTHERS, 2);
    test_device("ref", 1, OTHERS, 3);
    return tap_done();
}
