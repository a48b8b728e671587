/* rows.cu - operations on each row by itself: embedding, norm, rotation, gate.
 *
 * These operations mostly move memory. So a thread takes 8 neighbouring values in 16-byte accesses
 * if addresses and widths allow it, else one value; the arithmetic of a value is equal in both
 * cases. Only the norm needs a sum: a thread adds its own values in ascending order, then
 * block_sum() adds the threads. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/weights/streamed.cuh"
#include "kernels/cuda/weights/layout.h"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/values.cuh"

enum { ROW_THREADS = 256, NORM_THREADS = 512 };

/* ---- copies of rows ---- */

/* Thread (t, i) copies word i of row row[t] (row NULL: row t). stride: words from one row of `from`
 * to the next. */
template <class W>
static __global__ void __launch_bounds__(ROW_THREADS)
copy_rows(W *y, const W *from, size_t stride, const int32_t *row, size_t words)
{
    let_next_start();
    wait_for_inputs();
    size_t at = blockIdx.x, i = (size_t)blockIdx.y * ROW_THREADS + threadIdx.x;
    if (i < words)
        y[at * words + i] = from[(row ? (size_t)row[at] : at) * stride + i];
}

template <class W>
static void launch_copy(struct backend *backend, void *y, const void *from, size_t stride_bytes,
                        const int32_t *row, size_t T, size_t row_bytes)
{
    size_t words = row_bytes / sizeof(W);
    launch(backend, copy_rows<W>, dim3((unsigned)T, blocks_of(words, ROW_THREADS)),
           dim3(ROW_THREADS), 0, (W *)y, (const W *)from, stride_bytes / sizeof(W), row, words);
}

/* y[t, :] = from[row[t], :], rows of n values of `value` bytes. */
static void copy(struct backend *backend, void *y, const void *from, size_t stride,
                 const int32_t *row, size_t T, size_t n, size_t value)
{
    if (values_wide(y, n, n, value) && values_wide(from, n, stride, value))
        launch_copy<uint4>(backend, y, from, stride * value, row, T, n * value);
    else if (value == sizeof(float))
        launch_copy<float>(backend, y, from, stride * value, row, T, n * value);
    else
        launch_copy<uint16_t>(backend, y, from, stride * value, row, T, n * value);
}

/* ---- the embedding ---- */

/* Value k of a row of a matrix. */
template <enum dtype D>
DEVICE float element(const unsigned char *data, const struct layout *at, size_t row, size_t k)
{
    if constexpr (D == DTYPE_F32)
        return reinterpret_cast<const float *>(data)[row * at->stride + k];
    else if constexpr (D == DTYPE_F16)
        return f16_float(reinterpret_cast<const uint16_t *>(data)[row * at->stride + k]);
    else
        return format<D>::element(data, at, row, k);
}

/* Thread (t, k) writes y[t, k]. */
template <class A, enum dtype D>
static __global__ void __launch_bounds__(ROW_THREADS)
embed_rows(A *y, const unsigned char *data, struct layout at, const int32_t *token, size_t cols)
{
    let_next_start();
    wait_for_inputs();
    size_t row = blockIdx.x, k = (size_t)blockIdx.y * ROW_THREADS + threadIdx.x;
    if (k < cols)
        act_put(&y[row * cols + k], element<D>(data, &at, (size_t)token[row], k));
}

template <class A, enum dtype D>
static void launch_embed(struct backend *backend, act *y, const struct mat *weight,
                         const int32_t *token, size_t T)
{
    launch(backend, embed_rows<A, D>, dim3((unsigned)T, blocks_of(weight->cols, ROW_THREADS)),
           dim3(ROW_THREADS), 0, (A *)y, (const unsigned char *)weight->data,
           layout_of(weight->dtype, weight->rows, weight->cols), token, weight->cols);
}

template <class A>
static void embed_as(struct backend *b, act *y, const struct mat *w, const int32_t *token, size_t T)
{
    switch (w->dtype) {
    case DTYPE_F32: launch_embed<A, DTYPE_F32>(b, y, w, token, T); break;
    case DTYPE_F16: launch_embed<A, DTYPE_F16>(b, y, w, token, T); break;
    case DTYPE_BF16_F32: launch_embed<A, DTYPE_BF16>(b, y, w, token, T); break;
#define EMBED(id, ...)                                                                             \
    case DTYPE_##id: launch_embed<A, DTYPE_##id>(b, y, w, token, T); break;
        STREAMED_FORMATS(EMBED)
#undef EMBED
    case DTYPE_Q4: /* refused */
    case DTYPES: break;
    }
}

