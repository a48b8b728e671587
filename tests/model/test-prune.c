/* test-prune.c - tests structured pruning: how much is removed, which parts are removed, and
 * whether the smaller network computes the right values. */
#include "lib/base/file.h"
#include "lib/checkpoint/packing/pack.h"
#include "tests/files.h"
#include "tests/model/logits.h"
#include "tests/model/planted.h"

static char source[64], packed[64], again[64];
static struct pool *pool;

/* Prunes the scored source into `to`. *kept: the lists of kept parts. */
static int prune_to(const char *to, double heads, double ffn, enum prune_score how,
                    const struct prune_values *activity, enum dtype q, struct prune *kept,
                    struct err *e)
{
    struct pack_role role[ROLE_COUNT];
    struct checkpoint c;
    if (checkpoint_open(&c, source, 0, e))
        return -1;
    struct prune_values score = prune_values_make(&c.config);
    int bad = prune_settle(kept, &c.config, heads, ffn, e) ||
              prune_scores(&c, how, activity, &score, e) || file_make_folder(to, e);
    if (!bad) {
        prune_choose(kept, &c.config, &score);
        bad = pack_checkpoint(&c, q, kept, to, pool, role, e);
    }
    prune_values_free(&score);
    checkpoint_close(&c);
    return bad ? -1 : 0;
}

static int same_file(const char *name, const char *a, const char *b)
{
    char *command = mem_format("cmp -s %s/%s %s/%s", a, name, b, name);
    int differ = system(command);
    free(command);
    return !differ;
}

/* ---- how much ---- */

static void settled(const char *shape, double heads, double ffn, size_t H, size_t K, size_t F)
{
    struct config c;
    struct prune p;
    struct err e = {0};
    int bad = synth_config(&c, shape, &e) || prune_settle(&p, &c, heads, ffn, &e);
    ok(!bad && p.config.heads == H && p.config.kv_heads == K && p.config.ffn == F &&
           p.config.head_dim == c.head_dim,
       "%s: %g of the heads, %g of the units: %zu/%zu heads, %zu units remain %s", shape, heads,
       ffn, p.config.heads, p.config.kv_heads, p.config.ffn, e.text);
}

static void refused(double heads, double ffn, const char *says)
{
    struct config c;
    struct prune p;
    struct err e = {0};
    ok(!synth_config(&c, "llada-8b", &e) && prune_settle(&p, &c, heads, ffn, &e) == -1 &&
           e.code == EXIT_BAD_USAGE && strstr(e.text, says), "%s", e.text);
}

static void test_sizes(void)
{
    settled("llada-8b", 0, 0, 32, 32, 12288);
    settled("llada-8b", 0.3, 0.2, 23, 23, 9856); /* 0.2 x 12288 = 2457.6, to a multiple of 64 */
    settled("llada-8b", 0.03, 0.005, 32, 32, 12288);
    settled("llama3-8b", 0.25, 0.5, 24, 8, 7168); /* 1 of 4 of each group is 2 of 8 groups */
    settled("llama3-8b", 0.2, 0, 28, 7, 14336);   /* 1 of 8 groups is nearer than 0 of 4 */
    settled("llama3-8b", 0.99, 0.999, 4, 1, 64);
    settled("tiny-llama", 0.5, 0.3, 2, 2, 112); /* multiples of 16 */
    refused(1, 0, "--prune-heads: expected a share from 0 to less than 1, got 1");
    refused(0, 1, "--prune-ffn: expected a share");
    refused(-0.1, 0, "got -0.1");
    refused(0, NAN, "--prune-ffn: expected a share");
    refused(INFINITY, 0, "--prune-heads: expected a share");
    refused(1 - 1e-12, 0, "leaves none of the 32 heads");
    refused(0, 1 - 1e-15, "leaves none of the 12288 hidden units");
}

/* ---- scores: a toy ----
 *
 * SwiGLU layers have units of unequal size, and a few directions of the inputs carry nearly all.
 * The better a score knows the output of a unit, the less is lost by removing units. */

enum { LAYERS = 6, HIDDEN = 320, CALIBRATION = 256, HELD_OUT = 256 };

