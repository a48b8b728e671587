/* test-revise.c - tests rules that mask tokens again. WINO is compared with its released loop
 * written out naively: every logit of canvas and shadow rows at every step. Records and events of
 * such rules are tested with every cache, in batches, with several passes in flight. Source:
 * LLaDA/decoding.py of github.com/Feng-Hong/WINO-DLLM. */
#include <assert.h>

#include "lib/base/mem.h"
#include "lib/decode/diffuse.h"
#include "lib/network/forward.h"
#include "tests/model/decoded.h"

enum { LEN = 80, BLOCK = 12, GEN = 24 };

static struct diffuse settings(enum unmask rule)
{
    return (struct diffuse){.gen_length = GEN, .block_length = BLOCK, .steps = GEN, .rule = rule,
                            .unmask = {.saber_least = 2}, .kept = cache_usual, .prepare = 1,
                            .seed = 5};
}

/* ---- the released loop ---- */

/* A canvas x[len] with shadow rows of its block, which begins at `block`. */
struct canvas {
    int32_t x[LEN];
    size_t len, block;
};

/* Runs one forward pass. out[]: the best id and its probability of each row, first the canvas's
 * rows, then the shadow rows; also the probability of the ids of target[]. */
static void answers(const struct network *n, const struct canvas *c, const int32_t *target,
                    struct head_row *out)
{
    size_t rows = c->len + BLOCK, lists = 0;
    int32_t token[LEN + BLOCK], pos[LEN + BLOCK], self[LEN + BLOCK];
    int32_t *slots = mem_zero((BLOCK + 1) * rows, sizeof *slots);
    struct forward_seq seqs[BLOCK + 1];
    for (size_t i = 0; i < rows; i++) {
        token[i] = i < c->len ? c->x[i] : (int32_t)n->config.mask;
        pos[i] = (int32_t)(i < c->len ? i : c->block + i - c->len);
        self[i] = (int32_t)i;
    }
    for (size_t s = 0; s <= BLOCK; s++) { /* 0: the canvas; else shadow row s - 1 */
        seqs[s] = (struct forward_seq){.rows = s ? 1 : c->len, .slots = slots + lists};
        for (size_t i = 0; i < (s ? rows : c->len); i++)
            if (!s || i != c->block + s - 1)
                slots[lists + seqs[s].n_slots++] = (int32_t)i;
        lists += seqs[s].n_slots;
    }
    struct forward f = {.token = token, .pos = pos, .slot = self, .seqs = seqs,
                        .n_seqs = BLOCK + 1, .mask = MASK_FULL, .wanted = self, .n_wanted = rows,
                        .query = {.target = target}};
    struct kv kv;
    struct work *w = work_make(n, &(struct work_size){.rows = rows, .seqs = BLOCK + 1,
                                                      .slots = rows, .listed = lists,
                                                      .wanted = rows, .cached = 1});
    int made = w && !kv_make(&kv, n, rows);
    assert(made);
    forward(n, &kv, w, &f, out, NULL);
    kv_free(&kv, n);
    work_free(w, n);
    free(slots);
}

/* The slot of the block with left[] that has the largest value (sign 1) or the smallest (sign -1);
 * BLOCK if no slot is left. */
static size_t extreme(const double *v, const int *left, int sign)
{
    size_t best = BLOCK;
    for (size_t k = 0; k < BLOCK; k++)
        if (left[k] && (best == BLOCK || sign * v[k] > sign * v[best]))
            best = k;
    return best;
}

