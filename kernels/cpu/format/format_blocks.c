/* format_blocks.c - NF4, NF4_F32 and FP4 (kernels/quant.h): blocks of 64 values with 16 levels.
 * Levels are looked up as bf16 pairs directly before the products; the sum of a block is multiplied
 * by its absmax.
 *
 * panel   1. a header with the format
 *         2. absmax. NF4: the scales that its outputs use (double quantization), then 8-bit codes
 *            [K/64][PANEL]. Other formats: fp32 [K/64][PANEL]
 *         3. the codes of the weights, [K/8][2]: eight codes of LANES outputs, in the order of
 *            nibble_at()
 * block   as in format_bf16.c: x rounded to bf16, as pairs where one instruction multiplies them,
 *         else as floats.
 *
 * The absmax of NF4 stay codes in memory, because a tile has time to expand them while it waits for
 * memory: so 4.2 bits a weight are read, not 4.5. Sums of blocks are independent, so with few rows
 * several blocks run at once. Their results are always added in ascending order. With more rows
 * than DIRECT_ROWS, levels and absmax of a block are looked up once for all rows (tile_many), not
 * once for a tile. */
#include <assert.h>

#include "kernels/cpu/format/cpu_format.h"
#include "kernels/quant.h"

/* Block i of the matrix has scale number i / QUANT_SUPER. The first block of an output can have any
 * i, so two outputs reach their next scale at different blocks. past[j]: the number of blocks with
 * the first scale of output j that lie before output j. */
struct header {
    int32_t past[PANEL];
    float offset;
    enum dtype dtype;
    /* then scales[segments + 1][PANEL]; absmax; codes */
};
enum { HEADER = (sizeof(struct header) + 63) / 64 * 64, GROUP = 8 };

/* PAIR: 32-bit words of x for a pair of values of a row. GROUPS, PAIRS: number of groups and pairs
 * in a block. GROUP_X, BLOCK_X: words of x for a group and a block of a row. */
enum { PAIR = BF16_DOT ? 1 : 2, GROUPS = QUANT_BLOCK / GROUP, PAIRS = QUANT_BLOCK / 2 };
enum { GROUP_X = GROUP / 2 * PAIR, BLOCK_X = PAIRS * PAIR };

static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }
static size_t blocks(size_t K) { return K / QUANT_BLOCK; }
static size_t scales(size_t K) { return (blocks(K) + QUANT_SUPER - 1) / QUANT_SUPER + 1; }

/* Offset of the absmax in a panel. coded 1: absmax are codes (NF4). */
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

INLINE int is_coded(const struct header *header) { return header->dtype == DTYPE_NF4; }

static size_t block_bytes(size_t K) { return CPU(format_bf16).block_bytes(K); }

/* Sets the eight codes of output j in `group` (zeros before) from four bytes of the checkpoint, in
 * which the first code of a byte is the high half. */
static void put_codes(uint8_t *group, size_t j, const uint8_t *code)
{
    for (size_t k = 0; k < GROUP; k++) {
        size_t at = nibble_at(j % LANES, k);
        unsigned c = (unsigned)code[k / 2] >> (k % 2 ? 0 : 4) & 15u;
        group[j / LANES * LANES * 4 + at / 2] |= (uint8_t)(c << at % 2 * 4);
    }
}

static void pack_absmax(void *panel, size_t j, const struct codes *codes, size_t row, size_t K)
{
    struct header *header = panel;
    float *scale = (float *)(void *)((char *)panel + HEADER);
    uint8_t *absmax = (uint8_t *)panel + absmax_at(1, K);
    size_t first = row * blocks(K), end = first + blocks(K);
    for (size_t block = 0; !is_coded(header) && block < blocks(K); block++)
        scale[block * PANEL + j] = codes->scale[first + block];
    if (!is_coded(header))
        return;
    header->past[j] = (int32_t)(first % QUANT_SUPER);
    for (size_t super = first / QUANT_SUPER; super * QUANT_SUPER < end; super++)
        scale[(super - first / QUANT_SUPER) * PANEL + j] = codes->scale[super];
    for (size_t block = 0; block < blocks(K); block++)
        absmax[block * PANEL + j] = codes->absmax[first + block];
}

static void pack_output(void *panel, size_t j, const struct codes *codes, size_t row, size_t K)
{
    size_t at = codes_at(is_coded(panel), K);
    uint8_t *group = (uint8_t *)panel + at;
    const uint8_t *code = (const uint8_t *)codes->code + row * K / 2;
    pack_absmax(panel, j, codes, row, K);
    for (size_t which = 0; which < K / GROUP;
         which++, group += GROUP / 2 * PANEL, code += GROUP / 2)
        put_codes(group, j, code);
}

