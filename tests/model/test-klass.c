/* test-klass.c - compares the rule klass with its definition written out: the whole distributions
 * of two passes at each masked slot, on the prompts of a batch. */
#include "lib/base/mem.h"
#include "lib/decode/diffuse.h"
#include "lib/network/forward.h"
#include "tests/model/decoded.h"

enum { LEN = 64, VOCAB = 512 };

struct naive {
    int32_t x[LEN];
    double p[LEN][VOCAB], was[LEN][VOCAB]; /* distributions of this pass and of the last one */
    int run[LEN];
    int passes, many; /* many: passes that committed more than one slot */
};

/* Computes p[] of every position. */
static void look(const struct network *n, struct naive *v, size_t len)
{
    int32_t pos[LEN];
    struct head_row answer[LEN];
    const struct forward_seq seq = {.rows = len};
    static float logits[LEN][VOCAB];
    for (size_t i = 0; i < len; i++)
        pos[i] = (int32_t)i;
    struct forward f = {.token = v->x, .pos = pos, .seqs = &seq, .n_seqs = 1, .mask = MASK_FULL,
                        .wanted = pos, .n_wanted = len};
    struct work *w = work_make(n, &(struct work_size){.rows = len, .seqs = 1, .slots = len,
                                                      .listed = len, .wanted = len, .logits = 1});
    forward(n, NULL, w, &f, answer, &logits[0][0]);
    work_free(w, n);
    memcpy(v->was, v->p, sizeof v->was);
    for (size_t i = 0; i < len; i++) {
        double sum = 0;
        for (size_t k = 0; k < VOCAB; k++)
            sum += v->p[i][k] = exp((double)logits[i][k]);
        for (size_t k = 0; k < VOCAB; k++)
            v->p[i][k] /= sum;
    }
    v->passes++;
}

static double divergence(const struct naive *v, size_t i)
{
    double d = 0;
    for (size_t k = 0; k < VOCAB; k++)
        d += v->p[i][k] * log(v->p[i][k] / v->was[i][k]);
    return d;
}

static size_t best_of(const struct naive *v, size_t i)
{
    size_t best = 0;
    for (size_t k = 1; k < VOCAB; k++)
        best = v->p[i][k] > v->p[i][best] ? k : best;
    return best;
}

/* Runs a step of the block [s, e). Returns how many slots were committed. */
static int step(struct naive *v, const struct diffuse *d, size_t s, size_t e, int first)
{
    int taken = 0;
    size_t best = 0;
    for (size_t i = s; i < e; i++) {
        if (v->x[i] >= 0)
            continue;
        double c = v->p[i][best_of(v, i)];
        v->run[i] = !first && divergence(v, i) < d->unmask.kl_threshold ? v->run[i] + 1 : 0;
        best = !best || c > v->p[best][best_of(v, best)] ? i : best;
    }
    for (size_t i = s; i < e; i++)
        if (v->x[i] < 0 && v->run[i] >= d->unmask.kl_history &&
            v->p[i][best_of(v, i)] > d->unmask.conf_threshold) {
            v->x[i] = (int32_t)best_of(v, i);
            taken++;
        }
    if (!taken && best)
        v->x[best] = (int32_t)best_of(v, best);
    return taken ? taken : best > 0;
}

/* Runs the naive algorithm. Masks are -1 in x between passes, so that an answer may be the mask
 * id. */
static void naive_run(const struct network *n, const struct diffuse *d, struct naive *v,
                      const struct generation_input *in)
{
    size_t len = in->n + d->gen_length;
    memset(v, 0, sizeof *v);
    for (size_t i = 0; i < len; i++)
        v->x[i] = i < in->n ? in->ids[i] : -1;
    for (size_t s = in->n; s < len; s += d->block_length) {
        int left = (int)d->block_length;
        memset(v->run, 0, sizeof v->run);
        for (int first = 1; left > 0; first = 0) {
            int32_t masked[LEN];
            memcpy(masked, v->x, sizeof masked);
            for (size_t i = 0; i < len; i++)
                v->x[i] = v->x[i] < 0 ? (int32_t)n->config.mask : v->x[i];
            look(n, v, len);
            memcpy(v->x, masked, sizeof masked);
            int taken = step(v, d, s, s + d->block_length, first);
            v->many += taken > 1;
            left -= taken;
        }
    }
}

