/* test-large.cu - compares products for many rows with kernels/ref: through the vendor's library
 * (on the emulated device a stand-in) and, if possible, without it; every format and every way of
 * finishing. Added products are rounded before the sum, NF4 weights are rounded if the library
 * reads them, and slices of W meet runs of x. One file because all ways are compared by the same
 * functions. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/product/slices.h"
#include "tests/cuda/products-fixture.h"


/* ---- functions that run one operation and return the number of wrong values ---- */

/* y = or += for two matrices. Also runs the first product alone: if this back end makes the sum,
 * the second rounding is then by itself. */
static size_t wrong_matmul(struct call *c, size_t first)
{
    const size_t N[2] = {first, 32};
    struct pair m[2] = {pair_make(c, N[0]), pair_make(c, N[1])};
    float *before = drawn(c->f, c->T * N[0]), *got[2], *alone = NULL;
    void *block[2], *work = work_for(c, N[0] + N[1]);
    struct product p[2];
    size_t wrong = 0;
    keep_all(c->act, before, c->T * N[0]);
    for (int add = 1; add >= 0; add--) {
        for (int i = 0; i < 2; i++) {
            p[i].w = &m[i].cuda;
            p[i].y = sent_as(c->f, c->act, before, c->T * N[i], 0, &block[i]);
            p[i].add = add && i == 0;
        }
        cuda_matmul(c->f->cuda, p, 2, c->in, c->T, work);
        for (int i = 0; i < 2; i++) {
            got[i] = got_as(c->f, c->act, p[i].y, c->T * N[i]);
            wrong += wrong_values(c, &m[i].ref, got[i], p[i].add ? before : NULL);
            cuda_free(c->f->cuda, block[i]);
        }
        free(got[1]);
        if (add)
            alone = got[0];
    }
    for (size_t j = 0; c->act == DTYPE_BF16 && j < c->T * N[0]; j++)
        wrong += alone[j] != kept(c->act, before[j] + got[0][j]);
    wrong += !work_kept(c, work);
    free(alone), free(got[0]), free(before);
    pair_free(c, &m[0]);
    pair_free(c, &m[1]);
    return wrong;
}

/* Logits are not rounded. They are computed from some rows of W, twice. INT8 has the reference's
 * bits. */
static size_t wrong_logits(struct call *c)
{
    const size_t N = 80, first = 16, n = 48;
    struct pair m = pair_make(c, N);
    void *work = work_for(c, n);
    float *y = (float *)cuda_alloc(c->f->cuda, c->T * n * sizeof *y, MEMORY_ACTIVATIONS), *got[2];
    double *want = outputs(c, &m.ref);
    size_t wrong = 0;
    for (int i = 0; i < 2; i++) {
        cuda_logits(c->f->cuda, y, &m.cuda, first, n, c->x_here, c->T, work);
        got[i] = got_as(c->f, DTYPE_F32, y, c->T * n);
    }
    for (size_t j = 0; j < c->T * n; j++) {
        double should = want[j / n * N + first + j % n];
        wrong += !(c->dtype == DTYPE_INT8
                       ? (float)should == got[0][j]
                       : near(DTYPE_F32, should, got[0][j], c->sizes[j / n], 1));
        wrong += memcmp(&got[0][j], &got[1][j], sizeof(float)) != 0;
    }
    wrong += !work_kept(c, work);
    free(want), free(got[0]), free(got[1]);
    cuda_free(c->f->cuda, y);
    pair_free(c, &m);
    return wrong;
}

/* Compares rows t, t + step, ..; frees both matrices. */
static size_t gated_apart(struct call *c, struct pair *of, struct pair *with, size_t step)
{
    struct pair gate = *of, up = *with;
    size_t F = gate.cuda.rows;
    void *work = work_for(c, 2 * F);
    act *y = cuda_alloc(c->f->cuda, c->T * F * sizeof(float), MEMORY_ACTIVATIONS);
    cuda_gated(c->f->cuda, y, c->in, &gate.cuda, &up.cuda, c->T, work);
    float *got = got_as(c->f, c->act, y, c->T * F);
    double *g = (double *)malloc(2 * F * sizeof *g), *u = g + F;
    size_t wrong = 0;
    for (size_t t = 0; t < c->T; t += t + step < c->T || t == c->T - 1 ? step : c->T - 1 - t) {
        ref_outputs(g, c->read + t * c->K, &gate.ref);
        ref_outputs(u, c->read + t * c->K, &up.ref);
        for (size_t j = 0; j < F; j++) {
            double a = kept(c->act, (float)g[j]), silu = a / (1 + exp(-a));
            double slack = c->act == DTYPE_F32 ? 0 : 200 * (fabs(a) + fabs(silu)) * fabs(u[j]);
            double size = c->sizes[t] * (fabs(u[j]) + fabs(silu)) + slack;
            wrong += !near(c->act, silu * u[j], got[t * F + j], size, 4 + 2 * c->gained);
        }
    }
    wrong += !work_kept(c, work);
    free(got), free(g);
    cuda_free(c->f->cuda, y);
    pair_free(c, &gate);
    pair_free(c, &up);
    return wrong;
}