static void plant_sizes(const struct config *c, enum role r, size_t layer, float *v)
{
    if (r != ROLE_GATE && r != ROLE_UP && r != ROLE_DOWN)
        return;
    struct rng rng = {99, (uint64_t)r << 32 | layer, 0};
    for (size_t j = 0; j < c->ffn; j++) {
        double size = 4 * exp(0.5 * rng_normal(&rng));
        for (size_t k = 0; k < c->width; k++)
            v[r == ROLE_DOWN ? k * c->ffn + j : j * c->width + k] *= (float)size;
    }
}

/* Computes h[F] of input number i of a layer. */
static void hidden(const struct config *c, const float *gate, const float *up, size_t layer,
                   size_t i, double *h)
{
    struct rng rng = {7, (uint64_t)layer << 32 | i, 0};
    double x[64];
    for (size_t k = 0; k < c->width; k++)
        x[k] = 4 * exp(-0.12 * (double)k) * rng_normal(&rng);
    for (size_t j = 0; j < c->ffn; j++) {
        double g = 0, u = 0;
        for (size_t k = 0; k < c->width; k++) {
            g += x[k] * gate[j * c->width + k];
            u += x[k] * up[j * c->width + k];
        }
        h[j] = g / (1 + exp(-g)) * u;
    }
}

struct toy { float *gate, *up, *down; };

static struct toy toy_of(const struct checkpoint *c, size_t l)
{
    size_t n = c->config.width * c->config.ffn;
    struct toy t = {mem_alloc(4 * n), mem_alloc(4 * n), mem_alloc(4 * n)};
    checkpoint_floats(c, ROLE_GATE, l, t.gate);
    checkpoint_floats(c, ROLE_UP, l, t.up);
    checkpoint_floats(c, ROLE_DOWN, l, t.down);
    return t;
}

static void toy_free(struct toy *t)
{
    free(t->gate);
    free(t->up);
    free(t->down);
}

/* Sums the squares of a layer's held-out outputs, and of the removed units' part in them. */
static void losses(const struct config *c, const struct toy *t, size_t l, const size_t *kept,
                   size_t n_kept, double *lost, double *all)
{
    double *h = mem_alloc(c->ffn * sizeof *h);
    unsigned char *stays = mem_zero(c->ffn, 1);
    for (size_t i = 0; i < n_kept; i++)
        stays[kept[i]] = 1;
    for (size_t i = 0; i < HELD_OUT; i++) {
        hidden(c, t->gate, t->up, l, CALIBRATION + i, h);
        for (size_t k = 0; k < c->width; k++) {
            double y = 0, gone = 0;
            for (size_t j = 0; j < c->ffn; j++) {
                y += t->down[k * c->ffn + j] * h[j];
                gone += stays[j] ? 0 : t->down[k * c->ffn + j] * h[j];
            }
            *all += y * y;
            *lost += gone * gone;
        }
    }
    free(h);
    free(stays);
}

static struct prune_values toy_activity(const struct checkpoint *c)
{
    struct prune_values a = prune_values_make(&c->config);
    double *h = mem_alloc(HIDDEN * sizeof *h);
    for (size_t l = 0; l < LAYERS; l++) {
        struct toy t = toy_of(c, l);
        for (size_t i = 0; i < CALIBRATION; i++) {
            hidden(&c->config, t.gate, t.up, l, i, h);
            for (size_t j = 0; j < HIDDEN; j++)
                a.unit[l * HIDDEN + j] += h[j] * h[j] / CALIBRATION;
        }
        toy_free(&t);
    }
    free(h);
    return a;
}

/* The relative error of the outputs if a fifth of the units is removed by a score. */
static double toy_error(const struct checkpoint *c, enum prune_score how,
                        const struct prune_values *activity)
{
    struct prune p;
    struct err e = {0};
    struct prune_values score = prune_values_make(&c->config);
    double lost = 0, all = 0;
    if (prune_settle(&p, &c->config, 0, 0.2, &e) || prune_scores(c, how, activity, &score, &e))
        return NAN;
    prune_choose(&p, &c->config, &score);
    for (size_t l = 0; l < LAYERS; l++) {
        struct toy t = toy_of(c, l);
        losses(&c->config, &t, l, p.unit + l * p.config.ffn, p.config.ffn, &lost, &all);
        toy_free(&t);
    }
    prune_values_free(&score);
    prune_free(&p);
    return sqrt(lost / all);
}

