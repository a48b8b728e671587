/* wkv_kept.h - values of the forward pass of time mixing that the gradients need, in device memory.
 * They are computed again before the backward pass: all states at the borders of chunks and, for
 * RWKV 7, x_t of every token t (kernels/wkv.h, chunked form). Head h of sequence s is head
 * s * H + h. N is WKV_CUDA_MOST. */
#pragma once

#include "kernels/wkv.h"
#include "lib/base/linkage.h"

struct wkv_kept {
    float *states; /* [n_seqs * H, chunks + 1, N, N] */
    float *xs;     /* [n_seqs * H, chunks, WKV_CHUNK, N] */
    size_t chunks; /* chunks of the sequence with the most rows */
};

C_BEGIN

/* Computes *to. state: [n_seqs, H, E, E] the states before the first rows; NULL: zeros. */
void cuda_wkv_keep(struct backend *backend, const struct wkv_rows *in, const float *state,
                   const struct wkv_kept *to);

C_END
