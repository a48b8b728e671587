/* test-attention.cu - compares attention on the device with the reference: every kernel, mask and
 * plan, lists of slots in any order, rows without keys, splits. test-attention-plan.cu tests the
 * arithmetic of plans. */
#include "kernels/cuda/attention/attention_plan.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "kernels/host.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/cuda/here.h"
#include "tests/tap.h"

enum { SEQS_MAX = 4 };
static const char *const masks[] = {"causal", "full", "block-causal"};

struct shape {
    size_t n, rows[SEQS_MAX], slots[SEQS_MAX];
    size_t kv_heads, group, head_dim;
    enum mask mask;
    enum dtype act, kv;
    int sms;
    size_t spare; /* how much larger the bounds are than needed */
    size_t shared_max;
};

/* An attention on the host, and its copy with floats for the reference. */
struct data {
    struct attn a;
    float *q;
    uint16_t *half_q;
    void *k, *v;
    int32_t *pos, *slots, *slot_pos;
    struct attn_seq seqs[SEQS_MAX];
    size_t values, cache, keys; /* of q and y; of k and v; slots listed */
};

static float kept(enum dtype dtype, float x)
{
    return dtype == DTYPE_BF16 ? bf16_float(bf16_of(x)) : x;
}

static void *cache_of(struct rng *rng, size_t n, enum dtype dtype)
{
    float *x = (float *)mem_zero(n, sizeof *x);
    uint16_t *half = (uint16_t *)mem_zero(n, sizeof *half);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)rng_normal(rng);
        half[i] = bf16_of(x[i]);
    }
    free(dtype == DTYPE_F32 ? (void *)half : (void *)x);
    return dtype == DTYPE_F32 ? (void *)x : (void *)half;
}

static void shuffle(struct rng *rng, int32_t *x, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)rng_below(rng, i);
        int32_t t = x[i - 1];
        x[i - 1] = x[j];
        x[j] = t;
    }
}

/* Fills a sequence. Its rows are its last keys; if it has more rows than keys, the first rows have
 * positions below 0. Odd sequences list their keys in order, as a cache does, even ones in any
 * order. */
static void fill_seq(struct data *d, const struct shape *s, struct rng *rng, size_t i,
                     const int32_t *slot)
{
    size_t row = 0, key = 0;
    for (size_t j = 0; j < i; j++)
        row += s->rows[j], key += s->slots[j];
    d->seqs[i] = {(int32_t)row, (int32_t)s->rows[i], (int32_t)key, (int32_t)s->slots[i]};
    for (size_t r = 0; r < s->rows[i]; r++)
        d->pos[row + r] = (int32_t)s->slots[i] - (int32_t)s->rows[i] + (int32_t)r;
    int32_t *order = d->slot_pos + key;
    for (size_t k = 0; k < s->slots[i]; k++) {
        order[k] = (int32_t)k;
        d->slots[key + k] = slot[key + k];
    }
    if (i % 2 == 0)
        shuffle(rng, order, s->slots[i]);
}

static struct data fill(const struct shape *s, uint64_t seed)
{
    struct rng rng = {seed, 0, 0};
    struct data d = {};
    size_t T = 0, max_rows = 0, max_slots = 0, heads = s->kv_heads * s->group;
    for (size_t i = 0; i < s->n; i++) {
        T += s->rows[i];
        d.keys += s->slots[i];
        max_rows = s->rows[i] > max_rows ? s->rows[i] : max_rows;
        max_slots = s->slots[i] > max_slots ? s->slots[i] : max_slots;
    }
    d.values = T * heads * s->head_dim;
    d.cache = (d.keys + 5) * s->kv_heads * s->head_dim;
    d.q = (float *)mem_zero(d.values, sizeof *d.q);
    d.half_q = (uint16_t *)mem_zero(d.values, sizeof *d.half_q);
    for (size_t i = 0; i < d.values; i++) {
        d.half_q[i] = bf16_of((float)rng_normal(&rng) * 1.5f);
        d.q[i] = bf16_float(d.half_q[i]);
    }
    d.k = cache_of(&rng, d.cache, s->kv);
    d.v = cache_of(&rng, d.cache, s->kv);
    d.pos = (int32_t *)mem_zero(T, sizeof *d.pos);
    d.slots = (int32_t *)mem_zero(d.keys + 1, sizeof *d.slots);
    d.slot_pos = (int32_t *)mem_zero(d.keys + 1, sizeof *d.slot_pos);
    int32_t *slot = (int32_t *)mem_zero(d.keys + 5, sizeof *slot);
    for (size_t i = 0; i < d.keys + 5; i++)
        slot[i] = (int32_t)i;
    shuffle(&rng, slot, d.keys + 5);
    for (size_t i = 0; i < s->n; i++)
        fill_seq(&d, s, &rng, i, slot);
    free(slot);
    d.a.n_seqs = s->n, d.a.T = T;
    d.a.max_rows = max_rows + s->spare, d.a.max_slots = max_slots + s->spare;
    d.a.heads = heads, d.a.kv_heads = s->kv_heads, d.a.head_dim = s->head_dim;
    d.a.mask = s->mask, d.a.mask_block = 16, d.a.kv.dtype = s->kv;
    return d;
}

