/* encode.cu - converts values to the format of a matrix (encode.h).
 *
 * A code depends only on the largest of some numbers, which has no rounding, and on single fp32
 * operations, each rounded separately. So the codes equal those that kernels/quant-*.c make on the
 * host. The search for the largest finds a NaN or an infinity, because the bits of |x| are compared
 * as integers, where these are above all numbers. */
#include "kernels/cuda/weights/encode.h"

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/weights/streamed.cuh"
#include "kernels/cuda/device/runtime.h"

enum { ENCODE_THREADS = 256 };

/* ---- the largest |x| ---- */

DEVICE uint32_t size_bits(float x)
{
    return __float_as_uint(x) & 0x7fffffffu;
}

/* The float with these bits; NaN if it is not finite. */
DEVICE float size_of(uint32_t bits)
{
    return __uint_as_float(bits < 0x7f800000u ? bits : 0x7fc00000u);
}

DEVICE uint32_t warp_most(uint32_t x)
{
    return warp_fold(x, [](uint32_t a, uint32_t b) { return max(a, b); });
}

/* The largest x of the block, returned to every thread. shared: ENCODE_THREADS / WARP words. */
DEVICE uint32_t block_most(uint32_t x, uint32_t *shared)
{
    x = warp_most(x);
    if (threadIdx.x % WARP == 0)
        shared[threadIdx.x / WARP] = x;
    __syncthreads();
    for (int i = 0; i < ENCODE_THREADS / WARP; i++)
        x = max(x, shared[i]);
    return x;
}

/* ---- kernels: V is the format of the values, float or bf16 ---- */

/* Thread i converts value i of the chunk: o[row, stride] = v[row, cols]. */
template <class V, class O>
static __global__ void __launch_bounds__(ENCODE_THREADS)
convert(O *o, const V *values, size_t n, size_t cols, size_t stride)
{
    let_next_start();
    wait_for_inputs();
    size_t i = (size_t)blockIdx.x * ENCODE_THREADS + threadIdx.x;
    if (i < n)
        act_put(&o[i / cols * stride + i % cols], act_float(values[i]));
}

/* A block owns a row: it writes the scale and the one-byte codes. */
template <class V, enum dtype D>
static __global__ void __launch_bounds__(ENCODE_THREADS)
encode_bytes(uint8_t *code, float *scale, const V *values, size_t cols, size_t stride)
{
    SHARED(uint32_t, shared);
    uint32_t most = 0;
    let_next_start();
    wait_for_inputs();
    values += blockIdx.x * cols;
    code += blockIdx.x * stride;
    for (size_t k = threadIdx.x; k < cols; k += ENCODE_THREADS)
        most = max(most, size_bits(act_float(values[k])));
    float top = size_of(block_most(most, shared));
    float up = quant_up(top, format<D>::TOP);
    for (size_t k = threadIdx.x; k < cols; k += ENCODE_THREADS) {
        float x = up > 0 ? __fmul_rn(act_float(values[k]), up) : 0;
        code[k] = up > 0 ? format<D>::code(x) : (uint8_t)0;
    }
    if (threadIdx.x == 0)
        scale[blockIdx.x] = quant_scale(top);
}

/* A warp owns a block of 64 values; a lane owns two values and the byte of their codes. */
template <class V, enum dtype D>
static __global__ void __launch_bounds__(ENCODE_THREADS)
encode_blocks(uint8_t *code, float *absmax, const V *values, size_t blocks)
{
    let_next_start();
    wait_for_inputs();
    size_t at = ((size_t)blockIdx.x * ENCODE_THREADS + threadIdx.x) / WARP;
    if (at >= blocks)
        return;
    size_t i = at * WARP + threadIdx.x % WARP;
    float left = act_float(values[2 * i]), right = act_float(values[2 * i + 1]);
    float top = size_of(warp_most(max(size_bits(left), size_bits(right)))), up = quant_up(top, 1);
    left = up > 0 ? __fmul_rn(left, up) : 0;
    right = up > 0 ? __fmul_rn(right, up) : 0;
    code[i] = (uint8_t)(level_code(D, left) << 4 | level_code(D, right));
    if (threadIdx.x % WARP == 0)
        absmax[at] = quant_scale(top);
}

/* A thread block owns 256 absmax that share a scale: it writes the scale and the codes; a thread
 * owns one absmax. As in encode_super() of quant-blocks.c, fmaxf skips NaN. */
