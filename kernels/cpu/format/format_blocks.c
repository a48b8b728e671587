/* format_blocks.c - NF4, NF4_F32 and FP4 (kernels/quant.h): blocks of 64 values with 16 levels.
 * Levels are looked up as bf16 pairs right before the dot product; the sum of a block is multiplied
 * by its absmax.
 *
 * panel   1. a header with the format
 *         2. absmax. NF4: the scales that its outputs use (double quantization), then 8-bit codes
 *            [K/64][PANEL]. Other formats: fp32 [K/64][PANEL]
 *         3. the codes of the weights, [K/8][PANEL] words of 32 bits. The lower half of a word
 *            holds k = 0, 2, 4, 6 of eight from its lowest nibble on, the upper half k = 1, 3, 5,
 *            7. So the nibbles at one position of both halves are the bf16 pair (k, k + 1)
 * block   as in format_bf16.c: x rounded to bf16, as pairs where one instruction multiplies them,
 *         else as floats.
 *
 * absmax codes stay codes, because a tile has time to expand them while it waits for memory: 4.2
 * bits a weight are read, not 4.5. Sums of blocks are independent, so with few rows several blocks
 * run at once. They are always added in ascending order. With several blocks of rows, levels and
 * absmax are looked up once for a panel (widen), not once for a tile.
 */
#include <assert.h>

#include "kernels/cpu/format/cpu_format.h"
#include "kernels/quant.h"

/* Block i of the matrix has scale number i / 256. An output's blocks can begin at any i, so two
 * outputs reach their next scale at different blocks. past[j]: blocks of the first scale that lie
 * before output j. */
struct header {
    int32_t past[PANEL];
    float offset;
    enum dtype dtype;
    /* then scales[segments + 1][PANEL]; absmax; codes */
};
enum { HEADER = (sizeof(struct header) + 63) / 64 * 64, GROUP = 8 };

static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }
static size_t blocks(size_t K) { return K / QUANT_BLOCK; }
static size_t scales(size_t K) { return (blocks(K) + QUANT_SUPER - 1) / QUANT_SUPER + 1; }

/* coded 1: absmax are codes. */
static size_t absmax_at(int coded, size_t K)
{
    return HEADER + (coded ? rounded(scales(K) * PANEL * sizeof(float)) : 0);
}

static size_t codes_at(int coded, size_t K)
{
    return absmax_at(coded, K) + rounded(blocks(K) * PANEL * (coded ? 1 : sizeof(float)));
}

static size_t panel_bytes(int coded, size_t K)
{
    return codes_at(coded, K) + rounded(K / GROUP * PANEL * sizeof(uint32_t));
}

static size_t panel_bytes_coded(size_t K) { return panel_bytes(1, K); }
static size_t panel_bytes_plain(size_t K) { return panel_bytes(0, K); }

INLINE int is_coded(const struct header *h) { return h->dtype == DTYPE_NF4; }

static size_t block_bytes(size_t K) { return CPU(format_bf16).block_bytes(K); }

/* Four bytes of the checkpoint as one word: eight codes, the first of a byte in its high half. */
static uint32_t interleave(const uint8_t *code)
{
    uint32_t word = 0;
    for (int i = 0; i < 4; i++)
        word |= (uint32_t)(code[i] >> 4) << 4 * i | (uint32_t)(code[i] & 15) << (16 + 4 * i);
    return word;
}

static void pack_absmax(void *panel, size_t j, const struct codes *q, size_t row, size_t K)
{
    struct header *h = panel;
    float *scale = (float *)(void *)((char *)panel + HEADER);
    uint8_t *absmax = (uint8_t *)panel + absmax_at(1, K);
    size_t first = row * blocks(K), end = first + blocks(K);
    for (size_t b = 0; !is_coded(h) && b < blocks(K); b++)
        scale[b * PANEL + j] = q->scale[first + b];
    if (!is_coded(h))
        return;
    h->past[j] = (int32_t)(first % QUANT_SUPER);
    for (size_t s = first / QUANT_SUPER; s * QUANT_SUPER < end; s++)
        scale[(s - first / QUANT_SUPER) * PANEL + j] = q->scale[s];
    for (size_t b = 0; b < blocks(K); b++)
        absmax[b * PANEL + j] = q->absmax[first + b];
}