static size_t wrong_gated(struct call *c, size_t F, size_t step)
{
    struct pair gate = pair_make(c, F), up = pair_make(c, F);
    return gated_apart(c, &gate, &up, step);
}

/* ---- q, k, v ---- */

enum { E = 32, H = 4 };

/* The value of column n of rope(product), and its size for near(). */
static double rotated(const double *y, const float *table, size_t n, double *size)
{
    size_t at = n % E, j = at % (E / 2), low = n - at + j;
    double u = y[low], v = y[low + E / 2], c = table[j], s = table[E / 2 + j];
    *size = fabs(u) + fabs(v);
    return at < E / 2 ? u * c - v * s : v * c + u * s;
}

/* Compares output i with its matrix. slots[t]: the slot of row t. */
static size_t wrong_part(const struct call *c, int i, const struct mat *w, const float *got,
                         const float *table, const int32_t *slots, enum dtype kind)
{
    enum dtype coarse = kind == DTYPE_F32 && c->act == DTYPE_F32 ? DTYPE_F32 : DTYPE_BF16;
    double *y = outputs(c, w), size = 0;
    size_t wrong = 0, N = w->rows;
    for (size_t t = 0; t < c->T; t++)
        for (size_t n = 0; n < N; n++) {
            double want = i == 2 ? y[t * N + n] : rotated(y + t * N, table + t * E, n, &size);
            double slack = c->sizes[t] + (coarse == DTYPE_F32 ? 0 : 400 * size);
            float v = got[(i ? (size_t)slots[t] : t) * N + n];
            wrong += !near(coarse, want, v, slack + fabs(want) * 200 * c->gained, 3);
        }
    free(y);
    return wrong;
}

static size_t wrong_qkv(struct call *c, size_t KH, enum dtype cache, int with_slots)
{
    const size_t S = c->T + 3, N[3] = {H * E, KH * E, KH * E};
    struct backend *b = c->f->cuda;
    struct pair m[3] = {pair_make(c, N[0]), pair_make(c, N[1]), pair_make(c, N[2])};
    float *table = floats(c->T * E);
    int32_t *slot = (int32_t *)malloc(c->T * sizeof *slot);
    for (size_t t = 0; t < c->T; t++) {
        slot[t] = (int32_t)(with_slots ? S - 1 - t : t);
        for (size_t j = 0; j < E; j++)
            table[t * E + j] = j < E / 2 ? cosf((float)(t + j)) : sinf((float)(t + j - E / 2));
    }
    struct qkv a = {};
    void *out[3], *table_here = sent(c->f, table, c->T * E * sizeof *table);
    void *slots_here = sent(c->f, slot, c->T * sizeof *slot), *work = work_for(c, N[0] + 2 * N[1]);
    for (int i = 0; i < 3; i++)
        out[i] = cuda_alloc(b, S * N[i] * sizeof(float), MEMORY_ACTIVATIONS);
    a.in = c->in;
    a.wq = &m[0].cuda, a.wk = &m[1].cuda, a.wv = &m[2].cuda;
    a.table = (const float *)table_here;
    a.slot = with_slots ? (const int32_t *)slots_here : NULL;
    a.q = out[0], a.to.k = out[1], a.to.v = out[2];
    a.to.dtype = cache;
    a.heads = H, a.kv_heads = KH, a.head_dim = E;
    cuda_qkv(b, &a, c->T, work);
    size_t wrong = 0;
    for (int i = 0; i < 3; i++) {
        enum dtype kind = i ? cache : c->act;
        float *got = got_as(c->f, kind, out[i], (i ? S : c->T) * N[i]);
        wrong += wrong_part(c, i, &m[i].ref, got, table, slot, kind);
        free(got);
        cuda_free(b, out[i]);
        pair_free(c, &m[i]);
    }
    wrong += !work_kept(c, work);
    cuda_free(b, table_here);
    cuda_free(b, slots_here);
    free(table), free(slot);
    return wrong;
}

