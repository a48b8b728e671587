/* large.cu - products for many rows (prefill, whole canvases) by the library, with kernels of
 * kernels/cuda before and after it.
 *
 *     F32, BF16          directly (F32 as backend.tf32 allows). Three kinds of products go through
 *                        `work`: gate and up; k and v with slots; bf16 products that are added to
 *                        y. The last are rounded to bf16 first; the next norm may add them (struct
 *                        later)
 *     INT8               codes of x, exact int32 sums, then scales and outliers
 *                        (finish_int8.cu; int8-vector: finish.cu)
 *     F32, BF16, INT8    gate and up are one batch of products. q, k and v are one batch if their
 *                        matrices have equal numbers of rows and equal distances
 *     FP8, 4 bits, ..F32 a slice of W is widened into `work` (widen.cu) for all rows of the call;
 *                        fp32 sums of as many rows as fit, then finish.cu
 *
 * 4 bits are widened to bf16(level * absmax), as in bitsandbytes and in wide.cu. gemv.cu,
 * few.cu and skinny.cu round the level and use absmax in fp32 (kernels/quant.h). */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/product/slices.h"

/* The type of a library call for F32 matrices. */
static enum gemm_job::gemm_type f32_type(const struct backend *backend)
{
    return backend->tf32 ? gemm_job::GEMM_TF32 : gemm_job::GEMM_F32;
}

static size_t value_bytes(enum gemm_job::gemm_type type)
{
    switch (type) {
    case gemm_job::GEMM_F32:
    case gemm_job::GEMM_TF32: return 4;
    case gemm_job::GEMM_S8: return 1;
    default: return 2;
    }
}

static struct gemm_job gemm_of(const struct product_job *j, uint32_t i,
                               enum gemm_job::gemm_type type, const void *x, size_t ldx, void *y,
                               size_t ldy)
{
    const struct operand *operand = &j->w[i];
    return {y, x, operand->code + (size_t)operand->begin * j->stride, type, j->T, operand->rows,
            j->K, ldy, ldx, j->stride / value_bytes(type), 0, 0, 0};
}

static int takes_all(struct backend *backend, const struct gemm_job *job, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!gemm_takes(backend, &job[i]))
            return 0;
    return 1;
}

static void gemm_all(struct backend *backend, const struct gemm_job *job, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        gemm(backend, &job[i]);
}

/* 1 if the product of k or v can be written directly into the cache. */
static int stored(const struct product_job *j)
{
    return !j->slot && j->cache_f32 == (j->dtype == DTYPE_F32);
}

/* The part of qkv after its three products: calls cuda_rotate_store(). */
static void rotate_store(struct backend *backend, const struct product_job *j,
                         const struct qkv_made *made)
{
    struct qkv qkv = {};
    qkv.table = j->table;
    qkv.q = j->y[0];
    qkv.to.k = j->y[1];
    qkv.to.v = j->y[2];
    qkv.to.dtype = j->cache_f32 ? DTYPE_F32 : DTYPE_BF16;
    qkv.slot = j->slot;
    qkv.heads = j->w[0].rows / j->head_dim;
    qkv.kv_heads = j->w[1].rows / j->head_dim;
    qkv.head_dim = j->head_dim;
    cuda_rotate_store(backend, &qkv, made, j->T);
}

/* Finishes products that are in `work`. out[i]: the place of product i. */
static void settle_aside(struct backend *backend, const struct product_job *j,
                         void *const out[MATRICES])
{
    const struct qkv_made there = {nullptr, nullptr, nullptr, j->w[1].rows};
    const struct qkv_made aside = {nullptr, out[1], out[2], j->w[1].rows};
    if (j->kind == JOB_GATED)
        cuda_swiglu_rows(backend, j->y[0], out[0], out[1], j->w[0].rows, j->T, j->w[0].rows);
    if (j->kind == JOB_QKV)
        rotate_store(backend, j, stored(j) ? &there : &aside);
    for (uint32_t i = 0; j->kind == JOB_ROWS && i < j->n; i++)
        if (out[i] != j->y[i])
            finish_add(backend, j->y[i], out[i], (size_t)j->T * j->w[i].rows);
}

/* 1 if product i is written to `work` first. */
static int goes_aside(const struct product_job *j, uint32_t i)
{
    return j->kind == JOB_GATED || (j->kind == JOB_QKV && i > 0 && !stored(j)) ||
           (j->kind == JOB_ROWS && j->add[i] && j->dtype == DTYPE_BF16);
}

/* Describes all matrices as one batch. at[i] = the place of product i among all in order of
 * addresses. */