static void pack_output(void *panel, size_t j, const struct codes *q, size_t row, size_t K)
{
    size_t at = codes_at(is_coded(panel), K);
    uint32_t *words = (uint32_t *)(void *)((char *)panel + at);
    const uint8_t *code = (const uint8_t *)q->code + row * K / 2;
    pack_absmax(panel, j, q, row, K);
    for (size_t g = 0; g < K / GROUP; g++)
        words[g * PANEL + j] = interleave(code + g * GROUP / 2);
}

/* A byte of two codes of zero. */
static int zeros(enum dtype d) { return d == DTYPE_FP4 ? 0 : 0x77; }

/* From codes only: where absmax are codes they depend on the whole matrix (quant_make). */
static void pack_panel(void *panel, const struct mat_source *s, size_t first, size_t count,
                       float *scratch)
{
    (void)scratch;
    size_t K = s->cols;
    assert(s->q && dtype_info[s->q->dtype].block);
    struct header *h = panel;
    int coded = s->q->dtype == DTYPE_NF4;
    size_t at = codes_at(coded, K);
    memset(panel, 0, at);
    memset((char *)panel + at, zeros(s->q->dtype), panel_bytes(coded, K) - at);
    h->offset = s->q->offset;
    h->dtype = s->q->dtype;
    for (size_t j = 0; j < count; j++)
        pack_output(panel, j, s->q, first + j, K);
}

static void pack_rows(void *block, const float *x, size_t ldx, size_t rows, size_t K)
{
    CPU(format_bf16).pack_rows(block, x, ldx, rows, K);
}

/* The absmax of block `at` of LANES outputs from j on. */
INLINE vec absmax_of(const void *panel, size_t at, size_t j, size_t K)
{
    const struct header *h = panel;
    const float *scale = (const float *)(const void *)((const char *)panel + HEADER);
    if (!is_coded(h))
        return load(scale + at * PANEL + j);
    const uint8_t *code = (const uint8_t *)panel + absmax_at(1, K) + at * PANEL + j;
    veci past;
    memcpy(&past, h->past + j, sizeof past);
    scale += at / QUANT_SUPER * PANEL + j;
    veci next = past + (int32_t)(at % QUANT_SUPER) >= QUANT_SUPER;
    vec map = dynamic_map(dynamic_level, code);
    return pick(next, load(scale + PANEL), load(scale)) * map + h->offset;
}

void CPU(blocks_absmax)(float *out, const void *panel, size_t first, size_t n, size_t K)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < PANEL; j += LANES)
            put(out + i * PANEL + j, absmax_of(panel, first + i, j, K));
}

void CPU(blocks_widen)(uint32_t *pairs, const void *panel, size_t k, size_t n, size_t K)
{
    const struct header *h = panel;
    const level_table table = level_look(quant_levels_bf16(h->dtype));
    const char *at = (const char *)panel + codes_at(is_coded(h), K);
    const uint32_t *codes = (const uint32_t *)(const void *)at;
    codes += k / GROUP * PANEL;
    for (; n; n -= GROUP, codes += PANEL, pairs += GROUP / 2 * PANEL)
        for (size_t j = 0; j < PANEL; j += LANES) {
            vecu code = load_bits(codes + j);
            for (int i = 0; i < GROUP / 2; i++)
                put_bits(pairs + (size_t)i * PANEL + j, level_pairs(table, code, i));
        }
}

INLINE vec dot_pair(vec sum, vecu w, const uint32_t *x)
{
    if (BF16_DOT)
        return dot_bf16(sum, w, splat_bits(x[0]));
    sum += odd_of(w) * (vec)splat_bits(x[1]);
    return sum + even_of(w) * (vec)splat_bits(x[0]);
}

/* PAIR: 32-bit words of a row's pair. STEP: of a group of eight. PER_LINE: groups in a line of the
 * block. */
enum { PAIR = BF16_DOT ? 1 : 2, STEP = GROUP / 2 * PAIR, PER_LINE = LINE / STEP };
enum { GROUPS = QUANT_BLOCK / GROUP };

/* out += the products of `depth` blocks from block `at` on. Each group of eight prefetches
 * ahead.bytes, at most as far as fetch_ahead reaches. */