void cuda_embed(struct backend *backend, act *y, const struct mat *weight, const int32_t *token,
                size_t T)
{
    int half = weight->dtype == DTYPE_BF16 || weight->dtype == DTYPE_BF16_F32;
    size_t stride = layout_stride(weight->dtype, weight->cols);
    if (backend->act == DTYPE_F32 && weight->dtype == DTYPE_F32)
        copy(backend, y, weight->data, stride, token, T, weight->cols, sizeof(float));
    else if (backend->act == DTYPE_BF16 && half)
        copy(backend, y, weight->data, stride, token, T, weight->cols, sizeof(uint16_t));
    else if (backend->act == DTYPE_F32)
        embed_as<float>(backend, y, weight, token, T);
    else
        embed_as<uint16_t>(backend, y, weight, token, T);
}

/* ---- rotation ---- */

/* Thread (t, j) writes the cosine and the sine of row t's angle j. */
static __global__ void __launch_bounds__(ROW_THREADS)
rope_angles(float *table, const int32_t *pos, const float *inv_freq, float scale, unsigned T,
            unsigned half)
{
    let_next_start();
    wait_for_inputs();
    unsigned i = blockIdx.x * ROW_THREADS + threadIdx.x, t = i / half, j = i % half;
    if (t >= T)
        return;
    float angle = (float)pos[t] * inv_freq[j];
    float *row = table + (size_t)t * 2 * half;
    row[j] = (float)(cos((double)angle) * (double)scale);
    row[half + j] = (float)(sin((double)angle) * (double)scale);
}

void cuda_rope_table(struct backend *backend, float *table, const int32_t *pos,
                     const float *inv_freq, float scale, size_t T, size_t E)
{
    launch(backend, rope_angles, dim3(blocks_of(T * (E / 2), ROW_THREADS)), dim3(ROW_THREADS), 0,
           table, pos, inv_freq, scale, (unsigned)T, (unsigned)(E / 2));
}

/* Arguments of rotate_rows. A: type of activations; C: type of cached values. */
template <class A, class C> struct rotation {
    const float *table;  /* [T, E] */
    A *q;
    const A *from;       /* outputs of the product for q, rows from_ld apart; may be q */
    const A *k, *v;      /* rows ld apart; NULL: keys are rotated in place, in the cache */
    size_t from_ld, ld;
    C *key, *value;      /* the cache */
    const int32_t *slot;
    size_t heads, kv_heads, half;
};

/* Rotates N pairs (from[j], from[j + half]) by a row of the table, and writes them to `to`. */
template <int N, class A, class C>
DEVICE void rotate(C *to, const A *from, const float *table, size_t half)
{
    float up[N], values[N], c[N], s[N], low[N], high[N];
    values_load<N>(up, from);
    values_load<N>(values, from + half);
    values_load<N>(c, table);
    values_load<N>(s, table + half);
    for (int i = 0; i < N; i++) {
        low[i] = up[i] * c[i] - values[i] * s[i];
        high[i] = values[i] * c[i] + up[i] * s[i];
    }
    values_store<N>(to, low);
    values_store<N>(to + half, high);
}

/* Thread (t, i) rotates N neighbouring pairs of row t, first of q and then of k, or copies N values
 * of v. */
template <class A, class C, int N>
static __global__ void __launch_bounds__(ROW_THREADS) rotate_rows(struct rotation<A, C> rotation)
{
    let_next_start();
    wait_for_inputs();
    size_t row = blockIdx.x, i = ((size_t)blockIdx.y * ROW_THREADS + threadIdx.x) * N;
    size_t q = rotation.heads * rotation.half, k = rotation.kv_heads * rotation.half,
           at = rotation.slot ? (size_t)rotation.slot[row] : row;
    C *key = rotation.key + at * 2 * k;
    const float *table = rotation.table + row * 2 * rotation.half;
    if (i < q) {
        size_t place = i / rotation.half * 2 * rotation.half + i % rotation.half;
        rotate<N>(rotation.q + row * 2 * q + place, rotation.from + row * rotation.from_ld + place,
                  table + i % rotation.half, rotation.half);
    } else if (i < q + k) {
        i -= q;
        size_t place = i / rotation.half * 2 * rotation.half + i % rotation.half;
        if (rotation.k)
            rotate<N>(key + place, rotation.k + row * rotation.ld + place,
                      table + i % rotation.half, rotation.half);
        else
            rotate<N>(key + place, key + place, table + i % rotation.half, rotation.half);
    } else if (rotation.v && i < q + 3 * k) {
        float values[N];
        i -= q + k;
        values_load<N>(values, rotation.v + row * rotation.ld + i);
        values_store<N>(rotation.value + at * 2 * k + i, values);
    }
}