static struct gemm_job batch_of(const struct product_job *j, enum gemm_job::gemm_type type,
                                const void *x, size_t ldx, void *y, uint32_t at[MATRICES])
{
    ptrdiff_t step = step_to_next(j, 0);
    uint32_t first = step < 0 ? j->n - 1 : 0;
    struct gemm_job job = gemm_of(j, first, type, x, ldx, y, j->columns);
    job.batch = j->n;
    job.step = (size_t)(step < 0 ? -step : step) / value_bytes(type);
    for (uint32_t i = 0; i < j->n; i++)
        at[i] = first ? first - i : i;
    return job;
}

/* Computes all matrices as one batch, so that several hundred rows give every multiprocessor a
 * tile. Outputs are side by side in `work`, [T, columns], in the order of the matrices' addresses.
 * Returns 0 if the library does not take the batch. */
static int large_batch(struct backend *backend, const struct product_job *j, const void *x,
                       void *work)
{
    enum gemm_job::gemm_type type = j->dtype == DTYPE_F32 ? f32_type(backend) : gemm_job::GEMM_BF16;
    size_t N = j->w[0].rows;
    uint32_t at[MATRICES];
    struct gemm_job job = batch_of(j, type, x, j->K, work, at);
    if (!gemm_takes(backend, &job))
        return 0;
    gemm(backend, &job);
    const uint8_t *part[MATRICES];
    for (uint32_t i = 0; i < j->n; i++)
        part[i] = static_cast<uint8_t *>(work) + at[i] * N * value_bytes(type);
    if (j->kind == JOB_GATED) {
        cuda_swiglu_rows(backend, j->y[0], part[0], part[1], j->columns, j->T, N);
        return 1;
    }
    const struct qkv_made made = {part[0], part[1], part[2], j->columns};
    rotate_store(backend, j, &made);
    return 1;
}

/* large() for weights in the format of the activations. */
static int large_straight(struct backend *backend, const struct product_job *j, const void *x,
                          void *work)
{
    enum gemm_job::gemm_type type = j->dtype == DTYPE_F32     ? f32_type(backend)
                                    : j->kind == JOB_FLOATS ? gemm_job::GEMM_BF16_F32
                                                            : gemm_job::GEMM_BF16;
    if (is_batch(j) && large_batch(backend, j, x, work))
        return 1;
    size_t act_bytes = j->dtype == DTYPE_F32 ? 4 : 2;
    uint8_t *free_at = static_cast<uint8_t *>(work);
    void *out[MATRICES];
    struct gemm_job job[MATRICES];
    for (uint32_t i = 0; i < j->n; i++) {
        int aside = goes_aside(j, i);
        out[i] = aside ? free_at : j->y[i];
        free_at += aside ? layout_up((size_t)j->T * j->w[i].rows * act_bytes, 256) : 0;
        job[i] = gemm_of(j, i, type, x, j->K, out[i], aside ? j->w[i].rows : j->ldy[i]);
        job[i].add = j->add[i] && !aside;
    }
    if (!takes_all(backend, job, j->n))
        return 0;
    gemm_all(backend, job, j->n);
    settle_aside(backend, j, out);
    return 1;
}

/* Describes the sums of an INT8 job as n calls: one batch, or one call for each matrix. *done = the
 * job with the columns of these sums. Returns 0 if the library does not take the calls. */
static int int8_gemms(struct backend *backend, const struct product_job *j,
                      const struct coding *coding, int32_t *sums, struct gemm_job job[MATRICES],
                      uint32_t *n, struct product_job *done)
{
    uint32_t at[MATRICES];
    *done = *j;
    if (is_batch(j)) {
        job[0] = batch_of(j, gemm_job::GEMM_S8, coding->code, coding->codes, sums, at);
        job[0].K = coding->codes; /* beyond K the rows of x and W are zeros */
        for (uint32_t i = 0; i < j->n; i++)
            done->w[i].column = at[i] * j->w[0].rows;
        *n = 1;
        if (takes_all(backend, job, 1))
            return 1;
        *done = *j;
    }
    for (*n = 0; *n < j->n; ++*n) {
        job[*n] = gemm_of(j, *n, gemm_job::GEMM_S8, coding->code, coding->codes,
                          sums + j->w[*n].column, j->columns);
        job[*n].K = coding->codes;
    }
    return takes_all(backend, job, *n);
}