INLINE void tile_blocks(const int rows, const int depth, float *out, const uint32_t *block,
                        const void *panel, size_t at, size_t K, struct ahead ahead)
{
    const size_t lines = (size_t)rows * LINE; /* words of one line of all rows */
    const struct header *header = panel;
    const char *codes = (const char *)panel + codes_at(is_coded(header), K) +
                        at * (QUANT_BLOCK / 2) * PANEL;
    ahead.at += at * GROUPS * ahead.bytes;
    const level_table table = level_look(quant_levels_bf16(header->dtype));
    vec sum[2][TILE_ROWS][2];
    for (int d = 0; d < depth; d++)
        for (int i = 0; i < rows; i++)
            sum[d][i][0] = sum[d][i][1] = (vec){0};
    for (int g = 0; g < GROUPS; g++) {
        vecu code[2][2];
        for (int d = 0; d < depth; d++) {
            const char *from = codes + (d * GROUPS + g) * PANEL * 4;
            code[d][0] = load_bits(from);
            code[d][1] = load_bits(from + LANES * 4);
            fetch_ahead(ahead.at);
            ahead.at += ahead.bytes;
        }
        const uint32_t *x = block + (at * GROUPS + (size_t)g) / PER_LINE * lines +
                            (size_t)(g % PER_LINE * STEP);
        for (int n = 0; n < GROUP / 2; n++, x += PAIR)
            for (int d = 0; d < depth; d++) {
                vecu lo = level_pairs(table, code[d][0], n), hi = level_pairs(table, code[d][1], n);
                const uint32_t *xd = x + (size_t)d * (GROUPS / PER_LINE) * lines;
                for (int i = 0; i < rows; i++) {
                    sum[d][i][0] = dot_pair(sum[d][i][0], lo, xd + i * LINE);
                    sum[d][i][1] = dot_pair(sum[d][i][1], hi, xd + i * LINE);
                }
            }
    }
    for (int d = 0; d < depth; d++)
        for (int h = 0; h < 2; h++) {
            vec a = absmax_of(panel, at + (size_t)d, (size_t)h * LANES, K);
            for (int i = 0; i < rows; i++) {
                float *y = out + i * PANEL + h * LANES;
                put(y, load(y) + a * sum[d][i][h]);
            }
        }
}

/* A wide panel: absmax [K/64][PANEL] in fp32, then the rounded levels in the order in which
 * tile_blocks() multiplies them: pairs [K/2][PANEL], or floats [K][PANEL] with k + 1 before an even
 * k. */
static size_t wide_bytes(size_t K)
{
    return rounded((blocks(K) + K / (BF16_DOT ? 2 : 1)) * PANEL * sizeof(float));
}

static void widen(void *wide, const void *panel, size_t K)
{
    const struct header *h = panel;
    const level_table table = level_look(quant_levels_bf16(h->dtype));
    const char *codes = (const char *)panel + codes_at(is_coded(h), K);
    float *w = (float *)wide + blocks(K) * PANEL;
    CPU(blocks_absmax)(wide, panel, 0, blocks(K), K);
    if (BF16_DOT) {
        CPU(blocks_widen)((uint32_t *)(void *)w, panel, 0, K, K);
        return;
    }
    for (size_t g = 0; g < K / GROUP; g++, w += GROUP * PANEL, codes += PANEL * sizeof(uint32_t))
        for (size_t j = 0; j < PANEL; j += LANES) {
            vecu code = load_bits(codes + j * sizeof(uint32_t));
            for (int n = 0; n < GROUP / 2; n++) {
                vecu pairs = level_pairs(table, code, n);
                put(w + 2 * n * PANEL + j, odd_of(pairs));
                put(w + (2 * n + 1) * PANEL + j, even_of(pairs));
            }
        }
}

enum { WORDS = QUANT_BLOCK / (BF16_DOT ? 2 : 1) }; /* of one block of weights, in a row of x */