/* ---- weights ---- */

/* Fills out[rows, cols] with what the library must read of some rows. */
static void widened_floats(struct fixture *f, enum dtype dtype, const struct mat_source *s,
                           size_t first, size_t rows, float *out)
{
    struct codes q;
    size_t cols = s->cols, n = rows * cols;
    void *block = dtype == DTYPE_BF16_F32 ? NULL : quant_make(&q, s, dtype, f->ref->pool);
    if (dtype_info[dtype].block)
        quant_floats(&q, cols, first, rows, out);
    for (size_t i = 0; i < n; i++)
        out[i] = dtype == DTYPE_FP8        ? e4m3_value(((const uint8_t *)q.code)[first * cols + i])
                 : dtype_info[dtype].block ? kept(DTYPE_BF16, out[i])
                                           : kept(DTYPE_BF16, s->f32[first * cols + i]);
    free(block);
}

/* Widened weights must be equal to the bit, also from the middle of a matrix on, and for so many
 * rows that few multiprocessors work more than one round. */
static void widened_weights(struct fixture *f, enum dtype dtype)
{
    enum { ROWS = 300, COLS = 256, FIRST = 37, N = ROWS - FIRST };
    struct device *d = device_of(f->cuda);
    int sms = d->sms;
    float *w = drawn(f, ROWS * COLS), *want = floats(N * COLS);
    struct mat_source s = mat_floats(w, ROWS, COLS);
    struct layout l = layout_of(dtype, ROWS, COLS);
    struct mat m;
    if (cuda_mat_make(f->cuda, &m, &s, dtype))
        abort();
    const uint8_t *at = (const uint8_t *)m.data;
    struct product_job j = {};
    j.dtype = dtype, j.K = COLS, j.stride = (uint32_t)(l.stride * layout_value(dtype));
    struct operand part = {at, at + l.absmax, (const float *)(const void *)(at + l.scale),
                           (const float *)(const void *)(at + l.offset), FIRST, N, 0};
    void *to = cuda_alloc(f->cuda, N * COLS * sizeof(float), MEMORY_ACTIVATIONS);
    d->sms = 1;
    widen(f->cuda, to, &j, &part);
    d->sms = sms;
    float *got = got_as(f, widened_value(dtype) == 2 ? DTYPE_BF16 : DTYPE_F32, to, N * COLS);
    widened_floats(f, dtype, &s, FIRST, N, want);
    ok(memcmp(got, want, N * COLS * sizeof *got) == 0, "%s widened for the library",
       dtype_info[dtype].name);
    free(got), free(want), free(w);
    cuda_free(f->cuda, to);
    cuda_mat_free(f->cuda, &m);
}

/* ---- shapes ---- */

enum { PIECES = ROWS_MOST + 16 };

/* The library also gets odd numbers of outputs, except for INT8. */
static void try_shape(struct fixture *f, enum dtype dtype, size_t T, size_t K, int gain)
{
    struct call c = call_make(f, dtype, T, K, gain), plain = call_make(f, dtype, T, K, 0);
    size_t matmul = wrong_matmul(&c, T % 2 ? 37 : 48), logits = wrong_logits(&plain);
    size_t gated = wrong_gated(&c, T % 2 ? 27 : 48, 1);
    size_t qkv = wrong_qkv(&c, H / 2, T % 4 ? DTYPE_BF16 : DTYPE_F32, T % 3 != 0);
    ok(!matmul && !logits && !gated && !qkv, "%s%s, T %zu, K %zu: matmul, logits, gated, qkv",
       dtype_info[dtype].name, c.library ? "" : " without the library", T, K);
    if (matmul || logits || gated || qkv)
        printf("# wrong values: matmul %zu, logits %zu, gated %zu, qkv %zu\n", matmul, logits,
               gated, qkv);
    call_free(&plain);
    call_free(&c);
}

/* Returns 1 if another format has the same kernels and differs only in its tables. */
static int is_twin(enum dtype d)
{
    return d == DTYPE_NF4_F32 || d == DTYPE_FP4 || d == DTYPE_INT8_VECTOR;
}

