/* test-speculation.c - tests that guesses do not change texts: equal ids with and without guesses,
 * over drawn prompts, batches and settings. Draws have the distribution of the model. Also tests
 * counters, memory and the lookup rule. SPECULATION_TEXTS sets how many texts at temperature 0 are
 * compared with plain decoding, and how many with draws (200). One file because all tests compare
 * with the same plain decoding. */
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/decode/autoregress.h"
#include "lib/decode/lookup.h"
#include "lib/decode/loop.h"
#include "lib/network/forward.h"
#include "tests/model/decoded.h"

enum { TEXTS = 200, MOST_TEXTS = 7, LONGEST = 40, CONTEXT = 160 };

/* ---- lookup ---- */

static int guesses(const int32_t *ids, size_t n, size_t ngram, size_t most, const int32_t *want,
                   size_t n_want)
{
    int32_t got[8];
    size_t n_got = lookup_guess(ids, n, ngram, most, got);
    return n_got == n_want && (!n_want || !memcmp(got, want, n_want * sizeof *got));
}

static void test_lookup(void)
{
    static const int32_t ids[] = {1, 2, 3, 7, 2, 3, 8, 9, 2, 3}, last[] = {8, 9, 2},
                         first[] = {3, 7, 2, 3}, fewer[] = {5, 1, 2, 3, 4, 9, 3, 6, 2, 3},
                         after_two[] = {4, 9, 3}, after_one[] = {6, 2, 3, 6, 2, 3},
                         again[] = {4, 4}, pair[] = {4, 5, 4, 5, 4}, on[] = {5, 4, 5, 4, 5};
    ok(guesses(ids, 10, 2, 3, last, 3), "the ids after the last place of the final two ids");
    ok(guesses(ids, 5, 3, 4, first, 4), "one id is looked up where two are new; the guess repeats");
    ok(guesses(fewer, 10, 3, 3, after_two, 3), "a longer agreement goes before a later place");
    ok(guesses(fewer, 10, 1, 6, after_one, 6), "single ids: the last place counts");
    ok(guesses(ids, 4, 3, 3, NULL, 0) && guesses(ids, 1, 3, 3, NULL, 0), "a new id, a single id");
    ok(guesses(again, 2, 3, 2, again, 2) && guesses(pair, 5, 3, 5, on, 5), "a text that repeats");
}

/* ---- the same text ---- */

struct models {
    struct network own, near, other, reader, chain; /* the last four guess: nearly the same one,
                                              * another one, two that read the first: one fills
                                              * masks, one guesses id by id */
};

struct texts {
    size_t n;
    int32_t ids[MOST_TEXTS][LONGEST];
    struct generation_input in[MOST_TEXTS];
};

/* Prompts that repeat themselves now and then, as texts do. */
static void draw_texts(struct texts *t, struct rng *r, size_t vocab)
{
    t->n = 1 + rng_below(r, MOST_TEXTS);
    for (size_t i = 0; i < t->n; i++) {
        size_t n = 1 + rng_below(r, LONGEST), period = 1 + rng_below(r, n);
        for (size_t k = 0; k < n; k++)
            t->ids[i][k] = k >= period && rng_below(r, 8) ? t->ids[i][k - period]
                                                          : (int32_t)rng_below(r, vocab);
        t->in[i] = (struct generation_input){t->ids[i], n, rng_next(r), 0};
    }
}

static struct autoregress draw_how(struct rng *r)
{
    static const double temperature[] = {0, 0, 1, 0.5};
    struct autoregress how = {.max_new = 1 + rng_below(r, 40), .cache = rng_below(r, 5) > 0,
                              .ignore_eos = (int)rng_below(r, 2), .seed = rng_next(r),
                              .sample = {temperature[rng_below(r, 4)], 0, 1}};
    if (rng_below(r, 4) == 0) {
        how.sample.top_k = 1 + rng_below(r, 9);
        how.sample.top_p = 0.9;
    }
    how.prepare = (int)rng_below(r, 2);
    return how;
}

