/* test-experts.cu - compares mixtures of experts on a device with kernels/ref, on the same rows and
 * matrices: every format, groups without rows and groups of several blocks, K in several slabs, odd
 * shapes; ties; routers with a bias and groups; the count of experts. A second run gives the same
 * bits. */
#include <stdlib.h>
#include <string.h>

#include "kernels/experts.h"
#include "tests/cuda/rows-fixture.h"
#include "kernels/cuda/device/runtime.h"
extern "C" {
#include "kernels/ref/ref.h"
}

struct shape {
    size_t T, D, F, n, used;
    size_t groups, groups_used; /* 0: a router without a bias */
};

/* A layer on both sides. */
struct layer {
    struct shape s;
    struct mat router[2], *mat[2]; /* index 0: of cuda, 1: of ref */
    void *table;
    float *x, *y, *bias[2]; /* bias: index 0 of cuda, 1 of ref; NULL without groups */
};

static void put_mat(struct fixture *f, struct layer *l, size_t i, const float *w, size_t rows,
                    size_t cols, enum dtype dtype)
{
    struct mat_source s = mat_floats(w, rows, cols);
    if (cuda_mat_make(f->cuda, &l->mat[0][i], &s, dtype) ||
        ref_mat_make(f->ref, &l->mat[1][i], &s, dtype))
        abort();
}

static struct layer layer_make(struct fixture *f, struct shape s, enum dtype dtype, int tied)
{
    struct layer l = {};
    enum dtype act = f->cuda->act = cuda_act_dtype(dtype);
    l.s = s;
    l.x = drawn(f, s.T * s.D);
    l.y = drawn(f, s.T * s.D);
    keep_all(act, l.x, s.T * s.D);
    keep_all(act, l.y, s.T * s.D);
    for (int side = 0; side < 2; side++)
        l.mat[side] = (struct mat *)mem_zero(3 * s.n, sizeof(struct mat));
    float *w = tied ? floats(s.n * s.D) : drawn(f, s.n * s.D);
    struct mat_source from = mat_floats(w, s.n, s.D);
    if (cuda_mat_make(f->cuda, &l.router[0], &from, DTYPE_F32) ||
        ref_mat_make(f->ref, &l.router[1], &from, DTYPE_F32))
        abort();
    free(w);
    const void **data = (const void **)mem_zero(3 * s.n, sizeof *data);
    for (size_t i = 0; i < 3 * s.n; i++) {
        size_t rows = i < 2 * s.n ? s.F : s.D, cols = i < 2 * s.n ? s.D : s.F;
        w = drawn(f, rows * cols);
        for (size_t j = 0; j < rows * cols; j++)
            w[j] /= sqrtf((float)cols);
        put_mat(f, &l, i, w, rows, cols, dtype);
        data[i] = l.mat[0][i].data;
        free(w);
    }
    l.table = sent(f, data, 3 * s.n * sizeof *data);
    free(data);
    if (s.groups) {
        l.bias[1] = drawn(f, s.n);
        for (size_t i = 0; i < s.n; i++)
            l.bias[1][i] *= tied ? 0 : 0.3f;
        l.bias[0] = (float *)sent(f, l.bias[1], s.n * sizeof(float));
    }
    return l;
}

static void layer_free(struct fixture *f, struct layer *l)
{
    for (size_t i = 0; i < 3 * l->s.n; i++) {
        cuda_mat_free(f->cuda, &l->mat[0][i]);
        ref_mat_free(f->ref, &l->mat[1][i]);
    }
    cuda_mat_free(f->cuda, &l->router[0]);
    ref_mat_free(f->ref, &l->router[1]);
    cuda_free(f->cuda, l->table);
    cuda_free(f->cuda, l->bias[0]);
    free(l->bias[1]);
    free(l->mat[0]), free(l->mat[1]), free(l->x), free(l->y);
}

static struct experts experts_of(const struct layer *l, int side)
{
    struct experts a = {};
    a.router = &l->router[side];
    a.gate = l->mat[side];
    a.up = l->mat[side] + l->s.n;
    a.down = l->mat[side] + 2 * l->s.n;
    a.data = l->table;
    a.n = l->s.n;
    a.used = l->s.used;
    a.bias = l->bias[side];
    a.groups = l->s.groups;
    a.groups_used = l->s.groups_used;
    a.scale = 2.5f;
    return a;
}

/* The sum of the reference. *active: the number of experts that it read. */
static float *wanted(struct fixture *f, const struct layer *l, int32_t *active)
{
    const struct shape s = l->s;
    struct experts a = experts_of(l, 1);
    float *y = floats(s.T * s.D);
    memcpy(y, l->y, s.T * s.D * sizeof *y);
    a.x = l->x, a.y = y, a.active = active;
    void *work = mem_aligned(f->ref->ops->experts_work(f->ref, s.T, s.D, s.F, s.n, s.used));
    f->ref->ops->experts(f->ref, &a, s.T, work);
    free(work);
    return y;
}

enum { GUARD = 256 };