/* Packs a panel from the codes that cpu_pack.c made. For NF4 quant_make() made them before, because
 * its absmax codes depend on the whole matrix. */
static void pack_panel(void *panel, const struct mat_source *source, size_t first, size_t count,
                       float *scratch)
{
    (void)scratch;
    size_t K = source->cols;
    assert(source->q && dtype_info[source->q->dtype].block);
    struct header *header = panel;
    int coded = source->q->dtype == DTYPE_NF4;
    memset(panel, 0, panel_bytes(coded, K));
    header->offset = source->q->offset;
    header->dtype = source->q->dtype;
    for (size_t j = 0; j < count; j++)
        pack_output(panel, j, source->q, first + j, K);
}

/* The first row of tile number `tile` of a block with `rows` rows. */
static size_t first_row(size_t rows, size_t tile)
{
    return rows * tile / ((rows + TILE_ROWS - 1) / TILE_ROWS);
}

/* Puts the tiles side by side in every block of K, so that tile_many() reads one stream. */
static void pack_rows(void *block, const float *x, size_t ldx, size_t rows, size_t K)
{
    for (size_t k = 0; k < K; k += QUANT_BLOCK)
        for (size_t tile = 0, i = 0, n; i < rows; i += n, tile++) {
            n = first_row(rows, tile + 1) - i;
            CPU(format_bf16).pack_rows(block, x + i * ldx + k, ldx, n, QUANT_BLOCK);
            block = (uint32_t *)block + n * BLOCK_X;
        }
}

/* The absmax of block `at` (along K) of LANES outputs from output j on. */
INLINE vec absmax_of(const void *panel, size_t at, size_t j, size_t K)
{
    const struct header *header = panel;
    const float *scale = (const float *)(const void *)((const char *)panel + HEADER);
    if (!is_coded(header))
        return load(scale + at * PANEL + j);
    const uint8_t *code = (const uint8_t *)panel + absmax_at(1, K) + at * PANEL + j;
    veci past;
    memcpy(&past, header->past + j, sizeof past);
    scale += at / QUANT_SUPER * PANEL + j;
    veci next = past + (int32_t)(at % QUANT_SUPER) >= QUANT_SUPER;
    vec map = dynamic_map(dynamic_level, code);
    return pick(next, load(scale + PANEL), load(scale)) * map + header->offset;
}

void CPU(blocks_absmax)(float *out, const void *panel, size_t first, size_t n, size_t K)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < PANEL; j += LANES)
            put(out + i * PANEL + j, absmax_of(panel, first + i, j, K));
}

void CPU(blocks_widen)(uint32_t *pairs, const void *panel, size_t k, size_t n, size_t K)
{
    const struct header *header = panel;
    const level_table table = level_look(quant_levels_bf16(header->dtype));
    const char *at = (const char *)panel + codes_at(is_coded(header), K);
    const uint32_t *codes = (const uint32_t *)(const void *)at;
    codes += k / GROUP * PANEL;
    for (; n; n -= GROUP, codes += PANEL, pairs += GROUP / 2 * PANEL)
        for (size_t j = 0; j < PANEL; j += LANES) {
            vecu code = load_bits(codes + j);
            for (int i = 0; i < GROUP / 2; i++)
                put_bits(pairs + (size_t)i * PANEL + j, level_pairs(table, code, i));
        }
}

/* sum += the products of word p of a pair of weights and word p of x. */
INLINE vec dot_part(vec sum, vecu w, int p, uint32_t x)
{
    if (BF16_DOT)
        return dot_bf16(sum, w, splat_bits(x));
    return sum + (p ? odd_of(w) : even_of(w)) * (vec)splat_bits(x);
}

/* sum += the products of a pair, k + 1 before k. */
INLINE void add_pair(const int rows, vec sum[][2], vecu lo, vecu hi, const uint32_t *x)
{
    for (int p = PAIR - 1; p >= 0; p--)
        for (int i = 0; i < rows; i++) {
            sum[i][0] = dot_part(sum[i][0], lo, p, x[i * LINE + p]);
            sum[i][1] = dot_part(sum[i][1], hi, p, x[i * LINE + p]);
        }
}

