/* mixture.h - the data that the files of kernels/cuda/experts share: the rows of a mixture of
 * experts, sorted by expert (kernels/experts.h). A pair is a row and one of its experts. */
#pragma once

#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/product/product.h"
#include "kernels/experts.h"

/* Places in work. */
struct mixture {
    float *logits;   /* [T, n] logits of the router */
    int32_t *chosen; /* [T, used] the experts of a row, ascending */
    float *share;    /* [T, used] p of each of these experts */
    int32_t *place;  /* [T, used] the position of each pair when pairs are sorted by expert */
    int32_t *begin;  /* [n + 1] the first sorted pair of each expert */
    int32_t *row;    /* [T used] the row of each sorted pair */
    void *in, *hidden, *out; /* [T used, D], [T used, F], [T used, D] of `act`, a row for each
                              * sorted pair */
    void *rest;              /* work of grouped(): codes of rows */
};

/* route.cu: fills logits, chosen, share, place, begin and row. */
void route(const struct backend *backend, const struct experts *experts,
           const struct mixture *mixture, size_t T);
/* grouped.cu: computes the products of a job whose rows x lie in groups, with at least one row in
 * all. work: coding_at(NULL, j->T, j->K).bytes bytes if rows are bf16. */
void grouped(const struct backend *backend, const struct product_job *j, const struct group *group,
             const void *x, void *work);