/* The most rows that a format is tried with. From ROWS_MOST on, coded rows come in pieces.
 * f32_product.cu takes any number of rows by fours (test-products.cu), skinny.cu by 64. */
static size_t rows_most(enum dtype d, int library)
{
    int exact = d == DTYPE_F16 || (!library && (d == DTYPE_F32 || d == DTYPE_BF16_F32));
    if (exact || is_twin(d))
        return 65;
    return !library ? 130 : d == DTYPE_INT8 ? PIECES : 204;
}

static void every_format(struct fixture *f, int library)
{
    static const size_t rows[] = {65, 130, 200, 204, PIECES};
    for (int d = DTYPE_F32; d < DTYPES; d++)
        for (int i = 0; i < 5 && rows[i] <= rows_most((enum dtype)d, library) &&
                        !cuda_refuses(f->cuda, (enum dtype)d, 64); i++)
            try_shape(f, (enum dtype)d, rows[i], i == 0 || i == 2 ? 192 : 64, i % 2 == 0);
}

/* Gate and up are one batch, in either order of their addresses. */
static void either_order(struct fixture *f, enum dtype dtype)
{
    size_t wrong = 0, swapped = 0;
    for (int hole = 0; hole < 2; hole++) {
        struct call c = call_make(f, dtype, 65, 192, 0);
        struct pair low = pair_make(&c, 48), high = pair_make(&c, 48);
        pair_free(&c, hole ? &low : &high); /* the next matrix gets its memory */
        struct pair gate = hole ? high : low, up = pair_make(&c, 48);
        swapped += up.cuda.data < gate.cuda.data;
        wrong += gated_apart(&c, &gate, &up, 1);
        call_free(&c);
    }
    ok(swapped == 1 && wrong == 0, "%s, gate before up and up before gate: %zu wrong values",
       dtype_info[dtype].name, wrong);
}

/* q, k and v of equal width are one batch too. */
static void equal_heads(struct fixture *f)
{
    static const enum dtype weights[] = {DTYPE_BF16, DTYPE_F32, DTYPE_INT8};
    for (int i = 0; i < 12; i++) {
        struct call c = call_make(f, weights[i / 4], 65, 192, 1);
        size_t wrong = wrong_qkv(&c, H, i & 1 ? DTYPE_F32 : DTYPE_BF16, i & 2);
        ok(wrong == 0, "%s, as many heads of k and v as of q, way %d: %zu wrong values",
           dtype_info[weights[i / 4]].name, i, wrong);
        call_free(&c);
    }
}

/* Computes x += product, then gate and up of the norm of x. settled: the sum is made before the
 * norm. got[2] gets x and the outputs. Returns 1 if the norm (settled: the wait) made the sum, as
 * it should. */
static int add_and_norm(struct fixture *f, struct call *c, const struct mat m[3], int settled,
                        float *got[2])
{
    const size_t n = c->T * c->K, F = m[1].rows;
    struct backend *b = f->cuda;
    void *x, *work = work_for(c, 2 * c->K);
    struct product o = {&m[0], sent_as(f, DTYPE_BF16, c->x, n, 0, &x), 1};
    act *y = cuda_alloc(b, c->T * F * sizeof(float), MEMORY_ACTIVATIONS);
    cuda_matmul(b, &o, 1, c->in, c->T, work);
    int waits = device_of(b)->later.add != nullptr;
    if (settled)
        runtime_wait(b, "test");
    const int between = device_of(b)->later.add != nullptr;
    cuda_gated(b, y, {o.y, c->in.gain, c->in.eps}, &m[1], &m[2], c->T, work);
    waits &= between == !settled && !device_of(b)->later.add;
    got[0] = got_as(f, DTYPE_BF16, o.y, n);
    got[1] = got_as(f, DTYPE_BF16, y, c->T * F);
    cuda_free(b, x);
    cuda_free(b, y);
    return waits && work_kept(c, work);
}

