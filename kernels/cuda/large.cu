/* large.cu - products for many rows (prefill, whole canvases): by the library, with own kernels
 * before and after it.
 *
 *     F32, BF16        straight; gate, up, and k and v with slots by way of `work`
 *     INT8             codes of x, exact int32 sums, then scales and outliers (finish.cu)
 *     FP8, BF16_F32    a slice of W is widened (exactly) into `work`, fp32 sums, finish.cu
 *
 * NF4 wants its absmax in fp32 on the sums of every 64 values, which no library has: skinny.cu.
 */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/product.h"

#define SLICE_BYTES ((size_t)16 << 20)

static struct gemm_job gemm_of(const struct job *j, uint32_t i, enum gemm_job::gemm_type type,
                               const void *x, size_t ldx, void *y, size_t ldy)
{
    const struct operand *w = &j->w[i];
    size_t value = type == gemm_job::GEMM_F32 ? 4 : type == gemm_job::GEMM_S8 ? 1 : 2;
    return {y, x, w->code + (size_t)w->begin * j->stride, type, j->T, w->rows, j->K, ldy, ldx,
            j->stride / value, 0};
}

static int takes_all(struct backend *b, const struct gemm_job *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!gemm_takes(b, &g[i]))
            return 0;
    return 1;
}

static void gemm_all(struct backend *b, const struct gemm_job *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        gemm(b, &g[i]);
}

/* 1: the product of k or v can write into the cache itself. */
static int stored(const struct job *j)
{
    return !j->slot && j->cache_f32 == (j->dtype == DTYPE_F32);
}

/* What is left of qkv behind its three products: see cuda_rotate_store. */
static void rotate_store(struct backend *b, const struct job *j, void *k, const void *v)
{
    struct qkv a = {};
    a.table = j->table;
    a.q = j->y[0];
    a.to.k = j->y[1];
    a.to.v = j->y[2];
    a.to.dtype = j->cache_f32 ? DTYPE_F32 : DTYPE_BF16;
    a.slot = j->slot;
    a.heads = j->w[0].rows / j->head_dim;
    a.kv_heads = j->w[1].rows / j->head_dim;
    a.head_dim = j->head_dim;
    cuda_rotate_store(b, &a, k, v, j->T);
}

/* Weights in the format of the activations. */
static int large_straight(struct backend *b, const struct job *j, const void *x, void *work)
{
    enum gemm_job::gemm_type type = j->dtype == DTYPE_F32     ? gemm_job::GEMM_F32
                                    : j->kind == JOB_FLOATS ? gemm_job::GEMM_BF16_F32
                                                            : gemm_job::GEMM_BF16;
    size_t act_bytes = j->dtype == DTYPE_F32 ? 4 : 2;
    uint8_t *free_at = static_cast<uint8_t *>(work);
    void *out[MATRICES];
    struct gemm_job g[MATRICES];
    for (uint32_t i = 0; i < j->n; i++) {
        int aside = j->kind == JOB_GATED || (j->kind == JOB_QKV && i > 0 && !stored(j));
        out[i] = aside ? free_at : j->y[i];
        free_at += aside ? layout_up((size_t)j->T * j->w[i].rows * act_bytes, 256) : 0;
        g[i] = gemm_of(j, i, type, x, j->K, out[i], aside ? j->w[i].rows : j->ldy[i]);
        g[i].add = j->add[i];
    }
    if (!takes_all(b, g, j->n))
        return 0;
    gemm_all(b, g, j->n);
    if (j->kind == JOB_GATED)
        cuda_swiglu_rows(b, j->y[0], out[0], out[1], j->w[0].rows, j->T, j->w[0].rows);
    if (j->kind == JOB_QKV)
        rotate_store(b, j, stored(j) ? nullptr : out[1], stored(j) ? nullptr : out[2]);
    return 1;
}

static int large_int8(struct backend *b, const struct job *j, const void *x, void *work)
{
    struct coding c = coding_at(work, j->T, j->K);
    int32_t *sums = reinterpret_cast<int32_t *>(static_cast<uint8_t *>(work) + c.bytes);
    struct gemm_job g[MATRICES];
    for (uint32_t i = 0; i < j->n; i++) {
        g[i] = gemm_of(j, i, gemm_job::GEMM_S8, c.code, c.codes, sums + j->w[i].column,
                       j->columns);
        g[i].K = c.codes; /* the tails of both are zeros */
    }
    if (!takes_all(b, g, j->n))
        return 0;
    struct coded_rows rows = coding_make(b, &c, x, j->T, j->K);
    gemm_all(b, g, j->n);
    finish(b, j, &rows, sums, 1);
    return 1;
}

