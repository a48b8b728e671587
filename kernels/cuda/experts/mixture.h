/* mixture.h - what the files of kernels/cuda/experts share: the rows of a mixture of experts,
 * sorted by expert (kernels/experts.h). A pair is a row and one of its experts. */
#pragma once

#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/product/product.h"
#include "kernels/experts.h"

/* Places in work. */
struct mixture {
    float *logits;   /* [T, n] of the router */
    int32_t *chosen; /* [T, used] the experts of a row, ascending */
    float *share;    /* [T, used] p of each */
    int32_t *place;  /* [T, used] the position of each pair when pairs are sorted by expert */
    int32_t *begin;  /* [n + 1] the first pair of each expert in that order */
    int32_t *row;    /* [T used] the row of each pair in that order */
    void *in, *hidden, *out; /* [T used, D], [T used, F], [T used, D] of `act`, in that order */
    void *rest;              /* codes of rows */
};

/* route.cu: fills logits, chosen, share, place, begin and row. */
void route(const struct backend *backend, const struct experts *experts,
           const struct mixture *mixture, size_t T);
/* grouped.cu: runs a job whose rows x lie in groups, at least one row in all. work: the bytes of
 * coding_at(j->T, j->K) for bf16 rows. */
void grouped(const struct backend *backend, const struct product_job *j, const struct group *group,
             const void *x, void *work);