static void drop(struct data *d)
{
    free(d->q), free(d->half_q), free(d->k), free(d->v);
    free(d->pos), free(d->slots), free(d->slot_pos);
}

/* The reference's answer, rounded to the format of activations. */
static float *truth(const struct data *d, const struct shape *s)
{
    struct backend b = {};
    struct attn a = d->a;
    float *y = (float *)mem_zero(d->values, sizeof *y);
    b.act = DTYPE_F32;
    void *work = mem_zero(ops_ref.attention_work(&b, a.T, a.n_seqs, a.max_slots, a.heads,
                                                 a.kv_heads, a.head_dim, 0) + 8, 1);
    a.q = d->q, a.y = y, a.kv.k = d->k, a.kv.v = d->v;
    a.pos = d->pos, a.seqs = d->seqs, a.slots = d->slots, a.slot_pos = d->slot_pos;
    ops_ref.attention(&b, &a, work);
    for (size_t i = 0; i < d->values; i++)
        y[i] = kept(s->act, y[i]);
    free(work);
    return y;
}

static void *sent(const void *p, size_t bytes)
{
    void *to;
    CHECK(cudaMalloc(&to, bytes + 16));
    CHECK(cudaMemcpy(to, p, bytes, cudaMemcpyHostToDevice));
    return to;
}

/* Returns the device's answer as floats. The work area is filled with NaN, because it must not be
 * read before it is written. */
static float *run(const struct data *d, const struct shape *s)
{
    struct device device = {};
    struct backend b = {};
    struct attn a = d->a;
    device.sms = s->sms;
    device.shared_max = shared_here(s->shared_max ? s->shared_max : 232448);
    device.overlap = overlap_here();
    CHECK(cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking));
    b.act = s->act, b.device = &device;
    cuda_attention_open(&b);
    size_t value = s->act == DTYPE_F32 ? 4 : 2, room = s->kv == DTYPE_F32 ? 4 : 2;
    size_t bytes = cuda_attention_work(&b, a.T, a.n_seqs, a.max_slots, a.heads, a.kv_heads,
                                       a.head_dim, a.dense);
    void *work, *y;
    CHECK(cudaMalloc(&work, bytes));
    CHECK(cudaMemset(work, 0xff, bytes));
    CHECK(cudaMalloc(&y, d->values * value));
    CHECK(cudaMemset(y, 0xff, d->values * value));
    void *all[] = {sent(s->act == DTYPE_F32 ? (void *)d->q : (void *)d->half_q, d->values * value),
                   sent(d->k, d->cache * room),
                   sent(d->v, d->cache * room),
                   sent(d->pos, a.T * sizeof *d->pos),
                   sent(d->slots, d->keys * sizeof *d->slots),
                   sent(d->slot_pos, d->keys * sizeof *d->slot_pos),
                   sent(d->seqs, a.n_seqs * sizeof *d->seqs)};
    a.q = all[0], a.y = y, a.kv.k = all[1], a.kv.v = all[2];
    a.pos = (int32_t *)all[3], a.slots = (int32_t *)all[4], a.slot_pos = (int32_t *)all[5];
    a.seqs = (struct attn_seq *)all[6];
    CHECK(cudaDeviceSynchronize()); /* now every stream sees what was sent */
    cuda_attention(&b, &a, work);
    /* Runs it once more, because the counters of the splits must be 0 again. */
    CHECK(cudaMemsetAsync(y, 0xff, d->values * value, device.stream));
    cuda_attention(&b, &a, work);
    CHECK(cudaStreamSynchronize(device.stream));
    float *out = (float *)mem_zero(d->values, sizeof *out);
    uint16_t *half = (uint16_t *)mem_zero(d->values, sizeof *half);
    CHECK(cudaMemcpy(s->act == DTYPE_F32 ? (void *)out : (void *)half, y, d->values * value,
                     cudaMemcpyDeviceToHost));
    for (size_t i = 0; s->act == DTYPE_BF16 && i < d->values; i++)
        out[i] = bf16_float(half[i]);
    free(half);
    for (void *p : all)
        CHECK(cudaFree(p));
    CHECK(cudaFree(work));
    CHECK(cudaFree(y));
    cuda_attention_close(&b);
    CHECK(cudaStreamDestroy(device.stream));
    return out;
}