/* One slice: widened W first, then its sums. ask: only whether the library takes it. */
static int large_slice(struct backend *b, const struct job *s, const void *x, void *work, int ask)
{
    int fp8 = s->dtype == DTYPE_FP8;
    uint8_t *at = static_cast<uint8_t *>(work);
    size_t widened = layout_up((size_t)s->columns * s->K * (fp8 ? 2 : 4), 256);
    float *sums = reinterpret_cast<float *>(at + widened);
    struct gemm_job g[MATRICES];
    uint32_t n = 0, from[MATRICES];
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->w[i].rows == 0)
            continue;
        g[n] = gemm_of(s, i, fp8 ? gemm_job::GEMM_BF16_F32 : gemm_job::GEMM_F32, x, s->K,
                       sums + s->w[i].column, s->columns);
        g[n].w = at + (size_t)s->w[i].column * s->K * (fp8 ? 2 : 4);
        g[n].ldw = s->K;
        from[n++] = i;
    }
    if (ask)
        return takes_all(b, g, n);
    for (uint32_t i = 0; i < n; i++) {
        widen(b, const_cast<void *>(g[i].w), s, &s->w[from[i]]);
        gemm(b, &g[i]);
    }
    const struct coded_rows none = {nullptr, nullptr, nullptr, 0};
    finish(b, s, &none, sums, 1);
    return 1;
}

/* Rows of W in a slice, of `all`: both its copy and its sums are bounded. */
static size_t slice_rows(enum dtype dtype, size_t T, size_t K, size_t all, size_t unit)
{
    size_t n = SLICE_BYTES / (K * (dtype == DTYPE_FP8 ? 2 : 4)), sums = SUMS_MOST / (T * 4);
    n = (n < sums ? n : sums) / 2 / unit * unit; /* two matrices may share it */
    return n < unit ? unit : n < all ? n : all;
}

static int all_slices(struct backend *b, const struct job *j, const void *x, void *work, int ask)
{
    for (uint32_t i = 0; i < (j->kind == JOB_GATED ? 1 : j->n); i++) {
        uint32_t rows = j->w[i].rows, unit = j->kind == JOB_QKV ? j->head_dim : (uint32_t)TILE_ROWS;
        uint32_t most = (uint32_t)slice_rows(j->dtype, j->T, j->K, rows, unit);
        for (uint32_t first = 0; first < rows; first += most) {
            struct job s = job_slice(j, i, first, plan_least(most, rows - first));
            if (!large_slice(b, &s, x, work, ask))
                return 0;
        }
    }
    return 1;
}

static int large_sliced(struct backend *b, const struct job *j, const void *x, void *work)
{
    size_t unit = j->kind == JOB_QKV ? j->head_dim : (size_t)TILE_ROWS;
    if (j->K % 8 || 2 * unit * j->K * 4 > SLICE_BYTES || !all_slices(b, j, x, work, 1))
        return 0;
    return all_slices(b, j, x, work, 0);
}

int large(struct backend *b, const struct job *j, const void *x, void *work)
{
    switch (j->dtype) {
    case DTYPE_F32:
    case DTYPE_BF16: return large_straight(b, j, x, work);
    case DTYPE_INT8: return large_int8(b, j, x, work);
    case DTYPE_NF4: return 0;
    default: return large_sliced(b, j, x, work);
    }
}

size_t large_work(enum dtype dtype, size_t T, size_t K, size_t N)
{
    size_t widened = N * K * (dtype == DTYPE_FP8 ? 2 : 4), sums = T * N * 4;
    size_t tails = 4 * 256;
    switch (dtype) {
    case DTYPE_F32: return T * N * 4 + tails;
    case DTYPE_BF16: return T * N * 2 + tails;
    case DTYPE_INT8: return coding_at(nullptr, T, K).bytes + T * N * 4;
    case DTYPE_NF4: return 0;
    default:
        return (widened < SLICE_BYTES ? widened : SLICE_BYTES) +
               (sums < SUMS_MOST ? sums : SUMS_MOST) + tails;
    }
}
