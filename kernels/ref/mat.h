/* mat.h - matrices of the reference: what a product means for each dtype (kernels/ops.h), in
 * double. */
#ifndef KERNELS_REF_MAT_H
#define KERNELS_REF_MAT_H

#include "kernels/ops.h"

/* The operations of the same names in kernels/ops.h. */
int ref_mat_make(struct backend *b, struct mat *m, const struct mat_source *s, enum dtype dtype);
size_t ref_mat_bytes(size_t rows, size_t cols, enum dtype dtype);
void ref_mat_free(struct backend *b, struct mat *m);
void ref_embed(struct backend *b, act *y, const struct mat *w, const int32_t *token, size_t T);

/* y[N] = the products of one row x[K]. INT8: floats, exact by definition. */
void ref_outputs(double *y, const float *x, const struct mat *w);

#endif
