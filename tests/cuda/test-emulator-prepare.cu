/* test-emulator-prepare.cu - tests that no one-time work happens between the start and the end of
 * the clock of a batch: no search for an algorithm, no graph made or uploaded, and, if all passes
 * are recorded, no kernel launched by itself. */
#include "kernels/cuda/device/runtime.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/product/library.h"
#include "lib/base/mem.h"
extern "C" { /* the library above the back end is plain C */
#include "lib/decode/autoregress.h"
#include "lib/decode/diffuse.h"
}
#include "tests/tap.h"

enum { PROMPTS = 3, LONG = 251 };

static emulate::deeds at_start;

/* The first event of a batch starts its clock. */
static int events;
static int64_t count_event(struct backend *b)
{
    if (!events++)
        at_start = emulate::done;
    return cuda_event_record(b);
}

/* Returns the one-time work that happened within the clock of the last batch. */
static emulate::deeds in_clock()
{
    emulate::deeds d = emulate::done;
    d.starts -= at_start.starts;
    d.records -= at_start.records;
    d.uploads -= at_start.uploads;
    d.questions -= at_start.questions;
    return d;
}

static int nothing(const char *what, emulate::deeds d, int also_direct)
{
    int good = !d.records && !d.uploads && !d.questions && (also_direct || !d.starts);
    if (!good)
        printf("# %s: %u kernels by themselves, %u records, %u uploads, %u questions\n", what,
               d.starts, d.records, d.uploads, d.questions);
    return good;
}

struct made {
    struct generation g[PROMPTS];
    struct memory memory;
    emulate::deeds done;
};

static void made_free(struct made *m)
{
    for (struct generation &g : m->g)
        generation_free(&g);
}

static int same_texts(const struct made *a, const struct made *b)
{
    int same = !memcmp(&a->memory.kind, &b->memory.kind, sizeof a->memory.kind) &&
               a->memory.requested_peak == b->memory.requested_peak;
    for (int i = 0; i < PROMPTS; i++) {
        const struct generation *x = &a->g[i], *y = &b->g[i];
        same &= x->n == y->n && (!x->n || !memcmp(x->ids, y->ids, x->n * sizeof *x->ids)) &&
                x->n_emits == y->n_emits && x->n_steps == y->n_steps && x->rows == y->rows &&
                x->committed_tokens == y->committed_tokens && x->oom == y->oom &&
                x->denoise_steps == y->denoise_steps &&
                x->canvas_positions == y->canvas_positions && x->bad == y->bad;
    }
    return same;
}

static int32_t ids[LONG];
static struct generation_input prompts[PROMPTS] = {
    {ids, 15, 7, 0}, {ids + 5, 23, 8, 0}, {ids + 9, 13, 9, 0}};

static struct made write(const struct network *n, struct autoregress how, size_t batch,
                         int prepare)
{
    struct made m = {};
    struct batch_trace t = {};
    how.prepare = prepare;
    events = 0;
    memory_reset_peak(&n->backend->memory);
    autoregress(n, &how, prompts, batch, m.g, &t);
    m.done = in_clock();
    m.memory = t.memory;
    return m;
}

static struct made fill(const struct network *n, struct diffuse how, size_t batch, int prepare)
{
    struct made m = {};
    struct batch_trace t = {};
    how.prepare = prepare;
    events = 0;
    memory_reset_peak(&n->backend->memory);
    diffuse(n, &how, prompts, batch, m.g, &t);
    m.done = in_clock();
    m.memory = t.memory;
    return m;
}

/* Runs a batch prepared, so that no one-time work is left, then not prepared; both must give the
 * same. The peak of the very first batch includes the memory in which algorithms were timed. */
template <class How>
static void check(const char *what, const struct network *n, How how, size_t batch,
                  struct made (*make)(const struct network *, How, size_t, int), int direct)
{
    struct made first = make(n, how, batch, 1);
    ok(nothing(what, first.done, direct) && first.g[0].n > 0,
       "%s: nothing is settled in the clock", what);
    struct made with = make(n, how, batch, 1), without = make(n, how, batch, 0);
    ok(same_texts(&with, &without) && without.done.starts > 0,
       "%s: the same as without preparing, where there is something", what);
    made_free(&first);
    made_free(&with);
    made_free(&without);
}

static int load(struct network *n, struct backend *b, const char *name, const char *dtype)
{
    struct err e = {};
    struct checkpoint c;
    struct precision p = {};
    p.dtype = dtype;
    int good = !checkpoint_open(&c, name, 3, &e) && !network_load(n, b, &c, &p, &e);
    if (!good)
        printf("# %s: %s\n", name, e.text);
    checkpoint_close(&c);
    return good;
}