/* A bf16 sum waits for the norm that follows, and has the bits of two operations. */
static void sum_with_norm(struct fixture *f)
{
    enum { D = 192, F = 48 };
    struct call c = call_make(f, DTYPE_BF16, 70, D, 1);
    struct pair p[3] = {pair_make(&c, D), pair_make(&c, F), pair_make(&c, F)};
    const struct mat m[3] = {p[0].cuda, p[1].cuda, p[2].cuda};
    float *once[2], *twice[2];
    int waits = add_and_norm(f, &c, m, 0, once) & add_and_norm(f, &c, m, 1, twice);
    ok(waits && !memcmp(once[0], twice[0], c.T * D * sizeof(float)) &&
           !memcmp(once[1], twice[1], c.T * F * sizeof(float)),
       "a sum is made by the next norm, with the same bits as before it");
    for (int i = 0; i < 2; i++)
        free(once[i]), free(twice[i]);
    for (struct pair &one : p)
        pair_free(&c, &one);
    call_free(&c);
}

static void no_step(void *)
{
}

/* Every other call of the back end makes a waiting sum first. */
static void sum_before_others(struct fixture *f)
{
    struct backend *b = f->cuda;
    struct call c = call_make(f, DTYPE_BF16, 70, 192, 0);
    struct pair p = pair_make(&c, 192);
    void *x, *work = work_for(&c, 192), *spare = cuda_alloc(b, 64, MEMORY_ACTIVATIONS);
    void *mirror = cuda_mirror(b, 64);
    struct product o = {&p.cuda, sent_as(f, DTYPE_BF16, c.x, c.T * c.K, 0, &x), 1};
    char here[64] = {0};
    int waited = 0, settled = 0;
    for (int way = 0; way < 10; way++) {
        cuda_matmul(b, &o, 1, c.in, c.T, work);
        waited += device_of(b)->later.add != nullptr;
        switch (way) {
        case 0: cuda_read(b, here, spare, sizeof here); break;
        case 1: cuda_write(b, spare, here, sizeof here); break;
        case 2: cuda_copy(b, spare, x, sizeof here); break;
        case 3: cuda_clear(b, spare, sizeof here); break;
        case 4: cuda_fetch(b, mirror, spare, sizeof here); break;
        case 5: (void)cuda_event_record(b); break;
        case 6: cuda_free(b, cuda_alloc(b, 64, MEMORY_ACTIVATIONS)); break;
        case 7: cuda_swiglu(b, spare, spare, spare, 16); break;
        case 8: cuda_prepare(b, "sum", 3, no_step, nullptr); break;
        default: cuda_matmul(b, &o, 1, c.in, c.T, work), runtime_wait(b, "test");
        }
        settled += device_of(b)->later.add == nullptr;
    }
    ok(waited == 10 && settled == 10, "a sum is made before other work: %d waited, %d made", waited,
       settled);
    (void)work_kept(&c, work);
    cuda_mirror_free(b, mirror);
    cuda_free(b, spare);
    cuda_free(b, x);
    pair_free(&c, &p);
    call_free(&c);
}

/* Rounds to 10 bits of mantissa, ties away from zero. */
static float to_tf32(float x)
{
    int e;
    float half = frexpf(x, &e);
    return ldexpf(roundf(ldexpf(half, 11)), e - 11);
}

/* Counts values of y[T, N] that differ from x W^T by more than `share` of the sum of |x w|. */
static size_t far_off(const float *y, const float *x, const float *w, size_t T, size_t N, size_t K,
                      double share)
{
    size_t far = 0;
    for (size_t i = 0; i < T * N; i++) {
        double sum = 0, size = 0;
        for (size_t k = 0; k < K; k++) {
            double part = (double)x[i / N * K + k] * w[i % N * K + k];
            sum += part;
            size += fabs(part);
        }
        far += !(fabs(y[i] - sum) <= share * size);
    }
    return far;
}

/* fp32 products are fp32 unless backend.tf32 allows rounding, and then only many rows are rounded.
 * A device may round or truncate; the emulated device rounds to nearest. */
