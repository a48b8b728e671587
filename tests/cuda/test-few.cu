/* test-few.cu - few.cu gives the bits of norm_rows, skinny.cu and finish.cu. finish.cu gives the
 * same bits for many rows as for one. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/product/product.h"
#include "lib/base/mem.h"
#include "lib/base/pool.h"
#include "lib/base/rng.h"
#include "tests/cuda/here.h"
#include "tests/tap.h"

/* E: values of a head. ROOM: row stride of y. ROWS, SPLITS: rows and parts of sums of try_many().
 * GUARD: bytes behind the work area, which a product must not change. */
enum { E = 32, ROOM = 344, ROWS = 70, SPLITS = 3, GUARD = 256 };

struct scene {
    struct backend cuda;
    struct rng rng;
    struct product_job j;
    struct mat w[MATRICES];
    void *x, *gain, *table, *slot, *y[MATRICES];
    uint8_t *before; /* bytes of y before a product */
    size_t y_bytes;
};

static float *drawn(struct scene *s, size_t n)
{
    float *x = (float *)mem_zero(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&s->rng);
    return x;
}

static void *sent(struct scene *s, const void *p, size_t bytes)
{
    void *to = cuda_alloc(&s->cuda, bytes, MEMORY_ACTIVATIONS);
    cuda_write(&s->cuda, to, p, bytes);
    return to;
}

static void *sent_floats(struct scene *s, size_t n)
{
    float *x = drawn(s, n);
    void *to = sent(s, x, n * sizeof *x);
    free(x);
    return to;
}

/* n bf16 values near normal ones. */
static uint16_t *halves(struct scene *s, size_t n)
{
    float *x = drawn(s, n);
    uint16_t *half = (uint16_t *)mem_zero(n, sizeof *half);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        half[i] = (uint16_t)(bits >> 16);
    }
    free(x);
    return half;
}

static void scene_make(struct scene *s, enum dtype dtype, enum job_kind kind, size_t T, size_t K,
                       int slots)
{
    static const size_t rows[][MATRICES] = {{320, 48}, {336}, {192, 192}, {6 * E, 2 * E, 2 * E}};
    uint16_t *x = halves(s, T * K);
    int32_t *slot = (int32_t *)mem_zero(T, sizeof *slot);
    for (size_t t = 0; t < T; t++)
        slot[t] = (int32_t)(T - 1 - t);
    s->y_bytes = T * ROOM * sizeof(float);
    s->before = (uint8_t *)halves(s, s->y_bytes / 2);
    s->x = sent(s, x, T * K * sizeof *x);
    s->gain = sent_floats(s, K);
    s->table = sent_floats(s, T * E);
    s->slot = sent(s, slot, T * sizeof *slot);
    s->j = {};
    for (uint32_t i = 0; i < MATRICES && rows[kind][i]; i++) {
        float *w = drawn(s, rows[kind][i] * K);
        struct mat_source source = mat_floats(w, rows[kind][i], K);
        if (cuda_mat_make(&s->cuda, &s->w[i], &source, dtype))
            abort();
        if (i == 0)
            s->j = job_of(kind, &s->w[0], T);
        s->y[i] = cuda_alloc(&s->cuda, s->y_bytes, MEMORY_ACTIVATIONS);
        job_put(&s->j, &s->w[i], s->y[i], ROOM, kind == JOB_ROWS && i == 0);
        free(w);
    }
    s->j.head_dim = E;
    s->j.table = (const float *)s->table;
    s->j.slot = slots ? (const int32_t *)s->slot : NULL;
    s->j.cache_f32 = slots;
    job_settle(&s->j);
    free(x), free(slot);
}

static void scene_free(struct scene *s)
{
    for (uint32_t i = 0; i < s->j.n; i++) {
        cuda_free(&s->cuda, s->y[i]);
        cuda_mat_free(&s->cuda, &s->w[i]);
    }
    cuda_free(&s->cuda, s->x);
    cuda_free(&s->cuda, s->gain);
    cuda_free(&s->cuda, s->table);
    cuda_free(&s->cuda, s->slot);
    free(s->before);
}

static void put_back(struct scene *s)
{
    for (uint32_t i = 0; i < s->j.n; i++)
        cuda_write(&s->cuda, s->y[i], s->before, s->y_bytes);
}

/* Returns y of all matrices, which the caller frees. */
static uint8_t *outputs(struct scene *s)
{
    uint8_t *y = (uint8_t *)mem_zero(s->j.n, s->y_bytes);
    for (uint32_t i = 0; i < s->j.n; i++)
        cuda_read(&s->cuda, y + i * s->y_bytes, s->y[i], s->y_bytes);
    return y;
}

/* Compares two outputs, frees them, and tells whether the first has changed y at all. */
static size_t differing(struct scene *s, uint8_t *want, uint8_t *got, int *changed)
{
    size_t wrong = 0, kept = 0, all = s->j.n * s->y_bytes;
    for (size_t i = 0; i < all; i++) {
        wrong += want[i] != got[i];
        kept += want[i] == s->before[i % s->y_bytes];
    }
    *changed = kept < all;
    free(want), free(got);
    return wrong;
}

static const char *const kind_name[] = {"rows", "floats", "gated", "qkv"};

/* ---- few.cu ---- */

static uint8_t *by_three_kernels(struct scene *s, int with_gain, void *work)
{
    struct backend *b = &s->cuda;
    const struct device *d = device_of(b);
    const struct coded_rows none = {};
    const void *x = s->x;
    uint8_t *sums = (uint8_t *)work;
    put_back(s);
    if (with_gain) {
        cuda_rmsnorm(b, work, s->x, NULL, (const float *)s->gain, s->j.T, s->j.K, 1e-5);
        x = work;
        sums += layout_up((size_t)s->j.T * s->j.K * 2, 256);
    }
    struct skinny_plan plan = skinny_plan(&s->j, (uint32_t)d->sms, d->shared_max);
    skinny(b, &s->j, &plan, x, s->j.K, sums);
    finish(b, &s->j, &none, sums, plan.splits);
    return outputs(s);
}

