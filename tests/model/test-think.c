/* test-think.c - tests generating with a latent model: the network with its cache computes what
 * training computes; a ring of slots, a batch and a cache do not change ids; memory is as
 * planned. */
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/latent/think/think_run.h"
#include "tests/tap.h"

enum { PROMPTS = 3, NEW = 14, LEN = 64 };
static const int32_t prompt_a[] = {11, 42, 300, 7, 99}, prompt_b[] = {5},
                     prompt_c[] = {200, 201, 202, 203, 204, 205, 206, 207, 208, 3, 1, 4, 1};
static const struct generation_input prompts[PROMPTS] = {
    {prompt_a, 5, 77, 0}, {prompt_b, 1, 78, 0}, {prompt_c, 13, 79, 0}};

static void must(int bad, const struct err *e)
{
    if (bad) {
        printf("Bail out! %s\n", e->text);
        exit(1);
    }
}

struct model {
    struct backend *b;
    struct checkpoint c;
    struct network n;
};

static struct model open_shape(const char *shape, const char *device, const char *dtype,
                               size_t window)
{
    struct model m = {.b = backend_open(device, NULL, 2, 0, NULL)};
    struct err e = {0};
    const struct precision p = {.dtype = dtype};
    must(checkpoint_open(&m.c, shape, 3, &e), &e);
    m.c.config.window = window;
    must(network_load(&m.n, m.b, &m.c, &p, &e), &e);
    return m;
}

/* synth:tiny-ltm with another window. */
static struct model open_model(const char *device, const char *dtype, size_t window)
{
    return open_shape("synth:tiny-ltm", device, dtype, window);
}

static void close_model(struct model *m)
{
    network_free(&m->n);
    checkpoint_close(&m->c);
    backend_close(m->b);
}

/* Draws large latents, because the small latents of synth: would hardly change the text. */
static float *draw_latents(const struct config *c, double size)
{
    float *z = mem_alloc(latent_values(c) * sizeof *z);
    struct rng r = {.seed = 6};
    for (size_t i = 0; i < latent_values(c); i++)
        z[i] = (float)(size * rng_normal(&r));
    return z;
}

/* -log p(ids[1..n) | ids[0], z) by one pass of the network. */
static double by_network(const struct network *n, const float *z, const int32_t *ids, size_t len)
{
    const struct work_size size = {.rows = len, .seqs = 1, .slots = len, .listed = len,
                                   .wanted = len, .cached = 1, .latent = 1};
    struct kv kv;
    struct latents latents;
    struct work *w = work_make(n, &size);
    int32_t pos[LEN];
    struct head_row row[LEN];
    double nats = 0;
    for (size_t i = 0; i < len; i++)
        pos[i] = (int32_t)i;
    must(!w || kv_make(&kv, n, len) || latent_make(&latents, n, 1), &(struct err){0});
    latent_set(&latents, n, 0, z, n->config.latents * n->config.width);
    kv.latents = &latents;
    const struct forward_seq seq = {len, pos, len, 0};
    const struct forward f = {.token = ids, .pos = pos, .slot = pos, .seqs = &seq, .n_seqs = 1,
                              .mask = MASK_CAUSAL, .wanted = pos, .n_wanted = len - 1,
                              .query = {.target = ids + 1}};
    forward(n, &kv, w, &f, row, NULL);
    for (size_t i = 0; i + 1 < len; i++)
        nats -= row[i].target_log_prob;
    latent_free(&latents, n);
    kv_free(&kv, n);
    work_free(w, n);
    return nats;
}

/* Computes by_network()'s value by the forward pass of training, with the weights read back from
 * the network. */
static double by_training(const struct network *n, const float *z, const int32_t *ids, size_t len)
{
    struct parameters *p = parameters_read(n);
    struct backprop *t = backprop_make(p, len, 1, DTYPE_F32);
    float weight[LEN];
    for (size_t i = 0; i < len; i++)
        weight[i] = 1;
    const struct train_batch b = {.seqs = 1, .len = len - 1, .token = (int32_t *)(uintptr_t)ids,
                                  .target = (int32_t *)(uintptr_t)(ids + 1), .weight = weight,
                                  .z = z};
    double nats = backprop_loss(t, &b, BACKPROP_LOSS);
    backprop_free(t);
    parameters_free(p);
    return nats;
}