static void test_toy(void)
{
    struct checkpoint c;
    struct err e = {0};
    planted_save((struct planted){.shape = "tiny-llama", .layers = LAYERS, .ffn = HIDDEN,
                                  .plant = plant_sizes}, source);
    if (!ok(!checkpoint_open(&c, source, 0, &e), "the toy opens %s", e.text))
        return;
    struct prune_values a = toy_activity(&c);
    double first = toy_error(&c, PRUNE_FIRST, NULL), l2 = toy_error(&c, PRUNE_L2, NULL);
    double gate = toy_error(&c, PRUNE_GATE, NULL), seen = toy_error(&c, PRUNE_ACTIVATION, &a);
    ok(seen < gate && gate < l2 && l2 < first,
       "error of the outputs: activation %.3f < gate %.3f < l2 %.3f < first %.3f", seen, gate, l2,
       first);
    prune_values_free(&a);
    checkpoint_close(&c);
}

/* ---- the smaller network ---- */

/* One query head of each group has no effect on the output; it is another head in each layer. Two
 * units of five have no effect either. */
static int is_idle_head(const struct config *c, size_t layer, size_t h)
{
    size_t group = c->heads / c->kv_heads;
    return group > 1 ? h % group == layer % group : h == layer + 1;
}

static int is_idle_unit(size_t layer, size_t j)
{
    return j % 5 == layer || j % 5 == layer + 2;
}

static void plant_idle(const struct config *c, enum role r, size_t layer, float *v)
{
    size_t in = c->heads * c->head_dim;
    for (size_t i = 0; i < c->width * in && r == ROLE_O; i++)
        if (is_idle_head(c, layer, i % in / c->head_dim))
            v[i] = 0;
    for (size_t i = 0; i < c->width * c->ffn && r == ROLE_DOWN; i++)
        if (is_idle_unit(layer, i % c->ffn))
            v[i] = 0;
}

/* Makes a whole group of heads, with its key head, without effect. */
static void plant_idle_group(const struct config *c, enum role r, size_t layer, float *v)
{
    size_t in = c->heads * c->head_dim, group = c->heads / c->kv_heads;
    for (size_t i = 0; i < c->width * in && r == ROLE_O; i++)
        if (i % in / c->head_dim / group == 2 + layer)
            v[i] = 0;
}

static int only_idle_went(const struct config *c, const struct prune *p)
{
    int right = 1;
    for (size_t l = 0; l < c->layers; l++) {
        for (size_t i = 0; i < p->config.heads; i++)
            right &= !is_idle_head(c, l, p->query[l * p->config.heads + i]);
        for (size_t i = 0; i < p->config.ffn; i++)
            right &= !is_idle_unit(l, p->unit[l * p->config.ffn + i]);
    }
    return right;
}

/* Removing heads and units without effect changes no bit on ref, whose sums are double and in
 * order. On cpu the order of a sum depends on its length. */
static void same_answers(const char *what)
{
    enum { N = 5 * 512 };
    static float x[N], y[N];
    struct err e = {0};
    int bad = logits_at(source, "ref", NULL, x, &e) || logits_at(packed, "ref", NULL, y, &e);
    ok(!bad && !memcmp(x, y, sizeof x), "%s: the logits of ref, bit for bit %s", what, e.text);
    bad = logits_at(source, "cpu", NULL, x, &e) || logits_at(packed, "cpu", NULL, y, &e);
    float far = 0, size = 0;
    for (size_t i = 0; i < N; i++) {
        far = fmaxf(far, fabsf(x[i] - y[i]));
        size = fmaxf(size, fabsf(x[i]));
    }
    ok(!bad && far <= 1e-5f * size && size > 0, "%s: those of cpu %s", what, e.text);
}

static void test_idle(const char *shape, const char *dtype, double heads, size_t H, size_t K)
{
    struct prune p = {0};
    struct checkpoint c;
    struct err e = {0};
    planted_save((struct planted){.shape = shape, .dtype = dtype, .ffn = 160,
                                  .plant = plant_idle}, source);
    planted_forget(packed);
    int bad = prune_to(packed, heads, 0.4, PRUNE_GATE, NULL, QUANT_NONE, &p, &e) ||
              checkpoint_open(&c, packed, 0, &e);
    ok(!bad && c.config.heads == H && c.config.kv_heads == K && c.config.ffn == 96 &&
           c.config.head_dim == 16, "%s: opens with %zu/%zu heads %s", shape, H, K, e.text);
    if (bad)
        return;
    checkpoint_close(&c);
    if (checkpoint_open(&c, source, 0, &e))
        return;
    ok(only_idle_went(&c.config, &p), "%s: only parts without output are removed", shape);
    checkpoint_close(&c);
    same_answers(shape);
    prune_free(&p);
}

