/* pass-layer.h - functions that the layer with attention (pass.c) and the time mixing layer
 * (pass-mixing.c, called by pass.c) share. */
#pragma once

#include "lib/network/pass.h"

/* Row t of x[T, width]. */
static inline act *pass_row_at(const struct network *n, act *x, size_t t, size_t width)
{
    return (char *)x + t * width * dtype_value_bytes(n->backend->act);
}

/* The number of rows from t on, of T, that products work on at once. */
static inline size_t pass_rows_at_once(const struct network *n, const struct work *w, size_t t,
                                       size_t T)
{
    size_t most = work_tile(n, &w->size);
    return T - t < most ? T - t : most;
}

/* y = in W^T, or += , one tile of rows after another; rows of in have K values, rows of y N. */
static inline void pass_multiply(const struct network *n, const struct work *w,
                                 const struct mat *m, struct input in, act *y, int add, size_t T)
{
    for (size_t t = 0, N; t < T; t += N) {
        N = pass_rows_at_once(n, w, t, T);
        struct input rows = in;
        rows.x = pass_row_at(n, (act *)(uintptr_t)in.x, t, m->cols);
        const struct product p = {m, pass_row_at(n, y, t, m->rows), add};
        n->backend->ops->matmul(n->backend, &p, 1, rows, N, w->scratch);
    }
}

/* With config.chains: work.joined = what the first layer reads, and w->x = the states of the rows,
 * which were in work.context; w->x held their embeddings. */
void pass_join(const struct network *n, const struct work *w, const struct pass *p);
/* Keeps rows of the stream behind the last layer as states of the next pass. row NULL: row t. */
void pass_keep_states(const struct network *n, const struct work *w, const act *x,
                      const int32_t *row, size_t R);

/* x += the time mixing of RWKV 6 or 7 in layer l. The slot that each sequence lists is its
 * text's. */
void pass_mix(const struct network *n, size_t l, const struct kv *kv, const struct work *w,
              const struct pass *p);
