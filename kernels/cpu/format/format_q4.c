/* format_q4.c - Q4 (kernels/quant.h): products of 4-bit integers and activations that are coded as
 * int8, both in blocks of 64. The sum of a block is an exact integer.
 *
 * panel   step[K/64][PANEL] = absmax / 8 in fp32, then the codes, bytes [K/GROUP][PANEL][Q4_STEP]:
 *         byte i holds k = i of a group in its lower half and k = i + Q4_STEP in its upper half.
 * block   step[K/64][MOST] = scale / 127 of the rows, start[K/64][MOST], then the codes
 *         of the activations as [K/Q4_STEP][held(rows)] groups of Q4_WORDS 32-bit words.
 *
 * A product multiplies codes q of 0..15, not q - 8, because processors multiply unsigned by signed
 * bytes. So a sum starts from -8 * (the sum of the codes x). A sum never leaves 16 bits: its 32
 * terms are (q - 8) x if the code is multiplied already, else -8 x, and each is at most 8 * 127.
 * Compiled without contraction (Makefile), so that the few fp32 operations give the same bits at
 * every level and in ref. */
#include <assert.h>

#include "kernels/cpu/format/cpu_format.h"
#include "kernels/quant.h"

/* MOST: the largest number of rows of a block. With 12 rows of 16 lanes GCC keeps sums on the stack
 * in the inner loop. FENCED: 1 where the inner loop needs fenced(). */
enum { FENCED = LANES == 16, MOST = LANES == 16 ? 8 : TILE_ROWS };
enum { GROUP = 2 * Q4_STEP, GROUPS = QUANT_BLOCK / GROUP, STEPS = QUANT_BLOCK / Q4_STEP };

static size_t blocks(size_t K) { return K / QUANT_BLOCK; }

static size_t panel_bytes(size_t K)
{
    return blocks(K) * PANEL * sizeof(float) + K / 2 * PANEL;
}

static size_t steps_bytes(size_t K) { return up(blocks(K) * MOST * sizeof(float), 64); }

static size_t block_bytes(size_t K)
{
    return up(2 * steps_bytes(K) + K * MOST * (Q4_WORDS * 4 / Q4_STEP), 64);
}

static void pack_output(void *panel, size_t j, const struct codes *codes, size_t row, size_t K)
{
    float *step = (float *)panel + j;
    uint8_t *out = (uint8_t *)panel + blocks(K) * PANEL * sizeof(float) + Q4_STEP * j;
    const uint8_t *code = (const uint8_t *)codes->code + row * K / 2;
    for (size_t at_block = 0; at_block < blocks(K); at_block++)
        step[at_block * PANEL] = codes->scale[row * blocks(K) + at_block] / 8;
    for (size_t group = 0; group < K / GROUP; group++, out += Q4_STEP * PANEL, code += GROUP / 2)
        for (size_t i = 0; i < GROUP / 2; i += 2) { /* the first code of a byte is its high half */
            uint8_t low = code[i / 2], high = code[i / 2 + GROUP / 4];
            out[i] = (uint8_t)(low >> 4 | (high & 0xf0));
            out[i + 1] = (uint8_t)((low & 15) | high << 4);
        }
}

static void pack_panel(void *panel, const struct mat_source *source, size_t first, size_t count,
                       float *scratch)
{
    (void)scratch;
    assert(source->q && source->q->dtype == DTYPE_Q4);
    memset(panel, 0, panel_bytes(source->cols));
    for (size_t j = 0; j < count; j++)
        pack_output(panel, j, source->q, first + j, source->cols);
}

/* The scale of a block of 64 values: the largest |x|, or NaN if a value is infinite or NaN. Bits of
 * magnitudes have the order of the magnitudes; infinity and NaN are the largest. */
INLINE float scale_of(const float *x)
{
    uint32_t top = 0, bits[QUANT_BLOCK];
    float scale;
    memcpy(bits, x, sizeof bits);
    for (size_t k = 0; k < QUANT_BLOCK; k++)
        top = (bits[k] & 0x7fffffffu) > top ? bits[k] & 0x7fffffffu : top;
    memcpy(&scale, &top, sizeof scale);
    return quant_scale(isfinite(scale) ? scale : NAN);
}

/* Element i of a quad belongs to the lanes 4n + i. */
typedef int32_t quad __attribute__((vector_size(16)));

/* Packs a block of 64 values of a row: codes and *start. Returns the scale. next: words from one
 * step to the next. */
INLINE float pack_values(uint32_t *words, size_t next, uint32_t *start, const float *x)
{
    int8_t code[QUANT_BLOCK];
    int32_t whole[QUANT_BLOCK];
    quad four[LANES / 4], sums = {0};
    veci sum = {0};
    const float scale = scale_of(x);
    const vec up = splat(scale > 0 ? INT8_TOP / scale : 0);
    for (size_t k = 0; k < QUANT_BLOCK; k += LANES) {
        /* The addition rounds to nearest, ties to even, because floats from 2^23 on are integers.
         * The bits of 12582912 (1.5 * 2^23) are 0x4b400000. The bits of the sum minus these are the
         * rounded value. */
        vecu value = (vecu)(load(x + k) * up + 12582912.0f) - 0x4b400000u;
        value = scale > 0 ? value : (vecu){0}; /* x may be infinite or NaN */
        put_bits(whole + k, value);
        sum += (veci)value;
    }
    for (size_t k = 0; k < QUANT_BLOCK; k++)
        code[k] = (int8_t)whole[k];
    memcpy(four, &sum, sizeof four);
    for (size_t i = 0; i < LANES / 4; i++)
        sums += four[i];
    for (size_t step = 0; step < STEPS; step++)
        q4_words(words + step * next, code + Q4_STEP * step);
    *start = q4_start(-8 * (sums[0] + sums[1]), -8 * (sums[2] + sums[3]));
    return scale;
}

