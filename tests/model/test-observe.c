/* test-observe.c - tests the reports to an observer. The changes of all passes together give the
 * answer. Each confidence is the softmax of a plain pass over the state before. Observing does not
 * change the answer, however many passes are in flight. */
#include "lib/base/mem.h"
#include "lib/decode/autoregress.h"
#include "lib/decode/diffuse.h"
#include "lib/network/forward.h"
#include "tests/model/decoded.h"

enum { LEN = 80, MOST = 32 };

struct watcher {
    const struct network *n;
    int32_t mask, before[PROMPTS][MOST]; /* the answers as reported so far */
    int bad;                      /* 1: a report was wrong */
    double error;                 /* largest error of a confidence */
    double within;                /* bound of this error */
    size_t commits, reopened, passed, told;
    int64_t passes[PROMPTS];
};

/* log softmax at id `id` in row `at` of prompt and answer. */
static double log_prob(const struct network *n, const struct generation_input *in,
                       const int32_t *answer, size_t count, size_t at, int32_t id, enum mask mask)
{
    size_t len = in->n + count, V = n->config.vocab;
    int32_t x[LEN], pos[LEN], row = (int32_t)at;
    float *l = mem_zero(V, sizeof *l);
    struct head_row out;
    for (size_t i = 0; i < len; i++) {
        x[i] = i < in->n ? in->ids[i] : answer[i - in->n];
        pos[i] = (int32_t)i;
    }
    struct forward_seq seq = {.rows = len};
    const struct forward f = {.token = x, .pos = pos, .seqs = &seq, .n_seqs = 1, .mask = mask,
                              .wanted = &row, .n_wanted = 1};
    struct work *w = work_make(n, &(struct work_size){.rows = len, .seqs = 1, .slots = len,
                                                    .listed = len, .wanted = 1, .logits = 1});
    forward(n, NULL, w, &f, &out, l);
    work_free(w, n);
    double max = -INFINITY, sum = 0;
    for (size_t v = 0; v < V; v++)
        max = fmax(max, (double)l[v]);
    for (size_t v = 0; v < V; v++)
        sum += exp((double)l[v] - max);
    double p = (double)l[id] - max - log(sum);
    free(l);
    return p;
}

static void changed(void *ctx, const struct observed *o)
{
    struct watcher *w = ctx;
    const struct generation_input *in = &prompts[o->input];
    int32_t *was = w->before[o->input];
    w->bad |= o->pass != ++w->passes[o->input];
    for (size_t i = 0; i < o->commits; i++) {
        size_t k = (size_t)o->slot[i], at = in->n + k;
        double p = w->mask < 0 ? log_prob(w->n, in, o->ids, k, at - 1, o->ids[k], MASK_CAUSAL)
                               : log_prob(w->n, in, was, o->n, at, o->ids[k], MASK_FULL);
        w->error = fmax(w->error, fabs(exp(p) - o->confidence[i]));
        w->bad |= was[k] != w->mask || isnan(o->confidence[i]) ||
                  (i > 0 && o->slot[i] <= o->slot[i - 1]);
    }
    for (size_t i = 0; i < o->commits; i++)
        was[o->slot[i]] = o->ids[o->slot[i]];
    for (size_t i = 0; i < o->reopened; i++) {
        w->bad |= was[o->again[i]] == w->mask;
        was[o->again[i]] = w->mask;
    }
    w->reopened += o->reopened;
    for (size_t k = 0; k < o->n; k++)
        w->bad |= was[k] != o->ids[k];
    for (size_t k = 0; k < o->readable; k++)
        w->bad |= o->ids[k] == w->mask;
    w->commits += o->commits;
    w->told++;
}

static void passed(void *ctx)
{
    struct watcher *w = ctx;
    w->passed++;
    w->bad |= w->told == 0;
}

static struct watcher watcher(const struct network *n, int32_t mask)
{
    struct watcher w = {.n = n, .mask = mask, .within = 1e-7};
    for (size_t i = 0; i < PROMPTS; i++)
        for (size_t k = 0; k < MOST; k++)
            w.before[i][k] = mask;
    return w;
}

/* Compares generations with an observer (g[]) and without one (h[]). */
static void judge(const struct watcher *w, struct generation *g, struct generation *h,
                  const char *name, int depth)
{
    int same = 1, whole = 1;
    size_t most = 0, tokens = 0;
    for (size_t i = 0; i < PROMPTS; i++) {
        same &= g[i].n == h[i].n && !memcmp(g[i].ids, h[i].ids, g[i].n * sizeof *g[i].ids) &&
                g[i].n_steps == h[i].n_steps;
        whole &= !memcmp(g[i].ids, w->before[i], g[i].n * sizeof *g[i].ids);
        most = g[i].n_steps > most ? g[i].n_steps : most;
        tokens += (size_t)g[i].committed_tokens;
    }
    ok(same, "%s, depth %d: the ids are those of a run without an observer", name, depth);
    ok(whole && !w->bad && w->commits == tokens + w->reopened,
       "%s, depth %d: the changes make the answers", name, depth);
    ok(w->error < w->within, "%s, depth %d: a confidence is a softmax, within %.1g", name, depth,
       w->error);
    ok(w->passed == most,
       "%s, depth %d: the observer sees %zu passes, expected %zu", name, depth,
       w->passed, most);
    for (size_t i = 0; i < PROMPTS; i++) {
        generation_free(&g[i]);
        generation_free(&h[i]);
    }
}

