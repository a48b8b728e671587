/* format_bf16.c - weights in bf16, with activations rounded to bf16 (BF16) or kept as floats
 * (BF16_F32).
 *
 * Panel: [K/2][PANEL] pairs: a 32-bit lane holds the values of an even k and of k + 1; K is padded
 * with a zero to an even number. If the processor multiplies pairs (BF16_DOT), activations of BF16
 * are pairs too: the block is [K/2/LINE][rows][LINE], and one instruction computes LANES x 2
 * products. Otherwise, and for BF16_F32, the block is floats [K/LINE][rows][LINE], and a pair of
 * weights becomes two floats by a shift and a mask. */
#include "kernels/cpu/format/cpu_format.h"
#include "kernels/cpu/vectors/transpose.h"
#include "kernels/finite.h"
#include "kernels/host.h"

enum { CHUNK = 64 }; /* columns packed at a time, so that the lines written stay in the L1
                      * cache */

static size_t pairs_of(size_t K) { return (K + 1) / 2; }

static size_t panel_bytes(size_t K) { return pairs_of(K) * PANEL * sizeof(uint32_t); }

/* Bytes of a block with n 32-bit words a row. */
static size_t block_of(size_t n)
{
    return (n + LINE - 1) / LINE * LINE * TILE_ROWS * sizeof(uint32_t);
}

static size_t floats_bytes(size_t K) { return block_of(K); }
static size_t pairs_bytes(size_t K) { return block_of(pairs_of(K)); }

/* Packs values k0 .. k0 + n - 1 of output j; k0 is even. */
static void pack_values(uint32_t *panel, size_t j, size_t k0, const uint16_t *w, size_t n)
{
    uint32_t *out = panel + k0 / 2 * PANEL + j;
    for (size_t k = 0; k + 1 < n; k += 2, out += PANEL)
        *out = w[k] | (uint32_t)w[k + 1] << 16;
    if (n % 2)
        *out = w[n - 1];
}

/* Transposes squares of LANES rows by LANES pairs of w[PANEL, K] into the panel. Returns the first
 * k that is not packed. */
static size_t pack_squares(uint32_t *panel, const uint16_t *w, size_t K)
{
    size_t k = 0;
    for (; k + 2 * LANES <= K; k += 2 * LANES)
        for (size_t j = 0; j < PANEL; j += LANES) {
            vecu square[LANES];
            for (size_t i = 0; i < LANES; i++)
                square[i] = load_bits(w + (j + i) * K + k);
            transpose(square);
            for (size_t i = 0; i < LANES; i++)
                put_bits(panel + (k / 2 + i) * PANEL + j, square[i]);
        }
    return k;
}

static void pack_panel(void *panel, const struct mat_source *source, size_t first, size_t count,
                       float *scratch)
{
    size_t K = source->cols;
    if (count < PANEL)
        memset(panel, 0, panel_bytes(K));
    const float *floats = source->f32 ? source->f32 + first * K : scratch;
    if (!source->bf16 && !source->f32)
        source->floats(source, first, count, scratch);
    if (source->bf16 && source->odd && !finite_bf16(source->bf16 + first * K, count * K))
        finite_mark(source);
    size_t done = 0;
    if (source->bf16 && count == PANEL)
        done = pack_squares(panel, source->bf16 + first * K, K);
    for (size_t k = done; k < K; k += CHUNK)
        for (size_t j = 0; j < count; j++) {
            size_t n = K - k < CHUNK ? K - k : CHUNK;
            uint16_t rounded[CHUNK];
            for (size_t i = 0; i < n && !source->bf16; i++)
                rounded[i] = bf16_of(floats[j * K + k + i]);
            pack_values(panel, j, k, source->bf16 ? source->bf16 + (first + j) * K + k : rounded,
                        n);
        }
}

static void row(float *out, const void *panel, size_t j, size_t K)
{
    const uint32_t *w = panel;
    for (size_t k = 0; k < K; k++) {
        uint32_t pair = w[k / 2 * PANEL + j];
        out[k] = bf16_float((uint16_t)(k % 2 ? pair >> 16 : pair));
    }
}

/* out[n] = x[n] rounded to bf16. */
static void round_values(uint16_t *out, const float *x, size_t n)
{
    size_t k = 0;
    for (; k + LANES <= n; k += LANES) {
        vech h = bf16_narrow(load(x + k));
        memcpy(out + k, &h, sizeof h);
    }
    for (; k < n; k++)
        out[k] = bf16_of(x[k]);
}