INLINE void wide_rows(const int rows, float *out, const uint32_t *x, const float *wide, size_t K,
                      struct ahead next)
{
    const float *absmax = wide, *w = wide + blocks(K) * PANEL;
    const size_t share = next.bytes / (blocks(K) * WORDS);
    for (int i = 0; i < rows; i++)
        for (int h = 0; h < 2; h++)
            put(out + i * PANEL + h * LANES, (vec){0});
    for (size_t b = 0; b < blocks(K); b++, absmax += PANEL) {
        vec sum[TILE_ROWS][2];
        for (int i = 0; i < rows; i++)
            sum[i][0] = sum[i][1] = (vec){0};
        for (int n = 0; n < WORDS; n++, w += PANEL) {
            fetch_ahead(next.at);
            next.at += share;
            const uint32_t *from = x + line_at((size_t)(BF16_DOT ? n : n ^ 1), (size_t)rows);
            vec lo = load(w), hi = load(w + LANES);
            for (int i = 0; i < rows; i++) {
                vecu v = splat_bits(from[i * LINE]);
                sum[i][0] = BF16_DOT ? dot_bf16(sum[i][0], (vecu)lo, v) : sum[i][0] + lo * (vec)v;
                sum[i][1] = BF16_DOT ? dot_bf16(sum[i][1], (vecu)hi, v) : sum[i][1] + hi * (vec)v;
            }
        }
        x += (size_t)rows * WORDS;
        for (int i = 0; i < rows; i++)
            for (int h = 0; h < 2; h++) {
                float *y = out + i * PANEL + h * LANES;
                put(y, load(y) + load(absmax + h * LANES) * sum[i][h]);
            }
    }
}

static void tile_wide(float *out, const void *block, size_t rows, const void *wide, size_t K,
                      struct ahead next)
{
#define KERNEL(n) wide_rows(n, out, block, wide, K, next)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

INLINE void tile_rows(const int rows, float *out, const uint32_t *block, const void *panel,
                      size_t K, struct ahead next)
{
    const int depth = rows <= 3 ? 2 : 1;
    const size_t reach = PANEL * sizeof(uint32_t), even = next.bytes / (K / GROUP);
    const struct ahead share = {next.at, even < reach ? even : reach};
    size_t at = 0;
    for (int i = 0; i < rows; i++)
        for (int h = 0; h < 2; h++)
            put(out + i * PANEL + h * LANES, (vec){0});
    for (; at + (size_t)depth <= blocks(K); at += (size_t)depth)
        tile_blocks(rows, depth, out, block, panel, at, K, share);
    for (; at < blocks(K); at++)
        tile_blocks(rows, 1, out, block, panel, at, K, share);
    /* a panel is slightly larger than its codes */
    for (size_t i = K / GROUP * share.bytes; i < next.bytes; i += reach)
        fetch_ahead(next.at + i);
}

static void tile(float *out, const void *block, size_t rows, const void *panel, size_t K,
                 struct ahead next)
{
#define KERNEL(n) tile_rows(n, out, block, panel, K, next)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

/* The absmax of block b of output j, as in quant_floats(). */
static float absmax_alone(const void *panel, size_t b, size_t j, size_t K)
{
    const struct header *h = panel;
    const float *scale = (const float *)(const void *)((const char *)panel + HEADER);
    if (!is_coded(h))
        return scale[b * PANEL + j];
    const uint8_t *code = (const uint8_t *)panel + absmax_at(1, K);
    size_t s = (b + (size_t)h->past[j]) / QUANT_SUPER;
    return quant_absmax_unfold(code[b * PANEL + j], scale[s * PANEL + j], h->offset);
}

static void row(float *out, const void *panel, size_t j, size_t K)
{
    const struct header *h = panel;
    const float *level = quant_levels(h->dtype);
    const char *at = (const char *)panel + codes_at(is_coded(h), K);
    const uint32_t *words = (const uint32_t *)(const void *)at;
    for (size_t k = 0; k < K; k++) {
        size_t nibble = k % GROUP / 2 + k % 2 * 4;
        out[k] = level[words[k / GROUP * PANEL + j] >> 4 * nibble & 15] *
                 absmax_alone(panel, k / QUANT_BLOCK, j, K);
    }
}

static const struct widening widening = {wide_bytes, widen, tile_wide};
const struct format CPU(format_blocks_coded) = {
    panel_bytes_coded, block_bytes, pack_panel, pack_rows, tile, row, 16384, &widening};
const struct format CPU(format_blocks) = {
    panel_bytes_plain, block_bytes, pack_panel, pack_rows, tile, row, 16384, &widening};