static __global__ void __launch_bounds__(QUANT_SUPER)
encode_supers(uint8_t *code, float *scale, float *kept_offset, const float *absmax, size_t n,
              float offset)
{
    SHARED(float, dynamic); /* the dynamic map, then a float a warp */
    float *tops = dynamic + 256;
    let_next_start();
    dynamic[threadIdx.x] = dynamic_level_of(threadIdx.x);
    wait_for_inputs();
    size_t i = (size_t)blockIdx.x * QUANT_SUPER + threadIdx.x;
    float a = i < n ? __fadd_rn(absmax[i], -offset) : 0, top = warp_max(fabsf(a));
    if (threadIdx.x % WARP == 0)
        tops[threadIdx.x / WARP] = top;
    __syncthreads();
    top = 0;
    for (int w = 0; w < QUANT_SUPER / WARP; w++)
        top = fmaxf(top, tops[w]);
    float up = quant_up(top, 1);
    if (i < n)
        code[i] = (uint8_t)level_nearest(dynamic, 256, up > 0 ? __fmul_rn(a, up) : 0);
    if (threadIdx.x == 0)
        scale[blockIdx.x] = up > 0 ? top : 0;
    if (i == 0)
        *kept_offset = offset;
}

/* Thread i draws block first / 8 + i, and writes those of its values whose index is in
 * first .. first + n - 1. */
static __global__ void __launch_bounds__(ENCODE_THREADS)
draw_values(float *out, struct draw draw, const float *table, size_t first, size_t n)
{
    float drawn[DRAW_BLOCK];
    let_next_start();
    wait_for_inputs();
    size_t block = first / DRAW_BLOCK + (size_t)blockIdx.x * ENCODE_THREADS + threadIdx.x;
    size_t at = block * DRAW_BLOCK;
    if (at >= first + n)
        return;
    draw_block(&draw, table, block, drawn);
    for (int j = 0; j < DRAW_BLOCK; j++)
        if (at + j >= first && at + j < first + n)
            out[at + j - first] = drawn[j];
}

/* ---- launches ---- */

/* One-byte codes with one scale a row, or half-byte codes with one scale a block. */
template <class V, enum dtype D>
static void start_codes(struct backend *backend, unsigned char *code, float *scale, const V *values,
                        const struct mat_chunk *chunk, size_t stride)
{
    if constexpr (format<D>::TOP > 0) {
        launch(backend, encode_bytes<V, D>, dim3((unsigned)chunk->count), dim3(ENCODE_THREADS),
               ENCODE_THREADS / WARP * sizeof(uint32_t), code, scale, values, chunk->cols, stride);
    } else if constexpr (D != DTYPE_BF16) {
        size_t blocks = chunk->count * chunk->cols / QUANT_BLOCK;
        launch(backend, encode_blocks<V, D>, dim3(blocks_of(blocks, ENCODE_THREADS / WARP)),
               dim3(ENCODE_THREADS), 0, code, scale, values, blocks);
    }
}

template <class V>
static void encode_values(struct backend *b, unsigned char *data, const struct layout *at,
                          enum dtype dtype, const struct mat_chunk *c, float *absmax)
{
    const V *v = (const V *)c->values;
    const struct dtype_info *info = &dtype_info[dtype];
    size_t n = c->count * c->cols, begin = c->first * at->stride;
    float *scale = absmax ? absmax : (float *)(data + at->scale);
    scale += dtype_scales(dtype, c->first, c->cols);
    dim3 each(blocks_of(n, ENCODE_THREADS)), threads(ENCODE_THREADS);
    if (info->bits == 32)
        launch(b, convert<V, float>, each, threads, 0, (float *)data + begin, v, n, c->cols,
               at->stride);
    else if (dtype == DTYPE_F16)
        launch(b, convert<V, half16>, each, threads, 0, (half16 *)data + begin, v, n, c->cols,
               at->stride);
    else if (!info->quantized)
        launch(b, convert<V, uint16_t>, each, threads, 0, (uint16_t *)data + begin, v, n, c->cols,
               at->stride);
#define START(id, ...)                                                                             \
    else if (dtype == DTYPE_##id)                                                                  \
        start_codes<V, DTYPE_##id>(b, data + begin, scale, v, c, at->stride);
    STREAMED_FORMATS(START)
#undef START
}

void encode_chunk(struct backend *backend, unsigned char *data, const struct layout *at,
                  enum dtype dtype, const struct mat_chunk *chunk, float *absmax)
{
    if (chunk->half)
        encode_values<uint16_t>(backend, data, at, dtype, chunk, absmax);
    else
        encode_values<float>(backend, data, at, dtype, chunk, absmax);
}

void encode_absmax(struct backend *backend, unsigned char *data, const struct layout *at,
                   const float *absmax, size_t blocks, float offset)
{
    size_t shared = (256 + QUANT_SUPER / WARP) * sizeof(float);
    launch(backend, encode_supers, dim3(blocks_of(blocks, QUANT_SUPER)), dim3(QUANT_SUPER), shared,
           data + at->absmax, (float *)(data + at->scale), (float *)(data + at->offset), absmax,
           blocks, offset);
}

void encode_draw(struct backend *backend, float *out, const struct draw *draw, const float *table,
                 size_t first, size_t n)
{
    size_t blocks = (first + n + DRAW_BLOCK - 1) / DRAW_BLOCK - first / DRAW_BLOCK;
    launch(backend, draw_values, dim3(blocks_of(blocks, ENCODE_THREADS)), dim3(ENCODE_THREADS), 0,
           out, *draw, table, first, n);
}
