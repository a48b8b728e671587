/* pass-layer.h - functions that the layer with attention (pass.c) and the time mixing layer
 * (pass-mixing.c, called by pass.c) share. */
#pragma once

#include "lib/network/pass.h"

/* The address of a row of x[T, width]. */
static inline act *pass_row_at(const struct network *n, act *x, size_t row, size_t width)
{
    return (char *)x + row * width * dtype_value_bytes(n->backend->act);
}

/* The number of rows in the tile that starts at `row`, of T rows. */
static inline size_t pass_rows_at_once(const struct network *n, const struct work *work, size_t row,
                                       size_t T)
{
    size_t most = work_tile(n, &work->size);
    return T - row < most ? T - row : most;
}

/* y[T, N] = in[T, K] W^T, or += with add 1, one tile of rows after another. W [N, K]. */
static inline void pass_multiply(const struct network *n, const struct work *work,
                                 const struct mat *weight, struct input in, act *y, int add,
                                 size_t T)
{
    for (size_t row = 0, together; row < T; row += together) {
        together = pass_rows_at_once(n, work, row, T);
        struct input rows = in;
        rows.x = pass_row_at(n, (act *)(uintptr_t)in.x, row, weight->cols);
        const struct product product = {weight, pass_row_at(n, y, row, weight->rows), add};
        n->backend->ops->matmul(n->backend, &product, 1, rows, together, work->scratch);
    }
}

/* With config.chains: sets work->joined, the input of the first layer, from the embeddings of the
 * rows (work->x) and their states (work->context). Then work->x = the states. */
void pass_join(const struct network *n, const struct work *work, const struct pass *pass);
/* Stores R rows of x, the stream after the last layer, as states of the next pass (work->context).
 * row [R]: their numbers in x; NULL: rows 0 .. R - 1. */
void pass_keep_states(const struct network *n, const struct work *work, const act *x,
                      const int32_t *row, size_t R);

/* work->x += the output of time mixing of RWKV 6 or 7 in this layer. The one slot that a sequence
 * lists has the state of its text. */
void pass_mix(const struct network *n, size_t layer, const struct kv *kv, const struct work *work,
              const struct pass *pass);
