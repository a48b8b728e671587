/* format_int8.c - LLM.int8() and int8-vector (kernels/quant.h): weights and activations as bytes,
 * sums as exact integers; outliers of the activations are added in fp32 afterwards. The two formats
 * differ only in the limit of outliers, the argument `limit` of the functions here.
 *
 * panel   step[PANEL] = scale / 127, start[PANEL] = the initial value of a sum, then the codes as
 *         [K/INT8_STEP][PANEL][INT8_STEP]: a load takes consecutive k of LANES outputs.
 * block   a header, the codes of the activations as [K/INT8_STEP][rows] groups of INT8_WORDS 32-bit
 *         words, and the columns in which some row has an outlier. The outliers themselves stay in
 *         x. K is padded with zeros to a multiple of ROUND.
 *
 * If the processor multiplies unsigned by signed bytes, activations are stored as code + INT8_BIAS,
 * and a sum starts from -INT8_BIAS * (the sum of the output's codes), which removes the bias.
 * Compiled without contraction (Makefile), so that the few fp32 operations give the same bits at
 * every level and in ref. */
#include "kernels/cpu/format/cpu_format.h"
#include "kernels/quant.h"

struct int8_block {
    const float *x; /* the original rows */
    size_t ldx;
    size_t rows;
    size_t n_outliers;
    float step[TILE_ROWS]; /* scale / 127 of the rows */
    /* then words[K/INT8_STEP][held(rows)][INT8_WORDS], outlier[n_outliers] */
};
enum { HEADER = (sizeof(struct int8_block) + 63) / 64 * 64 };
/* A round of the tile takes ROUND values of K, which are STEPS steps. TAKEN values are packed at
 * once. */
enum { ROUND = INT8_STEP < 4 ? 4 : INT8_STEP, STEPS = ROUND / INT8_STEP };
enum { TAKEN = 64 };

static size_t rounds(size_t K) { return (K + ROUND - 1) / ROUND; }
static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

static size_t panel_bytes(size_t K)
{
    return rounded(PANEL * (sizeof(float) + sizeof(int32_t)) + rounds(K) * PANEL * ROUND);
}

static size_t words_bytes(size_t K)
{
    return rounded(rounds(K) * STEPS * TILE_ROWS * INT8_WORDS * sizeof(uint32_t));
}

static size_t block_bytes(size_t K)
{
    return rounded(HEADER + words_bytes(K) + K * sizeof(struct outlier));
}

static const uint32_t *words_of(const struct int8_block *block)
{
    return (const uint32_t *)(const void *)((const char *)block + HEADER);
}

static struct outlier *outliers_of(const struct int8_block *block, size_t K)
{
    return (struct outlier *)((uintptr_t)block + HEADER + words_bytes(K));
}

static int8_t *codes_of(void *panel)
{
    return (int8_t *)panel + PANEL * (sizeof(float) + sizeof(int32_t));
}

/* The address of the step that contains k. */
INLINE int8_t *step_at(int8_t *codes, size_t k)
{
    return codes + k / INT8_STEP * PANEL * INT8_STEP;
}

/* Writes output j to its place in the panel. */
static void pack_output(void *panel, size_t j, const int8_t *code, float scale, size_t K)
{
    float *step = panel;
    int32_t *start = (int32_t *)(void *)(step + PANEL), sum = 0;
    int8_t *out = codes_of(panel) + j * INT8_STEP;
    size_t k = 0;
    for (; k + INT8_STEP <= K; k += INT8_STEP)
        memcpy(step_at(out, k), code + k, INT8_STEP);
    if (k < K)
        memcpy(step_at(out, k), code + k, K - k);
    for (k = 0; k < K; k++)
        sum += code[k];
    step[j] = scale / 127;
    /* unsigned arithmetic: a sum may wrap in between; the final value is right */
    start[j] = (int32_t)(0u - (uint32_t)INT8_BIAS * (uint32_t)sum);
}

static void pack_panel(void *panel, const struct mat_source *source, size_t first, size_t count,
                       float *scratch)
{
    size_t K = source->cols;
    memset(panel, 0, panel_bytes(K));
    if (source->q && (source->q->dtype == DTYPE_INT8 || source->q->dtype == DTYPE_INT8_VECTOR)) {
        const int8_t *code = source->q->code;
        for (size_t j = 0; j < count; j++)
            pack_output(panel, j, code + (first + j) * K, source->q->scale[first + j], K);
        return;
    }
    int8_t *code = (int8_t *)(scratch + K);
    for (size_t j = 0; j < count; j++) {
        source->floats(source, first + j, 1, scratch);
        float scale = quant_int8(scratch, K, code);
        pack_output(panel, j, code, scale, K);
    }
}

/* Loads LANES values from x; values from index n on are zeros. */
INLINE vec load_some(const float *x, size_t n)
{
    if (n >= LANES)
        return load(x);
    float padded[LANES] = {0};
    memcpy(padded, x, n * sizeof *x);
    return load(padded);
}