static void test_idle_group(void)
{
    struct prune p = {0};
    struct err e = {0};
    planted_save((struct planted){.shape = "tiny-llama", .heads = 8, .kv_heads = 4,
                                  .plant = plant_idle_group}, source);
    planted_forget(packed);
    int bad = prune_to(packed, 0.25, 0, PRUNE_L2, NULL, QUANT_NONE, &p, &e);
    ok(!bad && p.config.kv_heads == 3 && p.config.heads == 6 && p.key[2] == 3 && p.key[5] == 2 &&
           p.query[4] == 6 && p.query[10] == 4 && p.query[11] == 5,
       "a group goes with its key head %s", e.text);
    same_answers("a whole group");
    prune_free(&p);
}

static void test_nothing(const char *shape)
{
    struct prune p = {0};
    struct err e = {0};
    planted_save((struct planted){.shape = shape, .dtype = "BF16"}, source);
    planted_forget(packed);
    int bad = prune_to(packed, 0, 0, PRUNE_L2, NULL, QUANT_NONE, &p, &e);
    ok(!bad && same_file("model.safetensors", source, packed), "%s: share 0: the same tensors %s",
       shape, e.text);
    prune_free(&p);
}

/* Pruning and quantizing in one call equals pruning and then quantizing. */
static void test_quantized(enum dtype q)
{
    struct prune p = {0}, first = {0}, none = {0};
    struct err e = {0};
    planted_save((struct planted){.shape = "tiny-llada", .heads = 8, .ffn = 512}, source);
    planted_forget(packed);
    planted_forget(again);
    int bad = prune_to(packed, 0.5, 0.3, PRUNE_L2, NULL, q, &p, &e) ||
              prune_to(again, 0.5, 0.3, PRUNE_L2, NULL, QUANT_NONE, &first, &e);
    planted_forget(source);
    bad = bad || rename(again, source) ||
          prune_to(again, 0, 0, PRUNE_FIRST, NULL, q, &none, &e);
    ok(!bad && same_file("model.safetensors", packed, again), "pruned and then %s: the same %s",
       quantization_name(q), e.text);
    prune_free(&p);
    prune_free(&first);
    prune_free(&none);
}

static void plant_nan(const struct config *c, enum role r, size_t layer, float *v)
{
    if (r == ROLE_DOWN && layer == 1)
        v[c->ffn + 3] = NAN;
}

static void test_not_finite(void)
{
    struct prune p = {0};
    struct err e = {0};
    planted_save((struct planted){.shape = "tiny-llama", .plant = plant_nan}, source);
    planted_forget(packed);
    ok(prune_to(packed, 0, 0.2, PRUNE_L2, NULL, QUANT_NONE, &p, &e) == -1 &&
           e.code == EXIT_BAD_DATA && strstr(e.text, "layer 1") && strstr(e.text, "unit 3"), "%s",
       e.text);
}

int main(void)
{
    files_begin();
    snprintf(source, sizeof source, "%s/source", files_root);
    snprintf(packed, sizeof packed, "%s/packed", files_root);
    snprintf(again, sizeof again, "%s/again", files_root);
    pool = pool_new(2);
    test_sizes();
    test_toy();
    test_idle("tiny-llama", "F32", 0.5, 2, 2);
    test_idle("tiny-llama", "BF16", 0.5, 2, 2);
    test_idle("tiny-llada", "F32", 0.25, 3, 3);
    test_idle("tiny-qwen2", "F32", 0.5, 2, 2);
    test_idle_group();
    test_nothing("tiny-llama");
    test_nothing("tiny-llada");
    test_quantized(DTYPE_INT8);
    test_quantized(DTYPE_NF4);
    test_not_finite();
    pool_free(pool);
    files_end();
    return tap_done();
}