template <class A, class C>
static void rotate_as(struct backend *backend, const struct qkv *qkv, const struct qkv_made *made,
                      size_t T)
{
    size_t width = qkv->heads * qkv->head_dim;
    struct rotation<A, C> rotation = {qkv->table,
                                      (A *)qkv->q,
                                      (const A *)(made->q ? made->q : qkv->q),
                                      (const A *)made->k,
                                      (const A *)made->v,
                                      made->q ? made->ld : width,
                                      made->ld,
                                      (C *)qkv->to.k,
                                      (C *)qkv->to.v,
                                      qkv->slot,
                                      qkv->heads,
                                      qkv->kv_heads,
                                      qkv->head_dim / 2};
    size_t n = (rotation.heads + (rotation.v ? 3 : 1) * rotation.kv_heads) * rotation.half;
    int wide = values_wide(rotation.table, rotation.half, rotation.half, sizeof(float)) &&
               values_wide(rotation.q, rotation.half, rotation.half, sizeof(A)) &&
               values_wide(rotation.from, rotation.half, rotation.from_ld, sizeof(A)) &&
               values_wide(rotation.k, rotation.half, rotation.ld, sizeof(A)) &&
               values_wide(rotation.v, rotation.half, rotation.ld, sizeof(A)) &&
               values_wide(rotation.key, rotation.half, rotation.half, sizeof(C)) &&
               values_wide(rotation.value, rotation.half, rotation.half, sizeof(C));
    if (wide)
        launch(backend, rotate_rows<A, C, WIDE>,
               dim3((unsigned)T, blocks_of(n / WIDE, ROW_THREADS)), dim3(ROW_THREADS), 0, rotation);
    else
        launch(backend, rotate_rows<A, C, 1>, dim3((unsigned)T, blocks_of(n, ROW_THREADS)),
               dim3(ROW_THREADS), 0, rotation);
}

void cuda_rotate_store(struct backend *backend, const struct qkv *qkv, const struct qkv_made *made,
                       size_t T)
{
    if (backend->act == DTYPE_F32 && qkv->to.dtype == DTYPE_F32)
        rotate_as<float, float>(backend, qkv, made, T);
    else if (backend->act == DTYPE_F32)
        rotate_as<float, uint16_t>(backend, qkv, made, T);
    else if (qkv->to.dtype == DTYPE_F32)
        rotate_as<uint16_t, float>(backend, qkv, made, T);
    else
        rotate_as<uint16_t, uint16_t>(backend, qkv, made, T);
}

/* ---- norm ---- */

/* Block t owns row t of y. Each thread takes N neighbouring values at strides of the whole block. y
 * may be x or plus if row is NULL, because a thread reads again only values that the thread itself
 * writes. ADDS: first x += plus, as finish_add() does. */
template <class A, int N, bool ADDS>
static __global__ void __launch_bounds__(NORM_THREADS)
norm_rows(A *y, A *x, const A *plus, const int32_t *row, const float *gain, size_t D, float eps)
{
    SHARED(float, shared);
    float values[N], g[N], sum = 0;
    let_next_start();
    size_t at = blockIdx.x, first = threadIdx.x * N, step = (size_t)blockDim.x * N;
    for (size_t k = first; k < D; k += step)
        prefetch(gain + k); /* a weight: may be prefetched before the inputs are ready */
    wait_for_inputs();
    A *from = x + (row ? (size_t)row[at] : at) * D;
    for (size_t k = first; k < D; k += step) {
        values_load<N>(values, from + k);
        if (ADDS) {
            values_load<N>(g, plus + at * D + k);
            for (int i = 0; i < N; i++)
                values[i] = act_rounded<A>(values[i] + g[i]);
            values_store<N>(from + k, values);
        }
        for (int i = 0; i < N; i++)
            sum += values[i] * values[i];
    }
    float scale = 1 / sqrtf(block_sum(sum, shared) / (float)D + eps);
    for (size_t k = first; k < D; k += step) {
        values_load<N>(values, from + k);
        values_load<N>(g, gain + k);
        for (int i = 0; i < N; i++)
            values[i] = act_rounded<A>(values[i] * scale) * g[i];
        values_store<N>(y + at * D + k, values);
    }
}

/* The number of threads for a row of n pieces: whole warps, no more than needed. */
static unsigned norm_threads(size_t n)
{
    if (n >= NORM_THREADS)
        return NORM_THREADS;
    return blocks_of(n, WARP) * WARP;
}

/* Returns the product of the delayed sum (struct later) if the norm of x can compute the sum; the
 * sum is then no longer delayed. NULL: there is no such sum. The product must not overlap y, or
 * must be y itself, because a thread writes a value of y only after it has read that value of the
 * product. */
static const uint16_t *take_later(struct backend *backend, const void *y, const void *x, size_t T,
                                  size_t D)
{
    struct later *later = &device_of(backend)->later;
    const uint16_t *plus = static_cast<const uint16_t *>(later->product);
    const uint16_t *to = static_cast<const uint16_t *>(y);
    int apart = to == plus || to + T * D <= plus || plus + T * D <= to;
    if (!later->add || later->y != x || later->n != T * D || !apart ||
        !values_wide(plus, D, D, sizeof *plus))
        return nullptr;
    later->add = nullptr;
    return plus;
}

