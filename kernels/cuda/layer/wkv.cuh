/* wkv.cuh - a chunk of C tokens of one head in shared memory, for wkv.cu and wkv_back.cu.
 * kernels/wkv.h has the formulas and defines D and A. A block of THREADS threads owns a head of a
 * sequence. Thread (g, i) has i = threadIdx.x % N and g = threadIdx.x / N: it owns channel i of C /
 * GROUPS tokens, or column i of N / GROUPS rows of the state. Heads with fewer than N channels are
 * padded with zeros. */
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/wkv.h"

enum { N = WKV_CUDA_MOST, C = WKV_CHUNK, THREADS = 256, GROUPS = THREADS / N, PAIR_ROW = 2 * C };
enum { TOKENS_EACH = C / GROUPS, ROWS_EACH = N / GROUPS, ACROSS = THREADS / C };
static_assert(ACROSS == 16 && N / ACROSS == 4, "a token's channels lie over half a warp");

struct wkv_tokens {
    float r[C * N], a[C * N];
    float keys[2 * C * N];   /* k, then b */
    float values[2 * C * N]; /* v, then x */
    float decay[C * N];      /* e^w; 1 for tokens beyond the last */
    float bonus[N];          /* u */
    float read[C * PAIR_ROW], solve[C * PAIR_ROW]; /* read: A^rk, A^rb; solve: A^ak, A^ab */
};

/* The place of this block's head in arrays. at: wkv.at of kernels/wkv.h. */
struct wkv_place {
    size_t seq, head, E, first, rows, stride, state;
};

DEVICE struct wkv_place place_here(const struct wkv_rows &in, const int32_t *at)
{
    struct attn_seq sequence = in.seqs[blockIdx.y];
    size_t E = in.head_dim, own = at ? (size_t)at[blockIdx.y] : blockIdx.y;
    return {blockIdx.y, blockIdx.x, E, (size_t)sequence.row_begin, (size_t)sequence.rows,
            in.heads * E, (own * in.heads + blockIdx.x) * E * E};
}

/* The number of tokens from `first` on, at most `most`. */
DEVICE size_t tokens_from(const struct wkv_place &place, size_t first, size_t most)
{
    return place.rows - first < most ? place.rows - first : most;
}

/* Loads tokens first .. first + n - 1 of the sequence; zeros behind them. */
template <bool SEVEN>
DEVICE void chunk_load(struct wkv_tokens *tokens, const struct wkv_rows &in,
                       const struct wkv_place &place, size_t first, size_t n)
{
    for (unsigned i = threadIdx.x; i < C * N; i += THREADS) {
        size_t row = i / N, e = i % N,
               at = (place.first + first + row) * place.stride + place.head * place.E + e;
        bool there = row < n && e < place.E;
        tokens->r[i] = there ? in.r[at] : 0.0f;
        tokens->keys[i] = there ? in.k[at] : 0.0f;
        tokens->values[i] = there ? in.v[at] : 0.0f;
        tokens->decay[i] = there ? expf(in.w[at]) : 1.0f;
        if (SEVEN) {
            tokens->a[i] = there ? in.a[at] : 0.0f;
            tokens->keys[C * N + i] = there ? in.b[at] : 0.0f;
        } else if (row == 0) {
            tokens->bonus[e] = e < place.E ? in.u[place.head * place.E + e] : 0.0f;
        }
    }
}

/* The sum of x over the 16 lanes of half a warp. */
DEVICE float half_sum(float x)
{
    return warp_fold<ACROSS>(x, [](float a, float b) { return a + b; });
}

/* Computes read and solve (A) for one kind of keys. Half warp q computes all pairs whose earlier
 * token is q, with four key channels a lane; k is the key of token q, decayed up to the later
 * token. column: 0 for k, C for b. */
template <bool SEVEN> DEVICE void chunk_scores(struct wkv_tokens *tokens, unsigned column)
{
    const unsigned earlier = threadIdx.x / ACROSS, lane = threadIdx.x % ACROSS;
    float k[4] = {0, 0, 0, 0};
    for (unsigned token = 0; token < C; token++) {
        float of_a = 0, of_r = 0;
        for (unsigned i = 0; i < 4; i++) {
            unsigned e = lane * 4 + i, at = token * N + e;
            float before = k[i], own = tokens->keys[column * N + at];
            k[i] = token == earlier ? own : before * tokens->decay[at];
            if (SEVEN) {
                of_a = fmaf(tokens->a[at], before, of_a);
                of_r = fmaf(tokens->r[at], k[i], of_r);
            } else {
                of_r = fmaf(tokens->r[at], token == earlier ? own * tokens->bonus[e] : before,
                            of_r);
            }
        }
        of_r = half_sum(of_r);
        if (SEVEN)
            of_a = half_sum(of_a);
        if (lane == 0) {
            tokens->read[token * PAIR_ROW + column + earlier] = of_r;
            if (SEVEN)
                tokens->solve[token * PAIR_ROW + column + earlier] = of_a;
        }
    }
}

/* sum[m] += sum_k a[m, k] x[k, i] for this thread's tokens m. Rows of a have `wide` values. */
DEVICE void add_product(float sum[TOKENS_EACH], const float *a, unsigned wide, const float *x,
                        unsigned K)
{
    const unsigned i = threadIdx.x % N, first = threadIdx.x / N * TOKENS_EACH;
    for (unsigned k = 0; k < K; k++) {
        float y = x[k * N + i];
        for (unsigned tile = 0; tile < TOKENS_EACH; tile++)
            sum[tile] = fmaf(a[(first + tile) * wide + k], y, sum[tile]);
    }
}

/* s[row, i] = s[row, i] * whole[row] + sum_q left[q, row] x[q, i] for this thread's rows; whole
 * NULL: no factor. */
DEVICE void add_outer(float *s, const float *whole, const float *left, const float *x, unsigned K)
{
    const unsigned i = threadIdx.x % N, first = threadIdx.x / N * ROWS_EACH;
    float sum[ROWS_EACH];
    for (unsigned tile = 0; tile < ROWS_EACH; tile++)
        sum[tile] = whole ? s[(first + tile) * N + i] * whole[first + tile]
                          : s[(first + tile) * N + i];
    for (unsigned earlier = 0; earlier < K; earlier++) {
        float y = x[earlier * N + i];
        for (unsigned tile = 0; tile < ROWS_EACH; tile++)
            sum[tile] = fmaf(left[earlier * N + first + tile], y, sum[tile]);
    }
    for (unsigned tile = 0; tile < ROWS_EACH; tile++)
        s[(first + tile) * N + i] = sum[tile];
}

/* state_load() loads s[N, N] from a state [E, E], padded with zeros; state NULL: zeros.
 * state_store() stores it. */
DEVICE void state_load(float *s, const float *state, size_t E)
{
    for (unsigned i = threadIdx.x; i < N * N; i += THREADS)
        s[i] = state && i / N < E && i % N < E ? state[i / N * E + i % N] : 0.0f;
}

DEVICE void state_store(float *state, const float *s, size_t E)
{
    for (unsigned i = threadIdx.x; i < N * N; i += THREADS)
        if (i / N < E && i % N < E)
            state[i / N * E + i % N] = s[i];
}
