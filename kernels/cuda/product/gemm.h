/* gemm.h - large products by the vendor's library, cuBLASLt, with one call for each product. */
#pragma once

#include "kernels/cuda/device/runtime.h"

/* y[T, N] (row stride ldy) = x[T, K] (ldx) W[N, K]^T (ldw), plus y if `add`; fp32 sums. batch > 1:
 * `batch` such products of one x. Matrices W are `step` values apart, outputs y are N values apart,
 * so that all outputs together are [T, batch * N]. One call of several products fills a device that
 * one product would not fill. */
struct gemm_job {
    void *y;
    const void *x, *w;
    enum gemm_type {
        GEMM_F32,      /* all F32, without tf32 */
        GEMM_BF16,     /* all BF16 */
        GEMM_BF16_F32, /* x, W BF16, y F32 */
        GEMM_S8,       /* x, W int8, y int32; K, ldx, ldw, N multiples of 16 */
        GEMM_TF32      /* all F32; factors may be rounded to 10 bits of mantissa */
    } type;
    size_t T, N, K, ldy, ldx, ldw;
    int add;
    uint32_t batch; /* 0 means 1 */
    size_t step;
};
/* Returns 1 if the library takes this shape with these addresses, 0 if another kernel must be used.
 * A new shape is timed here, so x and W are read, but their contents do not matter. */
int gemm_takes(const struct backend *backend, const struct gemm_job *j);
/* Runs a job for which gemm_takes returned 1. */
void gemm(struct backend *backend, const struct gemm_job *j);

/* gemm_open() loads the library when the back end is opened, gemm_close() frees its data. Choices
 * of algorithms are read from the file in CROSSOVER_GEMM_CHOICES, which --gemm-choices sets, and
 * new choices are written there; without it, from the user's cache (choices.h). Returns -1 with
 * EXIT_BAD_DATA if the file is not a file of choices of this library. */
int gemm_open(struct backend *backend, struct err *e);
void gemm_close(struct backend *backend);
