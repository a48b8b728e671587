/* gemm.h - large products by the vendor's library, cuBLASLt, one call each. */
#pragma once

#include "kernels/cuda/device/runtime.h"

/* y[T, N] (row stride ldy) = x[T, K] (ldx) W[N, K]^T (ldw), plus y if `add`; fp32 sums. batch > 1:
 * `batch` such products of one x. The next W is `step` values on, the next y N values, so that
 * together they are [T, batch * N]. One call then fills a device that one product would not. */
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
/* 1: the library takes this shape with these addresses; 0: use another kernel. The contents of x
 * and W do not matter yet, but they are read: a new shape is timed here. */
int gemm_takes(const struct backend *backend, const struct gemm_job *j);
/* Runs a job for which gemm_takes returned 1. */
void gemm(struct backend *backend, const struct gemm_job *j);

/* Made at open, freed at close. Choices are read from CROSSOVER_GEMM_CHOICES=FILE, and new ones
 * written there; if it is not set, from the user's cache (choices.h). -1: EXIT_BAD_DATA, FILE is
 * not a file of choices of this library. */
int gemm_open(struct backend *backend, struct err *e);
void gemm_close(struct backend *backend);
