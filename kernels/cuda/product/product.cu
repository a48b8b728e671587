/* product.cu - chooses the kernel of a product:
 *
 *     fp32 rows            f32_product.cu; from some number of rows on the library (library_above)
 *     T <= few             gemv.cu, one kernel, if x fits in shared memory (few: formats.h)
 *     65 .. 256            wide.cu and finish.cu: FP8 and blocks on Hopper (wide_plan.h)
 *     T <= library_above   skinny.cu and finish.cu, 64 rows at a time
 *     more                 large.cu (the library); without the library as above
 *
 * All but gemv.cu read rows that were normalized into `work`. `work` holds: rows, then the work of
 * the chosen kernel. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/product/slices.h"
#include "kernels/cuda/product/wide_plan.h"

/* ---- the cases ---- */

static void skinny_all(struct backend *b, const struct product_job *j, const void *x, void *work)
{
    const struct device *d = device_of(b);
    struct coded_rows rows = {};
    uint8_t *at = static_cast<uint8_t *>(work);
    const void *read = x;
    size_t ldx = j->K;
    if (x_coded(j->dtype)) {
        struct coding c = coding_at(at, j->T, j->K);
        rows = coding_make(b, &c, j->dtype, x, j->T, j->K);
        read = c.code;
        ldx = c.codes;
        at += c.bytes;
    }
    struct skinny_plan p = skinny_plan(j, (uint32_t)d->sms, d->shared_max);
    skinny(b, j, &p, read, ldx, at);
    finish(b, j, &rows, at, p.splits);
}

/* Most rows that skinny.cu takes in one launch. */
static uint32_t skinny_rows(const struct backend *b, const struct product_job *j)
{
    const struct device *d = device_of(b);
    return skinny_plan(j, (uint32_t)d->sms, d->shared_max).rows;
}

static const void *row_at(const struct product_job *j, const void *x, uint32_t t)
{
    return static_cast<const uint8_t *>(x) + (size_t)t * j->K * (exact_rows(j->dtype) ? 4 : 2);
}

/* x: normalized rows. */
static void product_normed(struct backend *b, const struct product_job *j, const void *x,
                           void *work)
{
    if (wide(b, j, x, work) || (j->T > library_above(j->dtype) && large(b, j, x, work)))
        return;
    if (exact_rows(j->dtype)) {
        f32_product(b, j, static_cast<const float *>(x));
        return;
    }
    uint32_t most = skinny_rows(b, j);
    for (uint32_t t = 0; t < j->T; t += most) {
        struct product_job part = job_rows(j, t, plan_least(most, j->T - t));
        skinny_all(b, &part, row_at(j, x, t), work);
    }
}

/* Bytes of `work` for T rows at a time: normalized rows, then the rest. */
static size_t normed_bytes(enum dtype dtype, size_t T, size_t K)
{
    return layout_up(T * K * (exact_rows(dtype) ? 4 : 2), 256);
}

static size_t rest_bytes(const struct backend *b, enum dtype dtype, size_t T, size_t K, size_t N)
{
    const struct device *d = device_of(b);
    size_t some = T < SKINNY_ROWS ? T : (size_t)SKINNY_ROWS, own = 0;
    size_t library = large_work(dtype, T, K, N);
    if (!exact_rows(dtype))
        own = skinny_sums(dtype, some, K, N, d->shared_max) +
              (x_coded(dtype) ? coding_at(nullptr, some, K).bytes : 0);
    size_t widened = wide_work_most(dtype, T, K, N, (uint32_t)d->sms, d->wide);
    own = own > widened ? own : widened;
    return own > library ? own : library;
}

/* Rows of one piece. A limit keeps `work` small, which holds normalized, coded or summed rows. */
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

/* Rows of a piece. All rows at once if only the library is called, which needs no work, or if work
 * holds only a slice and some sums. */
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

