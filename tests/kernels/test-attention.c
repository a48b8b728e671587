/* test-attention.c - compares attention and the cache of every level of the cpu back end with ref:
 * masks, lists of slots, both dtypes, rounding. The bits of a row depend only on the row and its
 * keys. */
#include "kernels/host.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/emulate/tmm.h"
#include "tests/kernels/levels.h"
#include "tests/tap.h"

static struct rng rng = {.seed = 11};

static float *draw(size_t n)
{
    float *x = mem_aligned(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&rng);
    return x;
}

static struct backend *open_level(const char *level, size_t threads)
{
    struct backend *b = mem_zero(1, sizeof *b);
    b->ops = strcmp(level, "ref") ? levels_named(level) : &ops_ref;
    b->pool = pool_new(threads);
    return b;
}

enum order { IN_ORDER, BACKWARD, HOLES };

/* n sequences of `slots` keys, whose last `rows` keys are also rows. */
struct shape {
    size_t n, heads, kv_heads, head_dim, rows, slots;
    enum mask mask;
    enum order order;
    size_t window;
};
static const struct shape shapes[] = {
    {2, 4, 4, 16, 9, 9, MASK_FULL, IN_ORDER, 0},
    {2, 6, 2, 24, 50, 77, MASK_CAUSAL, BACKWARD, 0},
    {1, 4, 1, 64, 1, 700, MASK_CAUSAL, IN_ORDER, 0}, /* work is split by keys */
    {3, 8, 2, 64, 1, 300, MASK_CAUSAL, HOLES, 0},
    {2, 3, 3, 11, 70, 70, MASK_FULL, HOLES, 0},
    {1, 4, 2, 32, 90, 600, MASK_BLOCK_CAUSAL, IN_ORDER, 0},
    {1, 4, 2, 33, 65, 258, MASK_CAUSAL, IN_ORDER, 0},
    {1, 2, 2, 128, 257, 257, MASK_CAUSAL, IN_ORDER, 0},
    {1, 5, 1, 64, 129, 512, MASK_FULL, BACKWARD, 0},
    {1, 1, 1, 1, 3, 1, MASK_CAUSAL, IN_ORDER, 0}, /* two rows see no key */
    {2, 4, 2, 24, 77, 77, MASK_CAUSAL, BACKWARD, 7},
    {1, 4, 1, 64, 1, 700, MASK_CAUSAL, IN_ORDER, 300}, /* one and a half chunks of keys */
    {1, 4, 2, 33, 300, 600, MASK_CAUSAL, HOLES, 41},   /* no row sees most of the chunks */
    {3, 2, 2, 16, 5, 9, MASK_CAUSAL, IN_ORDER, 1},     /* each row sees itself */
    {1, 12, 4, 64, 1, 1000, MASK_CAUSAL, BACKWARD, 0}, /* several key heads, split by keys */
    {1, 30, 10, 24, 1, 1000, MASK_CAUSAL, HOLES, 0},   /* a full panel of heads and one more */
};

/* The filled inputs of an attention. */
struct data {
    struct attn a;
    float *q, *y;
    void *k, *v;
    int32_t *pos, *slots, *slot_pos;
    struct attn_seq *seqs;
    size_t values; /* number of values of y */
};

static void *cache_of(size_t n, enum dtype dtype)
{
    float *x = draw(n);
    if (dtype == DTYPE_F32)
        return x;
    uint16_t *half = mem_aligned(n * sizeof *half);
    for (size_t i = 0; i < n; i++)
        half[i] = bf16_of(x[i]);
    free(x);
    return half;
}

