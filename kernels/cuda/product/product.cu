/* product.cu - chooses the kernel of a product:
 *
 *     fp32 rows            f32_product.cu; from some number of rows on the library (library_above)
 *     T <= few (formats.h) gemv.cu, one kernel, if the shared memory of an SM holds two blocks
 *     T <= 8               few.cu, except INT8, if K is a multiple of 8 and rows are aligned
 *     T = 65 .. 256        FP8 and blocks on Hopper: wide.cu and finish.cu (wide_plan.h)
 *     T <= library_above   skinny.cu and finish.cu, 64 rows at a time
 *     more rows            large.cu (the library); without the library skinny.cu and finish.cu
 *
 * If the product has a gain, gemv.cu normalizes the rows itself, and few.cu up to four rows. All
 * other kernels read rows that were normalized into `work`. work holds these rows, then the work of
 * the chosen kernel. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/product/slices.h"
#include "kernels/cuda/product/wide_plan.h"

/* ---- the cases ---- */

static void skinny_all(struct backend *backend, const struct product_job *j, const void *x,
                       void *work)
{
    const struct device *device = device_of(backend);
    struct coded_rows rows = {};
    uint8_t *at = static_cast<uint8_t *>(work);
    const void *read = x;
    size_t ldx = j->K;
    if (x_coded(j->dtype)) {
        struct coding coding = coding_at(at, j->T, j->K);
        rows = coding_make(backend, &coding, j->dtype, x, j->T, j->K);
        read = coding.code;
        ldx = coding.codes;
        at += coding.bytes;
    }
    struct skinny_plan plan = skinny_plan(j, (uint32_t)device->sms, device->shared_max);
    skinny(backend, j, &plan, read, ldx, at);
    finish(backend, j, &rows, at, plan.splits);
}

/* Most rows that skinny.cu takes in one launch. */
static uint32_t skinny_rows(const struct backend *backend, const struct product_job *j)
{
    const struct device *device = device_of(backend);
    return skinny_plan(j, (uint32_t)device->sms, device->shared_max).rows;
}

static const void *row_at(const struct product_job *j, const void *x, uint32_t row)
{
    return static_cast<const uint8_t *>(x) + (size_t)row * j->K * (exact_rows(j->dtype) ? 4 : 2);
}

/* Computes a product of rows x that are normalized already. */
static void product_normed(struct backend *backend, const struct product_job *j, const void *x,
                           void *work)
{
    if (wide(backend, j, x, work) || (j->T > library_above(j->dtype) && large(backend, j, x, work)))
        return;
    if (exact_rows(j->dtype)) {
        f32_product(backend, j, static_cast<const float *>(x));
        return;
    }
    uint32_t most = skinny_rows(backend, j);
    for (uint32_t row = 0; row < j->T; row += most) {
        struct product_job part = job_rows(j, row, plan_least(most, j->T - row));
        skinny_all(backend, &part, row_at(j, x, row), work);
    }
}

/* Bytes of `work` for T rows at a time: normed_bytes() for the normalized rows, rest_bytes() for
 * the work of the chosen kernel. */
static size_t normed_bytes(enum dtype dtype, size_t T, size_t K)
{
    return layout_up(T * K * (exact_rows(dtype) ? 4 : 2), 256);
}

static size_t rest_bytes(const struct backend *backend, enum dtype dtype, size_t T, size_t K,
                         size_t N)
{
    const struct device *device = device_of(backend);
    size_t some = T < SKINNY_ROWS ? T : (size_t)SKINNY_ROWS, own = 0;
    size_t library = large_work(dtype, T, K, N);
    if (!exact_rows(dtype))
        own = skinny_sums(dtype, some, K, N, device->shared_max) +
              (x_coded(dtype) ? coding_at(nullptr, some, K).bytes : 0);
    size_t widened = wide_work_most(dtype, T, K, N, (uint32_t)device->sms, device->wide);
    own = own > widened ? own : widened;
    return own > library ? own : library;
}

/* The number of rows of one piece if `work` holds rows that are normalized, coded or summed. The
 * limit keeps `work` small. */
static size_t rows_at_once(enum dtype dtype, size_t T, size_t K, size_t N)
{
    size_t row = K * (exact_rows(dtype) ? 4 : 2) + (x_coded(dtype) ? K + K / 8 + 64 : 0);
    if (!widens(dtype))
        row += N * (dtype == DTYPE_BF16 ? 2 : 4);
    size_t room = widens(dtype) ? (size_t)NORMED_MOST : (size_t)WORK_MOST;
    size_t most = room / row / SKINNY_ROWS * SKINNY_ROWS;
    if (x_coded(dtype) && most > ROWS_MOST)
        most = ROWS_MOST;
    if (widens(dtype) && most > RUN_LIMIT)
        most = RUN_LIMIT;
    most = most < SKINNY_ROWS ? (size_t)SKINNY_ROWS : most;
    return T < most ? T : most;
}

/* The number of rows of one piece. All rows are one piece if only the library is called, which
 * needs no work; as many as RUN_LIMIT are one piece if work holds only a slice and some sums. */
