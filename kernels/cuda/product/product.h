/* product.h - the kernels that product.cu chooses from. A job is in plan.h; its rows of x are bf16
 * unless said otherwise.
 */
#ifndef KERNELS_CUDA_PRODUCT_PRODUCT_H
#define KERNELS_CUDA_PRODUCT_PRODUCT_H

#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/product/encode_row.cuh"
#include "kernels/cuda/product/gemm.h"
#include "kernels/cuda/product/stage.cuh"

/* gemv.cu: up to GEMV_ROWS rows, everything in one kernel. 0: the shape does not fit. */
int gemv(const struct backend *b, const struct job *j, const struct bf16_input *in);

/* skinny.cu: sums of some rows, in parts: sums[split][t][columns], fp32 (INT8: int32). rows: x
 * [T, ldx], bf16, or the codes of INT8. j->T is at most plan.rows. */
void skinny(const struct backend *b, const struct job *j, const struct skinny_plan *p,
            const void *rows, size_t ldx, void *sums);

/* finish.cu: the outputs of a job from `splits` parts of its sums. */
void finish(const struct backend *b, const struct job *j, const struct coded_rows *rows,
            const void *sums, uint32_t splits);
/* y[n] = bf16(y + product), both bf16. */
void finish_add(const struct backend *b, void *y, const void *product, size_t n);

/* exact.cu: any number of rows of fp32 with F32, BF16_F32 or F16 weights. */
void exact(const struct backend *b, const struct job *j, const float *x);

/* large.cu: many rows by the library. x: normalized rows, of `act`. 0: the library does not take
 * the shape, nothing was done. */
int large(struct backend *b, const struct job *j, const void *x, void *work);
/* Bytes that it wants for so many rows. */
size_t large_work(enum dtype dtype, size_t T, size_t K, size_t N);

/* coding.cu: the coded rows of INT8 in `work`: where, and how many bytes. */
struct coding {
    int8_t *code;
    float *step;
    uint32_t *marks;
    uint32_t codes; /* of a row */
    size_t bytes;
};
struct coding coding_at(void *work, size_t T, size_t K);
/* Encodes x[T, K] there, as products with such weights want it. */
struct coded_rows coding_make(const struct backend *b, const struct coding *c, enum dtype dtype,
                              const void *x, size_t T, size_t K);

#endif
