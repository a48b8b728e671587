/* test-gradients.cu - compares gradients on the device with the reference: odd shapes and tails,
 * sequences of unequal length, also empty ones, windows, in place and not. Every case runs twice
 * and must give the same bits. Values that a case does not write must not change. */
#include "kernels/mixing.h"
#include "kernels/train.h"
#include "tests/cuda/rows-fixture.h"

enum { ARRAYS = 24, SEQS = 3 };

/* One side of a case: arrays of `wide` values each, ids, sequences, and a work area. */
struct side {
    struct backend *b;
    const struct ops *ops;
    float *x;
    int32_t *ids;
    struct attn_seq *seqs;
    float *work;
    size_t wide;

    float *at(size_t i) const
    {
        return x + i * wide;
    }
};

/* The same case for all sides. */
struct given {
    size_t wide, n_ids, work;
    int32_t ids[512];
    struct attn_seq seqs[SEQS];
};

static struct side here(struct fixture *f, const struct given *g, const float *x)
{
    struct side s = {f->ref, &ops_ref, floats(ARRAYS * g->wide), NULL, NULL, NULL, g->wide};
    memcpy(s.x, x, ARRAYS * g->wide * sizeof *x);
    s.ids = (int32_t *)mem_zero(sizeof g->ids, 1);
    memcpy(s.ids, g->ids, sizeof g->ids);
    s.seqs = (struct attn_seq *)mem_zero(sizeof g->seqs, 1);
    memcpy(s.seqs, g->seqs, sizeof g->seqs);
    s.work = floats(g->work + 1);
    return s;
}

static struct side there(struct fixture *f, const struct given *g, const float *x)
{
    struct side s = {f->cuda, f->cuda->ops, NULL, NULL, NULL, NULL, g->wide};
    s.x = (float *)sent(f, x, ARRAYS * g->wide * sizeof *x);
    s.ids = (int32_t *)sent(f, g->ids, sizeof g->ids);
    s.seqs = (struct attn_seq *)sent(f, g->seqs, sizeof g->seqs);
    s.work = (float *)cuda_alloc(f->cuda, (g->work + 1) * sizeof(float), MEMORY_ACTIVATIONS);
    return s;
}

static void forget(struct fixture *f, struct side *s)
{
    void *all[] = {s->x, s->ids, s->seqs, s->work};
    for (void *p : all)
        s->b == f->cuda ? cuda_free(f->cuda, p) : free(p);
}

/* The largest difference in an array, relative to its largest value. */
static double apart(const float *got, const float *want, const struct given *g)
{
    double worst = 0;
    for (size_t a = 0; a < ARRAYS; a++) {
        double far = 0, most = 1e-30;
        for (size_t i = a * g->wide; i < (a + 1) * g->wide; i++) {
            const double d = fabs((double)got[i] - want[i]);
            far = isnan(d) ? INFINITY : fmax(far, d);
            most = fmax(most, fabs((double)want[i]));
        }
        worst = fmax(worst, far / most);
    }
    return worst;
}

/* Runs op(side) on the host and twice on the device, from the same arrays, and compares. */
template <class F>
static void compare(struct fixture *f, const struct given *g, double most, const char *what, F op)
{
    const size_t bytes = ARRAYS * g->wide * sizeof(float);
    float *x = drawn(f, ARRAYS * g->wide), *got[2];
    struct side want = here(f, g, x);
    op(want);
    for (float *&y : got) {
        struct side s = there(f, g, x);
        op(s);
        y = floats(ARRAYS * g->wide);
        cuda_read(f->cuda, y, s.x, bytes);
        forget(f, &s);
    }
    const double far = apart(got[0], want.x, g);
    ok(far < most && !memcmp(got[0], got[1], bytes), "%s: %.1e, the same bits twice", what, far);
    forget(f, &want);
    free(x), free(got[0]), free(got[1]);
}

static const char *named(const char *format, size_t a, size_t b, size_t c, size_t d)
{
    static char text[200];
    snprintf(text, sizeof text, format, a, b, c, d);
    return text;
}