static struct data fill(const struct shape *s, enum dtype dtype, int half)
{
    size_t T = s->n * s->rows, S = s->n * s->slots, room = 2 * S;
    struct data d = {.values = T * s->heads * s->head_dim};
    d.q = draw(d.values);
    d.y = draw(d.values);
    d.k = cache_of(room * s->kv_heads * s->head_dim, dtype);
    d.v = cache_of(room * s->kv_heads * s->head_dim, dtype);
    d.pos = mem_alloc(T * sizeof *d.pos);
    d.slots = mem_alloc(S * sizeof *d.slots);
    d.slot_pos = mem_alloc(S * sizeof *d.slot_pos);
    d.seqs = mem_alloc(s->n * sizeof *d.seqs);
    for (size_t t = 0; t < T; t++) /* with more rows than slots, the first rows see no key */
        d.pos[t] = (int32_t)s->slots - (int32_t)s->rows + (int32_t)(t % s->rows);
    for (size_t i = 0; i < S; i++) {
        d.slots[i] = (int32_t)(s->order == IN_ORDER ? i : s->order == BACKWARD ? S - 1 - i : 2 * i);
        d.slot_pos[i] = (int32_t)(i % s->slots);
    }
    for (size_t i = 0; i < s->n; i++)
        d.seqs[i] = (struct attn_seq){(int32_t)(i * s->rows), (int32_t)s->rows,
                                      (int32_t)(i * s->slots), (int32_t)s->slots};
    d.a = (struct attn){.q = d.q,
                        .y = d.y,
                        .kv = {d.k, d.v, dtype},
                        .half = half,
                        .pos = d.pos,
                        .seqs = d.seqs,
                        .slots = d.slots,
                        .slot_pos = d.slot_pos,
                        .n_seqs = s->n,
                        .T = T,
                        .max_rows = s->rows,
                        .max_slots = s->slots,
                        .heads = s->heads,
                        .kv_heads = s->kv_heads,
                        .head_dim = s->head_dim,
                        .mask = s->mask,
                        .mask_block = 16,
                        .window = s->window};
    return d;
}

static void drop(struct data *d)
{
    free(d->q), free(d->y), free(d->k), free(d->v);
    free(d->pos), free(d->slots), free(d->slot_pos), free(d->seqs);
}

static float *run(struct backend *b, const struct data *d, const struct shape *s)
{
    struct attn a = d->a;
    size_t bytes = b->ops->attention_work(b, a.T, a.n_seqs, a.max_slots, s->heads, s->kv_heads,
                                          s->head_dim, a.dense);
    void *work = mem_aligned(bytes);
    float *y = mem_alloc(d->values * sizeof *y);
    memset(work, 0xff, bytes); /* NaN: work must not be read before it is written */
    a.y = y;
    b->ops->attention(b, &a, work);
    free(work);
    return y;
}

/* With all scores of 1, of 2 or of all heads in memory at once: near the reference, and the same
 * bits. */
static void dense_case(const char *level, const struct shape *s, struct data d, const float *truth)
{
    const size_t heads[] = {s->heads, 1, 2};
    float *y[3];
    for (size_t i = 0; i < 3; i++) {
        struct backend *b = open_level(level, 1 + i);
        d.a.dense = heads[i];
        y[i] = run(b, &d, s);
        backend_close(b);
    }
    size_t bytes = d.values * sizeof(float);
    double far = worst(y[0], truth, d.values);
    ok(far < (d.a.half ? 1e-2 : 1e-5), "%s all scores at once: %.1e", level, far);
    ok(!memcmp(y[0], y[1], bytes) && !memcmp(y[0], y[2], bytes),
       "%s scores of some heads at a time: the same bits", level);
    free(y[0]), free(y[1]), free(y[2]);
}

/* Compares 1, 2 and 3 threads with ref and with each other. */
static void case_of(const char *level, const struct shape *s, enum dtype dtype, int half)
{
    struct data d = fill(s, dtype, half);
    struct backend *ref = open_level("ref", 1);
    float *truth = run(ref, &d, s), *y[3];
    backend_close(ref);
    for (size_t threads = 1; threads <= 3; threads++) {
        struct backend *b = open_level(level, threads);
        y[threads - 1] = run(b, &d, s);
        backend_close(b);
    }
    size_t bytes = d.values * sizeof(float);
    double far = worst(y[0], truth, d.values);
    ok(far < (half ? 1e-2 : 3e-6), "%s %zu x %zu rows, %zu keys, H%zu K%zu E%zu %s%s: %.1e", level,
       s->n, s->rows, s->slots, s->heads, s->kv_heads, s->head_dim,
       dtype == DTYPE_F32 ? "f32" : "bf16", half ? " half" : "", far);
    ok(!memcmp(y[0], y[1], bytes) && !memcmp(y[0], y[2], bytes),
       "%s the same bits at 1, 2 and 3 threads", level);
    dense_case(level, s, d, truth);
    free(truth), free(y[0]), free(y[1]), free(y[2]);
    drop(&d);
}