/* Draws a way to guess. only: the drafter to use; NULL: any way. */
static void draw_guessing(struct autoregress *how, struct rng *r, const struct models *m,
                          const struct network *only)
{
    const struct network *drafts[] = {&m->own, &m->near, &m->other, &m->reader, &m->chain};
    how->lookup = !only && rng_below(r, 2) ? 1 + rng_below(r, 8) : 0;
    how->lookup_ngram = 1 + rng_below(r, 4);
    if (!how->lookup) {
        how->draft = only ? only : drafts[rng_below(r, 5)];
        how->draft_tokens = 1 + rng_below(r, 6);
    }
    how->alive = rng_below(r, 3) ? 0 : 1 + rng_below(r, 3);
    how->arrivals = how->alive && how->seed & 1;
}

/* Texts that come while others are written, up to a few passes apart. */
static void draw_arrivals(struct texts *t, const struct autoregress *how)
{
    for (size_t i = 1; i < t->n; i++)
        t->in[i].due_ns = t->in[i - 1].due_ns + (int64_t)(rng_at(how->seed, i, 0) % 500000);
}

/* Makes some ids end a text, so that guesses contain them too. */
static void draw_stops(struct network *n, struct rng *r)
{
    n->config.n_eos = CONFIG_MAX_EOS;
    for (size_t i = 0; i < CONFIG_MAX_EOS; i++)
        n->config.eos[i] = (int64_t)rng_below(r, n->config.vocab);
}

static int memory_as_estimated(const struct batch_trace *t)
{
    return t->memory.kind[MEMORY_KV] == t->estimate.kv &&
           t->memory.kind[MEMORY_ACTIVATIONS] == t->estimate.activations;
}

/* Returns 1 if four counts of the tokens of a text agree. */
static int adds_up(const struct generation *g, const struct autoregress *how)
{
    int64_t emitted = 0, met = g->n < how->max_new;
    for (size_t k = 0; k < g->n_emits; k++)
        emitted += g->emit_tokens[k];
    return emitted == (int64_t)g->n && g->committed_tokens == emitted &&
           emitted == g->accepted_tokens + (int64_t)g->n_steps - met &&
           g->accepted_tokens <= g->drafted_tokens && g->n <= how->max_new && g->e2e_ns > 0;
}

static int same_text(const struct generation *a, const struct generation *b)
{
    return a->n == b->n && (!a->n || !memcmp(a->ids, b->ids, a->n * sizeof *a->ids)) &&
           a->to_eos == b->to_eos && !strcmp(a->stop, b->stop) && !a->bad && !b->bad;
}

struct tally {
    size_t texts, same, sums, memory, batches, greedy, came, counted;
    int64_t tokens, passes, plain_passes, drafted, accepted;
};

static void compare_one(struct tally *y, const struct models *m, struct rng *r,
                        const struct network *only)
{
    struct texts t;
    struct generation plain[MOST_TEXTS] = {0}, guessed[MOST_TEXTS] = {0};
    struct batch_trace trace = {0}, other = {0};
    struct network own = m->own;
    draw_texts(&t, r, own.config.vocab);
    draw_stops(&own, r);
    struct autoregress how = draw_how(r);
    autoregress(&own, &how, t.in, t.n, plain, &other);
    draw_guessing(&how, r, m, only);
    draw_arrivals(&t, &how);
    autoregress(&own, &how, t.in, t.n, guessed, &trace);
    y->batches++;
    y->memory += (size_t)(memory_as_estimated(&trace) && memory_as_estimated(&other));
    for (size_t i = 0; i < t.n; i++) {
        const struct generation *g = &guessed[i];
        y->texts++;
        y->greedy += how.sample.temperature <= 0;
        y->same += (size_t)same_text(&plain[i], g);
        y->came += (size_t)how.arrivals;
        y->counted += (size_t)(how.arrivals && g->admit_ns == t.in[i].due_ns && g->queue_ns >= 0 &&
                               g->queue_ns < g->e2e_ns);
        y->sums += (size_t)(adds_up(&plain[i], &how) && adds_up(g, &how) &&
                            g->n_steps <= plain[i].n_steps && !plain[i].drafted_tokens);
        y->tokens += (int64_t)g->n;
        y->passes += (int64_t)g->n_steps;
        y->plain_passes += (int64_t)plain[i].n_steps;
        y->drafted += g->drafted_tokens;
        y->accepted += g->accepted_tokens;
        generation_free(&plain[i]);
        generation_free(&guessed[i]);
    }
}