/* ---- rows ---- */

static void rotations(struct fixture *f)
{
    static const size_t shapes[][3] = {{1, 1, 2}, {3, 2, 6}, {5, 3, 64}, {7, 9, 34}};
    for (const size_t *s : shapes)
        for (int sign = -1; sign < 2; sign += 2) {
            struct given g = {};
            g.wide = s[0] * s[1] * s[2];
            compare(f, &g, 1e-6, named("rotation of %zu x %zu x %zu, back: %zu", s[0], s[1], s[2],
                                       sign < 0), [=](const struct side &x) {
                x.ops->rope(x.b, x.at(0), x.at(1), s[0], s[1], s[2], sign);
            });
        }
}

static void norms(struct fixture *f)
{
    static const size_t shapes[][2] = {{1, 1}, {3, 257}, {5, 300}, {2, 1024}, {4, 31}, {99, 13}};
    for (const size_t *s : shapes) {
        struct given g = {};
        g.wide = s[0] * s[1];
        g.work = 2 * s[0];
        for (int gain = 0; gain < 2; gain++)
            compare(f, &g, 3e-6, named("norm of %zu x %zu, gain: %zu", s[0], s[1], (size_t)gain, 0),
                    [=](const struct side &x) {
                train_ops_of(x.ops)->rmsnorm_back(x.b, x.at(0), gain ? x.at(4) : NULL, x.at(1),
                                                x.at(2), x.at(3), s[0], s[1], 1e-5, x.work);
            });
    }
}

static void gates(struct fixture *f)
{
    for (size_t n = 1; n < 3000; n = n * 7 + 3)
        for (int own = 0; own < 2; own++) {
            struct given g = {};
            g.wide = n;
            compare(f, &g, 2e-6, named("gate of %zu, in place: %zu", n, (size_t)own, 0, 0),
                    [=](const struct side &x) {
                train_ops_of(x.ops)->swiglu_back(x.b, x.at(own ? 1 : 3), x.at(own ? 0 : 4), x.at(0),
                                          x.at(1), x.at(2), n);
            });
        }
}

static void places(struct fixture *f)
{
    for (size_t D = 1; D < 700; D = D * 9 + 2) {
        struct given g = {};
        const size_t T = 11;
        g.wide = T * D;
        for (size_t t = 0, n = 0; t < T; t++)
            g.ids[t] = t % 3 == 1 ? (int32_t)n++ : -1;
        compare(f, &g, 1e-30, named("rows of %zu back in their places", D, 0, 0, 0),
                [=](const struct side &x) {
            train_ops_of(x.ops)->spread(x.b, x.at(0), x.at(1), x.ids, T, D);
        });
        compare(f, &g, 1e-30, "zeros", [=](const struct side &x) {
            x.ops->clear(x.b, x.at(1), (T * D - 1) * sizeof(float));
        });
    }
}

/* Some of the tokens never occur, and one occurs often. */
static void embeddings(struct fixture *f)
{
    static const size_t shapes[][3] = {{1, 1, 1}, {7, 3, 300}, {500, 40, 70}};
    for (const size_t *s : shapes) {
        struct given g = {};
        g.wide = (s[0] > s[1] ? s[0] : s[1]) * s[2];
        for (size_t t = 0; t < s[0]; t++)
            g.ids[t] = t % 3 ? 0 : (int32_t)(t * 11 % s[1]);
        compare(f, &g, 3e-6, named("embedding, %zu rows of %zu ids, %zu wide", s[0], s[1], s[2], 0),
                [=](const struct side &x) {
            train_ops_of(x.ops)->embed_back(x.b, x.at(0), x.at(1), x.ids, s[0], s[1], s[2]);
        });
    }
}