static void rounded_products(struct fixture *f)
{
    enum { K = 192, N = 48 };
    int emulated = strstr(f->cuda->name, "emulated") != NULL;
    for (size_t T = 8; T <= 65; T += 57) {
        struct call c = call_make(f, DTYPE_F32, T, K, 0);
        float *w = drawn(f, N * K), *xs = floats(T * K), *ws = floats(N * K), *y[2];
        struct mat_source s = mat_floats(w, N, K);
        struct mat m;
        void *work = work_for(&c, N);
        float *out = (float *)cuda_alloc(f->cuda, T * N * sizeof *out, MEMORY_ACTIVATIONS);
        if (cuda_mat_make(f->cuda, &m, &s, DTYPE_F32))
            abort();
        for (int on = 0; on < 2; on++) {
            struct product p = {&m, out, 0};
            f->cuda->tf32 = on;
            cuda_matmul(f->cuda, &p, 1, c.in, T, work);
            y[on] = got_as(f, DTYPE_F32, out, T * N);
        }
        f->cuda->tf32 = 0;
        for (size_t i = 0; i < T * K; i++)
            xs[i] = to_tf32(c.x[i]);
        for (size_t i = 0; i < N * K; i++)
            ws[i] = to_tf32(w[i]);
        size_t off = far_off(y[0], c.x, w, T, N, K, 1e-6);
        size_t on = T > 8 && emulated ? far_off(y[1], xs, ws, T, N, K, 1e-6)
                                      : far_off(y[1], c.x, w, T, N, K, T > 8 ? 0x1p-9 : 1e-6);
        size_t same = T > 8 && emulated ? T * N - far_off(y[1], c.x, w, T, N, K, 1e-6) : 0;
        ok(!off && !on && same < T * N / 10, "tf32 with %zu rows: %zu values wrong without, %zu "
           "with, %zu of %zu as in fp32", T, off, on, same, T * N);
        (void)work_kept(&c, work);
        cuda_free(f->cuda, out);
        cuda_mat_free(f->cuda, &m);
        free(w), free(xs), free(ws), free(y[0]), free(y[1]);
        call_free(&c);
    }
}

/* There are so many rows that a slice is not all of W, and the rows are more than one run. */
static void slices_and_runs(struct fixture *f)
{
    enum { T = 8320, K = 8, F = 1024 };
    struct product_job j = {};
    j.dtype = DTYPE_FP8, j.kind = JOB_GATED, j.T = T, j.K = K, j.n = 2;
    j.w[0].rows = j.w[1].rows = F;
    job_settle(&j);
    struct product_job slice = job_slice(&j, 0, 0, slice_rows(&j, 0));
    struct call c = call_make(f, DTYPE_FP8, T, K, 1);
    ok(slice_rows(&j, 0) < F && run_rows(&slice) < T && wrong_gated(&c, F, 97) == 0,
       "slices of %u rows of W by runs of %u rows of x", slice_rows(&j, 0), run_rows(&slice));
    call_free(&c);
}

/* Weights that a Hopper kernel widens itself. One block or several blocks sum a tile; rows and
 * values of K do not fill the last tile and unit. */
static void wide_products(struct fixture *f)
{
    static const enum dtype formats[] = {DTYPE_FP8, DTYPE_NF4, DTYPE_NF4_F32, DTYPE_FP4};
    static const struct {
        int sms;
        size_t T, K;
    } shapes[] = {{1, 130, 128}, {3, 251, 384}, {7, 70, 640}, {50, 256, 256}};
    struct device *d = device_of(f->cuda);
    const int sms = d->sms;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < (is_twin(formats[i]) ? 1 : 4); k++) {
            d->sms = shapes[k].sms;
            if (!cuda_refuses(f->cuda, formats[i], 128))
                try_shape(f, formats[i], shapes[k].T, shapes[k].K, k % 2);
        }
    d->sms = sms;
}

int main(void)
{
    struct fixture f = fixture_open();
    widened_weights(&f, DTYPE_FP8);
    widened_weights(&f, DTYPE_NF4);
    widened_weights(&f, DTYPE_NF4_F32);
    widened_weights(&f, DTYPE_FP4);
    widened_weights(&f, DTYPE_BF16_F32);
    every_format(&f, 1);
    slices_and_runs(&f);
    if (device_of(f.cuda)->wide)
        wide_products(&f);
    ok((device_of(f.cuda)->wide > 0) == (device_of(f.cuda)->major == 9),
       "wide.cu runs on Hopper only");
    either_order(&f, DTYPE_BF16);
    either_order(&f, DTYPE_INT8);
    equal_heads(&f);
    if (device_of(f.cuda)->gemm) {
        sum_with_norm(&f);
        sum_before_others(&f);
    }
    rounded_products(&f);
    fixture_close(&f);
    setenv("EMULATE_LIBRARY", "0", 1);
    f = fixture_open();
    if (!device_of(f.cuda)->gemm)
        every_format(&f, 0);
    fixture_close(&f);
    return tap_done();
}
