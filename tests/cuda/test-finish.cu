/* test-finish.cu - compares finish_int8.cu with finish.cu: the same bits for every way of
 * finishing, with rows of x that have no outlier, some, or so many that they are not listed, and
 * with one or more slabs of K. Sums are drawn, because no product is needed. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/product/product.h"
#include "lib/base/mem.h"
#include "lib/base/pool.h"
#include "lib/base/rng.h"
#include "tests/cuda/here.h"
#include "tests/tap.h"

enum { E = 20, ROOM = 80 }; /* E: values of a head; ROOM: most rows of a matrix */

struct fixture {
    struct backend cuda;
    struct rng rng;
};

struct scene {
    struct fixture *f;
    struct product_job j;
    struct mat w[MATRICES];
    struct coding c;
    struct coded_rows rows;
    void *x, *coded, *table, *slot;
    int32_t *sums;
    uint8_t *before; /* bytes that y[i] has before */
    size_t y_bytes;
};

static float *drawn(struct fixture *f, size_t n)
{
    float *x = (float *)mem_zero(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&f->rng);
    return x;
}

/* A bf16 near x. */
static uint16_t half_near(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* A copy on the device. */
static void *sent(struct fixture *f, const void *p, size_t bytes)
{
    void *to = cuda_alloc(&f->cuda, bytes, MEMORY_ACTIVATIONS);
    cuda_write(&f->cuda, to, p, bytes);
    return to;
}

/* Makes four kinds of rows by turns: without outliers, with some, with more than a warp lists at
 * once, and with outliers only. The first row of the last kind has one infinite value and one
 * NaN. */
static void *rows_of_each_kind(struct fixture *f, size_t T, size_t K)
{
    static const size_t every[] = {0, 29, 5, 1};
    float *x = drawn(f, T * K);
    uint16_t *half = (uint16_t *)mem_zero(T * K, sizeof *half);
    for (size_t i = 0; i < T * K; i++) {
        size_t step = every[i / K % 4];
        x[i] = step && i % K % step == 0 ? copysignf(7, x[i]) + x[i] : x[i] / 8;
    }
    x[3 * K] = INFINITY;
    x[3 * K + K / 2] = NAN;
    for (size_t i = 0; i < T * K; i++)
        half[i] = half_near(x[i]);
    void *here = sent(f, half, T * K * sizeof *half);
    free(x), free(half);
    return here;
}

static void add_matrix(struct scene *s, size_t rows, int add)
{
    uint32_t i = s->j.n;
    float *w = drawn(s->f, rows * s->j.K);
    struct mat_source source = mat_floats(w, rows, s->j.K);
    if (cuda_mat_make(&s->f->cuda, &s->w[i], &source, DTYPE_INT8))
        abort();
    if (i == 0)
        s->j = job_of(s->j.kind, &s->w[0], s->j.T);
    job_put(&s->j, &s->w[i], cuda_alloc(&s->f->cuda, s->y_bytes, MEMORY_ACTIVATIONS), ROOM, add);
    free(w);
}

static void add_matrices(struct scene *s, int with_slots)
{
    struct product_job *j = &s->j;
    static const size_t rows[][MATRICES] = {{37, 16}, {61}, {27, 27}, {3 * E, E, E}};
    for (int i = 0; i < MATRICES && rows[j->kind][i]; i++)
        add_matrix(s, rows[j->kind][i], j->kind == JOB_ROWS && i == 0);
    if (j->kind == JOB_FLOATS)
        j->w[0].begin = 7, j->w[0].rows = 50;
    j->head_dim = E;
    j->table = (const float *)s->table;
    j->slot = with_slots ? (const int32_t *)s->slot : NULL;
    j->cache_f32 = with_slots;
    job_settle(j);
}

static struct scene scene_make(struct fixture *f, enum job_kind kind, size_t T, size_t K, int slots)
{
    struct scene s = {};
    s.f = f;
    s.j.kind = kind, s.j.T = (uint32_t)T, s.j.K = (uint32_t)K;
    s.y_bytes = T * ROOM * sizeof(float);
    float *table = drawn(f, T * E);
    int32_t *slot = (int32_t *)mem_zero(T, sizeof *slot);
    for (size_t t = 0; t < T; t++)
        slot[t] = (int32_t)(T - 1 - t);
    s.x = rows_of_each_kind(f, T, K);
    s.table = sent(f, table, T * E * sizeof *table);
    s.slot = sent(f, slot, T * sizeof *slot);
    add_matrices(&s, slots);
    s.coded = cuda_alloc(&f->cuda, coding_at(NULL, T, K).bytes, MEMORY_ACTIVATIONS);
    s.c = coding_at(s.coded, T, K);
    s.rows = coding_make(&f->cuda, &s.c, DTYPE_INT8, s.x, T, K);
    s.sums = (int32_t *)mem_zero(T * s.j.columns, sizeof *s.sums);
    for (size_t i = 0; i < T * s.j.columns; i++)
        s.sums[i] = (int32_t)(rng_normal(&f->rng) * 1e5);
    s.before = (uint8_t *)mem_zero(1, s.y_bytes);
    for (size_t i = 0; i < s.y_bytes / 2; i++)
        ((uint16_t *)(void *)s.before)[i] = half_near((float)rng_normal(&f->rng));
    free(table), free(slot);
    return s;
}

static void scene_free(struct scene *s)
{
    for (uint32_t i = 0; i < s->j.n; i++) {
        cuda_free(&s->f->cuda, s->j.y[i]);
        cuda_mat_free(&s->f->cuda, &s->w[i]);
    }
    cuda_free(&s->f->cuda, s->x);
    cuda_free(&s->f->cuda, s->coded);
    cuda_free(&s->f->cuda, s->table);
    cuda_free(&s->f->cuda, s->slot);
    free(s->sums), free(s->before);
}

/* Finishes by either kernel. Returns y of all matrices, which the caller frees. */
static uint8_t *finished(struct scene *s, int by_slabs)
{
    struct backend *b = &s->f->cuda;
    uint8_t *y = (uint8_t *)mem_zero(s->j.n, s->y_bytes);
    int32_t *sums = (int32_t *)sent(s->f, s->sums, s->j.T * s->j.columns * sizeof *sums);
    for (uint32_t i = 0; i < s->j.n; i++)
        cuda_write(b, s->j.y[i], s->before, s->y_bytes);
    if (by_slabs)
        finish_int8(b, &s->j, &s->c, &s->rows, sums);
    else
        finish(b, &s->j, &s->rows, sums, 1);
    for (uint32_t i = 0; i < s->j.n; i++)
        cuda_read(b, y + i * s->y_bytes, s->j.y[i], s->y_bytes);
    cuda_free(b, sums);
    return y;
}

/* Counts bytes that differ. Two NaN count as equal, because their bits are not defined. */
static size_t differing(const struct scene *s, const uint8_t *want, const uint8_t *got)
{
    size_t wrong = 0;
    for (uint32_t i = 0; i < s->j.n; i++, want += s->y_bytes, got += s->y_bytes) {
        size_t value = job_value_bytes(&s->j, i);
        for (size_t at = 0; at < s->y_bytes; at += value) {
            float a = 0, b = 0; /* a bf16 is the high half of a float */
            memcpy((uint8_t *)&a + 4 - value, want + at, value);
            memcpy((uint8_t *)&b + 4 - value, got + at, value);
            wrong += memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b));
        }
    }
    return wrong;
}