/* Runs a step of the released loop. *last: the number of tokens that the previous step accepted. */
static void step(const struct network *n, const struct diffuse *d, struct canvas *c, int *last,
                 int *back)
{
    int32_t mask = (int32_t)n->config.mask, target[LEN + BLOCK] = {0};
    struct head_row out[LEN + BLOCK];
    int masked[BLOCK], low[BLOCK], masks = 0, lows = 0, accept = 0, sure = 0;
    double confidence[BLOCK], shadow[BLOCK];
    for (size_t k = 0; k < BLOCK; k++)
        target[c->len + k] = c->x[c->block + k];
    answers(n, c, target, out);
    for (size_t k = 0; k < BLOCK; k++) {
        masks += masked[k] = c->x[c->block + k] == mask;
        confidence[k] = exp(out[c->block + k].log_prob);
        shadow[k] = exp(out[c->len + k].target_log_prob);
        sure += masked[k] && confidence[k] > d->unmask.wino_draft;
        lows += low[k] = !masked[k] && shadow[k] < d->unmask.wino_verify;
    }
    int most = masks * 7 / 10;
    most = most < 5 ? 5 : most > 20 ? 20 : most;
    for (most = sure > most ? most : sure ? sure : 1; accept < most; accept++) {
        size_t k = extreme(confidence, masked, 1);
        c->x[c->block + k] = out[c->block + k].id;
        masked[k] = 0;
    }
    lows = accept < 2 ? 0 : lows < *last ? lows : *last - 1;
    for (int j = 0; j < lows; j++) {
        size_t k = extreme(shadow, low, -1);
        c->x[c->block + k] = mask;
        low[k] = 0;
    }
    *back += lows;
    *last = accept;
}

static int block_is_full(const struct network *n, const struct canvas *c)
{
    for (size_t k = 0; k < BLOCK; k++)
        if (c->x[c->block + k] == n->config.mask)
            return 0;
    return 1;
}

/* Runs all steps. *back: number of tokens masked again. */
static int released(const struct network *n, const struct diffuse *d,
                    const struct generation_input *in, struct canvas *c, int *back)
{
    int steps = 0;
    c->len = in->n + GEN;
    for (size_t i = 0; i < c->len; i++)
        c->x[i] = i < in->n ? in->ids[i] : (int32_t)n->config.mask;
    for (c->block = in->n; c->block < c->len; c->block += BLOCK) {
        int last = 30;
        for (; !block_is_full(n, c) && steps < 100; steps++)
            step(n, d, c, &last, back);
    }
    return steps;
}

static void test_released(const struct network *n)
{
    const struct {
        double draft, verify;
    } way[] = {{0.002, 0.9}, {0.003, 0.9}, {0.002, 0.003}, {0.002, 0.0034}};
    int remasked = 0;
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        struct diffuse d = settings(UNMASK_WINO);
        struct generation g[PROMPTS] = {0};
        struct batch_trace trace = {0};
        d.unmask.wino_draft = way[i].draft;
        d.unmask.wino_verify = way[i].verify;
        diffuse(n, &d, prompts, PROMPTS, g, &trace);
        for (size_t p = 0; p < PROMPTS; p++) {
            struct canvas c;
            int back = 0, steps = released(n, &d, &prompts[p], &c, &back);
            ok(g[p].n == GEN && !memcmp(g[p].ids, c.x + prompts[p].n, GEN * sizeof *c.x) &&
                   g[p].denoise_steps == steps && g[p].remasked_tokens == back,
               "wino %g %g: %d steps, %d masked again, as the released code", way[i].draft,
               way[i].verify, steps, back);
            remasked += back;
            generation_free(&g[p]);
        }
    }
    ok(remasked > 10, "slots were masked again: %d", remasked);
}

/* ---- records and events ---- */

static struct generation one(const struct network *n, const struct diffuse *d, size_t i)
{
    struct generation g = {0};
    struct batch_trace trace = {0};
    diffuse(n, d, &prompts[i], 1, &g, &trace);
    return g;
}

/* Tests events, counters and batches of a rule with a cache, if they can be combined. */
static void test_events(const struct network *n, struct diffuse d, const char *name)
{
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    int alone = 1, sums = 1, blocks = 1;
    int64_t back = 0;
    if (diffuse_check(&d, &n->config, NULL))
        return;
    diffuse(n, &d, prompts, PROMPTS, g, &trace);
    for (size_t i = 0; i < PROMPTS; i++) {
        struct generation h = one(n, &d, i);
        int64_t written = 0;
        alone &= h.n == GEN && !memcmp(h.ids, g[i].ids, GEN * sizeof *h.ids) &&
                 h.denoise_steps == g[i].denoise_steps && h.remasked_tokens == g[i].remasked_tokens;
        for (size_t k = 0; k < g[i].n_commits; k++)
            written += g[i].commit_tokens[k];
        sums &= g[i].committed_tokens == GEN && written == GEN + g[i].remasked_tokens &&
                (int64_t)g[i].n_commits == g[i].denoise_steps;
        blocks &= g[i].n_emits == GEN / BLOCK && g[i].emit_tokens[0] == BLOCK &&
                  g[i].denoise_steps <= GEN && g[i].emit_ns[0] == g[i].first_block_ns &&
                  g[i].first_commit_ns < g[i].first_block_ns;
        back += g[i].remasked_tokens;
        generation_free(&h);
    }
    ok(alone, "%s, %s: a batch gives what each gives alone", name, cache_policies[d.cache]->name);
    ok(sums && back > 0, "written tokens stay, or are %d masked again", (int)back);
    ok(blocks, "no token is readable before its block is done");
    for (size_t i = 0; i < PROMPTS; i++)
        generation_free(&g[i]);
}