INLINE vec magnitude(vec value) { return (vec)((vecu)value & 0x7fffffffu); }

INLINE uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The largest |x| of a row among the values below `limit`, which is given as bits. Bits of
 * magnitudes have the order of the magnitudes; infinity and NaN are the largest. */
static float largest(const float *x, size_t K, uint32_t limit)
{
    uint32_t top = 0;
    float out;
    for (size_t k = 0; k < K; k++) {
        uint32_t bits = bits_of(x[k]) & 0x7fffffffu;
        bits &= -(uint32_t)(bits < limit); /* not `? bits : 0`, which GCC 12 makes scalar */
        top = bits > top ? bits : top;
    }
    memcpy(&out, &top, sizeof out);
    return out;
}

float CPU(int8_scale)(const float *x, size_t K, float limit, int *outliers)
{
    float scale = largest(x, K, UINT32_MAX);
    if (!(scale < limit)) {
        *outliers = 1;
        scale = largest(x, K, bits_of(limit));
    }
    return scale < QUANT_TINY ? 0 : scale;
}

size_t CPU(int8_outliers)(struct outlier *list, const float *x, size_t ldx, size_t rows, size_t K,
                          float limit)
{
    size_t n = 0;
    for (size_t k = 0; k < K; k += LANES) {
        vecu having = {0};
        for (size_t i = 0; i < rows; i++) {
            veci in = magnitude(load_some(x + i * ldx + k, K - k)) < limit;
            having |= (vecu)~in & 1u << i;
        }
        if (any_of((veci)having))
            for (size_t j = 0; j < LANES; j++)
                if (having[j])
                    list[n++] = (struct outlier){(uint32_t)(k + j), having[j]};
    }
    return n;
}

/* Returns LANES codes in the low bytes of the lanes. The codes are those of quant_int8_row() of
 * quant.h. The addition rounds to nearest, ties to even, because floats from 2^23 on are integers.
 * 12582912 is 1.5 * 2^23, so the low byte of the sum is the low byte of the rounded value. */
INLINE vecu coded(vec value, vec up, float limit)
{
    value = pick(magnitude(value) < limit, value, (vec){0});
    return (vecu)(value * up + 12582912.0f);
}

INLINE vec up_of(float scale) { return splat(scale > 0 ? INT8_TOP / scale : 0); }

/* Writes the codes of `left` values of x, at most TAKEN. The rest of code[TAKEN] is zeros. */
INLINE void take(int8_t *code, const float *x, size_t left, vec up, float limit)
{
    uint32_t bits[TAKEN];
    for (size_t at = 0; at < TAKEN; at += LANES)
        put_bits(bits + at, coded(load_some(x + at, left > at ? left - at : 0), up, limit));
    for (size_t k = 0; k < TAKEN; k++)
        code[k] = (int8_t)bits[k];
}

void CPU(int8_codes)(int8_t *code, const float *x, size_t n, float scale, float limit)
{
    vec up = up_of(scale);
    size_t k = 0;
    for (; k + TAKEN <= n; k += TAKEN)
        take(code + k, x + k, TAKEN, up, limit);
    if (k == n)
        return;
    int8_t rest[TAKEN];
    take(rest, x + k, n - k, up, limit);
    memcpy(code + k, rest, n - k);
}

/* Writes the codes of TAKEN values, zeros after `left` of them, as n steps that are `next` words
 * apart. */
INLINE void pack_steps(uint32_t *words, size_t next, const float *x, size_t left, vec up,
                       float limit, size_t n)
{
    int8_t code[TAKEN];
    take(code, x, left, up, limit);
    for (size_t i = 0; i < n && i < TAKEN / INT8_STEP; i++)
        int8_words(words + i * next, code + INT8_STEP * i);
}

INLINE void pack_row(struct int8_block *block, size_t i, float scale, size_t K, const float limit)
{
    const float *x = block->x + i * block->ldx;
    uint32_t *words = (uint32_t *)(uintptr_t)words_of(block) + i * INT8_WORDS;
    const size_t next = up(block->rows, INT8_ROWS) * INT8_WORDS, whole = K / TAKEN * TAKEN;
    block->step[i] = scale / 127;
    vec up = up_of(scale);
    for (size_t k = 0; k < whole; k += TAKEN, words += TAKEN / INT8_STEP * next)
        pack_steps(words, next, x + k, TAKEN, up, limit, TAKEN / INT8_STEP);
    if (whole < K)
        pack_steps(words, next, x + whole, K - whole, up, limit, rounds(K - whole) * STEPS);
}

INLINE void pack_limited(void *block, const float *x, size_t ldx, size_t rows, size_t K,
                         const float limit)
{
    struct int8_block *b = block;
    *b = (struct int8_block){.x = x, .ldx = ldx, .rows = rows};
    int outliers = 0;
    for (size_t i = 0; i < rows; i++)
        pack_row(b, i, CPU(int8_scale)(x + i * ldx, K, limit, &outliers), K, limit);
    if (outliers)
        b->n_outliers = CPU(int8_outliers)(outliers_of(b, K), x, ldx, rows, K, limit);
}