static void test_same(const struct models *m, size_t texts, uint64_t seed, const char *what,
                      const struct network *only)
{
    struct tally y = {0};
    struct rng r = {seed, 0, 0};
    while (y.greedy < texts || y.texts - y.greedy < texts)
        compare_one(&y, m, &r, only);
    ok(y.same == y.texts, "%s: %zu of %zu texts are those without guesses (%zu greedy)", what,
       y.same, y.texts, y.greedy);
    ok(y.sums == y.texts && y.memory == y.batches,
       "%s: tokens, events, passes and memory add up: %zu, %zu of %zu batches", what, y.sums,
       y.memory, y.batches);
    ok(y.came > 0 && y.counted == y.came, "%s: times of %zu of %zu texts that came later count "
       "from there", what, y.counted, y.came);
    ok(y.accepted > 0 && y.accepted < y.drafted && y.passes < y.plain_passes,
       "%s: %lld of %lld guesses were right; %lld passes, not %lld", what, (long long)y.accepted,
       (long long)y.drafted, (long long)y.passes, (long long)y.plain_passes);
}

/* Recorded passes of a drafter belong to the model whose embedding they read. */
static void test_lent(const struct models *m)
{
    struct network a = m->chain, b = m->chain, c = m->chain;
    network_lend(&a, &m->own);
    network_lend(&b, &m->other);
    network_lend(&c, &m->own);
    ok(a.embed.data == m->own.embed.data && a.head.data == m->chain.head.data &&
           a.identity != b.identity && a.identity == c.identity,
       "a lent embedding, another network");
}

/* ---- how many guesses are right ---- */

static struct generation write_one(const struct network *n, const struct autoregress *how,
                                   const struct generation_input *in)
{
    struct generation g = {0};
    struct batch_trace trace = {0};
    autoregress(n, how, in, 1, &g, &trace);
    return g;
}

static void test_all_right(const struct models *m)
{
    static const int32_t ids[] = {11, 42, 300, 7, 99};
    const struct generation_input in = {ids, 5, 77, 0};
    struct autoregress how = {.max_new = 16, .sample = {0, 0, 1}, .cache = 1, .ignore_eos = 1,
                              .draft = &m->own, .draft_tokens = 4};
    for (int hot = 0; hot < 2; hot++) {
        how.sample.temperature = hot;
        struct generation g = write_one(&m->own, &how, &in);
        ok(g.n == 16 && g.n_steps == 4 && g.drafted_tokens == 12 && g.accepted_tokens == 12,
           "T = %d: a model that guesses for itself is always right: 1 + 5 + 5 + 5", hot);
        ok(g.emit_tokens[0] == 1 && g.emit_tokens[3] == 5 && g.rows == 5 + 3 * 5,
           "an event a pass; a row a guess");
        generation_free(&g);
    }
}

/* ---- passes before the clock ---- */

/* Notes of the passes of a chaining drafter before the first pass of a text. */
static struct prepared {
    const struct network *drafter;
    const struct ops *own;
    size_t fused;     /* largest number of the model's outputs that a pass read */
    int32_t first;    /* first position that had a row */
    int closed;
} prepared;

static void note_rows(struct backend *b, act *y, const act *x, const int32_t *row,
                      const float *gain, size_t rows, size_t width, double eps)
{
    if (row && !gain && !prepared.closed && rows > prepared.fused)
        prepared.fused = rows;
    prepared.own->rmsnorm(b, y, x, row, gain, rows, width, eps);
}

static void note_places(struct backend *b, float *table, const int32_t *pos, const float *inv_freq,
                        float scale, size_t rows, size_t head_dim)
{
    for (size_t i = 0; i < rows && inv_freq == prepared.drafter->inv_freq; i++)
        prepared.first = pos[i] < prepared.first ? pos[i] : prepared.first;
    prepared.own->rope_table(b, table, pos, inv_freq, scale, rows, head_dim);
}

static void end_noting(void *ctx)
{
    (void)ctx;
    prepared.closed = 1;
}