/* The largest difference relative to the largest value; a zero of the reference must be exact. */
static double worst(const float *got, const float *want, size_t n)
{
    double top = 0, size = 1e-30;
    for (size_t i = 0; i < n; i++) {
        double far = fabs((double)got[i] - want[i]);
        if (isnan(got[i]) != isnan(want[i]) || (want[i] == 0 && got[i] != 0))
            far = INFINITY;
        top = far > top ? far : top;
        size = fabs((double)want[i]) > size ? fabs((double)want[i]) : size;
    }
    return top / size;
}

static struct attention_plan plan_of(const struct data *d, const struct shape *s)
{
    return attention_plan_of(d->a.max_rows, d->a.n_seqs, d->a.max_slots, d->a.heads,
                             d->a.kv_heads, d->a.head_dim, d->a.mask, s->sms,
                             s->shared_max ? s->shared_max : 232448);
}

/* Makes later keys of a bf16 cache longer, so that maxima rise by far more than BASE_LAG. */
static void lengthen(struct data *d, const struct shape *s)
{
    size_t width = s->kv_heads * s->head_dim;
    for (size_t i = 0; i < d->keys; i++)
        for (size_t e = 0; e < width; e++) {
            uint16_t *k = (uint16_t *)d->k + (size_t)d->slots[i] * width + e;
            *k = bf16_of(bf16_float(*k) * (0.1f + (float)d->slot_pos[i] / 8));
        }
}

static void compare(const struct shape *s, uint64_t seed, size_t window = 0, bool rising = false)
{
    struct data d = fill(s, seed);
    d.a.window = window;
    if (rising)
        lengthen(&d, s);
    float *want = truth(&d, s), *got = run(&d, s), *again = run(&d, s);
    struct attention_plan p = plan_of(&d, s);
    double far = worst(got, want, d.values);
    ok(far < (s->act == DTYPE_F32 ? 1e-5 : 1e-2),
       "%s, %zu rows of %zu, group %zu, E %zu, %s on %s, blocks of %d, %d splits: %.1e",
       masks[s->mask], d.a.T, s->n, s->group, s->head_dim, s->act == DTYPE_F32 ? "f32" : "bf16",
       s->kv == DTYPE_F32 ? "f32" : "bf16", p.queries, p.splits, far);
    ok(!memcmp(got, again, d.values * sizeof *got), "the same bits twice");
    free(got), free(again);
    d.a.dense = d.a.heads;
    got = run(&d, s);
    far = worst(got, want, d.values);
    ok(far < (s->act == DTYPE_F32 ? 1e-5 : 1e-2), "all scores at once: %.1e", far);
    if (seed % 4 == 0) {
        d.a.dense = 1 + seed % 8 / 4;
        again = run(&d, s);
        ok(!memcmp(got, again, d.values * sizeof *got),
           "scores of %zu heads at a time: the same bits", d.a.dense);
        free(again);
    }
    free(want), free(got);
    drop(&d);
}