void CPU(pack_pairs)(void *block, const float *x, size_t ldx, size_t rows, size_t K)
{
    uint16_t *out = block;
    for (size_t k = 0; k < K; k += 2 * LINE)
        for (size_t i = 0; i < rows; i++, out += 2 * LINE) {
            size_t n = K - k < 2 * LINE ? K - k : 2 * LINE;
            round_values(out, x + i * ldx + k, n);
            if (n % 2)
                out[n] = 0;
        }
}

INLINE void pack_floats(const int round, float *out, const float *x, size_t ldx, size_t rows,
                        size_t K)
{
    for (size_t k = 0; k < K; k += LINE)
        for (size_t i = 0; i < rows; i++, out += LINE) {
            const float *from = x + i * ldx + k;
            size_t n = K - k < LINE ? K - k : LINE, j = 0;
            for (; j + LANES <= n; j += LANES)
                put(out + j, round ? (vec)bf16_round(load(from + j)) : load(from + j));
            for (; j < n; j++)
                out[j] = round ? bf16_float(bf16_of(from[j])) : from[j];
            if (n % 2)
                out[n] = 0;
        }
}

static void pack_exact(void *block, const float *x, size_t ldx, size_t rows, size_t K)
{
    pack_floats(0, block, x, ldx, rows, K);
}

static void pack_rounded(void *block, const float *x, size_t ldx, size_t rows, size_t K)
{
    pack_floats(1, block, x, ldx, rows, K);
}

INLINE void store_sums(const int rows, float *out, vec sum[TILE_ROWS][2])
{
    for (int i = 0; i < rows; i++) {
        put(out + i * PANEL, sum[i][0]);
        put(out + i * PANEL + LANES, sum[i][1]);
    }
}

INLINE void pairs_rows(const int rows, float *out, const uint32_t *x, const uint32_t *w, size_t n,
                       struct ahead next)
{
    const size_t share = next.bytes / n;
    vec sum[TILE_ROWS][2];
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = (vec){0};
    for (size_t pair = 0; pair < n; pair++, w += PANEL) {
        fetch_ahead(next.at);
        next.at += share;
        const uint32_t *from = x + line_at(pair, (size_t)rows);
        vecu lo = load_bits(w), hi = load_bits(w + LANES);
        for (int i = 0; i < rows; i++) {
            vecu value = splat_bits(from[i * LINE]);
            sum[i][0] = dot_bf16(sum[i][0], lo, value);
            sum[i][1] = dot_bf16(sum[i][1], hi, value);
        }
    }
    store_sums(rows, out, sum);
}

INLINE void floats_rows(const int rows, float *out, const float *x, const uint32_t *w, size_t n,
                       struct ahead next)
{
    const size_t share = next.bytes / n;
    vec sum[TILE_ROWS][2];
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = (vec){0};
    for (size_t pair = 0; pair < n; pair++, w += PANEL) {
        fetch_ahead(next.at);
        next.at += share;
        const float *from = x + line_at(2 * pair, (size_t)rows);
        for (int odd = 0; odd < 2; odd++) {
            vecu lo = load_bits(w), hi = load_bits(w + LANES);
            vec w_lo = odd ? odd_of(lo) : even_of(lo), w_hi = odd ? odd_of(hi) : even_of(hi);
            for (int i = 0; i < rows; i++) {
                vec value = splat(from[i * LINE + odd]);
                sum[i][0] += value * w_lo;
                sum[i][1] += value * w_hi;
            }
        }
    }
    store_sums(rows, out, sum);
}

static void tile_pairs(float *out, const void *block, size_t rows, const void *panel, size_t K,
                       struct ahead next)
{
    size_t n = pairs_of(K);
#define KERNEL(r) pairs_rows(r, out, block, panel, n, next)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

static void tile_floats(float *out, const void *block, size_t rows, const void *panel, size_t K,
                       struct ahead next)
{
    size_t n = pairs_of(K);
#define KERNEL(r) floats_rows(r, out, block, panel, n, next)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

const struct format CPU(format_bf16) = {
    panel_bytes,
    BF16_DOT ? pairs_bytes : floats_bytes,
    pack_panel,
    BF16_DOT ? CPU(pack_pairs) : pack_rounded,
    BF16_DOT ? tile_pairs : tile_floats,
    row,
    8192, TILE_ROWS};
const struct format CPU(format_bf16_f32) = {panel_bytes, floats_bytes, pack_panel,
                                            pack_exact,  tile_floats,  row,        8192, TILE_ROWS};