static void same_as_naive(const struct network *n, const struct diffuse *d)
{
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    int same = 1, passes = 0, many = 0;
    diffuse(n, d, prompts, PROMPTS, g, &trace);
    for (size_t i = 0; i < PROMPTS; i++) {
        static struct naive v;
        naive_run(n, d, &v, &prompts[i]);
        same &= g[i].n == d->gen_length && g[i].denoise_steps == v.passes &&
                !memcmp(g[i].ids, v.x + prompts[i].n, g[i].n * sizeof *v.x);
        passes += v.passes;
        many += v.many;
        generation_free(&g[i]);
    }
    ok(same && many > 0 && trace.memory.kind[MEMORY_ACTIVATIONS] == trace.estimate.activations,
       "conf %g, kl %g, history %g, blocks of %zu: %d passes, %d of them with more than one slot",
       d->unmask.conf_threshold, d->unmask.kl_threshold, d->unmask.kl_history, d->block_length,
       passes, many);
}

/* The canvases of a batch do not affect each other, although they end at different times. */
static void test_batch(const struct network *n, struct diffuse d, enum caching cache)
{
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    int same = 1;
    d.cache = cache;
    diffuse(n, &d, prompts, PROMPTS, g, &trace);
    for (size_t i = 0; i < PROMPTS; i++) {
        struct generation one = {0};
        diffuse(n, &d, &prompts[i], 1, &one, &trace);
        same &= one.n == g[i].n && !memcmp(one.ids, g[i].ids, one.n * sizeof *one.ids) &&
                one.denoise_steps == g[i].denoise_steps;
        generation_free(&one);
        generation_free(&g[i]);
    }
    ok(same, "%s: each as if it were alone", cache_policies[cache]->name);
}

static void test_check(void)
{
    struct err e = {0};
    struct diffuse d = {.gen_length = 8, .block_length = 8, .rule = UNMASK_KLASS};
    ok(!diffuse_check(&d, NULL, &e), "klass with default settings is accepted");
    d.cfg_scale = 1;
    ok(diffuse_check(&d, NULL, &e) && e.code == EXIT_BAD_USAGE, "%s", e.text);
    d.cfg_scale = 0;
    d.draft = 2;
    e = (struct err){0};
    ok(diffuse_check(&d, NULL, &e) && e.code == EXIT_BAD_USAGE, "%s", e.text);
}

int main(void)
{
    struct decoded m;
    test_check();
    decoded_open_fast(&m, "synth:tiny-llada");
    if (!ok(m.n.config.vocab == VOCAB, "a vocabulary of %d", VOCAB))
        return tap_done();
    struct diffuse d = {.gen_length = 24, .block_length = 12, .rule = UNMASK_KLASS, .prepare = 1,
                        .kept = cache_usual};
    for (int depth = 1; depth <= 3; depth += 2) {
        decoded_act(&m.ops, depth);
        d.unmask = (struct unmask_params){
            .conf_threshold = 0.003, .kl_threshold = 3.75e-5, .kl_history = 2};
        same_as_naive(&m.n, &d);
        for (int i = 0; i < CACHE_COUNT; i++)
            if (!cache_policies[i]->causal && !cache_policies[i]->slots)
                test_batch(&m.n, d, (enum caching)i);
        d.unmask.kl_history = 1;
        d.unmask.kl_threshold = 3.3e-5;
        same_as_naive(&m.n, &d);
        d.unmask.kl_history = 0;
        same_as_naive(&m.n, &d);
    }
    decoded_close(&m);
    return tap_done();
}
