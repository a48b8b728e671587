/* test-cost.c - compares the least cost of passes with numbers counted by hand.
 *
 * tiny-llama: D 64, L 2, H 4, K 2, E 16, F 160, V 512, in f32. Values of the matrices in the
 * layers:
 *     2 (2 x 64 x 64 + 2 x 64 x 32 + 3 x 64 x 160) = 86016
 * The last feed-forward block has 30720 of these values. So a row is 110592 flops, a pair of row
 * and key 4 x 2 x 64 = 512, an answer 61440 and 2 x 512 x 64 = 65536. The matrices are 344064
 * bytes, the head 131072, a slot 2 x 2 x 32 x 4 = 512. tiny-llada has K 4: a row is 126976 flops,
 * the matrices 376832 bytes, a slot 1024. */
#include "lib/decode/autoregress.h"
#include "lib/decode/diffuse.h"
#include "tests/tap.h"

static const int32_t five[] = {11, 42, 300, 7, 99}, single[] = {5};
static const struct generation_input prompts[] = {{five, 5, 77, 0}, {single, 1, 78, 0}};

static int is(struct cost c, double flops, double bytes)
{
    int same = c.flops >= flops && c.flops <= flops && c.bytes >= bytes && c.bytes <= bytes;
    if (!same)
        printf("# got %.17g flops, %.17g bytes\n", c.flops, c.bytes);
    return same;
}

static struct batch_trace texts(const struct network *n, const struct autoregress *how,
                                size_t batch)
{
    struct generation g[2] = {0};
    struct batch_trace t = {0};
    autoregress(n, how, prompts, batch, g, &t);
    for (size_t i = 0; i < batch; i++)
        generation_free(&g[i]);
    return t;
}

static void test_texts(struct network *n)
{
    struct autoregress how = {.max_new = 3, .sample = {0, 0, 1}, .cache = 1, .ignore_eos = 1};
    struct batch_trace t = texts(n, &how, 1);
    ok(is(t.cost, 1169408, 1438208), "prompt of 5, 3 passes: 7 rows, 28 pairs, 25 slots");
    ok(is(t.prefill, 687616, 480256) && t.prefill_ns > 0, "the first of them: 5 rows, 15 pairs");
    ok(t.prefill_ns < t.makespan_ns, "the prefill ends before the batch does");
    how.max_new = 2;
    t = texts(n, &how, 2);
    ok(is(t.cost, 1404928, 961536), "prompts of 5 and 1 read the matrices together");
    how.cache = 0;
    t = texts(n, &how, 1);
    ok(is(t.cost, 1488896, 950272) && !t.prefill_ns, "without a cache: 11 rows, no slots");
}

/* A text ends early. Passes after its end that were already in flight do not count. */
static void test_end(struct network *n)
{
    struct autoregress how = {.max_new = 12, .sample = {0, 0, 1}, .cache = 1, .ignore_eos = 1};
    const struct config was = n->config;
    struct generation g = {0};
    struct batch_trace t = {0};
    autoregress(n, &how, prompts, 1, &g, &t);
    size_t at = 1;
    while (at < 11 && g.ids[at] == g.ids[0])
        at++;
    n->config.eos[0] = g.ids[at];
    n->config.n_eos = 1;
    how.ignore_eos = 0;
    generation_free(&g);
    t = texts(n, &how, 1);
    double passes = (double)at + 1, rows = 4 + passes, pairs = rows * (rows + 1) / 2;
    ok(is(t.cost, 110592 * rows + 512 * pairs + 126976 * passes,
          475136 * passes + 512 * (pairs - 10 + rows)),
       "%zu passes to the stop id, however many are under way", at + 1);
    n->config = was;
}

/* The first of two texts ends at once. Passes in flight still have a row of this text. */
static void test_left(struct network *n, int depth)
{
    struct autoregress how = {.max_new = 3, .sample = {0, 0, 1}, .cache = 1};
    const struct config was = n->config;
    struct generation g[2] = {0};
    struct batch_trace t = {0};
    how.ignore_eos = 1;
    autoregress(n, &how, prompts, 2, g, &t);
    n->config.eos[0] = g[0].ids[0];
    n->config.n_eos = 1;
    int apart = g[1].ids[0] != g[0].ids[0] && g[1].ids[1] != g[0].ids[0];
    generation_free(&g[0]);
    generation_free(&g[1]);
    how.ignore_eos = 0;
    t = texts(n, &how, 2);
    ok(apart && (depth == 1 ? is(t.cost, 8 * 110592 + 21 * 512 + 4 * 126976, 3 * 475136 + 19 * 512)
                            : is(t.cost, 10 * 110592 + 31 * 512 + 6 * 126976,
                                 3 * 475136 + 31 * 512)),
       "a text that ended stays as one row of the passes under way");
    n->config = was;
}