/* A row alone, with only the keys that it sees, has the bits that it has among other rows. */
static void row_alone(const char *level, int half)
{
    const struct shape s = {1, 8, 2, 64, 100, 400, MASK_CAUSAL, IN_ORDER, 0};
    struct data d = fill(&s, DTYPE_BF16, half);
    struct backend *b = open_level(level, 2);
    float *all = run(b, &d, &s);
    size_t width = s.heads * s.head_dim, same = 0;
    const size_t rows[] = {0, 1, 42, 99};
    for (size_t i = 0; i < 4; i++) {
        struct attn_seq seq = {(int32_t)rows[i], 1, 0, d.pos[rows[i]] + 1};
        struct data one = d;
        one.a.seqs = &seq;
        float *y = run(b, &one, &s);
        same += !memcmp(y + rows[i] * width, all + rows[i] * width, width * sizeof *y);
        free(y);
    }
    ok(same == 4, "%s rows alone and in a batch have the same bits%s", level,
       half ? ", rounded" : "");
    free(all);
    backend_close(b);
    drop(&d);
}

/* The results of qkv, computed by the operations that qkv combines. */
enum { QKV_D = 70, QKV_H = 6, QKV_K = 2, QKV_E = 10, QKV_HE = 60, QKV_KE = 20 };
struct made {
    float *q, *k, *v; /* [T, H*E], [T, K*E] each, k rotated */
};

static struct made by_parts(struct backend *b, const struct qkv *a, size_t T, void *work)
{
    struct made m = {mem_alloc(T * QKV_HE * 4), mem_alloc(T * QKV_KE * 4),
                     mem_alloc(T * QKV_KE * 4)};
    float *n = mem_alloc(T * QKV_D * sizeof *n);
    b->ops->rmsnorm(b, n, a->in.x, NULL, a->in.gain, T, QKV_D, a->in.eps);
    b->ops->matmul(b, &(struct product){a->wq, m.q, 0}, 1, (struct input){.x = n}, T, work);
    b->ops->matmul(b, &(struct product){a->wk, m.k, 0}, 1, (struct input){.x = n}, T, work);
    b->ops->matmul(b, &(struct product){a->wv, m.v, 0}, 1, (struct input){.x = n}, T, work);
    float *const made[] = {m.q, m.k, m.v};
    for (int i = 0; i < 3 && a->bias[0]; i++)
        for (size_t wide = i ? QKV_KE : QKV_HE, j = 0; j < T * wide; j++)
            made[i][j] += a->bias[i][j % wide];
    for (int i = 0; i < 2 && a->head_gain[0]; i++)
        b->ops->rmsnorm(b, made[i], made[i], NULL, a->head_gain[i], T * (i ? QKV_K : QKV_H), QKV_E,
                        a->in.eps);
    b->ops->rope(b, m.q, a->table, T, QKV_H, QKV_E, 1);
    b->ops->rope(b, m.k, a->table, T, QKV_K, QKV_E, 1);
    free(n);
    return m;
}

/* Returns 1 if the cache has each row t of x in slot[t] (in slot t if `slot` is NULL), and zeros in
 * all other slots. */
static int kept(const struct qkv *a, const void *cache, const float *x, size_t T, size_t S)
{
    size_t n = QKV_KE, value = a->to.dtype == DTYPE_F32 ? 4 : 2;
    char *want = mem_zero(S * n, value);
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0; i < n; i++) {
            size_t at = (a->slot ? (size_t)a->slot[t] : t) * n + i;
            if (value == 4)
                ((float *)(void *)want)[at] = x[t * n + i];
            else
                ((uint16_t *)(void *)want)[at] = bf16_of(x[t * n + i]);
        }
    int same = !memcmp(want, cache, S * n * value);
    free(want);
    return same;
}

static void qkv_case(struct backend *b, struct qkv a, size_t T, enum dtype dtype, int listed)
{
    enum { APART = 3 };
    size_t S = APART * T, bytes = S * QKV_KE * (dtype == DTYPE_F32 ? 4 : 2);
    size_t need = b->ops->qkv_work(b, T, QKV_D, QKV_H, QKV_K, QKV_E, a.bias[0] || a.head_gain[0]);
    int32_t *slot = mem_alloc(T * sizeof *slot);
    void *work = mem_aligned(need);
    for (size_t t = 0; t < T; t++)
        slot[t] = (int32_t)(S - 1 - APART * t);
    a.slot = listed ? slot : NULL;
    a.q = mem_alloc(T * QKV_HE * sizeof(float));
    a.to = (struct cache){mem_zero(bytes, 1), mem_zero(bytes, 1), dtype};
    struct made m = by_parts(b, &a, T, work);
    memset(work, 0xff, need);
    b->ops->qkv(b, &a, T, work);
    ok(!memcmp(a.q, m.q, T * QKV_HE * sizeof(float)) && kept(&a, a.to.k, m.k, T, S) &&
           kept(&a, a.to.v, m.v, T, S),
       "%s %s qkv of %zu rows to %s slots as %s%s%s is made of its parts", b->ops->name,
       b->ops->level, T, listed ? "listed" : "their own", dtype == DTYPE_F32 ? "f32" : "bf16",
       a.bias[0] ? ", with biases" : "", a.head_gain[0] ? ", with norms" : "");
    free(a.q), free(a.to.k), free(a.to.v), free(m.q), free(m.k), free(m.v);
    free(slot), free(work);
}

