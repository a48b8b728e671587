/* product.h - the kernels that product.cu chooses from. struct product_job is in tiling.h. Rows of
 * x are bf16 if nothing else is stated. */
#pragma once

#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/product/encode_row.cuh"
#include "kernels/cuda/product/gemm.h"
#include "kernels/cuda/product/group.cuh"
#include "kernels/cuda/product/stage_rows.cuh"

struct wide_plan;

/* 1 if products with weights of `dtype` read fp32 rows of x; 0: bf16 rows. */
static inline int exact_rows(enum dtype dtype)
{
    return dtype_info[dtype].unit == UNIT_F32;
}

/* Returns a job for T rows with matrices of the format and columns of `weight`. job_put() adds the
 * matrices; then job_settle() must be called. */
static inline struct product_job job_of(enum job_kind kind, const struct mat *weight, size_t T)
{
    struct product_job j = {};
    j.dtype = weight->dtype;
    j.kind = kind;
    j.T = (uint32_t)T;
    j.K = (uint32_t)weight->cols;
    j.stride = (uint32_t)(layout_stride(weight->dtype, weight->cols) * layout_value(weight->dtype));
    return j;
}

/* Adds matrix `weight` and its outputs y, whose rows are ld values apart. */
static inline void job_put(struct product_job *j, const struct mat *weight, void *y, size_t ld,
                           int add)
{
    struct layout layout = layout_of(weight->dtype, weight->rows, weight->cols);
    const uint8_t *at = static_cast<const uint8_t *>(weight->data);
    j->w[j->n] = {at, at + layout.absmax, reinterpret_cast<const float *>(at + layout.scale),
                  reinterpret_cast<const float *>(at + layout.offset), 0, (uint32_t)weight->rows,
                  0};
    j->y[j->n] = y;
    j->ldy[j->n] = (uint32_t)ld;
    j->add[j->n++] = add;
}

/* coding.cu: the addresses of the coded rows of INT8 in `work`, and the bytes of all. */
struct coding {
    int8_t *code;
    float *step;
    uint32_t *marks;
    uint32_t codes; /* codes of a row, K rounded up to 16 */
    size_t bytes;
};

/* gemv.cu: products for few rows (format_row.few) in a single kernel. Returns 0 if the shape does
 * not fit; then nothing was done. */
int gemv(const struct backend *backend, const struct product_job *j, const struct bf16_input *in);

/* few.cu: products for one to eight rows, with sums in fp32, in a single kernel; more than four
 * rows are normalized by a kernel before. Returns 0 if the format, K or an address does not fit;
 * then nothing was done. */
int few(struct backend *backend, const struct product_job *j, struct bf16_input in, void *work);

/* skinny.cu: sums for some rows, in parts over K: sums[split][t][columns] in fp32 (INT8: int32).
 * rows: x [T, ldx] in bf16, or for INT8 the codes. j->T is at most plan->rows. */
void skinny(const struct backend *backend, const struct product_job *j,
            const struct skinny_plan *plan, const void *rows, size_t ldx, void *sums);

/* finish.cu: adds `splits` parts of a job's sums and writes its outputs. */
void finish(const struct backend *backend, const struct product_job *j,
            const struct coded_rows *rows, const void *sums, uint32_t splits);
/* finish() for the parts that wide.cu leaves. */
void finish_parts(const struct backend *backend, const struct product_job *j, const float *sums,
                  const struct wide_plan *plan);
/* finish_int8.cu: finish() for INT8, many rows and one part; it reads W in whole rows. Overwrites
 * `sums` and coding->code. */
void finish_int8(const struct backend *backend, const struct product_job *j,
                 const struct coding *coding, const struct coded_rows *rows, int32_t *sums);
/* y[n] = bf16(y + product), both bf16. The sum may be delayed to the next operation (struct later);
 * until then product must not change. */
void finish_add(const struct backend *backend, void *y, const void *product, size_t n);

/* f32_product.cu: any number of fp32 rows, with F32, BF16_F32 or F16 weights. */
void f32_product(const struct backend *backend, const struct product_job *j, const float *x);
void f32_product_grouped(const struct backend *backend, const struct product_job *j, const float *x,
                         const struct group *group);

/* large.cu: products for many rows by the vendor's library. x: normalized rows, of `act`. Returns 0
 * if the library does not take the shape; then nothing was done. */
int large(struct backend *backend, const struct product_job *j, const void *x, void *work);
/* Bytes of work that large() needs for T rows. */
size_t large_work(enum dtype dtype, size_t T, size_t K, size_t N);

/* wide.cu: products for some hundred normalized rows, with weights that a Hopper GPU widens in
 * registers. Returns 0 if the device or shape does not fit; then nothing was done. work:
 * wide_work() bytes (wide_plan.h). */
int wide(const struct backend *backend, const struct product_job *j, const void *x, void *work);

/* Called when the back end is opened: tests whether wide.cu runs on this device, and sets
 * device.wide. */
void wide_open(struct backend *backend);

/* coding.cu: the layout of the coded rows of x[T, K] at `work`; work NULL: only `codes` and `bytes`
 * are valid. */
struct coding coding_at(void *work, size_t T, size_t K);
/* Encodes x[T, K] into `coding`, in the form that products with weights of `dtype` read. */
struct coded_rows coding_make(const struct backend *backend, const struct coding *coding,
                              enum dtype dtype, const void *x, size_t T, size_t K);