static void pack_rows(void *block, const float *x, size_t ldx, size_t rows, size_t K)
{
    pack_limited(block, x, ldx, rows, K, INT8_OUTLIER);
}

static void pack_rows_vector(void *block, const float *x, size_t ldx, size_t rows, size_t K)
{
    pack_limited(block, x, ldx, rows, K, INFINITY);
}

/* The codes of LANES outputs for k; `step` is the address of the first output in the step that
 * contains k. */
INLINE veci codes_at(const int8_t *step, size_t k)
{
    vecu word;
    if (INT8_STEP == 2) {
        vech half;
        memcpy(&half, step, sizeof half);
        word = __builtin_convertvector(half, vecu);
    } else if (INT8_STEP == 4) {
        word = load_bits(step);
    } else {
        uint32_t four[LANES];
        for (size_t j = 0; j < LANES; j++)
            memcpy(&four[j], step + j * INT8_STEP + k % INT8_STEP / 4 * 4, sizeof *four);
        word = load_bits(four);
    }
    return (veci)(word << (24 - 8 * (uint32_t)(k % (INT8_STEP < 4 ? INT8_STEP : 4)))) >> 24;
}

void CPU(int8_add)(float *out, const struct outlier *list, size_t n, const float *x, size_t ldx,
                   const void *panel)
{
    const float *step = panel;
    int8_t *codes = codes_of((void *)(uintptr_t)panel);
    for (size_t at = 0; at < n; at++) {
        size_t k = list[at].k;
        vec w[2];
        for (int half = 0; half < 2; half++) {
            veci code = codes_at(step_at(codes, k) + half * LANES * INT8_STEP, k);
            w[half] = __builtin_convertvector(code, vec) * load(step + half * LANES);
        }
        for (uint32_t left = list[at].rows; left; left &= left - 1) {
            size_t i = (size_t)__builtin_ctz(left);
            float value = x[i * ldx + k], *y = out + i * PANEL;
            put(y, load(y) + w[0] * value);
            put(y + LANES, load(y + LANES) + w[1] * value);
        }
    }
}

INLINE void tile_rows(const int rows, float *out, const struct int8_block *block, const void *panel,
                      size_t K, struct ahead ahead)
{
    const float *step = panel;
    const char *codes = (const char *)panel + PANEL * (sizeof(float) + sizeof(int32_t));
    const uint32_t *x = words_of(block);
    const size_t next = up(block->rows, INT8_ROWS) * INT8_WORDS, share = ahead.bytes / rounds(K);
    veci sum[TILE_ROWS][2];
    for (int i = 0; i < held(rows); i++)
        for (int half = 0; half < 2; half++)
            sum[i][half] = (veci)load_bits(step + PANEL + half * LANES);
    pair_sums(rows, sum);
    for (size_t round = rounds(K); round > 0; round--) {
        for (int step_at = 0; step_at < STEPS; step_at++, codes += PANEL * INT8_STEP, x += next) {
            int8_weights lo = int8_load(codes), hi = int8_load(codes + LANES * INT8_STEP);
            for (int i = 0; i < held(rows); i++) {
                sum[i][0] = dot_int8(sum[i][0], lo, x, i);
                sum[i][1] = dot_int8(sum[i][1], hi, x, i);
            }
        }
        fetch_ahead(ahead.at);
        ahead.at += share;
    }
    pair_sums(rows, sum);
    for (int i = 0; i < rows; i++)
        for (int half = 0; half < 2; half++) {
            vec scale = load(step + half * LANES) * block->step[i];
            put(out + i * PANEL + half * LANES, __builtin_convertvector(sum[i][half], vec) * scale);
        }
}

static void tile(float *out, const void *block, size_t rows, const void *panel, size_t K,
                 struct ahead next)
{
    const struct int8_block *b = block;
#define KERNEL(n) tile_rows(n, out, b, panel, K, next)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
    if (b->n_outliers)
        CPU(int8_add)(out, outliers_of(b, K), b->n_outliers, b->x, b->ldx, panel);
}

static void row(float *out, const void *panel, size_t j, size_t K)
{
    const float *step = panel;
    int8_t *code = codes_of((void *)(uintptr_t)panel) + j * INT8_STEP;
    for (size_t k = 0; k < K; k++)
        out[k] = step_at(code, k)[k % INT8_STEP] * step[j];
}

const struct format CPU(format_int8) = {panel_bytes, block_bytes, pack_panel, pack_rows,
                                        tile,        row,         8192, TILE_ROWS};
const struct format CPU(format_int8_vector) = {panel_bytes, block_bytes, pack_panel,
                                               pack_rows_vector, tile, row, 8192, TILE_ROWS};
