/* ref.h - functions that the files of kernels/ref share. A function with the name of a slot in
 * kernels/ops.h, mixing.h or train.h (ref_shift: shift) does what that slot defines. */
#ifndef KERNELS_REF_REF_H
#define KERNELS_REF_REF_H

#include "kernels/mixing.h"
#include "kernels/ops.h"
#include "kernels/train.h"
#include "kernels/wkv.h"

/* ref_mat.c */
int ref_mat_make(struct backend *b, struct mat *m, const struct mat_source *s, enum dtype dtype);
size_t ref_mat_bytes(size_t rows, size_t cols, enum dtype dtype);
void ref_mat_free(struct backend *b, struct mat *m);
void ref_embed(struct backend *b, act *y, const struct mat *w, const int32_t *token, size_t T);
/* y[N] = W x for one row x[K], in double. For INT8 the terms are floats: exact by definition. */
void ref_outputs(double *y, const float *x, const struct mat *w);

/* ref_wkv.c */
void ref_wkv(struct backend *b, const struct wkv *a, void *work);
size_t ref_wkv_work(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                    size_t head_dim);
void ref_wkv_back(struct backend *b, const struct wkv_back *a, void *work);
size_t ref_wkv_back_work(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                         size_t head_dim);

/* ref_mixing.c */
void ref_shift(struct backend *b, const struct shift *a);
void ref_squash(struct backend *b, const struct squash *a);
void ref_removal(struct backend *b, const struct removal *a);
void ref_heads_out(struct backend *b, const struct heads_out *a);

/* ref_mixing-back.c */
void ref_shift_back(struct backend *b, const struct shift_back *a);
void ref_squash_back(struct backend *b, const struct squash_back *a);
void ref_heads_out_back(struct backend *b, const struct heads_out_back *a);
void ref_removal_back(struct backend *b, const struct removal_back *a);

/* ref_train.c: the gradients of kernels/train.h. */
extern const struct train_ops ref_train;

#endif