static struct autoregress texts(size_t max_new)
{
    struct autoregress how = {};
    how.max_new = max_new;
    how.sample.top_p = 1;
    how.cache = 1;
    how.ignore_eos = 1;
    how.seed = 3;
    return how;
}

/* The second text ends early, the others at different times, so that passes have fewer and
 * fewer. */
static void test_ends(struct network *n)
{
    struct autoregress how = texts(7);
    struct made all = write(n, how, PROMPTS, 0);
    const struct config was = n->config;
    n->config.eos[0] = all.g[1].ids[2];
    how.ignore_eos = 0;
    struct made m = write(n, how, PROMPTS, 1);
    ok(m.g[1].n < 7 && nothing("ends", m.done, 0), "texts that end before others");
    n->config = was;
    made_free(&all);
    made_free(&m);
}

/* Tests guesses from the text while the second prompt waits, then guesses of a model for itself. */
static void test_guesses(const struct network *n)
{
    enum { GUESSED = 2, NEW = 5 };
    struct autoregress how = texts(3);
    how.lookup = 2;
    how.lookup_ngram = 2;
    how.alive = 1;
    check("guesses, and a prompt that joins", n, how, GUESSED, write, 1);
    how = texts(NEW);
    struct made plain = write(n, how, GUESSED, 0);
    how.draft = n;
    how.draft_tokens = 2;
    struct made guessed = write(n, how, GUESSED, 1);
    ok(nothing("guesses of a model", guessed.done, 1), "guesses of a model: nothing is settled");
    int same = 1;
    for (int i = 0; i < GUESSED; i++)
        same &= guessed.g[i].n == NEW && plain.g[i].n == NEW && guessed.g[i].n_steps == 3 &&
                guessed.g[i].accepted_tokens == 2 &&
                !memcmp(plain.g[i].ids, guessed.g[i].ids, NEW * sizeof(int32_t));
    ok(same, "a model's own guesses are right: %d ids in 3 passes", NEW);
    made_free(&plain);
    made_free(&guessed);
}

/* Two prompts come when the first one is at work; one of the two waits for a place. direct 1:
 * passes of canvases that begin at different times may run without a graph (diffuse.h). */
template <class How>
static void test_arrivals(const char *what, const struct network *n, How how,
                          struct made (*make)(const struct network *, How, size_t, int),
                          int direct)
{
    how.alive = 2;
    how.arrivals = 1;
    prompts[1].due_ns = 1;
    prompts[2].due_ns = 2;
    struct made first = make(n, how, PROMPTS, 1);
    ok(nothing(what, first.done, direct), "%s: nothing is settled in the clock", what);
    struct made with = make(n, how, PROMPTS, 1), without = make(n, how, PROMPTS, 0);
    ok(same_texts(&with, &without) && with.g[0].n > 0 && with.g[2].n > 0,
       "%s: the same as without preparing", what);
    made_free(&first);
    made_free(&with);
    made_free(&without);
    prompts[1].due_ns = prompts[2].due_ns = 0;
}

/* The prompt that waits needs longer lists of slots than the others. */
static void test_waiting(const struct network *n)
{
    struct autoregress how = texts(9);
    const struct generation_input third = prompts[2];
    prompts[2].ids = ids;
    prompts[2].n = LONG;
    test_arrivals("a long text that comes later", n, how, write, 1);
    how.alive = 2;
    check("a long text that waits", n, how, PROMPTS, write, 1);
    prompts[2] = third;
}

static void test_texts(struct backend *b, const char *dtype)
{
    struct network n;
    if (!ok(load(&n, b, "synth:tiny-llama", dtype), "tiny-llama as %s", dtype))
        return;
    check("texts", &n, texts(5), PROMPTS, write, 0);
    if (!strcmp(dtype, "f32")) {
        test_guesses(&n);
        network_free(&n);
        return;
    }
    check("one token", &n, texts(1), PROMPTS, write, 0);
    test_arrivals("texts that come later", &n, texts(5), write, 1);
    test_waiting(&n);
    test_ends(&n);
    struct autoregress how = texts(4);
    how.sample.temperature = 0.7;
    check("texts that are drawn", &n, how, PROMPTS, write, 0);
    how.sample.top_k = 5;
    check("drawn on the host", &n, how, PROMPTS, write, 1);
    how = texts(12);
    how.cache = 0;
    check("without a cache", &n, how, PROMPTS, write, 1);
    size_t kept = prompts[0].n;
    prompts[0].n = LONG; /* the lists of slots grow beyond one step of their size */
    check("a long text", &n, texts(9), 1, write, 0);
    prompts[0].n = kept;
    network_free(&n);
}

