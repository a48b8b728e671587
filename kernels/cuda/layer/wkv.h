/* wkv.h - what the forward pass of time mixing computes again for the gradients, in memory of the
 * device: of head h of sequence s, as head s * H + h, all states at the borders of chunks and, of
 * RWKV 7, all x. N is WKV_CUDA_MOST. */
#ifndef KERNELS_CUDA_LAYER_WKV_H
#define KERNELS_CUDA_LAYER_WKV_H

#include "kernels/wkv.h"

struct wkv_kept {
    float *states; /* [n_seqs * H, chunks + 1, N, N] */
    float *xs;     /* [n_seqs * H, chunks, WKV_CHUNK, N] */
    size_t chunks; /* of the sequence of most rows */
};

#ifdef __cplusplus
extern "C" {
#endif

/* state: [n_seqs, H, E, E] before the first rows; NULL: zeros. */
void cuda_wkv_keep(struct backend *b, const struct wkv_rows *in, const float *state,
                   const struct wkv_kept *to);

#ifdef __cplusplus
}
#endif

#endif