/* Tests every number of rows under every mask; other parameters are random. */
static void grid(void)
{
    static const size_t T[] = {1, 2, 3, 16, 17, 32, 64, 65, 130};
    static const size_t groups[] = {1, 2, 4, 8}, dims[] = {16, 48, 64, 80, 128};
    static const int sms[] = {1, 16, 132};
    struct rng rng = {21, 0, 0};
    for (size_t at = 0; at < 2 * 3 * (sizeof T / sizeof *T); at++) {
        struct shape s = {};
        s.n = 1 + rng_below(&rng, SEQS_MAX);
        size_t longest = rng_below(&rng, s.n), rows = T[at / 6];
        for (size_t i = 0; i < s.n; i++) {
            s.rows[i] = i == longest ? rows : 1 + rng_below(&rng, rows);
            s.slots[i] = (i == longest ? rows : 0) + rng_below(&rng, at % 2 ? 90 : 400);
        }
        s.group = groups[rng_below(&rng, 4)], s.kv_heads = 1 + rng_below(&rng, 2);
        s.head_dim = dims[rng_below(&rng, 5)], s.mask = (enum mask)(at / 2 % 3);
        s.sms = sms[rng_below(&rng, 3)], s.spare = rng_below(&rng, 3) * 17;
        s.act = s.kv = DTYPE_BF16;
        compare(&s, 100 + at);
        if (at % 3 == 0) {
            s.act = DTYPE_F32, s.kv = at % 2 ? DTYPE_F32 : DTYPE_BF16;
            compare(&s, 200 + at);
        }
    }
}