static struct diffuse canvases(size_t length, size_t block, size_t steps)
{
    struct diffuse how = {};
    how.gen_length = length;
    how.block_length = block;
    how.steps = steps;
    how.rule = UNMASK_SCHEDULE;
    how.seed = 3;
    return how;
}

/* Drafts give the same ids in fewer passes, which are all prepared. */
static void test_drafts(struct network *n, enum caching cache)
{
    struct diffuse how = canvases(8, 8, 8);
    how.cache = cache;
    struct made plain = fill(n, how, 1, 0);
    how.draft = 3;
    struct made m = fill(n, how, 1, 1);
    const struct generation *x = &m.g[0], *y = &plain.g[0];
    ok(x->n == y->n && !memcmp(x->ids, y->ids, x->n * sizeof *x->ids) && x->accepted_steps > 0 &&
           x->denoise_steps + x->accepted_steps == y->denoise_steps &&
           nothing("drafts", m.done, 0),
       "%s: drafts spare %d of %d passes, and no id changes", cache_policies[cache]->name,
       (int)x->accepted_steps, (int)y->denoise_steps);
    made_free(&plain);
    made_free(&m);
}

/* Canvases that wait or come later: of one length, of several lengths, and a longer one that waits.
 * Without a cache, canvases of one length never run without a graph. */
static void test_coming(const struct network *n)
{
    const struct generation_input was[PROMPTS] = {prompts[0], prompts[1], prompts[2]};
    struct diffuse how = canvases(24, 12, 4);
    for (struct generation_input &prompt : prompts)
        prompt.n = 72; /* canvases of 96 ids; 96, 96 + 12 and 2 * 96 rows need three choices */
    test_arrivals("canvases of one length that come later", n, how, fill, 0);
    how.cache = CACHE_DUAL;
    test_arrivals("canvases of one length that come later, kept", n, how, fill, 1);
    memcpy(prompts, was, sizeof was);
    how.cache = CACHE_NONE;
    test_arrivals("canvases that come later", n, how, fill, 1);
    how.cache = CACHE_DUAL;
    test_arrivals("canvases that come later, kept", n, how, fill, 1);
    how.kept = cache_usual;
    how.cache = CACHE_SPARSE;
    test_arrivals("canvases that come later, a part kept", n, how, fill, 1);
    how.cache = CACHE_DUAL;
    prompts[2].ids = ids;
    prompts[2].n = LONG;
    test_arrivals("a long canvas that comes later, kept", n, how, fill, 1);
    how.cache = CACHE_NONE;
    test_arrivals("a long canvas that comes later", n, how, fill, 1);
    how.alive = 2;
    check("a long canvas that waits", n, how, PROMPTS, fill, 1);
    memcpy(prompts, was, sizeof was);
}

static void test_canvases(struct backend *b, const char *dtype)
{
    struct network n;
    if (!ok(load(&n, b, "synth:tiny-llada", dtype), "tiny-llada as %s", dtype))
        return;
    check("canvases", &n, canvases(40, 40, 3), 2, fill, 0);
    if (!strcmp(dtype, "f32")) {
        network_free(&n);
        return;
    }
    check("two blocks", &n, canvases(24, 12, 4), PROMPTS, fill, 0);
    test_coming(&n);
    struct diffuse how = canvases(24, 12, 4);
    how.cache = CACHE_PREFIX;
    check("two blocks, the prefix kept", &n, how, PROMPTS, fill, 0);
    how = canvases(16, 8, 4);
    how.cfg_scale = 1;
    check("guided", &n, how, 2, fill, 0);
    how = canvases(32, 32, 4);
    how.rule = UNMASK_FACTOR;
    how.unmask.factor = 30;
    check("one canvas by a factor", &n, how, 1, fill, 0);
    how = canvases(16, 8, 8);
    how.rule = UNMASK_WINO;
    how.unmask.wino_draft = 0.002;
    how.unmask.wino_verify = 0.9;
    how.cache = CACHE_DUAL;
    check("drafts and their shadows", &n, how, 1, fill, 0);
    how = canvases(8, 8, 8);
    how.rule = UNMASK_KLASS;
    how.unmask.kl_threshold = 1;
    how.unmask.kl_history = 1;
    check("compared with the pass before", &n, how, 1, fill, 0);
    test_drafts(&n, CACHE_NONE);
    test_drafts(&n, CACHE_DUAL);
    network_free(&n);
}

/* The host describes what passes compute and when they end. Such passes are prepared like others,
 * and the device writes the ids of the processor. */
