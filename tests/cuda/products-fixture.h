/* products-fixture.h - rows and matrices for products, once for the device and once for the
 * reference, and how far their answers may differ. */
#pragma once

#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/product/slices.h"
#include "kernels/cuda/product/wide_plan.h"
#include "tests/cuda/rows-fixture.h"
extern "C" {
#include "kernels/ref/ref.h"
}

/* A matrix on both sides. The matrix of the reference holds the values that the product should
 * read. */
struct pair {
    struct mat cuda, ref;
};

/* If a value of x lies in the middle of two bf16 numbers, a norm may round it the other way: by
 * at most 2^-7 of the row's largest value, in the unit of near()'s size. */
enum { ROUNDED_OTHERWISE = 400 };

/* Rows of x; the rows that a product reads (normalized, with a gain); and both on the device. */
struct call {
    struct fixture *f;
    enum dtype dtype, act;
    int library, gained;
    size_t T, K;
    float *x, *read;
    double *sizes; /* sizes of the rows that are read: see near() */
    struct input in;
    void *x_here, *gain_here;
    size_t work_bytes;
};

static struct call call_make(struct fixture *f, enum dtype dtype, size_t T, size_t K, int gain)
{
    struct call c = {};
    c.f = f, c.dtype = dtype, c.gained = gain, c.T = T, c.K = K;
    f->cuda->act = c.act = cuda_act_dtype(dtype);
    float *g = drawn(f, K);
    c.library = device_of(f->cuda)->gemm != NULL;
    c.x = drawn(f, T * K);
    c.read = floats(T * K);
    for (size_t i = 0; i < T * K; i++) /* some values are outliers, also after a norm */
        c.read[i] = c.x[i] = kept(c.act, c.x[i] * (i % 29 == 3 ? 40.0f : 0.5f));
    for (size_t t = 0; gain && t < T; t++) {
        double sum = 0;
        for (size_t k = 0; k < K; k++)
            sum += (double)c.x[t * K + k] * c.x[t * K + k];
        double scale = 1 / sqrt(sum / (double)K + 1e-5);
        for (size_t k = 0; k < K; k++)
            c.read[t * K + k] = kept(c.act, kept(c.act, (float)(c.x[t * K + k] * scale)) * g[k]);
    }
    c.sizes = (double *)calloc(T, sizeof *c.sizes);
    for (size_t t = 0; t < T; t++) {
        double top = 0;
        for (size_t k = 0; k < K; k++) {
            c.sizes[t] += fabs((double)c.read[t * K + k]);
            top = fmax(top, fabs((double)c.read[t * K + k]));
        }
        c.sizes[t] += gain && c.act == DTYPE_BF16 ? ROUNDED_OTHERWISE * top : 0;
    }
    void *block;
    c.x_here = sent_as(f, c.act, c.x, T * K, 0, &block);
    c.gain_here = gain ? sent(f, g, K * sizeof *g) : NULL;
    c.in.x = c.x_here;
    c.in.gain = (const float *)c.gain_here;
    c.in.eps = 1e-5;
    free(g);
    return c;
}

static void call_free(struct call *c)
{
    cuda_free(c->f->cuda, c->x_here);
    cuda_free(c->f->cuda, c->gain_here);
    free(c->x), free(c->read), free(c->sizes);
}

/* Formats of blocks are rounded to bf16 for the library; the reference then has a matrix in
 * bf16. */
static struct pair pair_make(struct call *c, size_t rows)
{
    float *w = drawn(c->f, rows * c->K);
    struct mat_source s = mat_floats(w, rows, c->K);
    struct pair p;
    int own = device_of(c->f->cuda)->wide && wide_takes(c->dtype, c->T, c->K);
    int widened = dtype_info[c->dtype].block &&
                  (own || (c->library && c->T > library_above(c->dtype)));
    if (cuda_mat_make(c->f->cuda, &p.cuda, &s, c->dtype))
        abort();
    if (widened) {
        struct codes q;
        void *block = quant_make(&q, &s, c->dtype, c->f->ref->pool);
        quant_floats(&q, c->K, 0, rows, w);
        free(block);
    }
    if (ref_mat_make(c->f->ref, &p.ref, &s, widened ? DTYPE_BF16 : c->dtype))
        abort();
    free(w);
    return p;
}

static void pair_free(struct call *c, struct pair *p)
{
    ref_mat_free(c->f->ref, &p->ref);
    cuda_mat_free(c->f->cuda, &p->cuda);
}

/* ---- scratch, with a guard behind it ---- */

enum { GUARD_BYTES = 256 };

static void *work_for(struct call *c, size_t N)
{
    unsigned char guard[GUARD_BYTES];
    memset(guard, 0x5a, sizeof guard);
    c->work_bytes = cuda_matmul_work(c->f->cuda, c->T, c->K, N);
    char *p = (char *)cuda_alloc(c->f->cuda, c->work_bytes + sizeof guard, MEMORY_ACTIVATIONS);
    cuda_write(c->f->cuda, p + c->work_bytes, guard, sizeof guard);
    return p;
}

/* Frees the work area. Returns 1 if the guard after it is unchanged. */
static int work_kept(struct call *c, void *work)
{
    unsigned char guard[GUARD_BYTES];
    int good = 1;
    cuda_read(c->f->cuda, guard, (char *)work + c->work_bytes, sizeof guard);
    for (size_t i = 0; i < sizeof guard; i++)
        good &= guard[i] == 0x5a;
    cuda_free(c->f->cuda, work);
    return good;
}

/* ---- answers ---- */

/* Returns y[T, N] of the reference, not rounded. */
static double *outputs(const struct call *c, const struct mat *w)
{
    double *y = (double *)malloc(c->T * w->rows * sizeof *y);
    for (size_t t = 0; t < c->T; t++)
        ref_outputs(y + t * w->rows, c->read + t * c->K, w);
    return y;
}

/* Returns 1 if y is near `want`, a sum of parts as large as `size`. The bound covers rounding to
 * act, `steps` times, and fp32 sums. A gain adds the chance that values were rounded the other
 * way. */
static int near(enum dtype act, double want, float got, double size, int steps)
{
    double bound = (act == DTYPE_F32 ? 2e-6 : 0.004 * steps) * fabs(want) + 2e-5 * size;
    return fabs(want - got) <= bound;
}

/* Counts wrong values of y[T, N], the product, added to the values of `before` if it is not
 * NULL. */
static size_t wrong_values(const struct call *c, const struct mat *w, const float *y,
                           const float *before)
{
    double *want = outputs(c, w);
    size_t wrong = 0;
    for (size_t j = 0; j < c->T * w->rows; j++) {
        double old = before ? before[j] : 0;
        double size = c->sizes[j / w->rows] + fabs(want[j]) * 200;
        wrong += !near(c->act, want[j] + old, y[j], size, 2 + 2 * c->gained);
    }
    free(want);
    return wrong;
}