/* Passes of a chaining drafter of all sizes, up to the largest less an eighth, run before the clock
 * starts, with what they read. No pass has a row at a position without a state before it, even if a
 * prompt has only one id. */
static void test_prepared(const struct models *m)
{
    enum { SEATS = 3, GUESSES = 6 };
    const size_t most = SEATS * (1 + GUESSES) * m->chain.config.taps;
    static const int32_t ids[] = {11, 42, 300, 7, 99};
    struct backend *b = m->own.backend;
    const struct ops *own = b->ops;
    struct ops ops = *own;
    struct generation_input in[SEATS];
    struct generation g[SEATS];
    const struct observer observer = {.passed = end_noting};
    const struct autoregress how = {.max_new = 12, .sample = {0, 0, 1}, .cache = 1,
                                    .ignore_eos = 1, .draft = &m->chain, .prepare = 1,
                                    .draft_tokens = GUESSES, .observer = &observer};
    ops.rmsnorm = note_rows;
    ops.rope_table = note_places;
    b->ops = &ops;
    for (size_t prompt = 1; prompt <= 5; prompt += 4) {
        struct batch_trace trace = {0};
        memset(g, 0, sizeof g);
        prepared = (struct prepared){.drafter = &m->chain, .own = own, .first = INT32_MAX};
        for (size_t i = 0; i < SEATS; i++)
            in[i] = (struct generation_input){ids, prompt, 7 + i, 0};
        autoregress(&m->own, &how, in, SEATS, g, &trace);
        ok(prepared.closed && prepared.first == 1 &&
               prepared.fused <= most && 9 * prepared.fused > 8 * most,
           "prompts of %zu ids: passes of EAGLE-3 before the clock read %zu outputs, later ones "
           "at most %zu; first place: %d", prompt, prepared.fused, most, prepared.first);
        for (size_t i = 0; i < SEATS; i++)
            generation_free(&g[i]);
    }
    b->ops = own;
}

/* The guesses of a drafting model are what it would write itself after the text so far, whatever it
 * guessed before. So passes and right guesses equal those of a simulation by the model's own
 * generations. */
static void test_guesses_of(const struct models *m)
{
    enum { NEW = 60, GUESSES = 3, PROMPT = 5 };
    int32_t text[PROMPT + NEW] = {11, 42, 300, 7, 99};
    struct generation_input in = {text, PROMPT, 77, 0};
    struct autoregress how = {.max_new = NEW, .sample = {0, 0, 1}, .cache = 1, .ignore_eos = 1};
    struct generation plain = write_one(&m->own, &how, &in);
    memcpy(text + PROMPT, plain.ids, NEW * sizeof *text);
    int64_t passes = 1, accepted = 0;
    for (size_t n = 1; n < NEW; n++, passes++) {
        how.max_new = NEW - n - 1 < GUESSES ? NEW - n - 1 : GUESSES;
        in.n = PROMPT + n;
        struct generation g = {0};
        if (how.max_new)
            g = write_one(&m->near, &how, &in);
        for (size_t k = 0; k < g.n && g.ids[k] == plain.ids[n]; k++, n++)
            accepted++;
        generation_free(&g);
    }
    how = (struct autoregress){.max_new = NEW, .sample = {0, 0, 1}, .cache = 1, .ignore_eos = 1,
                               .draft = &m->near, .draft_tokens = GUESSES};
    in.n = PROMPT;
    struct generation g = write_one(&m->own, &how, &in);
    ok((int64_t)g.n_steps == passes && g.accepted_tokens == accepted && accepted > 0 &&
           accepted < g.drafted_tokens && g.n == NEW,
       "guesses of a model: %lld of %lld right, %zu passes; simulated %lld, %lld",
       (long long)g.accepted_tokens, (long long)g.drafted_tokens, g.n_steps, (long long)accepted,
       (long long)passes);
    generation_free(&g);
    generation_free(&plain);
}

