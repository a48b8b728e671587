/* wkv_kept.h - values of the forward pass of time mixing that are computed again for the
 * gradients, in device memory. Head h of sequence s is head s * H + h. Kept are all states at
 * the borders of chunks and, for RWKV 7, all x. N is WKV_CUDA_MOST. */
#pragma once

#include "kernels/wkv.h"
#include "lib/base/linkage.h"

struct wkv_kept {
    float *states; /* [n_seqs * H, chunks + 1, N, N] */
    float *xs;     /* [n_seqs * H, chunks, WKV_CHUNK, N] */
    size_t chunks; /* of the sequence with the most rows */
};

C_BEGIN

/* state: [n_seqs, H, E, E] before the first rows; NULL: zeros. */
void cuda_wkv_keep(struct backend *backend, const struct wkv_rows *in, const float *state,
                   const struct wkv_kept *to);

C_END