/* The mean of squares starts at 0, because it is never negative. */
static void updates(struct fixture *f)
{
    for (size_t n = 1; n < 3000; n = n * 7 + 3) {
        struct given g = {};
        double want = 0, got = 0;
        g.wide = n;
        g.work = 2 * SQUARES_PARTS;
        compare(f, &g, 1e-6, named("update of %zu", n, 0, 0, 0), [&](const struct side &x) {
            const struct adamw how = {1e-3, 0.9, 0.95, 1e-8, 0.1, 0.7, 3};
            (x.b == f->ref ? want : got) =
                train_ops_of(x.ops)->squares(x.b, x.at(3), n, (double *)x.work);
            x.ops->clear(x.b, x.at(2), n * sizeof(float));
            train_ops_of(x.ops)->adamw(x.b, x.at(0), x.at(1), x.at(2), x.at(3), n, &how);
            train_ops_of(x.ops)->add(x.b, x.at(5), x.at(6), n);
        });
        ok(fabs(got - want) <= 1e-12 * want, "the squares of the gradient: %.6g", got);
    }
}

/* Losses are doubles, so they are in the work area. */
static void losses(struct fixture *f)
{
    static const size_t ids[] = {1, 3, 257, 1000, 4099};
    enum { T = 5 };
    for (size_t V : ids) {
        double want[T], got[T], far = 0;
        struct given g = {};
        g.wide = T * V < 8 ? 8 : T * V;
        g.work = 2 * T;
        for (size_t t = 0; t < T; t++)
            g.ids[t] = (int32_t)(t * 7 % V);
        g.ids[1] = (int32_t)V - 1;
        compare(f, &g, 3e-6, named("loss over %zu ids", V, 0, 0, 0), [&](const struct side &x) {
            const float zero = 0;
            const float far_off = 90; /* e^x overflows if the maximum is not subtracted */
            x.ops->write(x.b, x.at(0) + V / 2, &far_off, sizeof far_off);
            x.ops->write(x.b, x.at(1) + 2, &zero, sizeof zero);
            train_ops_of(x.ops)->cross_entropy(x.b, x.at(0), x.ids, x.at(1), T, V,
                                               (double *)x.work);
            x.ops->read(x.b, x.b == f->ref ? want : got, x.work, sizeof want);
        });
        for (int t = 0; t < T; t++)
            far = fmax(far, fabs(got[t] - want[t]) / (1 + fabs(want[t])));
        ok(far < 1e-6 && got[2] == 0, "the value of the loss: %.1e; 0 where the weight is 0", far);
    }
}

/* ---- products ---- */

/* The products of a linear layer: forward, back to the input, and to the weights. */
static struct gemm product_of(const struct side &x, int way, const size_t s[3], int plus,
                              enum dtype dtype)
{
    struct gemm g = {};
    g.M = s[0], g.N = s[1], g.K = s[2], g.ldc = s[1], g.dtype = dtype;
    g.a = {x.at(0), way == 2 ? 1 : s[2], way == 2 ? s[0] : 1};
    g.b = {x.at(1), way ? 1 : s[2], way ? s[1] : 1};
    g.c = x.at(2);
    g.plus = plus == 2 ? x.at(2) : plus ? x.at(3) : NULL;
    return g;
}

static void products(struct fixture *f)
{
    static const size_t shapes[][3] = {{1, 1, 1},    {17, 33, 5},   {64, 64, 16}, {70, 130, 50},
                                       {260, 200, 9}, {700, 600, 3}, {5, 7, 0},
                                       {40, 150, 700}, {70, 60, 500}};
    for (const size_t *s : shapes)
        for (int way = 0; way < 3; way++)
            for (int half = 0; half < 2; half++) {
                struct given g = {};
                const int plus = (way + half) % 3;
                g.wide = s[0] * s[1] + s[0] * s[2] + s[1] * s[2];
                g.work = train_ops_of(f->cuda->ops)->gemm_work(f->cuda, s[0], s[1], s[2]) /
                         sizeof(float);
                compare(f, &g, 3e-6, named("product %zu x %zu x %zu, way %zu", s[0], s[1], s[2],
                                           (size_t)(2 * way + half)), [=](const struct side &x) {
                    const enum dtype d = half ? DTYPE_BF16 : DTYPE_F32;
                    const struct gemm two[] = {product_of(x, way, s, plus, d), {}};
                    train_ops_of(x.ops)->gemm(x.b, two, 2, x.work);
                });
            }
}