static void test_two_ways(void)
{
    int32_t ids[24];
    for (size_t i = 0; i < 24; i++)
        ids[i] = (int32_t)(i * 37 % 500);
    double nats[3] = {0};
    for (size_t i = 0; i < 3; i++) {
        struct model m = open_model("cpu", "f32", i < 2 ? 7 : 64);
        float *z = draw_latents(&m.n.config, i ? 40 : 0);
        double there = by_network(&m.n, z, ids, 24);
        nats[i] = by_training(&m.n, z, ids, 24);
        ok(fabs(there - nats[i]) < 1e-4 * there, "window %zu: %.6f nats by the network, %.6f by "
           "training", m.n.config.window, there, nats[i]);
        free(z);
        close_model(&m);
    }
    ok(nats[0] != nats[1] && nats[1] != nats[2], "latents count, and so does the window");
}

/* A network computes equal values on ref and on cpu. */
static void test_ref(void)
{
    struct model cpu = open_model("cpu", "f32", 7), ref = open_model("ref", "f32", 7);
    float *z = draw_latents(&cpu.n.config, 40);
    double a = by_network(&cpu.n, z, prompt_c, 13), b = by_network(&ref.n, z, prompt_c, 13);
    ok(fabs(a - b) < 1e-4 * b, "%.6f nats on cpu, %.6f on ref", a, b);
    free(z);
    close_model(&cpu);
    close_model(&ref);
}

/* ---- writing ---- */

static struct think settings(void)
{
    return (struct think){.max_new = NEW, .temperature = 1.5, .source = THINK_PRIOR,
                          .vi_steps = 3, .vi_rate = POSTERIOR_RATE, .cache = 1, .ignore_eos = 1,
                          .seed = 9};
}

static size_t write_all(const struct network *n, const struct think *how, size_t from, size_t to,
                        int32_t ids[PROMPTS][NEW])
{
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    size_t good = 0;
    think(n, how, prompts + from, to - from, g, &trace);
    for (size_t i = from; i < to; i++) {
        good += g[i - from].n == NEW && g[i - from].n_emits == NEW;
        if (g[i - from].n == NEW)
            memcpy(ids[i], g[i - from].ids, sizeof ids[i]);
        generation_free(&g[i - from]);
    }
    return good;
}

static int same(int32_t a[PROMPTS][NEW], int32_t b[PROMPTS][NEW])
{
    return !memcmp(a, b, PROMPTS * sizeof a[0]);
}

/* Computes every id anew, by a pass over the whole text so far. The prior draws the latents. */
static void naive(const struct network *n, const struct think *how, size_t which,
                  int32_t out[NEW])
{
    struct posterior q;
    int32_t ids[LEN], pos[LEN], slot[LEN];
    const struct generation_input *in = &prompts[which];
    const struct config *c = &n->config;
    const int recurs = config_recurs(c); /* then a text has the single slot 0 */
    must(posterior_make(&q, c, n->backend, 1), &(struct err){0});
    posterior_draw(&q, rng_derive(how->seed, "latents"), &in->key, 1, POSTERIOR_FRESH);
    memcpy(ids, in->ids, in->n * sizeof *ids);
    for (size_t len = in->n, k = 0; k < NEW; k++, len++) {
        const struct work_size size = {.rows = len, .seqs = 1, .slots = len, .listed = len,
                                       .wanted = 1, .cached = 1, .latent = 1};
        struct kv kv;
        struct latents latents;
        struct work *w = work_make(n, &size);
        struct head_row row;
        const int32_t last = (int32_t)len - 1;
        const uint64_t key = rng_at(in->key, k, 0);
        for (size_t i = 0; i < len; i++)
            pos[i] = (int32_t)i, slot[i] = recurs ? 0 : (int32_t)i;
        must(!w || kv_make(&kv, n, len) || latent_make(&latents, n, 1), &(struct err){0});
        latent_set(&latents, n, 0, q.z, c->latents * c->width);
        kv.latents = &latents;
        const struct forward_seq seq = {len, slot, recurs ? 1 : len, 0};
        const struct forward f = {.token = ids, .pos = pos, .slot = slot, .seqs = &seq,
                                  .n_seqs = 1, .mask = MASK_CAUSAL, .wanted = &last, .n_wanted = 1,
                                  .query = {.temperature = how->temperature, .seed = how->seed,
                                            .keys = &key}};
        forward(n, &kv, w, &f, &row, NULL);
        out[k] = ids[len] = row.id;
        latent_free(&latents, n);
        kv_free(&kv, n);
        work_free(w, n);
    }
    posterior_free(&q);
}

/* Prompts of 5, 1 and 13 ids, answers of 14. With a window of 4 the text goes round the ring of 8
 * slots, and a prompt is read in four passes. With a window of 6 no prompt ends where a pass
 * ends. */