static void product(struct backend *b, struct product_job *j, struct input in, void *work)
{
    job_settle(j);
    if (j->T == 0 || job_tiles(j) == 0)
        return;
    const struct bf16_input rows = {static_cast<const uint16_t *>(in.x), in.gain, (float)in.eps};
    if (!exact_rows(j->dtype) && gemv(b, j, &rows))
        return;
    uint32_t most = rows_of_piece(j, &in);
    for (uint32_t t = 0; t < j->T; t += most) {
        struct product_job part = job_rows(j, t, plan_least(most, j->T - t));
        const void *x = row_at(j, in.x, t);
        uint8_t *rest = static_cast<uint8_t *>(work);
        if (in.gain) {
            cuda_rmsnorm(b, work, x, nullptr, in.gain, part.T, j->K, in.eps);
            x = work;
            rest += normed_bytes(j->dtype, part.T, j->K);
        }
        product_normed(b, &part, x, rest);
    }
}

/* ---- the operations ---- */

void cuda_matmul(struct backend *b, const struct product *p, size_t n, struct input in, size_t T,
                 void *work)
{
    struct range here("matmul");
    struct product_job j = job_of(JOB_ROWS, p[0].w, T);
    for (size_t i = 0; i < n; i++)
        job_put(&j, p[i].w, p[i].y, p[i].w->rows, p[i].add);
    product(b, &j, in, work);
}

void cuda_gated(struct backend *b, act *y, struct input in, const struct mat *gate,
                const struct mat *up, size_t T, void *work)
{
    struct range here("gated");
    struct product_job j = job_of(JOB_GATED, gate, T);
    job_put(&j, gate, y, gate->rows, 0);
    job_put(&j, up, y, gate->rows, 0);
    product(b, &j, in, work);
}

/* Bytes of k or v of T rows, in the format of the activations. */
static size_t aside_bytes(const struct backend *b, size_t T, size_t values)
{
    return layout_up(T * values * (b->act == DTYPE_F32 ? 4 : 2), 256);
}

/* With steps between product and rotation: first the products, with k and v in `work`; then
 * heads.cu. */
static void qkv_in_steps(struct backend *b, const struct qkv *a, size_t T, void *work)
{
    uint8_t *k = static_cast<uint8_t *>(work), *v = k + aside_bytes(b, T, a->wk->rows);
    const struct product p[] = {{a->wq, a->q, 0}, {a->wk, k, 0}, {a->wv, v, 0}};
    cuda_matmul(b, p, 3, a->in, T, v + aside_bytes(b, T, a->wv->rows));
    cuda_head_rows(b, a, k, v, T);
}

size_t cuda_qkv_work(const struct backend *b, size_t T, size_t D, size_t heads, size_t kv_heads,
                     size_t head_dim, int steps)
{
    return cuda_matmul_work(b, T, D, (heads + 2 * kv_heads) * head_dim) +
           (steps ? 2 * aside_bytes(b, T, kv_heads * head_dim) : 0);
}

void cuda_qkv(struct backend *b, const struct qkv *a, size_t T, void *work)
{
    struct range here("qkv");
    if (a->bias[0] || a->head_gain[0]) {
        qkv_in_steps(b, a, T, work);
        return;
    }
    struct product_job j = job_of(JOB_QKV, a->wq, T);
    job_put(&j, a->wq, a->q, a->wq->rows, 0);
    job_put(&j, a->wk, a->to.k, a->wk->rows, 0);
    job_put(&j, a->wv, a->to.v, a->wv->rows, 0);
    j.table = a->table;
    j.slot = a->slot;
    j.head_dim = (uint32_t)a->head_dim;
    j.cache_f32 = a->to.dtype == DTYPE_F32;
    product(b, &j, a->in, work);
}

void cuda_logits(struct backend *b, float *y, const struct mat *w, size_t first, size_t n,
                 const act *x, size_t T, void *work)
{
    struct product_job j = job_of(JOB_FLOATS, w, T);
    job_put(&j, w, y, n, 0);
    j.w[0].begin = (uint32_t)first;
    j.w[0].rows = (uint32_t)n;
    product(b, &j, {x, nullptr, 0}, work);
}

size_t cuda_matmul_work(const struct backend *b, size_t T, size_t K, size_t N)
{
    size_t most = 0;
    for (int i = 0; i < DTYPES; i++) {
        enum dtype d = static_cast<enum dtype>(i);
        if (cuda_act_dtype(d) != b->act || !format_row(d).x_bytes)
            continue;
        size_t rows = rows_at_once(d, T, K, N);
        size_t bytes = normed_bytes(d, rows, K) + rest_bytes(b, d, widens(d) ? T : rows, K, N);
        most = bytes > most ? bytes : most;
    }
    return most;
}