/* Tests cases that the grid does not reach. */
static void corners(void)
{
    static const struct shape shapes[] = {
        /* one row on long lists, in many splits; the bounds of a graph are far above */
        {2, {1, 1}, {700, 130}, 1, 4, 128, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 132, 0, 0},
        {1, {1}, {900}, 2, 1, 64, MASK_FULL, DTYPE_BF16, DTYPE_BF16, 8, 3000, 0},
        {1, {1}, {2500}, 1, 1, 64, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 132, 0, 0},
        /* a block against a cache */
        {1, {32}, {600}, 2, 1, 128, MASK_BLOCK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 132, 0, 0},
        {1, {32}, {520}, 1, 4, 64, MASK_FULL, DTYPE_BF16, DTYPE_BF16, 132, 0, 0},
        /* many rows: blocks of 128, one stage and two, more than 32 key tiles */
        {1, {140}, {300}, 1, 2, 128, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 2, 0, 0},
        {1, {140}, {300}, 1, 2, 128, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 2, 0, 166912},
        {1, {66}, {2200}, 1, 1, 64, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 1, 0, 0},
        {1, {260}, {260}, 1, 1, 128, MASK_FULL, DTYPE_BF16, DTYPE_BF16, 3, 0, 0},
        {2, {20, 10}, {600, 90}, 1, 8, 80, MASK_FULL, DTYPE_BF16, DTYPE_BF16, 132, 0, 0},
        /* splits of blocks of 64 and of 128, and of a padded head */
        {1, {40}, {600}, 1, 1, 128, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 132, 0, 0},
        {1, {100}, {1100}, 1, 1, 64, MASK_BLOCK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 1, 0, 0},
        {2, {1, 2}, {400, 129}, 2, 4, 80, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 132, 0, 0},
        {1, {30}, {700}, 2, 1, 48, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 132, 9, 0},
        /* rows that see no key, and a sequence without keys */
        {2, {90, 2}, {30, 0}, 1, 1, 64, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 4, 0, 0},
        {2, {9, 2}, {3, 0}, 1, 1, 64, MASK_CAUSAL, DTYPE_F32, DTYPE_F32, 4, 0, 0},
        {3, {5, 1, 3}, {2, 400, 0}, 2, 2, 128, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 132, 0, 0},
        /* shapes that only the simple kernel takes */
        {1, {5}, {70}, 2, 2, 6, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 4, 0, 0},
        {1, {18}, {70}, 1, 2, 256, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 4, 0, 0},
        {1, {5}, {70}, 2, 2, 64, MASK_BLOCK_CAUSAL, DTYPE_BF16, DTYPE_F32, 4, 0, 0},
        {1, {7}, {40}, 1, 3, 200, MASK_FULL, DTYPE_F32, DTYPE_F32, 4, 0, 0},
        {1, {3}, {3}, 1, 1, 2, MASK_CAUSAL, DTYPE_F32, DTYPE_BF16, 4, 0, 0},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        compare(&shapes[i], 300 + i);
}

/* Tests scores that rise from key tile to key tile, and a full mask without padded heads. */
static void rising(void)
{
    static const struct shape shapes[] = {
        {1, {3}, {300}, 1, 4, 128, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 1, 0, 0},
        {2, {2, 1}, {129, 300}, 2, 4, 64, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 132, 0, 0},
        {1, {90}, {333}, 1, 2, 128, MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16, 1, 0, 0},
        {2, {70, 33}, {333, 64}, 1, 2, 128, MASK_FULL, DTYPE_BF16, DTYPE_BF16, 1, 0, 0},
        {2, {70, 33}, {333, 64}, 1, 2, 128, MASK_FULL, DTYPE_BF16, DTYPE_BF16, 1, 0, 166912},
        {1, {70}, {250}, 1, 1, 128, MASK_FULL, DTYPE_BF16, DTYPE_BF16, 9, 0, 0},
        {2, {90, 1}, {191, 1}, 2, 1, 64, MASK_FULL, DTYPE_BF16, DTYPE_BF16, 9, 0, 0},
        {1, {140}, {200}, 1, 1, 64, MASK_FULL, DTYPE_BF16, DTYPE_BF16, 1, 0, 0},
        {2, {66, 66}, {0, 65}, 1, 1, 64, MASK_FULL, DTYPE_BF16, DTYPE_BF16, 4, 0, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        compare(&shapes[i], 500 + i, 0, true);
}

/* Rows that see only the last positions, in any format. */
static void windows(void)
{
    static const size_t sizes[] = {1, 5, 40, 1000};
    for (size_t i = 0; i < 8; i++) {
        struct shape s = {3,         {17, 1, 40}, {90, 70, 33}, 1 + i % 2, 2, i % 3 ? 64u : 34u,
                          MASK_CAUSAL, DTYPE_BF16, DTYPE_BF16,  4,         0, 0};
        if (i % 2)
            s.act = s.kv = DTYPE_F32;
        compare(&s, 400 + i, sizes[i / 2]);
    }
}

/* A sequence has the same bits beside other neighbours of other lengths under the same bounds. A
 * recorded pass is replayed with such other neighbours. */
static void neighbours(enum dtype act, size_t rows, size_t slots, size_t head_dim)
{
    size_t few = rows < 7 ? rows : 7, spare = rows < 7 ? 2 : 50;
    struct shape s = {2,   {rows, few}, {slots, 90}, 2,   2,     head_dim, MASK_CAUSAL,
                      act, act,         132,         spare, 0};
    struct data d = fill(&s, 5);
    float *got = run(&d, &s);
    for (size_t i = rows * s.kv_heads * s.group * head_dim; i < d.values; i++) {
        d.half_q[i] = bf16_of(3);
        d.q[i] = 3;
    }
    d.seqs[1].rows = few < 2 ? 1 : 2;
    d.seqs[1].n_slots = 17;
    float *other = run(&d, &s);
    ok(!memcmp(got, other, rows * s.kv_heads * s.group * head_dim * sizeof *got),
       "%s %zu rows, %zu keys, E %zu: the same bits beside another neighbour, %d splits",
       act == DTYPE_F32 ? "f32" : "bf16", rows, slots, head_dim, plan_of(&d, &s).splits);
    free(got), free(other);
    drop(&d);
}

/* A NaN among the values that a row reads must appear in its output; a NaN beyond its mask must
 * not. */
static void poison(enum dtype act, size_t rows, size_t slots)
{
    for (int which = 0; which < 3; which++) {
        struct shape s = {1, {rows}, {slots}, 1, 2, 64, MASK_CAUSAL, act, DTYPE_BF16, 132, 0, 0};
        struct data d = fill(&s, 6);
        size_t last = (d.a.T - 1) * d.a.heads * 64 + 3, at = (size_t)d.slots[slots / 2] * 64 + 3;
        if (which == 0) {
            d.q[last] = NAN;
            d.half_q[last] = 0x7fc0;
        } else {
            ((uint16_t *)(which == 1 ? d.k : d.v))[at] = 0x7fc0;
        }
        float *got = run(&d, &s);
        ok(isnan(got[last]), "%s, %zu rows: a NaN in %c comes out",
           act == DTYPE_F32 ? "f32" : "bf16", rows, "qkv"[which]);
        free(got);
        drop(&d);
    }
}

int main(void)
{
    grid();
    corners();
    rising();
    windows();
    neighbours(DTYPE_BF16, 1, 500, 128);
    neighbours(DTYPE_BF16, 16, 300, 64);
    neighbours(DTYPE_BF16, 70, 200, 64);
    neighbours(DTYPE_F32, 9, 100, 64);
    for (int i = 0; i < 2; i++) {
        enum dtype act = i ? DTYPE_F32 : DTYPE_BF16;
        poison(act, 1, 300);
        poison(act, 20, 100);
        poison(act, 70, 100);
    }
    return tap_done();
}