static void test_writing(const char *shape, size_t window)
{
    struct model m = open_shape(shape, "cpu", "f32", window);
    int32_t a[PROMPTS][NEW], b[PROMPTS][NEW];
    static const enum think_source sources[] = {THINK_POSTERIOR, THINK_PRIOR, THINK_ZERO};
    for (int k = 0; k < 3; k++)
        for (int refit = 0; refit <= (k == 0 ? 5 : 0); refit += 5) {
            struct think how = settings();
            how.source = sources[k];
            how.draws = refit != 0;
            how.refit = (size_t)refit;
            size_t good = write_all(&m.n, &how, 0, PROMPTS, a);
            for (size_t i = 0; i < PROMPTS; i++)
                good += write_all(&m.n, &how, i, i + 1, b);
            ok(good == 2 * PROMPTS && same(a, b), "window %zu, source %d, refit %d: texts are the "
               "same in a batch and alone", window, k, refit);
            how.cache = 0;
            write_all(&m.n, &how, 0, PROMPTS, b);
            ok(same(a, b), "texts without a cache are the same");
        }
    struct think how = settings();
    write_all(&m.n, &how, 0, PROMPTS, a);
    for (size_t i = 0; i < PROMPTS; i++)
        naive(&m.n, &how, i, b[i]);
    ok(same(a, b), "window %zu: texts are those of a pass over the whole text for each id", window);
    how.variant = (struct variant){.scores = SIZE_MAX, .unfused = 1, .dense_head = 1};
    write_all(&m.n, &how, 0, PROMPTS, b);
    ok(same(a, b), "texts with all scores at once are the same");
    close_model(&m);
}

static void test_records(const char *shape, size_t window)
{
    struct model m = open_shape(shape, "cpu", "bf16", window);
    struct think how = settings();
    how.source = THINK_POSTERIOR;
    struct generation g[PROMPTS] = {0};
    struct batch_trace trace = {0};
    size_t before = m.b->memory.requested;
    memory_reset_peak(&m.b->memory);
    think(&m.n, &how, prompts, PROMPTS, g, &trace);
    const size_t *kind = trace.memory.kind;
    ok(kind[MEMORY_WEIGHTS] == trace.estimate.weights && kind[MEMORY_KV] == trace.estimate.kv &&
           kind[MEMORY_ACTIVATIONS] == trace.estimate.activations &&
           trace.memory.reserved == trace.estimate.reserved,
       "planned and taken: %zu %zu of weights, %zu %zu of cache, %zu %zu of activations",
       trace.estimate.weights, kind[MEMORY_WEIGHTS], trace.estimate.kv, kind[MEMORY_KV],
       trace.estimate.activations, kind[MEMORY_ACTIVATIONS]);
    ok(m.b->memory.requested == before, "think() frees all that it allocated");
    const struct config *c = &m.n.config;
    size_t slot = 2 * c->layers * c->kv_heads * c->head_dim, ring = 2 * c->window;
    size_t held = window ? slot * 2 * ring : 4 * c->layers * c->width * (c->head_dim + 1);
    ok(g[2].state_bytes == held + slot * 4 * c->latents && (window || held == 8704),
       "the state of a long text: %zu bytes of a ring of bf16, or of %s states, and of its latents",
       g[2].state_bytes, shape);
    ok(g[0].vi_ns > 0 && g[0].vi_ns + g[0].decode_ns == g[0].e2e_ns && g[0].emit_ns[0] > g[0].vi_ns,
       "fitting is inside the clock, before the first token");
    ok(g[0].kl_nats > 0 && isfinite(g[0].elbo_nats) && g[0].kl_nats != g[2].kl_nats,
       "%.1f and %.1f nats from the prior", g[0].kl_nats, g[2].kl_nats);
    ok(trace.prefill_ns == g[0].emit_ns[0] && trace.prefill.flops > 0 &&
           trace.prefill.flops < trace.cost.flops, "the first token ends the reading");
    for (size_t i = 0; i < PROMPTS; i++)
        generation_free(&g[i]);
    memset(g, 0, sizeof g);
    m.b->memory.cap = m.b->memory.reserved + 4096;
    think(&m.n, &how, prompts, PROMPTS, g, &trace);
    ok(g[0].oom && g[2].oom && !g[0].n && m.b->memory.requested == before,
       "memory short is an answer");
    close_model(&m);
}

int main(void)
{
    test_two_ways();
    test_ref();
    test_writing("synth:tiny-ltm", 4);
    test_writing("synth:tiny-ltm", 6);
    test_writing("synth:tiny-ltm", 256);
    test_writing("synth:tiny-ltm-rwkv6", 0);
    test_writing("synth:tiny-ltm-rwkv7", 0);
    test_records("synth:tiny-ltm", 6);
    test_records("synth:tiny-ltm-rwkv6", 0);
    test_records("synth:tiny-ltm-rwkv7", 0);
    return tap_done();
}