/* A prompt fills the context up to its end. */
static void test_full(const struct models *m)
{
    int32_t ids[CONTEXT];
    for (size_t i = 0; i < CONTEXT; i++)
        ids[i] = (int32_t)(i % 7);
    for (size_t max_new = 1; max_new < 4; max_new++) {
        const struct generation_input in = {ids, CONTEXT - max_new, 5, 0};
        struct autoregress how = {.max_new = max_new, .sample = {0, 0, 1}, .cache = 1,
                                  .ignore_eos = 1, .draft = &m->own, .draft_tokens = 64};
        struct generation g = write_one(&m->own, &how, &in);
        how.draft = NULL;
        how.lookup = 64;
        how.lookup_ngram = 3;
        struct generation h = write_one(&m->own, &how, &in);
        ok(g.n == max_new && h.n == max_new && !memcmp(g.ids, h.ids, max_new * sizeof *g.ids) &&
               g.drafted_tokens == (max_new > 1 ? (int64_t)max_new - 2 : 0),
           "%zu to come: no guess goes beyond them", max_new);
        generation_free(&g);
        generation_free(&h);
    }
}

/* ---- prompts that wait ---- */

static void test_waiting(const struct models *m)
{
    static const int32_t ids[] = {11, 42, 300, 7, 99, 5};
    struct generation_input in[5];
    struct generation g[5] = {0};
    struct batch_trace trace = {0};
    for (size_t i = 0; i < 5; i++)
        in[i] = (struct generation_input){ids + i, 6 - i, 70 + i, 0};
    struct autoregress how = {.max_new = 4, .sample = {0, 0, 1}, .cache = 1, .ignore_eos = 1,
                              .alive = 2};
    autoregress(&m->own, &how, in, 5, g, &trace);
    ok(!g[0].admit_ns && !g[1].admit_ns && g[2].admit_ns >= g[0].e2e_ns &&
           g[4].admit_ns >= g[2].admit_ns + g[2].e2e_ns && g[3].admit_ns < g[4].admit_ns,
       "two are written at once, the others when these have ended, in their order");
    ok(g[4].n_steps == 4 && g[4].rows == 2 + 3 && g[4].e2e_ns == g[4].emit_ns[3] &&
           trace.makespan_ns == g[4].admit_ns + g[4].e2e_ns,
       "the clock of one that waited begins when it is admitted, that of the batch does not");
    for (size_t i = 0; i < 5; i++)
        generation_free(&g[i]);
}

/* The shortest of several waits counts, because other processes may hold up this one. */
static void test_sleep(void)
{
    enum { WAIT = 300 * 1000, LATE = 40 * 1000, TIMES = 20 };
    int64_t least = INT64_MAX;
    int early = 0;
    for (int i = 0; i < TIMES; i++) {
        struct batch_trace trace = {.start_ns = clock_ns()};
        loop_sleep(WAIT, NULL, &trace);
        int64_t late = clock_ns() - trace.start_ns - WAIT;
        early |= late < 0;
        least = late < least ? late : least;
    }
    ok(!early && least < LATE, "a wait for the next text ends %lld ns late", (long long)least);
}

/* Three texts come at once, of which one finds no seat; two come much later. */
static void test_arrivals(const struct models *m)
{
    enum { LATE = 50 * 1000 * 1000 };
    static const int32_t ids[] = {11, 42, 300, 7, 99, 5};
    static const int64_t due[] = {0, 1, 2, LATE, LATE + 1};
    struct generation_input in[5];
    struct generation g[5] = {0};
    struct batch_trace trace = {0};
    int counts = 1;
    for (size_t i = 0; i < 5; i++)
        in[i] = (struct generation_input){ids + i, 6 - i, 70 + i, due[i]};
    struct autoregress how = {.max_new = 4, .sample = {0, 0, 1}, .cache = 1, .ignore_eos = 1,
                              .alive = 2, .arrivals = 1};
    autoregress(&m->own, &how, in, 5, g, &trace);
    for (size_t i = 0; i < 5; i++)
        counts &= g[i].admit_ns == due[i] && g[i].n == 4 && g[i].emit_ns[0] > g[i].queue_ns &&
                  g[i].e2e_ns == g[i].emit_ns[3];
    ok(g[1].queue_ns + 1 < g[0].e2e_ns, "a text that comes takes an empty seat after the pass");
    ok(counts && !g[0].queue_ns && g[1].queue_ns > 0 && g[2].queue_ns + 2 >= g[0].e2e_ns,
       "times count from the arrival, so they include the wait for a seat");
    ok(g[2].admit_ns + g[2].e2e_ns < LATE && trace.makespan_ns > LATE && !trace.prefill_ns,
       "the batch sleeps until the next text comes");
    for (size_t i = 0; i < 5; i++)
        generation_free(&g[i]);
}