static void try_kind(struct fixture *f, enum job_kind kind, size_t T, size_t K, int slots)
{
    static const char *const name[] = {"rows", "floats", "gated", "qkv"};
    struct device *d = device_of(&f->cuda);
    struct scene s = scene_make(f, kind, T, K, slots);
    uint8_t *want = finished(&s, 0), *got = finished(&s, 1);
    size_t wrong = differing(&s, want, got), kept = 0;
    for (size_t i = 0; i < s.j.n * s.y_bytes; i++)
        kept += got[i] == s.before[i % s.y_bytes];
    ok(wrong == 0 && kept < s.j.n * s.y_bytes,
       "%s, T %zu, K %zu, shared memory %zu, %d SMs: %zu wrong values", name[kind], T, K,
       d->shared_max, d->sms, wrong);
    free(want), free(got);
    scene_free(&s);
}

/* Tests every way of finishing on a device of this size. */
static void try_shape(struct fixture *f, size_t T, size_t K, size_t shared, int sms)
{
    struct device *d = device_of(&f->cuda);
    struct device here = *d;
    d->shared_max = shared_here(shared);
    d->sms = sms;
    for (int kind = JOB_ROWS; kind <= JOB_QKV; kind++)
        try_kind(f, (enum job_kind)kind, T, K, (int)(T % 2));
    *d = here;
}

int main(void)
{
    struct fixture f = {{}, {7, 0, 0}};
    struct err e = {};
    f.cuda.pool = pool_new(1);
    if (crossover_cuda_open(&f.cuda, 0, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    f.cuda.act = DTYPE_BF16;
    try_shape(&f, 65, 70, 232448, 1);
    try_shape(&f, 66, 1000, 232448, 1);
    try_shape(&f, 66, 2100, 40000, 1);  /* slabs of 1024 */
    try_shape(&f, 67, 3500, 232448, 8); /* slabs of 2048 */
    try_shape(&f, 66, 70, 20000, 1);    /* no slab fits */
    try_shape(&f, 259, 70, 232448, 8);  /* two parts of the rows */
    try_shape(&f, 514, 5000, 232448, 1); /* slabs of 4096, and blocks of 1024 threads */
    f.cuda.ops->close(&f.cuda);
    pool_free(f.cuda.pool);
    return tap_done();
}