static void check_described(const char *what, const struct network *n, const struct network *host,
                            struct diffuse how, size_t batch, int direct)
{
    struct made here = fill(n, how, batch, 1), there = fill(host, how, batch, 0);
    int same = 1;
    for (size_t i = 0; i < batch; i++) {
        const struct generation *x = &here.g[i], *y = &there.g[i];
        same &= x->n == how.gen_length && x->n == y->n && x->rows == y->rows &&
                !memcmp(x->ids, y->ids, x->n * sizeof *x->ids);
    }
    ok(nothing(what, here.done, direct), "%s: nothing is settled in the clock", what);
    ok(same, "%s: the ids and rows of the processor", what);
    made_free(&here);
    made_free(&there);
}

static void test_described(struct backend *b)
{
    struct err e = {};
    struct network n, host;
    struct backend *cpu = backend_open("cpu", "portable", 1, 0, &e);
    if (!ok(load(&n, b, "synth:tiny-llada", "f32") && load(&host, cpu, "synth:tiny-llada", "f32"),
            "tiny-llada on the device and on the processor"))
        return;
    struct diffuse how = canvases(16, 8, 8), usual = how;
    usual.kept = cache_usual;
    (how = usual).cache = CACHE_VICINITY;
    how.kept.vicinity_warmup = 1;
    how.kept.vicinity_after = 3;
    how.kept.refresh = 3;
    check_described("vicinity", &n, &host, how, PROMPTS, 0);
    (how = usual).cache = CACHE_DELAYED;
    how.kept.delayed_refresh = 3;
    check_described("delayed", &n, &host, how, PROMPTS, 1);
    (how = usual).cache = CACHE_FEATURES;
    how.kept.prompt_refresh = 6;
    how.kept.response_refresh = 3;
    check_described("features", &n, &host, how, PROMPTS, 0);
    (how = usual).cache = CACHE_SPARSE;
    check_described("sparse", &n, &host, how, PROMPTS, 0);
    (how = usual).suffix.kind = SUFFIX_WINDOW;
    how.suffix.window = 3;
    check_described("a window of the suffix", &n, &host, how, PROMPTS, 0);
    how.suffix.kind = SUFFIX_GROW;
    how.block_decay = 0.5;
    how.pace = PACE_COSINE;
    check_described("a canvas that grows, in fewer and fewer steps", &n, &host, how, PROMPTS, 0);
    (how = usual).rule = UNMASK_THRESHOLD;
    how.unmask.threshold = 0.0032;
    how.unmask.threshold_decay = 0.3;
    check_described("one canvas, a threshold that falls", &n, &host, how, 1, 0);
    n.config.attends = host.config.attends = MASK_BLOCK_CAUSAL;
    n.config.attends_block = host.config.attends_block = 8;
    (how = usual).cache = CACHE_EXACT;
    check_described("exact, of prompts that end within a block", &n, &host, how, PROMPTS, 1);
    network_free(&n);
    network_free(&host);
    backend_close(cpu);
}

/* Canvases end at different times. The smaller passes are recorded as they come, but no algorithm
 * is searched. */
static void test_fewer(struct backend *b)
{
    struct network n;
    struct diffuse how = canvases(24, 24, 24);
    if (!ok(load(&n, b, "synth:tiny-llada", "f32"), "tiny-llada again"))
        return;
    struct made all = fill(&n, how, PROMPTS, 0);
    n.config.eos[0] = all.g[1].ids[0];
    how.stop_at_eos = 1;
    struct made m = fill(&n, how, PROMPTS, 1);
    int differ = m.g[0].n_steps != m.g[1].n_steps || m.g[1].n_steps != m.g[2].n_steps;
    ok(differ && !m.done.questions, "canvases that end before others: %u questions",
       m.done.questions);
    made_free(&all);
    made_free(&m);
    network_free(&n);
}

int main(void)
{
    struct backend b = {};
    struct err e = {};
    unsetenv("XDG_CACHE_HOME"); /* so that no choices of an earlier run are read */
    unsetenv("HOME");
    b.pool = pool_new(2);
    if (crossover_cuda_open(&b, -1, &e)) {
        fprintf(stderr, "test-emulator-prepare: %s\n", e.text);
        return e.code;
    }
    struct ops ops = cuda_ops;
    ops.event_record = count_event;
    b.ops = &ops;
    for (int i = 0; i < LONG; i++)
        ids[i] = (i * 37 + 11) % 500;
    test_texts(&b, "bf16");
    test_texts(&b, "f32");
    test_canvases(&b, "bf16");

    test_canvases(&b, "f32");
    test_fewer(&b);
    test_described(&b);
    unsigned runs = 0;
    for (unsigned n : emulate::algorithm_runs)
        runs += n;
    ok(runs > 0, "the library was asked for products");
    cuda_close(&b);
    pool_free(b.pool);
    return tap_done();
}