/* ---- attention ---- */

struct heads {
    size_t kv, group, E;
    int32_t rows[SEQS], slots[SEQS]; /* rows: the last keys of a sequence, except in every third */
    int causal; /* 0: full mask; else the length of a block, which sees itself and earlier blocks */
    size_t window;
};

static void attentions(struct fixture *f)
{
    static const struct heads shapes[] = {
        {1, 1, 6, {1, 0, 0}, {1, 0, 0}, 1, 0},       {2, 2, 34, {7, 1, 40}, {7, 1, 40}, 1, 0},
        {1, 4, 64, {70, 3, 9}, {70, 5, 33}, 1, 0},   {2, 1, 64, {33, 64, 2}, {65, 64, 2}, 1, 5},
        {1, 2, 80, {50, 1, 20}, {100, 90, 20}, 1, 40}, {1, 1, 128, {40, 0, 3}, {40, 33, 3}, 1, 1},
        {2, 2, 16, {37, 5, 1}, {3, 3, 3}, 0, 0},     {1, 3, 128, {9, 18, 0}, {65, 8, 2}, 0, 0},
        {3, 1, 1, {5, 5, 5}, {5, 5, 5}, 1, 2},       {2, 2, 34, {70, 1, 40}, {70, 7, 40}, 32, 0},
        {1, 3, 64, {50, 9, 20}, {99, 9, 33}, 5, 0}};
    for (const struct heads &h : shapes) {
        struct given g = {};
        size_t rows = 0, slots = 0, most = 0;
        for (int i = 0; i < SEQS; i++) {
            g.seqs[i] = {(int32_t)rows, h.rows[i], (int32_t)slots, h.slots[i]};
            for (int32_t r = 0; r < h.rows[i]; r++) {
                const int32_t pos = h.slots[i] - h.rows[i] + r, B = h.causal ? h.causal : 1;
                const int32_t end = (pos / B + 1) * B;
                g.ids[rows + (size_t)r] = end < h.slots[i] ? end - 1 : h.slots[i] - 1;
            }
            rows += (size_t)h.rows[i];
            slots += (size_t)h.slots[i];
            most = (size_t)h.rows[i] > most ? (size_t)h.rows[i] : most;
            most = (size_t)h.slots[i] > most ? (size_t)h.slots[i] : most;
        }
        const size_t heads = h.kv * h.group;
        g.wide = (rows + slots) * heads * h.E;
        g.work = train_ops_of(f->cuda->ops)->attention_back_work(f->cuda, rows, most, heads, h.E);
        compare(f, &g, 5e-6, named("attention, %zu rows of %zu heads of %zu, window %zu", rows,
                                   heads, h.E, h.window), [=](const struct side &x) {
            struct attn_back a = {};
            a.q = x.at(0), a.k = x.at(1), a.v = x.at(2), a.dy = x.at(3);
            a.dq = x.at(4), a.dk = x.at(5), a.dv = x.at(6);
            a.seqs = x.seqs, a.pos = x.ids, a.n_seqs = SEQS, a.max_slots = most;
            a.heads = heads, a.kv_heads = h.kv, a.head_dim = h.E;
            a.causal = h.causal > 0, a.window = h.window;
            train_ops_of(x.ops)->attention_back(x.b, &a, x.work);
        });
    }
}

/* ---- around time mixing ---- */

struct shape {
    size_t H, E;
    int32_t rows[SEQS];
};
static const struct shape shapes[] = {{2, 64, {7, 1, 13}}, {3, 6, {1, 0, 2}}, {9, 34, {5, 3, 4}}};

static struct given given_of(const struct shape *s, size_t *T)
{
    struct given g = {};
    *T = 0;
    for (int i = 0; i < SEQS; i++) {
        g.seqs[i] = {(int32_t)*T, s->rows[i], 0, 0};
        *T += (size_t)s->rows[i];
    }
    g.wide = *T * s->H * s->E;
    return g;
}

