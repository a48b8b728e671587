/* wkv.h - time mixing of the reference: the operations of the same names in kernels/ops.h. */
#ifndef KERNELS_REF_WKV_H
#define KERNELS_REF_WKV_H

#include "kernels/wkv.h"

void ref_wkv(struct backend *b, const struct wkv *a, void *work);
size_t ref_wkv_work(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                    size_t head_dim);
void ref_wkv_back(struct backend *b, const struct wkv_back *a, void *work);
size_t ref_wkv_back_work(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                         size_t head_dim);

#endif
