/* coding.cu - encodes rows of x for formats that multiply codes by codes (int8). A block encodes a
 * row (encode_row.cuh) into `work`: codes for the products, and steps and outlier marks with which
 * the exact sums become outputs. */
#include "kernels/cuda/product/product.h"

/* KEPT: units of 8 values that a thread keeps in registers, so that a row of up to 16,384 values is
 * read only once. */
enum { THREADS = 256, KEPT = 8 };

/* Block t encodes row t. */
static __global__ void __launch_bounds__(THREADS)
encode_all(const uint16_t *x, uint32_t K, float limit, int8_t *code, uint32_t codes, float *step,
           uint32_t *marks)
{
    SHARED(float, shared);
    let_next_start();
    wait_for_inputs();
    size_t row = blockIdx.x;
    encode_row<KEPT>(x + row * K, K, limit, code + row * codes, codes, step + row,
                     marks + row * marks_words(K), shared);
}

struct coding coding_at(void *work, size_t T, size_t K)
{
    struct coding coding;
    uint8_t *at = static_cast<uint8_t *>(work);
    coding.codes = (uint32_t)layout_up(K, 16);
    size_t step = layout_up(T * coding.codes, 256),
           marks = step + layout_up(T * sizeof(float), 256);
    coding.code = static_cast<int8_t *>(work);
    coding.step = reinterpret_cast<float *>(at + step);
    coding.marks = reinterpret_cast<uint32_t *>(at + marks);
    coding.bytes = marks + layout_up(T * marks_words((uint32_t)K) * sizeof(uint32_t), 256);
    return coding;
}

struct coded_rows coding_make(const struct backend *backend, const struct coding *coding,
                              enum dtype dtype, const void *x, size_t T, size_t K)
{
    const uint16_t *rows = static_cast<const uint16_t *>(x);
    launch(backend, encode_all, dim3((unsigned)T), dim3(THREADS), THREADS / WARP * sizeof(float),
           rows, (uint32_t)K, quant_outlier(dtype), coding->code, coding->codes, coding->step,
           coding->marks);
    return {rows, coding->step, coding->marks, (uint32_t)K, nullptr};
}
