/* ref_wkv.h - one token of time mixing in double, for ref_wkv.c and its gradients. */
#pragma once

#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"

/* at: the index of a token of a head in arrays of rows. head: the index of the head in u. */
struct token {
    const struct wkv_rows *in;
    size_t at, head;
};

static inline struct token token_at(const struct wkv_rows *in, size_t row, size_t head)
{
    return (struct token){in, (row * in->heads + head) * in->head_dim, head * in->head_dim};
}

static inline double bonus(const struct token *token, size_t i)
{
    return token->in->u ? (double)token->in->u[token->head + i] * token->in->k[token->at + i] : 0;
}

/* x[E] = a^T state; zeros for RWKV 6. */
static inline void removed(const struct token *token, const double *state, double *x)
{
    size_t E = token->in->head_dim;
    memset(x, 0, E * sizeof *x);
    for (size_t i = 0; token->in->a && i < E; i++)
        for (size_t j = 0; j < E; j++)
            x[j] += token->in->a[token->at + i] * state[i * E + j];
}

/* next[E, E] = the state behind the token; next may be `state`. */
static inline void state_step(const struct token *token, const double *state, const double *x,
                              double *next)
{
    const struct wkv_rows *in = token->in;
    size_t E = in->head_dim, at = token->at;
    for (size_t i = 0; i < E; i++)
        for (size_t j = 0; j < E; j++)
            next[i * E + j] = exp((double)in->w[at + i]) * state[i * E + j] +
                              (double)in->k[at + i] * in->v[at + j] +
                              (in->b ? in->b[at + i] * x[j] : 0);
}

static inline size_t first_row(const struct wkv_rows *in, size_t seq)
{
    return (size_t)in->seqs[seq].row_begin;
}

static inline void widen(double *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from ? from[i] : 0;
}

static inline void narrow(float *to, const double *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)from[i];
}