static void try_few(struct scene *s, enum dtype dtype, enum job_kind kind, size_t T, size_t K,
                    int with_gain, int sms)
{
    struct device *d = device_of(&s->cuda);
    const int here = d->sms;
    int changed;
    if (cuda_refuses(&s->cuda, dtype, 128)) {
        skip("this device has no FP8");
        return;
    }
    scene_make(s, dtype, kind, T, K, (int)(T % 2));
    d->sms = sms < here ? sms : here;
    const size_t bytes = cuda_matmul_work(&s->cuda, T, K, s->j.columns);
    uint8_t guard[GUARD], kept[GUARD];
    uint8_t *work = (uint8_t *)cuda_alloc(&s->cuda, bytes + GUARD, MEMORY_ACTIVATIONS);
    memset(guard, 0x5a, GUARD);
    cuda_write(&s->cuda, work + bytes, guard, GUARD);
    uint8_t *want = by_three_kernels(s, with_gain, work);
    const struct bf16_input in = {(const uint16_t *)s->x,
                                  with_gain ? (const float *)s->gain : NULL, 1e-5f};
    put_back(s);
    int taken = few(&s->cuda, &s->j, in, work);
    size_t wrong = differing(s, want, outputs(s), &changed);
    cuda_read(&s->cuda, kept, work + bytes, GUARD);
    ok(taken && wrong == 0 && changed && !memcmp(kept, guard, GUARD),
       "few.cu: %s, %s, T %zu, K %zu%s, %d SMs: %zu bytes differ", dtype_info[dtype].name,
       kind_name[kind], T, K, with_gain ? " with gain" : "", d->sms, wrong);
    cuda_free(&s->cuda, work);
    d->sms = here;
    scene_free(s);
}

/* ---- many rows ---- */

/* Finishes each row of x by itself. */
static uint8_t *row_by_row(struct scene *s, const float *sums)
{
    const size_t N = s->j.columns;
    const struct coded_rows none = {};
    float *own = (float *)mem_zero(SPLITS * N, sizeof *own);
    put_back(s);
    for (uint32_t t = 0; t < s->j.T; t++) {
        struct product_job row = job_rows(&s->j, t, 1);
        for (size_t p = 0; p < SPLITS; p++)
            memcpy(own + p * N, sums + (p * s->j.T + t) * N, N * sizeof *own);
        void *here = sent(s, own, SPLITS * N * sizeof *own);
        finish(&s->cuda, &row, &none, here, SPLITS);
        cuda_free(&s->cuda, here);
    }
    free(own);
    return outputs(s);
}

static void try_many(struct scene *s, enum dtype dtype, enum job_kind kind, int slots, int aside)
{
    const struct coded_rows none = {};
    int changed;
    if (cuda_refuses(&s->cuda, dtype, 128)) {
        skip("this device has no FP8");
        return;
    }
    scene_make(s, dtype, kind, ROWS, 128, slots);
    for (uint32_t i = 0; aside && i < s->j.n; i++) /* an address that is no multiple of 16 */
        s->j.y[i] = (uint8_t *)s->j.y[i] + 8;
    float *sums = drawn(s, SPLITS * ROWS * s->j.columns);
    uint8_t *want = row_by_row(s, sums);
    void *here = sent(s, sums, SPLITS * ROWS * s->j.columns * sizeof *sums);
    put_back(s);
    finish(&s->cuda, &s->j, &none, here, SPLITS);
    size_t wrong = differing(s, want, outputs(s), &changed);
    ok(wrong == 0 && changed, "finish.cu: %s, %s%s%s, %d rows: %zu bytes differ from one row",
       dtype_info[dtype].name, kind_name[kind], slots ? " with slots" : "",
       aside ? ", y not aligned" : "", ROWS, wrong);
    cuda_free(&s->cuda, here);
    free(sums);
    scene_free(s);
}

int main(void)
{
    static const enum dtype formats[] = {DTYPE_BF16, DTYPE_FP8, DTYPE_NF4, DTYPE_NF4_F32,
                                         DTYPE_FP4};
    static const struct {
        size_t T, K;
        int gain, sms;
    } shapes[] = {{1, 1024, 1, 132}, {3, 5120, 1, 7}, {8, 1024, 1, 16}, {2, 384, 0, 1},
                  {4, 128, 1, 3},    {5, 128, 1, 1},  {8, 5120, 0, 2}};
    struct scene s = {};
    struct err e = {};
    s.rng = {7, 0, 0};
    s.cuda.pool = pool_new(1);
    if (crossover_cuda_open(&s.cuda, 0, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    s.cuda.act = DTYPE_BF16;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        for (int kind = JOB_ROWS; kind <= JOB_QKV; kind++)
            for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
                if (i < 3 || k == 0)
                    try_few(&s, formats[i], (enum job_kind)kind, shapes[k].T, shapes[k].K,
                            shapes[k].gain, shapes[k].sms);
    for (int kind = JOB_ROWS; kind <= JOB_QKV; kind++)
        for (int slots = 0; slots < 2; slots++) {
            try_many(&s, DTYPE_FP8, (enum job_kind)kind, slots, 0);
            try_many(&s, DTYPE_BF16, (enum job_kind)kind, slots, slots);
        }
    s.cuda.ops->close(&s.cuda);
    pool_free(s.cuda.pool);
    return tap_done();
}
