/* The policies of --cache: each against its algorithm written out naively, pass by pass, on the
 * prompts of a batch; and what its passes cost. */
#include "kernels/advance.h"
#include "lib/base/mem.h"
#include "lib/decode/diffuse.h"
#include "lib/network/forward.h"
#include "tests/tap.h"

enum { LEN = 64, PROMPTS = 3 };

static const int32_t prompt_a[] = {11, 42, 300, 7, 99}, prompt_b[] = {5, 6},
                     prompt_c[] = {200, 201, 202, 203, 204, 205, 206, 207, 208};
static const struct generation_input prompts[PROMPTS] = {
    {prompt_a, 5, 77}, {prompt_b, 2, 78}, {prompt_c, 9, 79}};

/* A canvas and its cache, slot = position. */
struct naive {
    const struct network *n;
    const struct diffuse *how;
    struct kv kv, twin;
    int32_t x[LEN];
    size_t prompt, len;
    int64_t passes, rows;
};

/* Rows [from, to) of ids x computed, their keys and values kept; all positions read. */
static void compute(struct naive *v, struct kv *kv, const int32_t *x, size_t from, size_t to,
                    float *logits)
{
    int32_t all[LEN], row[LEN];
    struct head_row answer[LEN];
    size_t rows = to - from;
    for (size_t i = 0; i < v->len; i++) {
        all[i] = (int32_t)i;
        row[i] = (int32_t)i;
    }
    const struct forward_seq seq = {rows, all, v->len};
    struct forward f = {.token = x + from, .pos = all + from, .slot = all + from, .seqs = &seq,
                        .n_seqs = 1, .mask = MASK_FULL, .wanted = row, .n_wanted = rows};
    const struct work_size size = {.rows = LEN, .seqs = 1, .slots = LEN, .listed = LEN,
                                   .wanted = LEN, .logits = 1, .cached = 1};
    struct work *w = work_make(v->n, &size);
    forward(v->n, kv, w, &f, answer, logits + from * v->n->config.vocab);
    work_free(w, v->n);
    v->rows += (int64_t)rows;
}

/* The (guided) logits of rows [from, to). */
static void look(struct naive *v, size_t from, size_t to, float *logits, float *u)
{
    size_t V = v->n->config.vocab;
    double w = v->how->cfg_scale;
    compute(v, &v->kv, v->x, from, to, logits);
    v->passes++;
    if (!(w > 0))
        return;
    int32_t masked[LEN];
    for (size_t i = 0; i < v->len; i++)
        masked[i] = i < v->prompt ? (int32_t)v->n->config.mask : v->x[i];
    compute(v, &v->twin, masked, from, to, u);
    for (size_t i = from * V; i < to * V; i++)
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

/* Of the masked rows in [from, end), `most` by confidence, or all from the threshold on and one. */
static void commit(struct naive *v, size_t from, size_t end, size_t most, const float *logits)
{
    int32_t id[LEN];
    double c[LEN];
    for (size_t k = from; k < end; k++)
        if (v->x[k] == v->n->config.mask)
            id[k] = decide(logits + k * v->n->config.vocab, v->n->config.vocab, &c[k]);
        else
            c[k] = -1;
    for (size_t t = 0; t < (most ? most : LEN); t++) {
        size_t best = from;
        for (size_t k = from; k < end; k++)
            best = c[k] > c[best] ? k : best;
        if (c[best] < 0 || (!most && t && c[best] < v->how->unmask.threshold))
            break;
        v->x[best] = id[best];
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

/* The rows of a pass by the definition of the policy; s, e: the block. */
static void rows_of(const struct naive *v, size_t s, size_t e, int first_pass, size_t *from,
                    size_t *to)
{
    *from = v->how->cache == CACHE_NONE || first_pass ? 0 : s;
    *to = v->how->cache == CACHE_DUAL && !first_pass ? e : v->len;
}

static void naive_run(struct naive *v, const struct generation_input *in)
{
    const struct diffuse *d = v->how;
    size_t V = v->n->config.vocab, blocks = d->gen_length / d->block_length;
    size_t most = d->rule == UNMASK_THRESHOLD ? 0 : d->block_length / (d->steps / blocks);
    v->prompt = in->n;
    v->len = in->n + d->gen_length;
    float *logits = mem_zero(2 * LEN * V, sizeof *logits);
    for (size_t i = 0; i < v->len; i++)
        v->x[i] = i < in->n ? in->ids[i] : (int32_t)v->n->config.mask;
    for (size_t b = 0; b < blocks; b++) {
        size_t s = v->prompt + b * d->block_length, e = s + d->block_length, from, to;
        for (int pass = 0; masks(v, s, e); pass++) {
            rows_of(v, s, e, pass == 0, &from, &to);
            look(v, from, to, logits, logits + LEN * V);
            commit(v, from > v->prompt ? from : v->prompt, e, most, logits);
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
                        .prepare = 1, .seed = 5};
    snprintf(what, sizeof what, "%s, three blocks by schedule", name);
    same_as_naive(n, &d, what);
    d.cfg_scale = 1.5;
    snprintf(what, sizeof what, "%s, guided", name);
    same_as_naive(n, &d, what);
    d.cfg_scale = 0;
    d.rule = UNMASK_THRESHOLD;
    for (int i = 0; i < 4; i++) { /* canvases fill their blocks at different paces */
        d.unmask.threshold = (const double[]){0.002, 0.003, 0.0031, 1}[i];
        snprintf(what, sizeof what, "%s, threshold %g", name, d.unmask.threshold);
        same_as_naive(n, &d, what);
    }
}

static size_t prepared;

static void prepare_once(struct backend *b, const void *key, size_t key_bytes,
                         void (*step)(void *ctx), void *ctx)
{
    (void)b, (void)key, (void)key_bytes;
    step(ctx);
    prepared++;
}

int main(void)
{
    struct err e = {0};
    struct checkpoint c;
    struct network n;
    struct backend *b = backend_open("ref", NULL, 1, 0, NULL);
    int loaded = !checkpoint_open(&c, "synth:tiny-llada", 3, &e) &&
                 !network_load(&n, b, &c, &(struct precision){.dtype = "f32"}, &e);
    if (!ok(loaded, "synth:tiny-llada loads %s", e.text))
        return tap_done();
    struct ops ops = *b->ops;
    b->ops = &ops;
    for (ops.depth = 1; ops.depth <= 3; ops.depth += 2) { /* passes in flight */
        ops.prepare = ops.depth > 1 ? prepare_once : NULL;
        for (int i = 0; i < CACHE_COUNT; i++)
            test_policy(&n, (enum caching)i);
    }
    ok(prepared > 0, "passes were prepared: %zu", prepared);
    network_free(&n);
    checkpoint_close(&c);
    backend_close(b);
    return tap_done();
}