static void test_rules(const struct network *n)
{
    for (int cache = 0; cache < CACHE_COUNT; cache++) {
        struct diffuse d = settings(UNMASK_WINO);
        d.cache = (enum caching)cache;
        d.kept = cache_usual;
        d.unmask.wino_draft = 0.003;
        d.unmask.wino_verify = 0.9;
        if (!diffuse_check(&d, &n->config, NULL)) /* wino cannot have every cache */
            test_events(n, d, "wino");
        d.rule = UNMASK_SABER;
        if (diffuse_check(&d, &n->config, NULL))
            continue;
        test_events(n, d, "saber");
        d.cfg_scale = 0.5;
        d.temperature = 0.3;
        test_events(n, d, "saber, guided and drawn");
    }
}

/* The rows of a pass are those of the canvas and of a block's shadows; memory is as estimated. */
static void test_rows(const struct network *n)
{
    struct diffuse d = settings(UNMASK_WINO);
    struct generation g = {0};
    struct batch_trace trace = {0};
    d.unmask.wino_draft = 0.003;
    d.cache = CACHE_DUAL;
    diffuse(n, &d, prompts, 1, &g, &trace);
    int64_t first = GEN / BLOCK * (int64_t)(prompts[0].n + GEN);
    int64_t rows = first + (g.denoise_steps - GEN / BLOCK) * BLOCK;
    ok(g.canvas_positions == rows && g.rows == rows + g.denoise_steps * BLOCK,
       "a shadow row a slot of the block and pass: %d of %d rows", (int)(g.rows - rows),
       (int)g.rows);
    const struct memory_estimate e = diffuse_estimate(n, &d, prompts, 1);
    ok(trace.memory.kind[MEMORY_KV] == e.kv && trace.memory.kind[MEMORY_ACTIVATIONS] ==
           e.activations, "its memory is as predicted: %zu, %zu", e.kv, e.activations);
    generation_free(&g);
}

/* Rules that remember must begin with an empty memory, whatever was prepared and however many
 * passes are in flight. *first: the generations of an earlier run. */
static void test_memory(const struct network *n, struct generation first[2])
{
    for (int i = 0; i < 2; i++) {
        struct diffuse d = settings(i ? UNMASK_SABER : UNMASK_CREDIT);
        d.unmask.credit_threshold = 0.004;
        d.unmask.credit_weight = 0.7;
        d.unmask.credit_decay = 0.8;
        d.unmask.credit_power = 0.2;
        struct generation g = one(n, &d, 2);
        if (!first[i].n) {
            first[i] = g;
            ok(g.denoise_steps > 2 && g.denoise_steps < GEN, "rule %d: %d steps", i,
               (int)g.denoise_steps);
            continue;
        }
        ok(g.n == first[i].n && !memcmp(g.ids, first[i].ids, g.n * sizeof *g.ids) &&
               g.denoise_steps == first[i].denoise_steps &&
               g.remasked_tokens == first[i].remasked_tokens, "rule %d: the same, prepared", i);
        generation_free(&g);
    }
}

int main(void)
{
    struct decoded m;
    decoded_open(&m, "synth:tiny-llada", "cpu", NULL);
    struct generation first[2] = {{0}};
    for (int depth = 1; depth <= 3; depth += 2) {
        decoded_act(&m.ops, depth);
        test_released(&m.n);
        test_memory(&m.n, first);
        test_rules(&m.n);
        test_rows(&m.n);
    }
    generation_free(&first[0]);
    generation_free(&first[1]);
    decoded_close(&m);
    return tap_done();
}