/* A model that drafts for itself, two ids a pass. The model reads 5, 3 and 3 rows, and 1, 3 and 3
 * of them are answered. The guesses cost passes of 6, 1, 2 and 1 rows, because the drafter had not
 * read two of the ids. */
static void test_guesses(struct network *n)
{
    struct autoregress how = {.max_new = 7, .sample = {0, 0, 1}, .cache = 1, .ignore_eos = 1,
                              .draft = n, .draft_tokens = 2};
    struct batch_trace t = texts(n, &how, 1);
    ok(is(t.cost, 21 * 110592.0 + (15 + 21 + 30 + 21 + 7 + 17 + 10) * 512 + (7 + 4) * 126976,
          7 * 475136.0 + (5 + 8 + 11 + 11 + 6 + 7 + 9 + 10 + 10) * 512),
       "guesses cost what the rows of both models do");
    ok(is(t.prefill, 687616, 480256), "the first pass is as it was");
}

static struct cost canvases(const struct network *n, const struct diffuse *how, size_t batch)
{
    struct generation g[2] = {0};
    struct batch_trace t = {0};
    diffuse(n, how, prompts, batch, g, &t);
    for (size_t i = 0; i < batch; i++)
        generation_free(&g[i]);
    ok(!t.prefill_ns && t.prefill.flops <= 0, "every pass holds the prompt");
    return t.cost;
}

static void test_canvases(const struct network *n)
{
    struct diffuse how = {.gen_length = 8, .block_length = 4, .steps = 4,
                          .rule = UNMASK_SCHEDULE};
    ok(is(canvases(n, &how, 1), 8472576, 2031616), "4 passes of 13 rows, 12 answers");
    ok(is(canvases(n, &how, 2), 14733312, 2031616), "13 and 9 rows read the matrices together");
    how.cfg_scale = 1.5;
    ok(is(canvases(n, &how, 1), 16945152, 2031616), "with CFG: all twice, read once");
}

/* Blocks of 4 count from the first id of the prompt, and the last block is whole. So they have 3, 4
 * and 4 slots to fill, two a pass. Rows 0-3 see 4 keys, 4-7 8, 8-11 12, 12-15 16. */
static void test_block_causal(struct network *n)
{
    struct diffuse how = {.gen_length = 8, .block_length = 4, .steps = 4,
                          .rule = UNMASK_SCHEDULE};
    const struct config was = n->config;
    n->config.attends = MASK_BLOCK_CAUSAL;
    n->config.attends_block = 4;
    ok(is(canvases(n, &how, 1), 96.0 * 126976 + 6 * 160 * 512 + 16 * 126976.0, 6 * 507904.0),
       "block-causal: 6 passes of 16 rows, which see 160 of 256 pairs, 16 answers");
    how.cache = CACHE_EXACT; /* the passes compute rows 0-7, 4-7, 4-11, 8-11, 8-15, 12-15 */
    ok(is(canvases(n, &how, 1), 36.0 * 126976 + 384 * 512 + 16 * 126976.0,
          6 * 507904.0 + 1024 * (72 + 36)),
       "exact: 36 rows, 384 pairs, 72 slots read");
    how = (struct diffuse){.gen_length = 4, .block_length = 4, .rule = UNMASK_S2D2,
                           .unmask = {.check_span = 1}};
    n->config.attends_cut = 1; /* slots 5 to 7, then slot 8; each part is drafted, then checked */
    ok(is(canvases(n, &how, 1), 40.0 * 126976 + 213 * 512 + 8 * 126976.0, 4 * 507904.0),
       "s2d2: 4 passes of 9 rows, which see 48, 45, 45 and 45; 3 that check see 21, 1 sees 9");
    how.cache = CACHE_EXACT; /* the passes compute rows 0-7, 4-7, 8, 8 */
    ok(is(canvases(n, &how, 1), 18.0 * 126976 + 113 * 512 + 8 * 126976.0,
          4 * 507904.0 + 1024 * (64 + 18)),
       "s2d2, exact: 18 rows, 113 pairs, 64 slots read");
    n->config = was;
}