/* ---- the distribution of draws ---- */

enum { V = 6, DRAWS = 20000, CELLS = V * V * V, ROUND = 500 };

/* Makes a network of V ids with a drawn head that differs by `bend` from another drawn head. */
static int few_ids(struct network *n, struct mat *head, double bend)
{
    float w[V * 256];
    size_t D = n->config.width;
    struct rng r = {17, 0, 0}, s = {18, 0, 0};
    for (size_t i = 0; i < V * D; i++)
        w[i] = (float)(0.2 * (rng_normal(&r) + bend * rng_normal(&s)));
    const struct mat_source source = mat_floats(w, V, D);
    n->config.vocab = V;
    n->config.n_eos = 0;
    return D <= 256 && !n->backend->ops->mat_make(n->backend, head, &source, DTYPE_F32) &&
           (n->head = *head, 1);
}

/* A drafter's head that has rows only for some of these ids. */
enum { SOME = 4 };
static int some_ids(struct network *n, struct mat *head)
{
    static const int32_t ids[SOME] = {0, 2, 3, 5};
    struct network all = *n;
    struct backend *b = n->backend;
    const size_t D = n->config.width;
    float w[SOME * 256];
    struct rng r = {17, 0, 0};
    for (size_t i = 0; i < SOME * D && D <= 256; i++)
        w[i] = (float)(0.2 * rng_normal(&r));
    const struct mat_source source = mat_floats(w, SOME, D);
    n->config.vocab = V;
    n->config.answers = SOME;
    n->ids = b->ops->alloc(b, sizeof ids, MEMORY_WEIGHTS);
    b->ops->write(b, n->ids, ids, sizeof ids);
    return !b->ops->mat_make(b, head, &source, DTYPE_F32) && (n->head = *head, all.ids != n->ids);
}

/* p[V] = the distribution of the id after ids[0..len). */
static void next_id(const struct network *n, const int32_t *ids, size_t len, double *p)
{
    int32_t pos[8], last = (int32_t)len - 1;
    float l[V];
    double sum = 0;
    for (size_t i = 0; i < len; i++)
        pos[i] = (int32_t)i;
    struct forward_seq seq = {.rows = len};
    struct forward f = {.token = ids, .pos = pos, .seqs = &seq, .n_seqs = 1,
                        .mask = MASK_CAUSAL, .wanted = &last, .n_wanted = 1};
    struct head_row row;
    struct work *w = work_make(n, &(struct work_size){.rows = len, .seqs = 1, .slots = len,
                                                      .listed = len, .wanted = 1, .logits = 1});
    forward(n, NULL, w, &f, &row, l);
    work_free(w, n);
    for (size_t v = 0; v < V; v++)
        sum += p[v] = exp(l[v]);
    for (size_t v = 0; v < V; v++)
        p[v] /= sum;
}

static const int32_t start[] = {3, 1, 4};

/* Computes all distributions of three ids after `start`: p[0] of the first id, p[1 + a] of the
 * second after a, p[1 + V + V a + b] of the third after a and b. */
static void tree_of(const struct network *n, double p[1 + V + V * V][V])
{
    int32_t ids[5] = {start[0], start[1], start[2]};
    next_id(n, ids, 3, p[0]);
    for (int32_t a = 0; a < V; a++) {
        ids[3] = a;
        next_id(n, ids, 4, p[1 + a]);
        for (int32_t b = 0; b < V; b++) {
            ids[4] = b;
            next_id(n, ids, 5, p[1 + V + V * a + b]);
        }
    }
}

/* Pearson's statistic of counts against the tree, in standard deviations above its mean. Cells with
 * a small expected count are merged into one. */