static void qkv_cases(const char *level)
{
    enum { ROWS = 700 }; /* more rows than are buffered before they are written to their slots */
    const size_t counts[] = {1, 3, 256, 257, ROWS};
    float *x = draw((size_t)ROWS * QKV_D), *gain = draw(QKV_D), *w = draw(100 * QKV_D);
    float *table = draw((size_t)ROWS * QKV_E);
    x[5] = NAN;
    for (size_t k = 0; k < QKV_D; k++) /* makes results subnormal */
        w[85 * QKV_D + k] *= 1e-39f;
    struct backend *b = open_level(level, 3);
    struct mat m[3];
    const size_t outputs[3] = {QKV_HE, QKV_KE, QKV_KE};
    for (size_t i = 0, row = 0; i < 3; row += outputs[i++]) {
        struct mat_source s = mat_floats(w + row * QKV_D, outputs[i], QKV_D);
        b->ops->mat_make(b, &m[i], &s, DTYPE_F32);
    }
    struct qkv a = {.in = {x, gain, 1e-6}, .wq = &m[0], .wk = &m[1], .wv = &m[2], .table = table,
                    .heads = QKV_H, .kv_heads = QKV_K, .head_dim = QKV_E};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int kind = 0; kind < 4; kind++)
            qkv_case(b, a, counts[i], kind % 2 ? DTYPE_BF16 : DTYPE_F32, kind / 2);
    float *more = draw(QKV_HE + 2 * QKV_KE + 2 * QKV_E);
    for (int which = 1; which < 4; which++) {
        struct qkv c = a;
        for (int i = 0; i < 3 && which & 1; i++)
            c.bias[i] = more + (i ? QKV_HE + (i - 1) * QKV_KE : 0);
        for (int i = 0; i < 2 && which & 2; i++)
            c.head_gain[i] = more + QKV_HE + 2 * QKV_KE + i * QKV_E;
        for (int kind = 0; kind < 4; kind++)
            qkv_case(b, c, kind < 2 ? 3 : 257, kind % 2 ? DTYPE_BF16 : DTYPE_F32, kind / 2);
    }
    free(more);
    for (int i = 0; i < 3; i++)
        b->ops->mat_free(b, &m[i]);
    backend_close(b);
    free(x), free(gain), free(w), free(table);
}

/* A NaN among the values that a row reads must appear in its output. */
static void poison(const char *level)
{
    const struct shape s = {1, 2, 2, 64, 4, 40, MASK_CAUSAL, IN_ORDER, 0};
    for (int which = 0; which < 6; which++) {
        struct data d = fill(&s, DTYPE_F32, 1);
        float *at = which % 3 == 0 ? d.q : which % 3 == 1 ? (float *)d.k : (float *)d.v;
        at[3] = NAN;
        d.a.dense = which >= 3;
        struct backend *b = open_level(level, 1);
        float *y = run(b, &d, &s);
        ok(y[3] != y[3], "%s a NaN in %c comes out%s", level, "qkv"[which % 3],
           which < 3 ? "" : " of scores at once");
        free(y);
        backend_close(b);
        drop(&d);
    }
}

static void all(const char *level)
{
    long before = tmm_products();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < 4; kind++)
            case_of(level, &shapes[i], kind % 2 ? DTYPE_BF16 : DTYPE_F32, kind / 2);
    row_alone(level, 0);
    row_alone(level, 1);
    qkv_cases(level);
    poison(level);
    int tiled = !strcmp(level, "amx_avx512bf16") || (!strcmp(level, "amx") && !ops_cpu("amx"));
    ok((tmm_products() > before) == tiled && !tmm_open(), "%s: %ld products of tiles, all released",
       level, tmm_products() - before);
}

int main(void)
{
    size_t ran = 0;
    for (const struct ops *ops; (ops = levels_at(ran)); ran++)
        all(ops->level);
    if (levels_trapped())
        all("amx");
    qkv_cases("ref");
    ok(ran > 0, "at least one level runs");
    return tap_done();
}