/* The prompt has 5 ids. `features` has four passes: of 13 rows, of 2 chosen from 8, of 8, of 2
 * chosen from 8. A row that is not chosen costs 188416 / 2 + 2 x 64 x 64 flops, a pair of it 256,
 * and the outputs of a row are 1024 bytes. `sparse` has for each block two passes of 13 rows that
 * keep 5, and two of 4 rows on 9 keys. */
static void test_layers(const struct network *n)
{
    struct diffuse how = {.gen_length = 8, .block_length = 4, .steps = 4,
                          .rule = UNMASK_SCHEDULE, .cache = CACHE_FEATURES,
                          .kept = {.prompt_refresh = 50, .response_refresh = 2, .update = 0.25,
                                   .keep = 0.5, .keep_delay = 1}};
    ok(is(canvases(n, &how, 1), 6133248, 2154496), "features: 25 rows, 12 looked at, 37 outputs");
    how.cache = CACHE_SPARSE;
    how.steps = 8;
    ok(is(canvases(n, &how, 1), 11593728, 4136960), "sparse: 68 rows, 820 pairs, 72 slots");
}

static void test_parts(const struct network *n)
{
    const struct cost_model t = cost_model_of(n);
    struct extent x = {.wanted = 4, .read = 13, .written = 4};
    cost_full(&x, 4, 13);
    ok(is(cost_of(&t, &x), 1042432, 525312), "a block of 4 beside a cache of 13");
    x = (struct extent){0};
    cost_causal(&x, 3, 5);
    ok(is(cost_of(&t, &x), 3 * 126976 + 12 * 512, 253952), "no answer, no head: 3 + 4 + 5 pairs");
}

/* Loads a model in f32. Returns 1 if it loads. */
static int load(struct network *n, struct backend *b, const char *name, struct checkpoint *c)
{
    struct err e = {0};
    int loaded = !checkpoint_open(c, name, 3, &e) &&
                 !network_load(n, b, c, &(struct precision){.dtype = "f32"}, &e);
    return ok(loaded, "%s loads %s", name, e.text);
}

/* A drafter that reads the outputs of the model multiplies by the model's head. Here it does so
 * once, because only one guess fits, and the guess is wrong. The format of the drafter does not
 * change the bytes of this head. */
static void test_lent_head(struct backend *b)
{
    struct checkpoint c, d;
    struct network reader, n;
    struct err e = {0};
    double bytes[2], head[2];
    if (!load(&reader, b, "synth:tiny-dflash", &d) ||
        checkpoint_open(&c, "synth:tiny-llama", 3, &e))
        return;
    for (int i = 0; i < 2; i++) {
        const struct precision how = {.dtype = "f32", .kv = "f32",
                                      .quant = i ? "int8" : "none"};
        ok(!network_load(&n, b, &c, &how, &e), "loaded: %s", e.text);
        const struct cost_model m = cost_model_of(&n);
        const struct autoregress plain = {.max_new = 3, .sample = {0, 0, 1}, .cache = 1,
                                          .ignore_eos = 1};
        struct autoregress drafts = plain;
        drafts.draft = &reader;
        drafts.draft_tokens = 1;
        const struct batch_trace t = texts(&n, &drafts, 1), u = texts(&n, &plain, 1);
        head[i] = m.head_bytes;
        bytes[i] = t.cost.bytes - u.cost.bytes;
        network_free(&n);
    }
    ok(head[0] > 2 * head[1] && fabs(bytes[0] - bytes[1] - head[0] + head[1]) < 1,
       "a drafter's pass reads %.17g bytes less as the head does: %.17g", bytes[0] - bytes[1],
       head[0] - head[1]);
    network_free(&reader);
    checkpoint_close(&c);
    checkpoint_close(&d);
}

/* tiny-qwen2: values of the blocks' matrices 2 (2 x 64 x 64 + 2 x 64 x 32 + 3 x 64 x 128) = 73728,
 * of the biases 2 (64 + 2 x 32) = 256. tiny-qwen3: 2 (2 x 64 x 128 + 2 x 64 x 64 + 3 x 64 x 128) =
 * 98304, and norms of heads do not count. A row without an answer lacks the last feed-forward
 * block: 3 x 64 x 128 = 24576. */
static void test_biases(struct backend *b)
{
    static const struct { const char *name; double flops, bytes; } rows[] = {
        {"synth:tiny-qwen2", 2 * 49152 + 256, 4 * (49152 + 256)},
        {"synth:tiny-qwen3", 2 * 73728, 4 * 73728}};
    for (size_t i = 0; i < 2; i++) {
        struct checkpoint c;
        struct network n;
        if (!load(&n, b, rows[i].name, &c))
            return;
        const struct cost_model t = cost_model_of(&n);
        const struct extent x = {.rows = 1};
        ok(is(cost_of(&t, &x), rows[i].flops, rows[i].bytes), "%s: a row", rows[i].name);
        network_free(&n);
        checkpoint_close(&c);
    }
}