static void look_at_canvases(const struct network *n, struct diffuse d, const char *name)
{
    struct watcher w = watcher(n, (int32_t)n->config.mask);
    const struct observer o = {1, changed, passed, &w};
    struct generation g[PROMPTS] = {0}, h[PROMPTS] = {0};
    struct batch_trace trace = {0};
    d.prepare = 1;
    d.seed = 5;
    diffuse(n, &d, prompts, PROMPTS, h, &trace);
    d.observer = &o;
    if (d.draft > 1) /* later steps of a pass saw the commits of its earlier steps */
        w.within = 1e-3;
    diffuse(n, &d, prompts, PROMPTS, g, &trace);
    judge(&w, g, h, name, n->backend->ops->depth);
}

/* cache above 1: with guesses too. */
static void look_at_texts(const struct network *n, struct sample sample, int cache,
                          const char *name)
{
    struct watcher w = watcher(n, -1);
    const struct observer o = {1, changed, passed, &w};
    struct generation g[PROMPTS] = {0}, h[PROMPTS] = {0};
    struct batch_trace trace = {0};
    struct autoregress how = {.max_new = 30, .sample = sample, .cache = cache > 0,
                              .ignore_eos = 1, .lookup = cache > 1 ? 3 : 0, .lookup_ngram = 2,
                              .prepare = 1, .seed = 9};
    autoregress(n, &how, prompts, PROMPTS, h, &trace);
    how.observer = &o;
    autoregress(n, &how, prompts, PROMPTS, g, &trace);
    judge(&w, g, h, name, n->backend->ops->depth);
}

/* An observer without `closely` gets only the passes, as they come. */
static void count_only(const struct network *n)
{
    struct watcher w = watcher(n, (int32_t)n->config.mask);
    const struct observer o = {0, changed, passed, &w};
    const struct diffuse d = {.gen_length = 16, .block_length = 8, .steps = 8,
                              .rule = UNMASK_SCHEDULE, .observer = &o};
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    diffuse(n, &d, prompts, PROMPTS, g, &trace);
    ok(w.told == 0 && w.passed >= 8,
       "without `closely` the observer sees %zu passes and no changes", w.passed);
    for (size_t i = 0; i < PROMPTS; i++)
        generation_free(&g[i]);
}

static void look(struct network *n, int is_canvas)
{
    const struct sample greedy = {0, 0, 1}, filtered = {0.8, 5, 0.9};
    if (!is_canvas) {
        look_at_texts(n, greedy, 1, "texts");
        look_at_texts(n, greedy, 0, "texts without a cache");
        look_at_texts(n, filtered, 1, "texts drawn on the host");
        look_at_texts(n, greedy, 3, "texts with guesses");
        return;
    }
    struct diffuse d = {.gen_length = 16, .block_length = 8, .steps = 6, .rule = UNMASK_SCHEDULE};
    look_at_canvases(n, d, "schedule");
    d.temperature = 0.7;
    look_at_canvases(n, d, "temperature");
    d = (struct diffuse){.gen_length = 24, .block_length = 12, .rule = UNMASK_FACTOR,
                         .unmask = {.factor = 24}};
    look_at_canvases(n, d, "factor");
    d = (struct diffuse){.gen_length = 16, .block_length = 8, .rule = UNMASK_WINO,
                         .unmask = {.wino_draft = 0.003, .wino_verify = 0.004}};
    look_at_canvases(n, d, "masked again");
    d = (struct diffuse){.gen_length = 16, .block_length = 8, .steps = 16, .draft = 4,
                         .rule = UNMASK_SCHEDULE, .cache = CACHE_DUAL};
    look_at_canvases(n, d, "several steps a pass");
    count_only(n);
}

int main(void)
{
    static const char *const models[] = {"synth:tiny-llama", "synth:tiny-llada"};
    for (int i = 0; i < 2; i++) {
        struct decoded m;
        decoded_open_fast(&m, models[i]);
        for (int depth = 1; depth <= 3; depth += 2) {
            decoded_act(&m.ops, depth);
            look(&m.n, i);
        }
        decoded_close(&m);
    }
    return tap_done();
}
