/* library.cu - implements cuBLASLt on the CPU, by plain loops. It is as strict as the real library
 * about types, shapes, addresses and work space, and its algorithms differ in their requirements.
 * All algorithms give the same bits, so other tests do not depend on which one was the fastest.
 *
 * UNSTEADY is proposed although the caller's mask forbids its kind, and ends the process when run.
 * Source: cuBLAS 13.0, "Using the cuBLASLt API": cublasLtMatmul (supported types; for int8 T, N
 * operands, m, k and leading dimensions multiples of 4), cublasLtMatmulAlgoGetHeuristic; PTX ISA,
 * cvt.rna.tf32.f32. */
#include "kernels/cuda/product/library.h"

#include <string.h>
#include <vector>

#include "kernels/cuda/device.cuh"
#include "lib/base/clock.h"

struct cublasLtContext {
    int unused;
};
struct cublasLtDesc {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    cublasOperation_t a;
};
struct cublasLtLayout {
    cudaDataType_t type;
    uint64_t rows, cols, ld;
    int32_t batch;
    int64_t step;
};
struct cublasLtPreference {
    size_t workspace;
    uint32_t schemes, align[4]; /* of A, B, C, D */
};

namespace emulate {

unsigned algorithm_runs[ALGORITHMS];
int64_t algorithm_ns[ALGORITHMS], algorithm_cold_ns[ALGORITHMS];
bool algorithm_parts;
unsigned algorithm_parts_runs;
bool algorithm_fails[ALGORITHMS];

struct wants {
    uint32_t scheme, align;
    size_t workspace;
};
static const struct wants wants[ALGORITHMS] = {
    {CUBLASLT_REDUCTION_SCHEME_NONE, 16, 0},
    {CUBLASLT_REDUCTION_SCHEME_INPLACE, 16, 0},
    {CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 16, (size_t)8 << 20},
    {CUBLASLT_REDUCTION_SCHEME_NONE, 1, 0},
};
static const uint64_t magic = 0x656d756c61746564;

static cublasLtMatmulAlgo_t algorithm_make(int i)
{
    return {{magic, (uint64_t)i}};
}

/* Returns the algorithm, or ALGORITHMS if it is none of ours. */
static int algorithm_of(const cublasLtMatmulAlgo_t *a)
{
    return a->data[0] == magic && a->data[1] < ALGORITHMS ? (int)a->data[1] : (int)ALGORITHMS;
}

/* Returns the number of parts of K; 0 or 1 if K is whole. */
static uint64_t parts_of(const cublasLtMatmulAlgo_t *a)
{
    return a->data[2];
}

/* A product as the descriptors give it. */
struct shape {
    cublasLtDesc what;
    cublasLtLayout a, b, d;
};

static bool has_types(const struct shape &s)
{
    static const struct {
        cublasComputeType_t compute;
        cudaDataType_t scale, in, out;
    } known[] = {{CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
                 {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
                 {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF},
                 {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_32F},
                 {CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_32I}};
    for (const auto &k : known)
        if (s.what.compute == k.compute && s.what.scale == k.scale && s.a.type == k.in &&
            s.b.type == k.in && s.d.type == k.out)
            return true;
    return false;
}

static cublasStatus_t shape_status(const struct shape &s)
{
    if (s.a.rows != s.b.rows || s.a.cols != s.d.rows || s.b.cols != s.d.cols ||
        s.a.batch != s.b.batch || s.a.batch != s.d.batch || s.d.batch < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (s.what.a != CUBLAS_OP_T || !has_types(s))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (s.a.type == CUDA_R_8I && (s.a.rows | s.a.cols | s.a.ld | s.b.ld | s.d.ld) % 4)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

static float value(float x)
{
    return x;
}
/* A float as tensor cores multiply it: 10 bits of mantissa, to nearest, ties away from zero. */
struct tf32 {
    float x;
};
static float value(struct tf32 v)
{
    uint32_t bits;
    float x;
    memcpy(&bits, &v.x, sizeof bits);
    bits = (bits + 0x1000) & ~0x1fffu;
    memcpy(&x, &bits, sizeof x);
    return (bits & 0x7f800000u) == 0x7f800000u ? v.x : x;
}
static float value(uint16_t x)
{
    return bf16_float(x);
}
static int32_t value(int8_t x)
{
    return x;
}
static int32_t value(int32_t x)
{
    return x;
}
static void put(float *y, float x)
{
    *y = x;
}
static void put(uint16_t *y, float x)
{
    *y = bf16_of(x);
}
static void put(int32_t *y, int32_t x)
{
    *y = x;
}

/* Computes D = A^T B, plus D if `add`; matrices are column by column. of: the number in the batch.
 * Several sums are computed at a time, each in the order of k, because tuning runs a product twenty
 * times. */
template <class Y, class X, class Sum>
static void multiply(const struct shape &s, const void *A, const void *B, void *D, bool add,
                     int64_t of)
{
    const size_t SUMS = 8;
    std::vector<Sum> a(s.a.rows * SUMS);
    const X *w = static_cast<const X *>(A) + of * s.a.step;
    for (size_t first = 0; first < s.d.rows; first += SUMS) {
        size_t n = s.d.rows - first < SUMS ? s.d.rows - first : SUMS;
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < s.a.rows; k++)
                a[k * SUMS + i] = value(w[(first + i) * s.a.ld + k]);
        for (size_t t = 0; t < s.d.cols; t++) {
            const X *b = static_cast<const X *>(B) + of * s.b.step + t * s.b.ld;
            Y *y = static_cast<Y *>(D) + of * s.d.step + t * s.d.ld + first;
            Sum sum[SUMS] = {};
            for (size_t k = 0; k < s.a.rows; k++)
                for (size_t i = 0; i < SUMS; i++)
                    sum[i] += value(b[k]) * a[k * SUMS + i];
            for (size_t i = 0; i < n; i++)
                put(&y[i], add ? value(y[i]) + sum[i] : sum[i]);
        }
    }
}

static void multiply_any(const struct shape &s, const void *A, const void *B, void *D, bool add,
                         int64_t of)
{
    if (s.what.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
        multiply<float, struct tf32, float>(s, A, B, D, add, of);
    else if (s.a.type == CUDA_R_32F)
        multiply<float, float, float>(s, A, B, D, add, of);
    else if (s.a.type == CUDA_R_8I)
        multiply<int32_t, int8_t, int32_t>(s, A, B, D, add, of);
    else if (s.d.type == CUDA_R_32F)
        multiply<float, uint16_t, float>(s, A, B, D, add, of);
    else
        multiply<uint16_t, uint16_t, float>(s, A, B, D, add, of);
}

static bool aligned(const void *p, uint32_t by)
{
    return reinterpret_cast<uintptr_t>(p) % by == 0;
}

static uint32_t value_bytes(cudaDataType_t t)
{
    return t == CUDA_R_8I ? 1 : t == CUDA_R_16BF ? 2 : 4;
}

/* Returns a scale factor of the scale's type, which must be 0 or 1. */
static int scalar(const struct shape &s, const void *p)
{
    float f = s.what.scale == CUDA_R_32F ? *static_cast<const float *>(p)
                                         : (float)*static_cast<const int32_t *>(p);
    if (f != 0 && f != 1)
        fail("a product is scaled by something else than 0 or 1");
    return f == 1;
}

} // namespace emulate

using namespace emulate;

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
    return call([=] {
               *h = new cublasLtContext{};
               return cudaSuccess;
           })
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return 1;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    *d = new cublasLtDesc{compute, scale, CUBLAS_OP_N};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    delete d;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t what,
                                              const void *value, size_t bytes)
{
    if (what != CUBLASLT_MATMUL_DESC_TRANSA || bytes != sizeof d->a)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&d->a, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType_t type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    if (!rows || !cols || ld < (int64_t)rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    *l = new cublasLtLayout{type, rows, cols, (uint64_t)ld, 1, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t what,
                                                const void *value, size_t bytes)
{
    bool count = what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
    if (bytes != (count ? sizeof l->batch : sizeof l->step))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(count ? static_cast<void *>(&l->batch) : &l->step, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    delete l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    *p = new cublasLtPreference{0, 7, {256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t what,
                                                    const void *value, size_t bytes)
{
    bool size = what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
    bool mask = what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK;
    if (bytes != (size ? sizeof p->workspace : sizeof p->schemes))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(size   ? static_cast<void *>(&p->workspace)
           : mask ? &p->schemes
                  : &p->align[what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
           value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* Proposes first an algorithm that cannot run, then all that can. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t what,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t p, int room,
                                              cublasLtMatmulHeuristicResult_t *to, int *count)
{
    cublasStatus_t status = shape_status({*what, *a, *b, *d});
    done.questions++;
    *count = 0;
    if (status)
        return status;
    uint32_t least = 256;
    for (uint32_t align : p->align)
        least = align < least ? align : least;
    if (room > ALGORITHMS)
        to[(*count)++] = {algorithm_make(ANY_ADDRESS), 0, CUBLAS_STATUS_NOT_SUPPORTED, 0, {}};
    for (int i = 0; i < ALGORITHMS && *count < room; i++)
        if (wants[i].align <= least && wants[i].workspace <= p->workspace &&
            (i == UNSTEADY || (wants[i].scheme & p->schemes) == wants[i].scheme))
            to[(*count)++] = {algorithm_make(i), wants[i].workspace, CUBLAS_STATUS_SUCCESS, 1, {}};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t what,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    int i = algorithm_of(algo);
    if (i == ALGORITHMS)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (parts_of(algo) > 1 && (i != FIRST_GUESS || !algorithm_parts))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *result = {*algo, wants[i].workspace, CUBLAS_STATUS_SUCCESS, 1, {}};
    return shape_status({*what, *a, *b, *d});
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t what,
                                                    void *value, size_t bytes, size_t *written)
{
    int i = algorithm_of(algo);
    if (i == ALGORITHMS || what != CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME ||
        bytes != sizeof wants[i].scheme)
        return CUBLAS_STATUS_INVALID_VALUE;
    uint32_t scheme = parts_of(algo) > 1 ? (uint32_t)algo->data[3] : wants[i].scheme;
    memcpy(value, &scheme, bytes);
    *written = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t what,
                                                    const void *value, size_t bytes)
{
    uint32_t v;
    if (algorithm_of(algo) == ALGORITHMS || bytes != sizeof v)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&v, value, sizeof v);
    algo->data[what == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? 2 : 3] = v;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t what, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t a, const void *B,
                              cublasLtMatrixLayout_t b, const void *beta, const void *C,
                              cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes,
                              cudaStream_t stream)
{
    const struct shape s = {*what, *a, *b, *d};
    int i = algorithm_of(algo);
    if (shape_status(s))
        return shape_status(s);
    if (i == ALGORITHMS || bytes < wants[i].workspace || C != D || c != d || !scalar(s, alpha))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (i == UNSTEADY)
        fail("an algorithm runs whose order of sums is not fixed");
    if (algorithm_fails[i] || !aligned(A, wants[i].align) || !aligned(B, wants[i].align) ||
        !aligned(D, wants[i].align) || !aligned(A, value_bytes(a->type)) ||
        !aligned(B, value_bytes(b->type)) || !aligned(D, value_bytes(d->type)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (const void *p : {A, B, static_cast<const void *>(D)})
        check_reach(p);
    if (wants[i].workspace)
        check_reach(workspace);
    bool add = scalar(s, beta), parted = parts_of(algo) > 1;
    static unsigned starts; /* kernels before the last product */
    bool cold = starts != done.starts;
    starts = done.starts;
    cudaError_t status = call([&] {
        return enqueue(stream, [=] {
            int64_t end = clock_ns() + (parted ? 0 : algorithm_ns[i] +
                                                         (cold ? algorithm_cold_ns[i] : 0));
            (parted ? algorithm_parts_runs : algorithm_runs[i])++;
            if (wants[i].workspace)
                memset(workspace, 0xff, 4096);
            for (int64_t of = 0; of < s.d.batch; of++)
                multiply_any(s, A, B, D, add, of);
            while (clock_ns() < end) {
            }
        });
    });
    return status ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

#define GIVE(name) cublasLt##name,
int library_open(struct library *l)
{
    if (setting("EMULATE_LIBRARY", 1) == 0)
        return -1;
    *l = {EACH_FUNCTION(GIVE)};
    return 0;
}