/* The sum of the device, or NULL if it wrote beyond its work area. */
static float *got(struct fixture *f, const struct layer *l, int32_t *active)
{
    const struct shape s = l->s;
    unsigned char guard[GUARD];
    struct experts a = experts_of(l, 0);
    void *xb, *yb;
    size_t bytes = cuda_experts_work(f->cuda, s.T, s.D, s.F, s.n, s.used);
    uint8_t *work = (uint8_t *)cuda_alloc(f->cuda, bytes + GUARD, MEMORY_ACTIVATIONS);
    memset(guard, 0x5a, GUARD);
    cuda_write(f->cuda, work + bytes, guard, GUARD);
    a.x = sent_as(f, f->cuda->act, l->x, s.T * s.D, 0, &xb);
    a.y = sent_as(f, f->cuda->act, l->y, s.T * s.D, 0, &yb);
    a.active = (int32_t *)sent(f, active, sizeof *active);
    cuda_experts(f->cuda, &a, s.T, work);
    float *y = got_as(f, f->cuda->act, a.y, s.T * s.D);
    cuda_read(f->cuda, active, a.active, sizeof *active);
    cuda_read(f->cuda, guard, work + bytes, GUARD);
    for (size_t i = 0; i < GUARD; i++)
        if (guard[i] != 0x5a && y) {
            free(y);
            y = NULL;
        }
    cuda_free(f->cuda, xb), cuda_free(f->cuda, yb);
    cuda_free(f->cuda, a.active), cuda_free(f->cuda, work);
    return y;
}

/* The largest difference that rounding makes: of outputs and hidden values to act, of hidden values
 * to fp16, and of codes of x. */
static double bound_of(struct fixture *f, enum dtype dtype)
{
    return f->cuda->act != DTYPE_F32 ? 0.03 : dtype == DTYPE_F16 ? 1e-3 : 1e-5;
}

/* Many rows are computed in two pieces, and each piece reads its experts. */
static void compare(struct fixture *f, struct shape s, enum dtype dtype, int tied)
{
    if (dtype_refuses(dtype, s.D) || dtype_refuses(dtype, s.F) ||
        f->cuda->ops->refuses(f->cuda, dtype, s.D))
        return;
    struct layer l = layer_make(f, s, dtype, tied);
    int32_t active = 5, again = 5, most = 5;
    float *want = wanted(f, &l, &most), *y = got(f, &l, &active), *z = got(f, &l, &again);
    double far = y ? farthest(y, want, s.T * s.D, 1) : INFINITY;
    most += s.T > 2048 ? most - 5 : 0;
    ok(far < bound_of(f, dtype) * (s.groups ? 2.5 : 1) && active == most && active == again && z &&
           !memcmp(y, z, s.T * s.D * sizeof *y),
       "%s T %zu D %zu F %zu, %zu of %zu, %zu of %zu groups%s: %.1e, %d experts of %d",
       dtype_info[dtype].name, s.T, s.D, s.F, s.used, s.n, s.groups_used, s.groups,
       tied ? ", tied" : "", far, active - 5, most - 5);
    free(want), free(y), free(z);
    layer_free(f, &l);
}

int main(void)
{
    static const struct shape shapes[] = {
        {1, 64, 64, 3, 1, 0, 0},     {5, 64, 128, 7, 3, 0, 0}, {37, 40, 24, 5, 2, 0, 0},
        {150, 72, 40, 2, 1, 0, 0},   {3, 128, 64, 96, 8, 0, 0}, {9, 33, 17, 4, 4, 0, 0},
        {5, 64, 64, 12, 3, 4, 2},    {37, 40, 24, 6, 1, 3, 1},  {4, 64, 64, 256, 8, 8, 4},
        {9, 33, 17, 64, 5, 32, 3},   {7, 24, 40, 14, 6, 2, 1},  {6, 64, 64, 9, 9, 1, 1}};
    struct fixture f = fixture_open();
    for (int d = 0; d < DTYPES; d++) {
        if (cuda_refuses(f.cuda, (enum dtype)d, 64))
            continue;
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            compare(&f, shapes[i], (enum dtype)d, 0);
        compare(&f, {6, 64, 64, 9, 2, 0, 0}, (enum dtype)d, 1);
        compare(&f, {6, 64, 64, 12, 3, 4, 2}, (enum dtype)d, 1);
    }
    struct device *d = device_of(f.cuda);
    d->shared_max = 48 << 10; /* several slabs */
    compare(&f, {20, 2048, 64, 3, 2, 0, 0}, DTYPE_BF16, 0);
    compare(&f, {70, 1024, 128, 2, 1, 0, 0}, DTYPE_NF4, 0);
    compare(&f, {70, 2048, 64, 2, 2, 0, 0}, DTYPE_INT8, 0);
    compare(&f, {2090, 8, 8, 3, 2, 0, 0}, DTYPE_BF16, 0);
    compare(&f, {2090, 8, 8, 6, 2, 3, 2}, DTYPE_F32, 0);
    fixture_close(&f);
    return tap_done();
}