/* sum += the products of pairs n and n + 1 of a group. Two pairs share lookups. */
INLINE void add_pairs(const int rows, const int n, vec sum[][2], level_table levels,
                      const char *codes, const uint32_t *x)
{
    vecu lo = load_bits(codes), hi = load_bits(codes + LANES * 4);
    add_pair(rows, sum, level_pairs(levels, lo, n), level_pairs(levels, hi, n), x + n * PAIR);
    add_pair(rows, sum, level_pairs(levels, lo, n + 1), level_pairs(levels, hi, n + 1),
             x + (n + 1) * PAIR);
}

/* out[rows, PANEL] += absmax * sum, for the two vectors of a panel. */
INLINE void add_scaled(const int rows, float *out, vec sum[][2], vec absmax_lo, vec absmax_hi)
{
    for (int i = 0; i < rows; i++, out += PANEL) {
        put(out, load(out) + absmax_lo * sum[i][0]);
        put(out + LANES, load(out + LANES) + absmax_hi * sum[i][1]);
    }
}

/* out += the products of `depth` blocks from block `at` on. Each group of eight values prefetches
 * ahead.bytes, at most as many bytes as one fetch_ahead() covers. */
INLINE void tile_blocks(const int rows, const size_t depth, float *out, const uint32_t *block,
                        const void *panel, level_table table, size_t at, size_t K,
                        struct ahead ahead)
{
    const size_t next_x = BLOCK_X * (size_t)rows, next = GROUPS * PANEL * 4;
    const struct header *header = panel;
    const char *codes = (const char *)panel + codes_at(is_coded(header), K) + at * next;
    ahead.at += at * GROUPS * ahead.bytes;
    vec sum[2][TILE_ROWS][2];
    for (size_t level = 0; level < depth; level++)
        for (int i = 0; i < rows; i++)
            sum[level][i][0] = sum[level][i][1] = (vec){0};
    for (size_t group = 0; group < GROUPS; group++, codes += PANEL * 4) {
        const uint32_t *x = block + at * next_x + line_at(group * GROUP_X, (size_t)rows);
        for (size_t level = 0; level < depth; level++)
            add_pairs(rows, 0, sum[level], table, codes + level * next, x + level * next_x);
        for (size_t level = 0; level < depth; level++) {
            add_pairs(rows, 2, sum[level], table, codes + level * next, x + level * next_x);
            fetch_ahead(ahead.at);
            ahead.at += ahead.bytes;
        }
    }
    for (size_t level = 0; level < depth; level++)
        add_scaled(rows, out, sum[level], absmax_of(panel, at + level, 0, K),
                   absmax_of(panel, at + level, LANES, K));
}

/* Looks up the levels of a block as words, in the order in which add_pair() multiplies them: pairs
 * [K/2][PANEL], or floats [K][PANEL] with k + 1 before an even k. (The floats could be stored as
 * pairs too, but six rows leave no register for the mask of odd_of().) */
static void look_up(uint32_t *words, const void *panel, size_t block, size_t K)
{
    if (BF16_DOT) {
        CPU(blocks_widen)(words, panel, block * QUANT_BLOCK, QUANT_BLOCK, K);
        return;
    }
    const struct header *header = panel;
    const level_table levels = level_look(quant_levels_bf16(header->dtype));
    const char *codes = (const char *)panel + codes_at(is_coded(header), K) +
                        block * GROUPS * PANEL * 4;
    for (size_t group = 0; group < GROUPS; group++, words += GROUP * PANEL, codes += PANEL * 4)
        for (size_t j = 0; j < PANEL; j += LANES)
            for (int i = 0; i < GROUP / 2; i++) {
                vecu pairs = level_pairs(levels, load_bits(codes + j * 4), i);
                put_bits(words + 2 * i * PANEL + j, (vecu)odd_of(pairs));
                put_bits(words + (2 * i + 1) * PANEL + j, (vecu)even_of(pairs));
            }
}

/* Words of a round of add_block(): one with TILE_ROWS rows, because two words would need too many
 * registers. */
INLINE size_t round_words(int rows) { return rows < TILE_ROWS ? PAIR : 1; }

/* out += absmax * the products of a block, whose levels are words[BLOCK_X][PANEL]. */
INLINE void add_block(const int rows, float *out, const uint32_t *x, const uint32_t *words,
                      const float *absmax)
{
    vec sum[TILE_ROWS][2];
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = (vec){0};
    for (size_t n = 0; n < BLOCK_X; n += round_words(rows))
        for (size_t pair = 0; pair < round_words(rows); pair++, words += PANEL) {
            const uint32_t *from = x + line_at((n + pair) ^ (PAIR - 1), (size_t)rows);
            vecu lo = load_bits(words), hi = load_bits(words + LANES);
            for (int i = 0; i < rows; i++) {
                vecu value = splat_bits(from[i * LINE]);
                sum[i][0] = BF16_DOT ? dot_bf16(sum[i][0], lo, value)
                                     : sum[i][0] + (vec)lo * (vec)value;
                sum[i][1] = BF16_DOT ? dot_bf16(sum[i][1], hi, value)
                                     : sum[i][1] + (vec)hi * (vec)value;
            }
        }
    add_scaled(rows, out, sum, load(absmax), load(absmax + LANES));
}

