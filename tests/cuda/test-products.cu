/* test-products.cu - compares products of kernels/cuda with kernels/ref: every format, every way of
 * finishing, row counts on both sides of every choice of kernel, odd shapes. Both get the same rows
 * and matrices; INT8 has the same bits. The test changes the size of the device, to get other
 * plans. */
#include "tests/tap.h"

extern "C" {
#include "kernels/quant.h"
#include "kernels/ref/ref.h"
#include "lib/base/pool.h"
extern const struct ops ops_ref;
}
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/product/product.h"
#include "tests/cuda/here.h"

enum { GUARD = 64 }; /* values behind an output that must stay as they are */

struct world {
    struct backend b, ref;
    struct device *device; /* the device of b */
    uint64_t state;
};

static float draw(struct world *w)
{
    w->state = w->state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(w->state >> 32) * 0x1p-31f;
}

/* Rounds to the nearest bf16, ties to even. */
static uint16_t half_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float half_float(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float kept(enum dtype act, float x)
{
    return act == DTYPE_F32 ? x : half_float(half_of(x));
}

/* Copies to the device. On return every stream sees the data. */
static void to_device(void *to, const void *from, size_t bytes)
{
    CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
}

/* Allocates memory of the device with a copy of `from` (NULL: not filled). */
static void *device_copy(const void *from, size_t bytes)
{
    void *p;
    CHECK(cudaMalloc(&p, bytes + 256));
    if (from)
        to_device(p, from, bytes);
    return p;
}

/* Sends floats as activations. */
static void *device_act(enum dtype act, const float *x, size_t n)
{
    if (act == DTYPE_F32)
        return device_copy(x, n * sizeof *x);
    uint16_t *half = (uint16_t *)malloc(n * sizeof *half);
    for (size_t i = 0; i < n; i++)
        half[i] = half_of(x[i]);
    void *p = device_copy(half, n * sizeof *half);
    free(half);
    return p;
}

static void fetch(enum dtype dtype, float *to, const void *from, size_t n)
{
    uint16_t *half = (uint16_t *)malloc(n * sizeof *half);
    CHECK(cudaMemcpy(dtype == DTYPE_F32 ? (void *)to : half, from,
                     n * (dtype == DTYPE_F32 ? sizeof *to : sizeof *half), cudaMemcpyDeviceToHost));
    for (size_t i = 0; dtype != DTYPE_F32 && i < n; i++)
        to[i] = half_float(half[i]);
    free(half);
}

/* A matrix, once on each back end. */
struct pair {
    struct mat cuda, ref;
};

static void lay(uint8_t *to, const struct mat_source *s, enum dtype dtype, struct pool *pool)
{
    struct layout l = layout_of(dtype, s->rows, s->cols);
    const struct dtype_info *d = &dtype_info[dtype];
    size_t row = s->cols * d->bits / 8;
    struct codes q;
    void *block = NULL;
    const float *w = s->f32;
    if (d->quantized)
        block = quant_make(&q, s, dtype, pool);
    for (size_t r = 0; r < s->rows; r++)
        if (dtype == DTYPE_F32)
            memcpy(to + r * row, w + r * s->cols, row);
        else if (!block)
            for (size_t k = 0; k < s->cols; k++)
                ((uint16_t *)(void *)to)[r * l.stride + k] =
                    dtype == DTYPE_F16 ? f16_of(w[r * s->cols + k]) : half_of(w[r * s->cols + k]);
        else
            memcpy(to + r * l.stride, (const uint8_t *)q.code + r * row, row);
    size_t blocks = s->rows * s->cols / QUANT_BLOCK;
    if (d->super) {
        memcpy(to + l.absmax, q.absmax, blocks);
        memcpy(to + l.scale, q.scale, (blocks + QUANT_SUPER - 1) / QUANT_SUPER * 4);
        memcpy(to + l.offset, &q.offset, 4);
    } else if (block) {
        memcpy(to + l.scale, q.scale, (d->block ? blocks : s->rows) * 4);
    }
    free(block);
}

static struct pair matrix(struct world *w, enum dtype dtype, size_t rows, size_t cols)
{
    float *value = (float *)malloc(rows * cols * sizeof *value);
    for (size_t i = 0; i < rows * cols; i++)
        value[i] = draw(w);
    struct mat_source s = mat_floats(value, rows, cols);
    struct pair p;
    if (ref_mat_make(&w->ref, &p.ref, &s, dtype))
        abort();
    size_t bytes = layout_of(dtype, rows, cols).bytes;
    uint8_t *laid = (uint8_t *)calloc(1, bytes);
    lay(laid, &s, dtype, w->ref.pool);
    p.cuda.data = device_copy(laid, bytes);
    p.cuda.dtype = dtype;
    p.cuda.rows = rows;
    p.cuda.cols = cols;
    free(laid);
    free(value);
    return p;
}

static void matrix_free(struct world *w, struct pair *p)
{
    ref_mat_free(&w->ref, &p->ref);
    CHECK(cudaFree(p->cuda.data));
}

/* Rows of x, and what a product reads: the normalized rows if there is a gain. */
struct rows_in {
    enum dtype act;
    size_t T, K;
    float *x, *read;
    struct input in;
};

static struct rows_in rows_in(struct world *w, size_t T, size_t K, int with_gain)
{
    struct rows_in r = {w->b.act, T, K, NULL, NULL, {NULL, NULL, 1e-5}};
    r.x = (float *)malloc(T * K * sizeof(float));
    r.read = (float *)malloc(T * K * sizeof(float));
    float *gain = (float *)malloc(K * sizeof(float));
    for (size_t k = 0; k < K; k++)
        gain[k] = 1 + draw(w) / 2;
    for (size_t i = 0; i < T * K; i++) /* some values are outliers, also after a norm */
        r.x[i] = kept(r.act, draw(w) * (i % 29 == 3 ? 40.0f : 1.0f));
    for (size_t t = 0; t < T; t++) {
        double sum = 0;
        for (size_t k = 0; k < K; k++)
            sum += (double)r.x[t * K + k] * r.x[t * K + k];
        double scale = 1 / sqrt(sum / (double)K + r.in.eps);
        for (size_t k = 0; k < K; k++) {
            float x = r.x[t * K + k];
            r.read[t * K + k] =
                with_gain ? kept(r.act, kept(r.act, (float)(x * scale)) * gain[k]) : x;
        }
    }
    r.in.x = device_act(r.act, r.x, T * K);
    r.in.gain = with_gain ? (const float *)device_copy(gain, K * sizeof(float)) : NULL;
    free(gain);
    return r;
}

static void rows_free(struct rows_in *r)
{
    CHECK(cudaFree(const_cast<void *>(r->in.x)));
    CHECK(cudaFree(const_cast<float *>(r->in.gain)));
    free(r->x);
    free(r->read);
}

/* Returns y[T, N] of the reference, not rounded. */
static double *outputs(const struct rows_in *r, const struct mat *m)
{
    double *y = (double *)malloc(r->T * m->rows * sizeof *y);
    for (size_t t = 0; t < r->T; t++)
        ref_outputs(y + t * m->rows, r->read + t * r->K, m);
    return y;
}

/* Returns 1 if y is near `want`, a sum of parts as large as `size`. The bound covers rounding to
 * act, `steps` times, and fp32 sums. A gain adds the chance that a row was rounded the other
 * way. */
static int near(enum dtype act, double want, float got, double size, int steps)
{
    double bound = (act == DTYPE_F32 ? 2e-6 : 0.004 * steps) * fabs(want) + 2e-5 * size;
    return fabs(want - got) <= bound || (isnan(want) && isnan(got));
}

/* Allocates a work area for the products, with a guard after it. */
static void *work_for(struct world *w, size_t T, size_t K, size_t N, size_t *bytes)
{
    uint32_t guard[GUARD];
    memset(guard, 0x5a, sizeof guard);
    *bytes = cuda_matmul_work(&w->b, T, K, N);
    uint8_t *p = (uint8_t *)device_copy(NULL, *bytes + sizeof guard);
    to_device(p + *bytes, guard, sizeof guard);
    return p;
}

static int work_kept(void *work, size_t bytes)
{
    uint32_t guard[GUARD], good = 0;
    CHECK(cudaMemcpy(guard, (uint8_t *)work + bytes, sizeof guard, cudaMemcpyDeviceToHost));
    for (int i = 0; i < GUARD; i++)
        good += guard[i] == 0x5a5a5a5a;
    CHECK(cudaFree(work));
    return good == GUARD;
}

static double row_size(const struct rows_in *r, size_t t)
{
    double sum = 0;
    for (size_t k = 0; k < r->K; k++)
        sum += fabs((double)r->read[t * r->K + k]);
    return sum;
}

/* ---- functions that run one operation and return the number of wrong values ---- */

static size_t wrong_matmul(struct world *w, enum dtype dtype, size_t T, size_t K, int gain)
{
    const size_t N[2] = {37, 16};
    struct rows_in r = rows_in(w, T, K, gain);
    struct pair m[2] = {matrix(w, dtype, N[0], K), matrix(w, dtype, N[1], K)};
    struct product p[2];
    float *before[2];
    size_t bytes, wrong = 0;
    for (int i = 0; i < 2; i++) {
        before[i] = (float *)malloc((T * N[i] + GUARD) * sizeof(float));
        for (size_t j = 0; j < T * N[i] + GUARD; j++)
            before[i][j] = kept(r.act, draw(w));
        p[i].w = &m[i].cuda;
        p[i].y = device_act(r.act, before[i], T * N[i] + GUARD);
        p[i].add = i == 0;
    }
    void *work = work_for(w, T, K, N[0] + N[1], &bytes);
    cuda_matmul(&w->b, p, 2, r.in, T, work);
    runtime_wait(&w->b, "test");
    for (int i = 0; i < 2; i++) {
        double *want = outputs(&r, &m[i].ref);
        float *got = (float *)malloc((T * N[i] + GUARD) * sizeof(float));
        fetch(r.act, got, p[i].y, T * N[i] + GUARD);
        for (size_t j = 0; j < T * N[i]; j++) {
            double old = i == 0 ? before[i][j] : 0;
            double size = row_size(&r, j / N[i]) + fabs(want[j]) * 200;
            wrong += !near(r.act, want[j] + old, got[j], size, 2 + 2 * gain);
        }
        for (size_t j = T * N[i]; j < T * N[i] + GUARD; j++)
            wrong += got[j] != before[i][j];
        free(want), free(got), free(before[i]);
        CHECK(cudaFree(p[i].y));
        matrix_free(w, &m[i]);
    }
    wrong += !work_kept(work, bytes);
    rows_free(&r);
    return wrong;
}

/* Logits are not rounded. They are computed from some rows of W, twice, to the same bits. INT8 has
 * the reference's bits. */
static size_t wrong_logits(struct world *w, enum dtype dtype, size_t T, size_t K)
{
    const size_t N = 61, first = 7, n = 50;
    struct rows_in r = rows_in(w, T, K, 0);
    struct pair m = matrix(w, dtype, N, K);
    float *got = (float *)malloc(2 * T * n * sizeof(float));
    size_t bytes, wrong = 0;
    void *work = work_for(w, T, K, n, &bytes);
    double *want = outputs(&r, &m.ref);
    for (int i = 0; i < 2; i++) {
        float *y = (float *)device_copy(NULL, T * n * sizeof(float));
        cuda_logits(&w->b, y, &m.cuda, first, n, r.in.x, T, work);
        runtime_wait(&w->b, "test");
        fetch(DTYPE_F32, got + (size_t)i * T * n, y, T * n);
        CHECK(cudaFree(y));
    }
    for (size_t j = 0; j < T * n; j++) {
        double should = want[j / n * N + first + j % n];
        wrong += !(dtype == DTYPE_INT8 ? (float)should == got[j]
                                       : near(DTYPE_F32, should, got[j], row_size(&r, j / n), 1));
        wrong += memcmp(&got[j], &got[T * n + j], sizeof(float)) != 0;
    }
    wrong += !work_kept(work, bytes);
    free(want), free(got);
    matrix_free(w, &m);
    rows_free(&r);
    return wrong;
}

/* A row alone gives the bits that it gives among others; for BF16 and FP8 if K is one group. */
static size_t wrong_batch(struct world *w, enum dtype dtype, size_t T, size_t K)
{
    const size_t N = 40;
    struct rows_in r = rows_in(w, T, K, 0);
    struct pair m = matrix(w, dtype, N, K);
    float *got = (float *)malloc((T + 1) * N * sizeof(float));
    void *work = device_copy(NULL, cuda_matmul_work(&w->b, T, K, N));
    float *y = (float *)device_copy(NULL, T * N * sizeof(float));
    size_t wrong = 0, row = K * (r.act == DTYPE_F32 ? 4 : 2);
    cuda_logits(&w->b, y, &m.cuda, 0, N, r.in.x, T, work);
    runtime_wait(&w->b, "test");
    fetch(DTYPE_F32, got, y, T * N);
    for (size_t t = 0; t < T; t++) {
        cuda_logits(&w->b, y, &m.cuda, 0, N, (const uint8_t *)r.in.x + t * row, 1, work);
        runtime_wait(&w->b, "test");
        fetch(DTYPE_F32, got + T * N, y, N);
        wrong += memcmp(got + t * N, got + T * N, N * sizeof(float)) != 0;
    }
    CHECK(cudaFree(y));
    CHECK(cudaFree(work));
    free(got);
    matrix_free(w, &m);
    rows_free(&r);
    return wrong;
}

static size_t wrong_gated(struct world *w, enum dtype dtype, size_t T, size_t K, int gain)
{
    const size_t F = 27;
    struct rows_in r = rows_in(w, T, K, gain);
    struct pair gate = matrix(w, dtype, F, K), up = matrix(w, dtype, F, K);
    float *got = (float *)malloc(T * F * sizeof(float));
    size_t bytes, wrong = 0;
    void *work = work_for(w, T, K, 2 * F, &bytes), *y = device_copy(NULL, T * F * sizeof(float));
    cuda_gated(&w->b, y, r.in, &gate.cuda, &up.cuda, T, work);
    runtime_wait(&w->b, "test");
    fetch(r.act, got, y, T * F);
    double *g = outputs(&r, &gate.ref), *u = outputs(&r, &up.ref);
    for (size_t j = 0; j < T * F; j++) {
        double a = kept(r.act, (float)g[j]), silu = a / (1 + exp(-a));
        double slope = fabs(u[j]) + fabs(silu);
        double slack = r.act == DTYPE_F32 ? 0 : 200 * (fabs(a) * fabs(u[j]) + fabs(silu * u[j]));
        double size = row_size(&r, j / F) * slope + slack;
        wrong += !near(r.act, silu * u[j], got[j], size, 4 + 2 * gain);
    }
    wrong += !work_kept(work, bytes);
    CHECK(cudaFree(y));
    free(got), free(g), free(u);
    matrix_free(w, &gate);
    matrix_free(w, &up);
    rows_free(&r);
    return wrong;
}

/* The value of column n of rope(product), and its size for near(). */
static double rotated(const double *y, const float *table, size_t E, size_t n, double *size)
{
    size_t at = n % E, j = at % (E / 2), low = n - at + j;
    double u = y[low], v = y[low + E / 2], c = table[j], s = table[E / 2 + j];
    *size = fabs(u) + fabs(v);
    return at < E / 2 ? u * c - v * s : v * c + u * s;
}

static size_t wrong_qkv(struct world *w, enum dtype dtype, size_t T, size_t K, int gain,
                        enum dtype cache, int with_slots)
{
    const size_t E = T % 2 ? 20 : 32, H = 4, KH = 2, S = T + 3;
    const size_t N[3] = {H * E, KH * E, KH * E};
    struct rows_in r = rows_in(w, T, K, gain);
    struct pair m[3];
    for (int i = 0; i < 3; i++)
        m[i] = matrix(w, dtype, N[i], K);
    float *table = (float *)malloc(T * E * sizeof *table);
    int32_t *slot = (int32_t *)malloc(T * sizeof *slot);
    for (size_t t = 0; t < T; t++) {
        slot[t] = (int32_t)(with_slots ? S - 1 - t : t);
        for (size_t j = 0; j < E; j++)
            table[t * E + j] =
                j < E / 2 ? cosf((float)(t + j)) : sinf((float)(t + j - E / 2));
    }
    struct qkv a = {};
    size_t bytes, wrong = 0;
    a.in = r.in;
    a.wq = &m[0].cuda, a.wk = &m[1].cuda, a.wv = &m[2].cuda;
    a.table = (const float *)device_copy(table, T * E * sizeof *table);
    a.slot = with_slots ? (const int32_t *)device_copy(slot, T * sizeof *slot) : NULL;
    a.q = device_copy(NULL, T * N[0] * sizeof(float));
    a.to.k = device_copy(NULL, S * N[1] * sizeof(float));
    a.to.v = device_copy(NULL, S * N[1] * sizeof(float));
    a.to.dtype = cache;
    a.heads = H, a.kv_heads = KH, a.head_dim = E;
    void *work = work_for(w, T, K, N[0] + 2 * N[1], &bytes);
    cuda_qkv(&w->b, &a, T, work);
    runtime_wait(&w->b, "test");
    float *got = (float *)malloc(S * N[0] * sizeof(float));
    void *const out[3] = {a.q, a.to.k, a.to.v};
    for (int i = 0; i < 3; i++) {
        enum dtype kind = i ? cache : r.act;
        enum dtype coarse = kind == DTYPE_F32 && r.act == DTYPE_F32 ? DTYPE_F32 : DTYPE_BF16;
        double *y = outputs(&r, &m[i].ref), size = 0;
        fetch(kind, got, out[i], (i ? S : T) * N[i]);
        for (size_t t = 0; t < T; t++)
            for (size_t n = 0; n < N[i]; n++) {
                double want = i == 2 ? y[t * N[i] + n]
                                     : rotated(y + t * N[i], table + t * E, E, n, &size);
                double slack = row_size(&r, t) + (coarse == DTYPE_F32 ? 0 : 400 * size);
                float v = got[(i ? (size_t)slot[t] : t) * N[i] + n];
                wrong += !near(coarse, want, v, slack + fabs(want) * 200 * gain, 3);
            }
        free(y);
    }
    wrong += !work_kept(work, bytes);
    free(got), free(table), free(slot);
    for (int i = 0; i < 3; i++) {
        CHECK(cudaFree(out[i]));
        matrix_free(w, &m[i]);
    }
    CHECK(cudaFree(const_cast<float *>(a.table)));
    CHECK(cudaFree(const_cast<int32_t *>(a.slot)));
    rows_free(&r);
    return wrong;
}

static void try_shape(struct world *w, enum dtype dtype, size_t T, size_t K)
{
    int gain = T % 2 == 1 || K % 5 == 0;
    enum dtype cache = T % 3 == 0 ? DTYPE_F32 : DTYPE_BF16;
    size_t wrong[4] = {wrong_matmul(w, dtype, T, K, gain), wrong_logits(w, dtype, T, K),
                       wrong_gated(w, dtype, T, K, gain),
                       wrong_qkv(w, dtype, T, K, gain, cache, T % 4 != 0)};
    ok(!wrong[0] && !wrong[1] && !wrong[2] && !wrong[3],
       "%s, T %zu, K %zu, shared memory %zu: matmul, logits, gated, qkv", dtype_info[dtype].name, T,
       K,
       w->device->shared_max);
    if (wrong[0] || wrong[1] || wrong[2] || wrong[3])
        printf("# wrong values: matmul %zu, logits %zu, gated %zu, qkv %zu\n", wrong[0], wrong[1],
               wrong[2], wrong[3]);
}

static void try_dtype(struct world *w, enum dtype dtype, const size_t K[3])
{
    static const size_t rows[] = {1, 2, 3, 4, 5, 8, 17, 32, 33, 64, 65, 100};
    w->b.act = cuda_act_dtype(dtype);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w->device->sms = i % 2 ? 1 : 8; /* a block makes many tiles, or one */
        w->device->shared_max = shared_here(i % 3 == 2 ? 101376 : 232448);
        try_shape(w, dtype, rows[i], K[i % 3]);
    }
    w->device->shared_max = shared_here(232448);
    w->device->sms = 1;
    ok(wrong_batch(w, dtype, 7, dtype_info[dtype].block ? 192 : 104) == 0,
       "%s: a row alone gives the bits that it gives among others", dtype_info[dtype].name);
    /* with this little shared memory, few rows take few.cu or skinny.cu */
    w->device->shared_max = dtype_info[dtype].block ? 49152 : 12288;
    try_shape(w, dtype, 3, K[2]);
    try_shape(w, dtype, 8, K[2]);
}

int main(void)
{
    struct world w = {};
    struct err e = {};
    w.b.pool = pool_new(1);
    if (crossover_cuda_open(&w.b, 0, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    w.device = device_of(&w.b);
    w.ref.ops = &ops_ref;
    w.ref.pool = pool_new(1);
    w.state = 1;
    static const size_t odd[] = {65, 6, 416}, even[] = {64, 192, 1088}, wide[] = {160, 48, 65};
    for (int d = 0; d < DTYPES; d++) {
        if (cuda_refuses(&w.b, (enum dtype)d, 64))
            continue;
        try_dtype(&w, (enum dtype)d, dtype_info[d].block ? even : odd);
        if (!dtype_info[d].block && d != DTYPE_INT8_VECTOR && d != DTYPE_F16)
            try_dtype(&w, (enum dtype)d, wide);
    }
    w.b.ops->close(&w.b);
    pool_free(w.b.pool);
    pool_free(w.ref.pool);
    return tap_done();
}