static void shifts(struct fixture *f, const struct shape *s, int dynamic)
{
    size_t T;
    const struct given g = given_of(s, &T);
    compare(f, &g, 3e-6, named("shift of %zu rows, %zu wide, dynamic: %zu", T, s->H * s->E,
                               (size_t)dynamic, 0), [=](const struct side &x) {
        struct shift of = {};
        of.x = x.at(0), of.n = dynamic ? 5 : 6;
        of.seqs = x.seqs, of.n_seqs = SEQS, of.T = T, of.D = s->H * s->E;
        struct shift_back a = {};
        a.of = &of, a.dx = x.at(1);
        for (size_t i = 0; i < of.n; i++) {
            of.share[i] = x.at(2) + i;
            of.more[i] = dynamic ? x.at(3 + i) : NULL;
            a.d[i] = x.at(10 + i);
        }
        train_ops_of(x.ops)->shift_back(x.b, &a);
    });
}

static void bends(struct fixture *f, const struct shape *s)
{
    size_t T;
    const struct given g = given_of(s, &T);
    for (int by = 0; by < 4; by++)
        compare(f, &g, 2e-6, named("bend %zu of %zu x %zu", (size_t)by, T, s->H * s->E, 0),
                [=](const struct side &x) {
            const struct squash_back a = {x.at(0), x.at(1), NULL, T, s->H * s->E,
                                          (enum squash_by)by};
            train_ops_of(x.ops)->squash_back(x.b, &a);
        });
}

static void heads_back(struct fixture *f, const struct shape *s, int bonus)
{
    size_t T;
    const struct given g = given_of(s, &T);
    compare(f, &g, 1e-5, named("heads, %zu x %zu x %zu, bonus: %zu", T, s->H, s->E, (size_t)bonus),
            [=](const struct side &x) {
        const struct heads_out of = {x.at(0), x.at(1), x.at(2), x.at(3), x.at(4), x.at(5), x.at(6),
                                     bonus ? x.at(7) : NULL, NULL, T, s->H, s->E};
        const struct heads_out_back a = {&of, x.at(8), x.at(9), x.at(10), NULL, NULL};
        train_ops_of(x.ops)->heads_out_back(x.b, &a);
    });
}

/* way 0: a layer that uses v of the first layer; 1: the first layer, with the gradient of later
 * layers; 2: neither. */
static void removals(struct fixture *f, const struct shape *s, int way)
{
    size_t T;
    const struct given g = given_of(s, &T);
    compare(f, &g, 1e-5, named("removal, %zu x %zu x %zu, way %zu", T, s->H, s->E, (size_t)way),
            [=](const struct side &x) {
        struct removal of = {};
        of.k = x.at(0), of.v = x.at(1), of.rate = x.at(2), of.first = way ? NULL : x.at(3);
        of.share = x.at(4), of.scale = x.at(5), of.key_rate = x.at(6);
        of.T = T, of.heads = s->H, of.head_dim = s->E;
        struct removal_back a = {};
        a.of = &of, a.r = x.at(7), a.k = x.at(8), a.v = x.at(9), a.weight = x.at(10);
        a.dn = x.at(11), a.dr = x.at(12), a.dk = x.at(13), a.dv = x.at(14), a.da = x.at(15);
        a.db = x.at(16), a.drate = x.at(17), a.dfirst = way == 2 ? NULL : x.at(18);
        a.dshare = x.at(19);
        train_ops_of(x.ops)->removal_back(x.b, &a);
    });
}

int main(void)
{
    struct fixture f = fixture_open();
    f.cuda->act = DTYPE_F32;
    rotations(&f);
    norms(&f);
    gates(&f);
    places(&f);
    embeddings(&f);
    updates(&f);
    losses(&f);
    products(&f);
    attentions(&f);
    for (const struct shape &s : shapes) {
        shifts(&f, &s, 0);
        shifts(&f, &s, 1);
        bends(&f, &s);
        heads_back(&f, &s, 0);
        heads_back(&f, &s, 1);
        for (int way = 0; way < 3; way++)
            removals(&f, &s, way);
    }
    fixture_close(&f);
    return tap_done();
}