static int large_int8(struct backend *backend, const struct product_job *j, const void *x,
                      void *work)
{
    struct coding coding = coding_at(work, j->T, j->K);
    int32_t *sums = reinterpret_cast<int32_t *>(static_cast<uint8_t *>(work) + coding.bytes);
    struct product_job done;
    struct gemm_job job[MATRICES];
    uint32_t n;
    if (!int8_gemms(backend, j, &coding, sums, job, &n, &done))
        return 0;
    struct coded_rows rows = coding_make(backend, &coding, j->dtype, x, j->T, j->K);
    gemm_all(backend, job, n);
    if (j->dtype == DTYPE_INT8)
        finish_int8(backend, &done, &coding, &rows, sums);
    else
        finish(backend, &done, &rows, sums, 1);
    return 1;
}

/* ---- weights that are widened: for each slice, all runs of rows ---- */

/* A slice of W: the job s for its rows, its widened values at w, and memory for its sums. */
struct slice {
    struct product_job s;
    uint8_t *w;
    float *sums;
};

/* Describes the product of a run of rows of x and the slice, whose widened matrices lie behind each
 * other like one matrix. */
static struct gemm_job slice_gemm(const struct slice *slice, const struct product_job *run,
                                  const uint8_t *x)
{
    const struct product_job *job = &slice->s;
    enum gemm_job::gemm_type type =
        widened_value(job->dtype) == 2 ? gemm_job::GEMM_BF16_F32 : gemm_job::GEMM_F32;
    return {slice->sums, x,      slice->w, type, run->T, job->columns, job->K, job->columns,
            job->K,      job->K, 0,        0,    0};
}

static void slice_widen(struct backend *backend, const struct slice *slice)
{
    for (uint32_t i = 0; i < slice->s.n; i++)
        if (slice->s.w[i].rows)
            widen(backend,
                  slice->w +
                      (size_t)slice->s.w[i].column * slice->s.K * widened_value(slice->s.dtype),
                  &slice->s, &slice->s.w[i]);
}

/* Multiplies all rows of x by one slice. ask 1: only asks whether the library takes the products.
 * Returns 0 if it does not. */
static int large_slice(struct backend *backend, const struct slice *slice, const void *x, int ask)
{
    const struct coded_rows none = {};
    uint32_t most = run_rows(&slice->s);
    if (!ask)
        slice_widen(backend, slice);
    for (uint32_t row = 0; row < slice->s.T; row += most) {
        struct product_job run = job_rows(&slice->s, row, plan_least(most, slice->s.T - row));
        struct gemm_job job = slice_gemm(slice, &run, static_cast<const uint8_t *>(x) +
                                                    (size_t)row * run.K * widened_value(run.dtype));
        if (ask && !gemm_takes(backend, &job))
            return 0;
        if (ask)
            continue;
        gemm(backend, &job);
        finish(backend, &run, &none, slice->sums, 1);
    }
    return 1;
}

static int slice_in(struct backend *backend, const struct product_job *slice, const void *x,
                    void *work, int ask)
{
    struct slice a = {*slice, static_cast<uint8_t *>(work), nullptr};
    size_t copy = (size_t)slice->columns * slice->K * widened_value(slice->dtype);
    a.sums = reinterpret_cast<float *>(a.w + layout_up(copy, 256));
    return large_slice(backend, &a, x, ask);
}

static int all_slices(struct backend *backend, const struct product_job *j, const void *x,
                      void *work, int ask)
{
    if (slice_whole(j))
        return slice_in(backend, j, x, work, ask);
    for (uint32_t i = 0; i < (j->kind == JOB_GATED ? 1 : j->n); i++) {
        uint32_t rows = j->w[i].rows, most = slice_rows(j, i);
        for (uint32_t first = 0; first < rows; first += most) {
            struct product_job job = job_slice(j, i, first, plan_least(most, rows - first));
            if (!slice_in(backend, &job, x, work, ask))
                return 0;
        }
    }
    return 1;
}

static int large_sliced(struct backend *backend, const struct product_job *j, const void *x,
                        void *work)
{
    if (j->K % 8 || !slices_fit(j) || !all_slices(backend, j, x, work, 1))
        return 0;
    return all_slices(backend, j, x, work, 0);
}

int large(struct backend *backend, const struct product_job *j, const void *x, void *work)
{
    if (widens(j->dtype))
        return large_sliced(backend, j, x, work);
    return x_coded(j->dtype) ? large_int8(backend, j, x, work)
                             : large_straight(backend, j, x, work);
}

size_t large_work(enum dtype dtype, size_t T, size_t K, size_t N)
{
    size_t tails = 4 * 256;
    if (T <= library_above(dtype)) /* the library is not used */
        return 0;
    if (widens(dtype))
        return slice_work(dtype, T, K, N);
    if (x_coded(dtype))
        return coding_at(nullptr, T, K).bytes + T * N * 4;
    return T * N * dtype_value_bytes(dtype) + tails;
}