static double chi_square(double p[1 + V + V * V][V], const double *count)
{
    double sum = 0, few = 0, few_count = 0, cells = 0;
    for (size_t i = 0; i < CELLS; i++) {
        size_t a = i / (V * V), b = i / V % V;
        double e = DRAWS * p[0][a] * p[1 + a][b] * p[1 + V + V * a + b][i % V];
        if (e < 10) {
            few += e;
            few_count += count[i];
            continue;
        }
        sum += (count[i] - e) * (count[i] - e) / e;
        cells++;
    }
    sum += few > 0 ? (few_count - few) * (few_count - few) / few : 0;
    cells += few > 0;
    return (sum - (cells - 1)) / sqrt(2 * (cells - 1));
}

static double drawn(const struct network *n, const struct autoregress *how,
                    double p[1 + V + V * V][V], int64_t *drafted, int64_t *accepted)
{
    struct generation_input in[ROUND];
    double count[CELLS] = {0};
    for (size_t from = 0; from < DRAWS; from += ROUND) {
        struct generation g[ROUND] = {0};
        struct batch_trace trace = {0};
        for (size_t i = 0; i < ROUND; i++)
            in[i] = (struct generation_input){start, 3, rng_at(1, from + i, 0), 0};
        autoregress(n, how, in, ROUND, g, &trace);
        for (size_t i = 0; i < ROUND; i++) {
            count[(g[i].ids[0] * V + g[i].ids[1]) * V + g[i].ids[2]]++;
            *drafted += g[i].drafted_tokens;
            *accepted += g[i].accepted_tokens;
            generation_free(&g[i]);
        }
    }
    return chi_square(p, count);
}

static size_t draw_from(const double *p, struct rng *r)
{
    double u = rng_uniform(r);
    size_t v = 0;
    for (; v + 1 < V && u >= p[v]; v++)
        u -= p[v];
    return v;
}

/* A wrong rule, which the test must find: a guess is taken if the model finds it likely enough. */
static double planted(double p[1 + V + V * V][V], double q[1 + V + V * V][V])
{
    double count[CELLS] = {0};
    struct rng r = {3, 0, 0};
    for (size_t i = 0; i < DRAWS; i++) {
        size_t a = draw_from(p[0], &r), id[2], at = 1 + a;
        for (size_t k = 0; k < 2; k++) {
            size_t guess = draw_from(q[at], &r);
            id[k] = p[at][guess] > 0.2 ? guess : draw_from(p[at], &r);
            at = 1 + V + V * a + id[0];
        }
        count[(a * V + id[0]) * V + id[1]]++;
    }
    return chi_square(p, count);
}

/* The probability that the rule of Leviathan and Chen (2023) accepts the second id. */
static double overlap(double p[1 + V + V * V][V], double q[1 + V + V * V][V])
{
    double sum = 0;
    for (size_t a = 0; a < V; a++)
        for (size_t b = 0; b < V; b++)
            sum += p[0][a] * fmin(p[1 + a][b], q[1 + a][b]);
    return sum;
}