/* tiny-llada-moe: 7 experts of 40 hidden units, 3 for each row. Values besides the experts: 2 (4 x
 * 64 x 64 + 7 x 64) = 33664; of an expert 3 x 64 x 40 = 7680. The router of the last layer (448
 * values) and its experts are only for rows with an answer. */
static void test_experts(struct backend *b)
{
    struct checkpoint c;
    struct network n;
    if (!load(&n, b, "synth:tiny-llada-moe", &c))
        return;
    const struct cost_model t = cost_model_of(&n);
    struct extent x = {.rows = 1};
    ok(is(cost_of(&t, &x), 2 * (33216 + 3 * 7680), 4 * 33216),
       "cost counts the experts that a row uses");
    cost_experts(&t, &x);
    ok(is(cost_of(&t, &x), 2 * (33216 + 3 * 7680), 4 * (33216 + 3 * 7680)),
       "cost counts the bytes of experts that a row reads");
    x.rows = x.wanted = 1e6;
    cost_experts(&t, &x);
    ok(x.experts > 13.999 && x.experts <= 14, "many rows read all");
    struct diffuse how = {.gen_length = 4, .block_length = 4, .steps = 1, .rule = UNMASK_SCHEDULE};
    struct generation g = {0};
    struct batch_trace trace = {0};
    diffuse(&n, &how, prompts, 1, &g, &trace);
    double experts = (trace.cost.bytes - 4 * (33664 + 512 * 64)) / (4 * 7680);
    ok(experts >= 6 && experts <= 14 && !(experts - floor(experts) > 0),
       "a pass of 9 rows read %g experts", experts);
    generation_free(&g);
    network_free(&n);
    checkpoint_close(&c);
}

/* tiny-llada2: first a layer with one feed-forward of 72 hidden units, then two layers with 12
 * experts of 40, 3 for each row, and a shared expert of 80. Values: attention 3 x 12288; the first
 * feed-forward 3 x 64 x 72 = 13824; of a layer with experts the router 768, its bias 12, the shared
 * expert 15360, an expert 7680. The last layer is only for rows with an answer. */
static void test_groups(struct backend *b)
{
    struct checkpoint c;
    struct network n;
    if (!load(&n, b, "synth:tiny-llada2", &c))
        return;
    const struct cost_model t = cost_model_of(&n);
    const double all = 3 * 12288 + 13824 + 768 + 15360, last = 768 + 15360;
    struct extent x = {.rows = 1};
    ok(is(cost_of(&t, &x), 2 * (all + 3 * 7680) + 12, 4 * (all + 12)), "a row in all layers");
    x.wanted = 1;
    cost_experts(&t, &x);
    const double answers = 512 * 64;
    ok(is(cost_of(&t, &x), 2 * (all + last + 6 * 7680 + answers) + 24,
          4 * (all + last + 24 + answers + 6 * 7680)), "with an answer, and 6 experts read");
    x.rows = x.wanted = 1e6;
    cost_experts(&t, &x);
    ok(x.experts > 23.999 && x.experts <= 24, "many rows read the experts of two layers");
    network_free(&n);
    checkpoint_close(&c);
}

int main(void)
{
    struct checkpoint c, d;
    struct network llama, llada;
    struct backend *b = backend_open("cpu", "portable", 1, 0, NULL);
    if (!load(&llama, b, "synth:tiny-llama", &c) || !load(&llada, b, "synth:tiny-llada", &d))
        return tap_done();
    struct ops ops = *b->ops;
    b->ops = &ops;
    for (ops.depth = 1; ops.depth <= 3; ops.depth += 2) { /* passes in flight */
        test_texts(&llama);
        test_end(&llama);
        test_left(&llama, ops.depth);
        test_guesses(&llama);
        test_canvases(&llada);
        if (ops.depth == 1) /* with more depth passes are in flight when a block is full */
            test_block_causal(&llada);
    }
    ops.depth = 1;
    test_layers(&llada);
    test_parts(&llada);
    test_lent_head(b);
    test_biases(b);
    test_experts(b);
    test_groups(b);
    network_free(&llama);
    network_free(&llada);
    checkpoint_close(&c);
    checkpoint_close(&d);
    backend_close(b);
    return tap_done();
}