/* The tile for many rows: looks up the levels of each block once for all rows. */
static void tile_many(float *out, const uint32_t *x, size_t rows, const void *panel, size_t K,
                      struct ahead share)
{
    _Alignas(64) uint32_t words[BLOCK_X * PANEL];
    _Alignas(64) float absmax[PANEL];
    for (size_t block = 0; block < blocks(K); block++) {
        for (size_t group = 0; group < GROUPS; group++, share.at += share.bytes)
            fetch_ahead(share.at);
        look_up(words, panel, block, K);
        CPU(blocks_absmax)(absmax, panel, block, 1, K);
        for (size_t tile = 0, i = 0, count; i < rows; i += count, tile++) {
            count = first_row(rows, tile + 1) - i;
#define KERNEL(n) add_block(n, out + i * PANEL, x, words, absmax)
            WITH_ROWS(count, KERNEL)
#undef KERNEL
            x += BLOCK_X * count;
        }
    }
}

INLINE void tile_few(const int rows, float *out, const uint32_t *x, const void *panel, size_t K,
                     struct ahead share)
{
    const size_t depth = rows <= 3 ? 2 : 1;
    const struct header *header = panel;
    const level_table table = level_look(quant_levels_bf16(header->dtype));
    size_t at = 0;
    for (; at + depth <= blocks(K); at += depth)
        tile_blocks(rows, depth, out, x, panel, table, at, K, share);
    for (; at < blocks(K); at++)
        tile_blocks(rows, 1, out, x, panel, table, at, K, share);
}

/* The most rows of tile_few(): more rows leave no registers for lookups. */
enum { DIRECT_ROWS = TILE_ROWS == 6 ? 2 : TILE_ROWS };

static void tile(float *out, const void *block, size_t rows, const void *panel, size_t K,
                 struct ahead next)
{
    const size_t reach = PANEL * sizeof(uint32_t), even = next.bytes / (K / GROUP);
    const struct ahead share = {next.at, even < reach ? even : reach};
    memset(out, 0, rows * PANEL * sizeof *out);
    if (rows > DIRECT_ROWS)
        tile_many(out, block, rows, panel, K, share);
#define KERNEL(n)                                                                                  \
    if (n <= DIRECT_ROWS)                                                                          \
    tile_few(n, out, block, panel, K, share)
    else WITH_ROWS(rows, KERNEL)
#undef KERNEL
    /* a panel is slightly larger than its codes */
    for (size_t i = K / GROUP * share.bytes; i < next.bytes; i += reach)
        fetch_ahead(next.at + i);
}

/* The absmax of one block of output j, as in quant_floats(). */
static float absmax_alone(const void *panel, size_t block, size_t j, size_t K)
{
    const struct header *header = panel;
    const float *scale = (const float *)(const void *)((const char *)panel + HEADER);
    if (!is_coded(header))
        return scale[block * PANEL + j];
    const uint8_t *code = (const uint8_t *)panel + absmax_at(1, K);
    size_t super = (block + (size_t)header->past[j]) / QUANT_SUPER;
    return quant_absmax_unfold(code[block * PANEL + j], scale[super * PANEL + j], header->offset);
}

static void row(float *out, const void *panel, size_t j, size_t K)
{
    const struct header *header = panel;
    const float *level = quant_levels(header->dtype);
    const char *at = (const char *)panel + codes_at(is_coded(header), K);
    const uint8_t *codes = (const uint8_t *)at + j / LANES * LANES * 4;
    for (size_t k = 0; k < K; k++) {
        size_t nibble = nibble_at(j % LANES, k % GROUP);
        uint8_t pair = codes[k / GROUP * PANEL * 4 + nibble / 2];
        out[k] = level[pair >> nibble % 2 * 4 & 15] *
                 absmax_alone(panel, k / QUANT_BLOCK, j, K);
    }
}

const struct format CPU(format_blocks_coded) = {
    panel_bytes_coded, block_bytes, pack_panel, pack_rows, tile, row, 16384, ROWS_MOST};
const struct format CPU(format_blocks) = {
    panel_bytes_plain, block_bytes, pack_panel, pack_rows, tile, row, 16384, ROWS_MOST};