template <class A>
static void norm_as(struct backend *backend, A *y, A *x, const int32_t *row, const float *gain,
                    size_t T, size_t D, float eps)
{
    int wide = values_wide(y, D, D, sizeof(A)) && values_wide(x, D, D, sizeof(A)) &&
               values_wide(gain, D, D, sizeof(float));
    unsigned threads = norm_threads(wide ? D / WIDE : D);
    size_t shared = threads / WARP * sizeof(float);
    const A *plus = nullptr;
    if constexpr (sizeof(A) == sizeof(uint16_t)) /* sums of floats are never delayed */
        if (wide && !row && (plus = take_later(backend, y, x, T, D))) {
            launch(backend, norm_rows<A, WIDE, true>, dim3((unsigned)T), dim3(threads), shared, y,
                   x, plus, row, gain, D, eps);
            return;
        }
    if (wide)
        launch(backend, norm_rows<A, WIDE, false>, dim3((unsigned)T), dim3(threads), shared, y, x,
               plus, row, gain, D, eps);
    else
        launch(backend, norm_rows<A, 1, false>, dim3((unsigned)T), dim3(threads), shared, y, x,
               plus, row, gain, D, eps);
}

void cuda_rmsnorm(struct backend *backend, act *y, const act *x, const int32_t *row,
                  const float *gain, size_t T, size_t D, double eps)
{
    if (!gain)
        copy(backend, y, x, D, row, T, D,
             backend->act == DTYPE_F32 ? sizeof(float) : sizeof(uint16_t));
    else if (backend->act == DTYPE_F32)
        norm_as(backend, (float *)y, (float *)x, row, gain, T, D, (float)eps);
    else
        norm_as(backend, (uint16_t *)y, (uint16_t *)x, row, gain, T, D, (float)eps);
}

/* ---- gate ---- */

/* silu(g) * u, as in finish.cuh for few rows. */
template <class A> DEVICE float gate_one(float g, float up)
{
    return act_rounded<A>(g / (1 + expf(-g))) * up; /* bf16 models round silu(g) too */
}

/* Thread (t, i) writes y[t, i..i+N). */
template <class A, int N>
static __global__ void __launch_bounds__(ROW_THREADS)
gate_rows(A *y, const A *gate, const A *up, size_t ld, size_t F)
{
    let_next_start();
    wait_for_inputs();
    size_t row = blockIdx.x, i = ((size_t)blockIdx.y * ROW_THREADS + threadIdx.x) * N;
    float g[N], u[N];
    if (i >= F)
        return;
    values_load<N>(g, gate + row * ld + i);
    values_load<N>(u, up + row * ld + i);
    for (int j = 0; j < N; j++)
        g[j] = gate_one<A>(g[j], u[j]);
    values_store<N>(y + row * F + i, g);
}

template <class A>
static void gate_as(struct backend *backend, A *y, const A *gate, const A *up, size_t ld, size_t T,
                    size_t F)
{
    if (values_wide(y, F, F, sizeof(A)) && values_wide(gate, F, ld, sizeof(A)) &&
        values_wide(up, F, ld, sizeof(A)))
        launch(backend, gate_rows<A, WIDE>, dim3((unsigned)T, blocks_of(F / WIDE, ROW_THREADS)),
               dim3(ROW_THREADS), 0, y, gate, up, ld, F);
    else
        launch(backend, gate_rows<A, 1>, dim3((unsigned)T, blocks_of(F, ROW_THREADS)),
               dim3(ROW_THREADS), 0, y, gate, up, ld, F);
}

void cuda_swiglu_rows(struct backend *backend, act *y, const act *gate, const act *up, size_t ld,
                      size_t T, size_t F)
{
    if (backend->act == DTYPE_F32)
        gate_as(backend, (float *)y, (const float *)gate, (const float *)up, ld, T, F);
    else
        gate_as(backend, (uint16_t *)y, (const uint16_t *)gate, (const uint16_t *)up, ld, T, F);
}

void cuda_swiglu(struct backend *backend, act *y, const act *gate, const act *up, size_t n)
{
    enum { PIECE = 1 << 18 }; /* values of a piece; pieces are rows of the grid, so that any n fits
                               * into the limits of the grid */
    size_t whole = n / PIECE * PIECE, at = whole * (backend->act == DTYPE_F32 ? 4 : 2);
    struct range here("swiglu");
    if (whole)
        cuda_swiglu_rows(backend, y, gate, up, PIECE, n / PIECE, PIECE);
    if (n > whole)
        cuda_swiglu_rows(backend, (char *)y + at, (const char *)gate + at, (const char *)up + at,
                         n - whole, 1, n - whole);
}
