/* Attention and the cache of every level of the cpu back end against ref: masks, lists of slots,
 * both dtypes, rounding; and that a row's bits depend on the row and its keys alone. */
#include "kernels/host.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
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
    b->ops = strcmp(level, "ref") ? ops_cpu(level) : &ops_ref;
    b->pool = pool_new(threads);
    return b;
}

enum order { IN_ORDER, BACKWARD, HOLES };

/* `rows` last rows of each of n sequences of `slots` keys. */
struct shape {
    size_t n, heads, kv_heads, head_dim, rows, slots;
    enum mask mask;
    enum order order;
};
static const struct shape shapes[] = {
    {2, 4, 4, 16, 9, 9, MASK_FULL, IN_ORDER},
    {2, 6, 2, 24, 50, 77, MASK_CAUSAL, BACKWARD},
    {1, 4, 1, 64, 1, 700, MASK_CAUSAL, IN_ORDER}, /* split by keys */
    {3, 8, 2, 64, 1, 300, MASK_CAUSAL, HOLES},
    {2, 3, 3, 11, 70, 70, MASK_FULL, HOLES},
    {1, 4, 2, 32, 90, 600, MASK_BLOCK_CAUSAL, IN_ORDER},
    {1, 4, 2, 33, 65, 258, MASK_CAUSAL, IN_ORDER},
    {1, 2, 2, 128, 257, 257, MASK_CAUSAL, IN_ORDER},
    {1, 5, 1, 64, 129, 512, MASK_FULL, BACKWARD},
    {1, 1, 1, 1, 3, 1, MASK_CAUSAL, IN_ORDER}, /* two rows see nothing */
};

/* Everything that an attention reads, filled. */
struct data {
    struct attn a;
    float *q, *y;
    void *k, *v;
    int32_t *pos, *slots, *slot_pos;
    struct attn_seq *seqs;
    size_t values; /* of y */
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
    for (size_t t = 0; t < T; t++) /* with more rows than slots, the first see nothing */
        d.pos[t] = (int32_t)s->slots - (int32_t)s->rows + (int32_t)(t % s->rows);
    for (size_t i = 0; i < S; i++) {
        d.slots[i] = (int32_t)(s->order == IN_ORDER ? i : s->order == BACKWARD ? S - 1 - i : 2 * i);
        d.slot_pos[i] = (int32_t)(i % s->slots);
    }
    for (size_t i = 0; i < s->n; i++)
        d.seqs[i] = (struct attn_seq){i * s->rows, s->rows, d.slots + i * s->slots,
                                      d.slot_pos + i * s->slots, s->slots};
    d.a = (struct attn){d.q,     d.y, d.k,      d.v,         dtype,       half,    d.pos,
                        d.seqs, s->n, s->heads, s->kv_heads, s->head_dim, s->mask, 16};
    return d;
}

static void drop(struct data *d)
{
    free(d->q), free(d->y), free(d->k), free(d->v);
    free(d->pos), free(d->slots), free(d->slot_pos), free(d->seqs);
}

static float *run(struct backend *b, const struct data *d, const struct shape *s)
{
    size_t group = s->heads / s->kv_heads;
    size_t floats = b->ops->attention_work(b, s->rows, s->slots, s->head_dim, group);
    float *work = mem_aligned(floats * sizeof *work), *y = mem_alloc(d->values * sizeof *y);
    struct attn a = d->a;
    memset(work, 0xff, floats * sizeof *work); /* NaN: nothing may be taken from it */
    a.y = y;
    b->ops->attention(b, &a, work);
    free(work);
    return y;
}

static double worst(const float *x, const float *y, size_t n)
{
    double top = 0, size = 1e-30;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)x[i] - y[i]);
        top = d > top || d != d ? d : top;
        size = fabs((double)y[i]) > size ? fabs((double)y[i]) : size;
    }
    return top / size;
}

/* 1, 2 and 3 threads against ref and against each other. */
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
    free(truth), free(y[0]), free(y[1]), free(y[2]);
    drop(&d);
}

/* One row, alone and with only the keys that it sees, has the bits that it has among the others. */
static void row_alone(const char *level, int half)
{
    const struct shape s = {1, 8, 2, 64, 100, 400, MASK_CAUSAL, IN_ORDER};
    struct data d = fill(&s, DTYPE_BF16, half);
    struct backend *b = open_level(level, 2);
    float *all = run(b, &d, &s);
    size_t width = s.heads * s.head_dim, same = 0;
    const size_t rows[] = {0, 1, 42, 99};
    for (size_t i = 0; i < 4; i++) {
        struct attn_seq seq = {rows[i], 1, d.slots, d.slot_pos, (size_t)d.pos[rows[i]] + 1};
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

static void store_cases(const char *level)
{
    enum { T = 40, N = 2000 + 3, SLOTS = 64 };
    float *x = draw((size_t)T * N);
    x[5] = NAN;
    x[6] = 1e-40f;
    int32_t slot[T];
    for (int t = 0; t < T; t++)
        slot[t] = t * 27 % SLOTS;
    struct backend *b = open_level(level, 3), *ref = open_level("ref", 1);
    for (int half = 0; half < 2; half++) {
        size_t bytes = (size_t)SLOTS * N * (half ? 2 : 4);
        char *c = mem_zero(bytes, 1), *r = mem_zero(bytes, 1);
        b->ops->store(b, c, half ? DTYPE_BF16 : DTYPE_F32, x, slot, T, N);
        ref->ops->store(ref, r, half ? DTYPE_BF16 : DTYPE_F32, x, slot, T, N);
        ok(!memcmp(c, r, bytes), "%s store as %s", level, half ? "bf16" : "f32");
        free(c), free(r);
    }
    backend_close(b);
    backend_close(ref);
    free(x);
}

/* A NaN among the values that a row reads must come out, not be lost on the way. */
static void poison(const char *level)
{
    const struct shape s = {1, 2, 2, 64, 4, 40, MASK_CAUSAL, IN_ORDER};
    for (int which = 0; which < 3; which++) {
        struct data d = fill(&s, DTYPE_F32, 1);
        float *at = which == 0 ? d.q : which == 1 ? (float *)d.k : (float *)d.v;
        at[3] = NAN;
        struct backend *b = open_level(level, 1);
        float *y = run(b, &d, &s);
        ok(y[3] != y[3], "%s a NaN in %c comes out", level, "qkv"[which]);
        free(y);
        backend_close(b);
        drop(&d);
    }
}

static void all(const char *level)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < 4; kind++)
            case_of(level, &shapes[i], kind % 2 ? DTYPE_BF16 : DTYPE_F32, kind / 2);
    row_alone(level, 0);
    row_alone(level, 1);
    store_cases(level);
    poison(level);
}

int main(void)
{
    size_t ran = 0;
    for (const struct ops *ops; (ops = ops_cpu_at(ran)); ran++)
        all(ops->level);
    ok(ran > 0, "at least one level runs");
    return tap_done();
}