static uint32_t rows_of_piece(const struct product_job *j, const struct input *in)
{
    int alone = !in->gain && (j->kind == JOB_ROWS || j->kind == JOB_FLOATS), adds = 0;
    for (uint32_t i = 0; i < j->n; i++)
        adds |= j->add[i];
    if (alone && (j->dtype == DTYPE_F32 || (j->dtype == DTYPE_BF16 && !adds)))
        return j->T;
    if (!in->gain && widens(j->dtype))
        return piece_of(j->T, RUN_LIMIT, PIECE_GRAIN);
    return piece_of(j->T, (uint32_t)rows_at_once(j->dtype, j->T, j->K, j->columns), PIECE_GRAIN);
}

static void product(struct backend *backend, struct product_job *j, struct input in, void *work)
{
    job_settle(j);
    if (j->T == 0 || job_tiles(j) == 0)
        return;
    const struct bf16_input rows = {static_cast<const uint16_t *>(in.x), in.gain, (float)in.eps};
    if (!exact_rows(j->dtype) && (gemv(backend, j, &rows) || few(backend, j, rows, work)))
        return;
    uint32_t most = rows_of_piece(j, &in);
    for (uint32_t row = 0; row < j->T; row += most) {
        struct product_job part = job_rows(j, row, plan_least(most, j->T - row));
        const void *x = row_at(j, in.x, row);
        uint8_t *rest = static_cast<uint8_t *>(work);
        if (in.gain) {
            cuda_rmsnorm(backend, work, x, nullptr, in.gain, part.T, j->K, in.eps);
            x = work;
            rest += normed_bytes(j->dtype, part.T, j->K);
        }
        product_normed(backend, &part, x, rest);
    }
}

/* ---- the operations ---- */

void cuda_matmul(struct backend *backend, const struct product *p, size_t n, struct input in,
                 size_t T, void *work)
{
    struct range here("matmul");
    struct product_job j = job_of(JOB_ROWS, p[0].w, T);
    for (size_t i = 0; i < n; i++)
        job_put(&j, p[i].w, p[i].y, p[i].w->rows, p[i].add);
    product(backend, &j, in, work);
}

void cuda_gated(struct backend *backend, act *y, struct input in, const struct mat *gate,
                const struct mat *up, size_t T, void *work)
{
    struct range here("gated");
    struct product_job j = job_of(JOB_GATED, gate, T);
    job_put(&j, gate, y, gate->rows, 0);
    job_put(&j, up, y, gate->rows, 0);
    product(backend, &j, in, work);
}

/* Bytes of k or v of T rows, in the format of the activations. */
static size_t aside_bytes(const struct backend *backend, size_t T, size_t values)
{
    return layout_up(T * values * (backend->act == DTYPE_F32 ? 4 : 2), 256);
}

/* qkv with biases or norms of heads: first the products, with k and v in `work`, then heads.cu. */
static void qkv_in_steps(struct backend *backend, const struct qkv *qkv, size_t T, void *work)
{
    uint8_t *k = static_cast<uint8_t *>(work), *v = k + aside_bytes(backend, T, qkv->wk->rows);
    const struct product product[] = {{qkv->wq, qkv->q, 0}, {qkv->wk, k, 0}, {qkv->wv, v, 0}};
    cuda_matmul(backend, product, 3, qkv->in, T, v + aside_bytes(backend, T, qkv->wv->rows));
    cuda_head_rows(backend, qkv, k, v, T);
}

size_t cuda_qkv_work(const struct backend *backend, size_t T, size_t D, size_t heads,
                     size_t kv_heads, size_t head_dim, int steps)
{
    return cuda_matmul_work(backend, T, D, (heads + 2 * kv_heads) * head_dim) +
           (steps ? 2 * aside_bytes(backend, T, kv_heads * head_dim) : 0);
}

void cuda_qkv(struct backend *backend, const struct qkv *qkv, size_t T, void *work)
{
    struct range here("qkv");
    if (qkv->bias[0] || qkv->head_gain[0]) {
        qkv_in_steps(backend, qkv, T, work);
        return;
    }
    struct product_job j = job_of(JOB_QKV, qkv->wq, T);
    job_put(&j, qkv->wq, qkv->q, qkv->wq->rows, 0);
    job_put(&j, qkv->wk, qkv->to.k, qkv->wk->rows, 0);
    job_put(&j, qkv->wv, qkv->to.v, qkv->wv->rows, 0);
    j.table = qkv->table;
    j.slot = qkv->slot;
    j.head_dim = (uint32_t)qkv->head_dim;
    j.cache_f32 = qkv->to.dtype == DTYPE_F32;
    product(backend, &j, qkv->in, work);
}

void cuda_logits(struct backend *backend, float *y, const struct mat *weight, size_t first,
                 size_t n, const act *x, size_t T, void *work)
{
    struct product_job j = job_of(JOB_FLOATS, weight, T);
    job_put(&j, weight, y, n, 0);
    j.w[0].begin = (uint32_t)first;
    j.w[0].rows = (uint32_t)n;
    product(backend, &j, {x, nullptr, 0}, work);
}

size_t cuda_matmul_work(const struct backend *backend, size_t T, size_t K, size_t N)
{
    size_t most = 0;
    for (int i = 0; i < DTYPES; i++) {
        enum dtype dtype = static_cast<enum dtype>(i);
        if (cuda_act_dtype(dtype) != backend->act || !format_row(dtype).x_bytes)
            continue;
        size_t rows = rows_at_once(dtype, T, K, N);
        size_t bytes = normed_bytes(dtype, rows, K) +
                       rest_bytes(backend, dtype, widens(dtype) ? T : rows, K, N);
        most = bytes > most ? bytes : most;
    }
    return most;
}