static void pack_rows(void *block, const float *x, size_t ldx, size_t rows, size_t K)
{
    float *step = block;
    uint32_t *start = (uint32_t *)(void *)((char *)block + steps_bytes(K));
    uint32_t *words = (uint32_t *)(void *)((char *)block + 2 * steps_bytes(K));
    const size_t next = up(rows, INT8_ROWS) * Q4_WORDS;
    for (size_t at_block = 0; at_block < blocks(K);
         at_block++, words += STEPS * next, x += QUANT_BLOCK)
        for (size_t i = 0; i < rows; i++) {
            size_t at = at_block * MOST + i;
            step[at] = pack_values(words + i * Q4_WORDS, next, &start[at], x + i * ldx) / INT8_TOP;
        }
}

/* The codes of a group of LANES outputs. */
typedef uint32_t q4_weights __attribute__((vector_size(LANES * Q4_STEP)));

INLINE q4_weights weights_at(const void *codes)
{
    q4_weights w;
    memcpy(&w, codes, sizeof w);
    return w;
}

INLINE void add_step(const int rows, veci sum[][2], q4_weights lo, q4_weights hi,
                     const uint32_t *x)
{
    for (int i = 0; i < held(rows); i++) {
        sum[i][0] = q4_add(sum[i][0], lo & 0x0f0f0f0fu, x, i);
        sum[i][1] = q4_add(sum[i][1], hi & 0x0f0f0f0fu, x, i);
    }
}

/* y += the sum of a block, times the steps of weights and x */
INLINE void add_scaled(float *y, veci sum, const float *step, float x_step)
{
    vec scale = load(step) * x_step;
    put(y, load(y) + __builtin_convertvector(q4_total(sum), vec) * scale);
    fenced(FENCED);
}

INLINE void tile_rows(const int rows, float *out, const void *block, const void *panel, size_t K,
                      struct ahead ahead)
{
    const float *step = panel, *x_step = block;
    const char *codes = (const char *)panel + blocks(K) * PANEL * sizeof(float);
    const uint32_t *start = (const void *)((const char *)block + steps_bytes(K));
    const uint32_t *x = (const void *)((const char *)block + 2 * steps_bytes(K));
    const size_t next = (size_t)held(rows) * Q4_WORDS;
    const size_t share = ahead.bytes / (K / GROUP + blocks(K)); /* a block has steps and GROUPS */
    for (int i = 0; i < 2 * rows; i++)
        put(out + i * LANES, (vec){0});
    for (size_t at_block = 0; at_block < blocks(K);
         at_block++, step += PANEL, start += MOST, x_step += MOST) {
        veci sum[TILE_ROWS][2];
        for (int i = 0; i < held(rows); i++)
            sum[i][0] = sum[i][1] = (veci)splat_bits(start[i]);
        pair_sums(rows, sum);
        fetch_ahead(ahead.at);
        ahead.at += share;
        for (int group = 0; group < GROUPS; group++, codes += PANEL * Q4_STEP, x += 2 * next) {
            q4_weights lo = weights_at(codes), hi = weights_at(codes + LANES * Q4_STEP);
            add_step(rows, sum, lo, hi, x);
            add_step(rows, sum, lo >> 4, hi >> 4, x + next);
            fetch_ahead(ahead.at);
            ahead.at += share;
            fenced(FENCED);
        }
        pair_sums(rows, sum);
        for (int i = 0; i < rows; i++) {
            add_scaled(out + i * PANEL, sum[i][0], step, x_step[i]);
            add_scaled(out + i * PANEL + LANES, sum[i][1], step + LANES, x_step[i]);
        }
    }
}

static void tile(float *out, const void *block, size_t rows, const void *panel, size_t K,
                 struct ahead next)
{
#define KERNEL(n) tile_rows(n, out, block, panel, K, next)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

static void row(float *out, const void *panel, size_t j, size_t K)
{
    const float *step = (const float *)panel + j;
    const uint8_t *codes = (const uint8_t *)panel + blocks(K) * PANEL * sizeof(float) + Q4_STEP * j;
    for (size_t k = 0; k < K; k++) {
        int code = codes[k / GROUP * PANEL * Q4_STEP + k % Q4_STEP] >> k % GROUP / Q4_STEP * 4 & 15;
        out[k] = (float)(code - 8) * step[k / QUANT_BLOCK * PANEL];
    }
}

const struct format CPU(format_q4) = {panel_bytes, block_bytes, pack_panel, pack_rows, tile, row,
                                      16384, MOST};