static void test_distribution(const struct models *m)
{
    enum { LIMIT = 4 };
    double p[1 + V + V * V][V], q[1 + V + V * V][V];
    struct network own = m->own, guide = m->own;
    struct mat head, other;
    struct backend *b = own.backend;
    if (!ok(few_ids(&own, &head, 0) && few_ids(&guide, &other, 0.6), "two models of %d ids", V))
        return;
    tree_of(&own, p);
    tree_of(&guide, q);
    struct autoregress how = {.max_new = 4, .sample = {1, 0, 1}, .cache = 1, .ignore_eos = 1,
                              .seed = 5, .draft = &guide, .draft_tokens = 1};
    int64_t drafted = 0, accepted = 0;
    double z = drawn(&own, &how, p, &drafted, &accepted);
    double share = (double)accepted / (double)drafted;
    ok(fabs(z) < LIMIT && accepted > 0 && accepted < drafted,
       "%d draws with a model that drafts: %.2f sd; %.3f of the guesses right, at most %.3f", DRAWS,
       z, share, overlap(p, q));
    struct network reader = m->reader, chain = m->chain;
    struct mat some;
    reader.config.vocab = V;
    how.draft = &reader;
    how.draft_tokens = 2;
    drafted = accepted = 0;
    z = drawn(&own, &how, p, &drafted, &accepted);
    ok(fabs(z) < LIMIT && accepted > 0 && accepted < drafted,
       "%d draws with a drafter that reads: %.2f sd; %lld of %lld guesses right", DRAWS, z,
       (long long)accepted, (long long)drafted);
    if (!ok(some_ids(&chain, &some), "a drafter with rows for %d of %d ids", SOME, V))
        return;
    how.draft = &chain;
    drafted = accepted = 0;
    z = drawn(&own, &how, p, &drafted, &accepted);
    ok(fabs(z) < LIMIT && accepted > 0 && accepted < drafted,
       "%d draws with a drafter of ids one by one: %.2f sd; %lld of %lld guesses right", DRAWS, z,
       (long long)accepted, (long long)drafted);
    how.sample.temperature = 50; /* nearly uniform: the id is one of the SOME in SOME of V draws */
    drafted = accepted = 0;
    drawn(&own, &how, p, &drafted, &accepted);
    share = (double)SOME / V;
    share = share * (1 + share) / 2 - (double)accepted / (double)drafted;
    ok(fabs(share) < 0.02, "its draws have the noise of the model's ids: %.3f off", share);
    how.sample.temperature = 1;
    how.draft = NULL;
    how.lookup = 2;
    how.lookup_ngram = 2;
    z = drawn(&own, &how, p, &drafted, &accepted);
    ok(fabs(z) < LIMIT, "%d draws with prompt lookup: %.2f sd", DRAWS, z);
    z = planted(p, q);
    ok(z > LIMIT, "planted: a rule that takes likely guesses is found: %.2f sd", z);
    b->ops->mat_free(b, &head);
    b->ops->mat_free(b, &other);
    b->ops->mat_free(b, &some);
    b->ops->free(b, chain.ids);
}

static int load(struct network *n, struct backend *b, const char *model, uint64_t seed,
                const char *quant)
{
    struct err e = {0};
    const struct precision how = {.dtype = "f32", .kv = "f32", .quant = quant};
    struct checkpoint c;
    int loaded = !checkpoint_open(&c, model, seed, &e) &&
                 !network_load(n, b, &c, &how, &e);
    checkpoint_close(&c);
    return ok(loaded, "%s %s loads %s", model, quant, e.text);
}

int main(void)
{
    const char *wanted = getenv("SPECULATION_TEXTS");
    size_t texts = wanted ? strtoul(wanted, NULL, 10) : TEXTS;
    test_lookup();
    for (int host = 0; host < 2; host++) {
        struct models m;
        struct backend *b = backend_open(host ? "cpu" : "ref", NULL, 1, 0, NULL);
        if (!load(&m.own, b, "synth:tiny-llama", 3, "none") ||
            !load(&m.near, b, "synth:tiny-llama", 3, "int8") ||
            !load(&m.other, b, "synth:tiny-llama", 4, "none") ||
            !load(&m.reader, b, "synth:tiny-dflash", 5, "none") ||
            !load(&m.chain, b, "synth:tiny-eagle3", 6, "none"))
            return tap_done();
        struct ops ops = *b->ops;
        b->ops = &ops;
        ops.depth = host ? 3 : 1; /* passes in flight */
        ops.prepare = decoded_prepare;
        test_same(&m, host ? texts : 30, 11 + (uint64_t)host, ops.name, NULL);
        test_same(&m, host ? texts : 30, 13, "DFlash alone", &m.reader);
        test_same(&m, host ? texts : 30, 14, "EAGLE-3 alone", &m.chain);
        if (host) {
            test_lent(&m);
            test_all_right(&m);
            test_guesses_of(&m);
            test_prepared(&m);
            test_full(&m);
            test_waiting(&m);
            test_arrivals(&m);
            test_sleep();
            test_distribution(&m);
        }
        network_free(&m.own);
        network_free(&m.near);
        network_free(&m.other);
        network_free(&m.reader);
        network_free(&m.chain);
        backend_close(b);
    }
    ok(decoded_prepared > 0, "passes were prepared: %zu", decoded_prepared);
    return tap_done();
}
