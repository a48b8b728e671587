/* gemm.c - products of float matrices with any strides, for training (struct gemm of train.h).
 *
 *                 K                                  K
 *            +---------+                        +---------+
 *     strips |    a    |  <= TILE_ROWS          |    b    |  <= PANEL         c = a b^T
 *            +---------+  rows of c             +---------+  columns of c
 *            |   ...   |                        |   ...   |
 *
 * Both factors are first packed into strips of rows in the order in which the tile reads them,
 * [K][rows]; one of their two strides may be any number. With dtype BF16 values are rounded here.
 * If the processor multiplies pairs (PAIRED), a word of a strip is a pair (k, k + 1). A cell is the
 * product of a few strips of a, which stay in the L2 cache, by one strip of b. It is computed in
 * steps of `step` words of b, which stay in the L1 cache; between steps the sums are in a buffer.
 * Each output is one sum over k in ascending order, whichever thread computes the cell.
 *
 * On level amx (TILED) the pairs are multiplied by tile instructions (amx/tiled.h). A strip of a
 * then has the rows of a tile and consists of tiles, [words / 16][rows][16] words. A strip of b has
 * the layout of such tiles in any case. Words are padded with zeros to whole tiles. Two strips of a
 * are multiplied at once. */
#include <assert.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/format/cpu_format.h"
#include "kernels/cpu/vectors/transpose.h"
#include "lib/base/order.h"

#include DENSE

enum { PAIRED = BF16_DOT || TILED, CELL_STRIPS = 16, AHEAD = 128 };
enum { MOST_ROWS = (int)TILED_ROWS > (int)TILE_ROWS ? (int)TILED_ROWS : (int)TILE_ROWS };

/* How products of one dtype are cut. rows: rows of a strip of a. at_once: strips of a that are
 * multiplied at once. step: words of K at a time. cell: bytes of the strips of a in a cell. */
struct cutting {
    int rows;
    size_t at_once, step, cell;
};
static const struct cutting by_vectors = {TILE_ROWS, 1, 192, 512 << 10};
static const struct cutting by_tiles = {TILED_ROWS, 2, TILED_STEP, TILED_NEAR};

struct strips {
    struct factor of;
    size_t rows, K, words, count; /* words: words of K in a row; count: number of strips */
    int width, bf16;              /* width: rows that a strip has room for */
    int tiles;                    /* 1: a strip is [words / LINE][width][LINE] */
    uint32_t *to;                 /* [count][words][width] */
};

struct gemm_call {
    const struct gemm *g;
    const struct cutting *cut;
    struct strips a, b;
    size_t chunks; /* groups of strips of a, one for each cell */
};

static size_t words_of(size_t K, int bf16)
{
    size_t pairs = (K + 1) / 2;
    return !bf16 || !PAIRED ? K : TILED ? up(pairs, LINE) : pairs;
}

/* The first row of a strip; strips differ by at most one row. */
static size_t first_row(const struct strips *strips, size_t strip)
{
    return strips->rows * strip / strips->count;
}

static size_t rows_of(const struct strips *strips, size_t strip)
{
    return first_row(strips, strip + 1) - first_row(strips, strip);
}

/* ---- packing ---- */

/* LANES values at x, of which the first n exist; the others are zeros. */
INLINE vec values_at(const float *x, size_t n)
{
    if (n >= LANES)
        return load(x);
    float part[LANES];
    memset(part, 0, sizeof part);
    memcpy(part, x, n * sizeof *x);
    return load(part);
}

static size_t rest_after(size_t n, size_t i) { return n > i ? n - i : 0; }

/* LANES words of one row from the values at x, of which n exist. A word is a value or a pair. About
 * twelve rows are read side by side. The processor prefetches fewer streams, so values are
 * prefetched here, AHEAD values before they are read. */
INLINE vecu words_along(const float *x, size_t n, const int bf16)
{
    __builtin_prefetch(x + AHEAD);
    if (bf16 && PAIRED)
        __builtin_prefetch(x + AHEAD + LANES);
    if (!bf16)
        return (vecu)values_at(x, n);
    if (!PAIRED)
        return bf16_round(values_at(x, n));
    vech pairs[2] = {bf16_narrow(values_at(x, n)),
                     bf16_narrow(values_at(n > LANES ? x + LANES : x, rest_after(n, LANES)))};
    return load_bits(pairs);
}

/* One word (value k, or the pair k, k + 1) of each of LANES rows that lie side by side. The next
 * strip reads `width` values further on, so that place is prefetched. */
INLINE vecu words_across(const struct strips *strips, size_t row, size_t word, const int width,
                         const int bf16)
{
    const size_t k = bf16 && PAIRED ? 2 * word : word, n = rest_after(strips->rows, row);
    if (k >= strips->K)
        return (vecu){0};
    const float *x = n ? strips->of.x + row + k * strips->of.step : strips->of.x;
    vec even = values_at(x, n);
    __builtin_prefetch(x + width + LANES - 1);
    if (!bf16)
        return (vecu)even;
    if (!PAIRED)
        return bf16_round(even);
    vecu low = __builtin_convertvector(bf16_narrow(even), vecu);
    if (k + 1 >= strips->K)
        return low;
    x += n ? strips->of.step : 0;
    vec odd = values_at(x, n);
    __builtin_prefetch(x + width + LANES - 1);
    return low | __builtin_convertvector(bf16_narrow(odd), vecu) << 16;
}

/* Writes the words of rows lane .. of a strip of `width` rows. A copy of constant size compiles to
 * a few moves. */
INLINE void put_words(uint32_t *out, vecu turned, const int lane, const int width)
{
    if (width - lane >= LANES)
        memcpy(out + lane, &turned, sizeof turned);
    else
        memcpy(out + lane, &turned, (size_t)(width % LANES) * sizeof *out);
}

/* Packs a strip of rows that are contiguous along k, by transposing squares. */
INLINE void pack_along(const struct strips *strips, size_t strip, const int width, const int bf16)
{
    const size_t first = first_row(strips, strip), rows = rows_of(strips, strip);
    const size_t values = bf16 && PAIRED ? 2 : 1;
    for (int lane = 0; lane < width; lane += LANES)
        for (size_t w = 0; w < strips->words; w += LANES) {
            uint32_t *out = strips->to + (strip * strips->words + w) * (size_t)width;
            vecu turned[LANES];
            for (size_t i = 0; i < LANES; i++) {
                size_t row = (size_t)lane + i, at = (first + row) * strips->of.row + w * values;
                size_t n = row < rows ? rest_after(strips->K, w * values) : 0;
                turned[i] = n ? words_along(strips->of.x + at, n, bf16) : (vecu){0};
            }
            transpose(turned);
            for (size_t i = 0, n = order_min(LANES, strips->words - w); i < n; i++, out += width)
                put_words(out, turned[i], lane, width);
        }
}

/* Packs words begin .. end - 1 of all strips, of rows that lie side by side. */
INLINE void pack_across(const struct strips *strips, size_t begin, size_t end, const int width,
                        const int bf16)
{
    for (size_t i = 0; i < strips->count; i++) {
        uint32_t *out = strips->to + (i * strips->words + begin) * (size_t)width;
        for (size_t w = begin; w < end; w++, out += width)
            for (int lane = 0; lane < width; lane += LANES)
                put_words(out,
                          words_across(strips, first_row(strips, i) + (size_t)lane, w, width, bf16),
                          lane, width);
    }
}

INLINE void pack_as(const struct strips *strips, size_t begin, size_t end, const int width,
                    const int bf16)
{
    for (size_t i = begin; i < end; i++)
        if (strips->of.step == 1)
            pack_along(strips, i, width, bf16);
        else
            pack_across(strips, i * LINE, order_min(strips->words, (i + 1) * LINE), width, bf16);
}

/* Packs a strip as tiles, from rows that are contiguous along k. Tiles have this order too. */
static void tiles_along(const struct strips *strips, size_t strip)
{
    const size_t first = first_row(strips, strip), rows = rows_of(strips, strip);
    for (size_t w = 0; w < strips->words; w += LINE)
        for (size_t i = 0; i < TILED_ROWS; i++) {
            uint32_t *out = strips->to + (strip * strips->words + w) * TILED_ROWS + i * LINE;
            const float *x = strips->of.x + (first + i) * strips->of.row;
            for (size_t c = w; c < w + LINE; c += LANES, out += LANES) {
                size_t n = i < rows ? rest_after(strips->K, 2 * c) : 0;
                put_bits(out, n ? words_along(x + 2 * c, n, 1) : (vecu){0});
            }
        }
}

/* Packs words w .. w + LINE - 1 of all strips as tiles, from rows that lie side by side, by
 * transposing squares. */
static void tiles_across(const struct strips *strips, size_t w)
{
    for (size_t strip = 0; strip < strips->count; strip++) {
        uint32_t *tile = strips->to + (strip * strips->words + w) * TILED_ROWS;
        for (size_t row = 0; row < TILED_ROWS; row += LANES)
            for (size_t column = 0; column < LINE; column += LANES) {
                vecu turned[LANES];
                for (size_t i = 0; i < LANES; i++)
                    turned[i] = words_across(strips, first_row(strips, strip) + row, w + column + i,
                                             TILED_ROWS, 1);
                transpose(turned);
                for (size_t i = 0; i < LANES; i++)
                    put_bits(tile + (row + i) * LINE + column, turned[i]);
            }
    }
}

static void pack_tiles(const struct strips *strips, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        if (strips->of.step == 1)
            tiles_along(strips, i);
        else
            tiles_across(strips, i * LINE);
}

/* A part is a strip, or LINE words of all strips, so that adjacent memory is read together. */
static void pack_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct strips *strips = ctx;
    if (strips->tiles)
        pack_tiles(strips, begin, end);
    else if (strips->width == PANEL && strips->bf16)
        pack_as(strips, begin, end, PANEL, 1);
    else if (strips->width == PANEL)
        pack_as(strips, begin, end, PANEL, 0);
    else if (strips->bf16)
        pack_as(strips, begin, end, TILE_ROWS, 1);
    else
        pack_as(strips, begin, end, TILE_ROWS, 0);
}

static void pack(struct backend *backend, struct strips *strips)
{
    assert(strips->of.step == 1 || strips->of.row == 1);
    if (strips->of.step == 1)
        pool_run(backend->pool, strips->count, grain((size_t)strips->width * strips->K), pack_part,
                 strips);
    else
        pool_run(backend->pool, (strips->words + LINE - 1) / LINE, grain(2 * LINE * strips->rows),
                 pack_part, strips);
}

/* ---- products ---- */

/* sums[rows, PANEL] = the products of n words of a strip of a (left) and a strip of b (right), or
 * += if `more`. */
INLINE void tile_words(const int rows, const int pairs, float *sums, const uint32_t *left,
                       const uint32_t *right, size_t n, int more)
{
    vec sum[TILE_ROWS][2];
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = (vec){0};
    for (int i = 0; more && i < rows; i++) {
        sum[i][0] = load(sums + i * PANEL);
        sum[i][1] = load(sums + i * PANEL + LANES);
    }
    for (; n > 0; n--, left += TILE_ROWS, right += PANEL) {
        vecu lo = load_bits(right), hi = load_bits(right + LANES);
        for (int i = 0; i < rows; i++) {
            vecu x = splat_bits(left[i]);
            sum[i][0] = pairs ? dot_bf16(sum[i][0], lo, x) : sum[i][0] + (vec)x * (vec)lo;
            sum[i][1] = pairs ? dot_bf16(sum[i][1], hi, x) : sum[i][1] + (vec)x * (vec)hi;
        }
    }
    for (int i = 0; i < rows; i++) {
        put(sums + i * PANEL, sum[i][0]);
        put(sums + i * PANEL + LANES, sum[i][1]);
    }
}

static void tile_floats(size_t rows, float *sums, const uint32_t *a, const uint32_t *b, size_t n,
                        int more)
{
#define KERNEL(r) tile_words(r, 0, sums, a, b, n, more)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

static void tile_pairs(size_t rows, float *sums, const uint32_t *a, const uint32_t *b, size_t n,
                       int more)
{
#define KERNEL(r) tile_words(r, 1, sums, a, b, n, more)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

/* The index in c and plus of row i of a strip of a and the first column of panel `panel` (a strip
 * of b). */
static size_t place(const struct gemm_call *j, size_t strip, size_t i, size_t panel)
{
    return (first_row(&j->a, strip) + i) * j->g->ldc + first_row(&j->b, panel);
}

/* Prefetches what store_tile will read and write. */
static void fetch_tile(const struct gemm_call *j, size_t strip, size_t panel)
{
    for (size_t i = 0; i < rows_of(&j->a, strip); i++)
        for (size_t k = 0; k < PANEL; k += LINE) {
            __builtin_prefetch(j->g->c + place(j, strip, i, panel) + k, 1);
            if (j->g->plus)
                __builtin_prefetch(j->g->plus + place(j, strip, i, panel) + k);
        }
}

/* Writes one tile of c = sums, or sums + plus. */
static void store_tile(const struct gemm_call *j, size_t strip, size_t panel, const float *sums)
{
    const size_t cols = rows_of(&j->b, panel);
    for (size_t i = 0; i < rows_of(&j->a, strip); i++, sums += PANEL) {
        float *c = j->g->c + place(j, strip, i, panel);
        const float *plus = j->g->plus ? j->g->plus + place(j, strip, i, panel) : NULL;
        size_t k = 0;
        for (; k + LANES <= cols; k += LANES)
            put(c + k, plus ? load(plus + k) + load(sums + k) : load(sums + k));
        for (; k < cols; k++)
            c[k] = plus ? plus[k] + sums[k] : sums[k];
    }
}

/* Computes the sums of `count` strips of a from strip i on by a panel, over n words from word w
 * on. */
static void multiply_strips(const struct gemm_call *j, size_t i, size_t count, size_t panel,
                            size_t w, size_t n, float *sums)
{
    const struct strips *strips = &j->a;
    const uint32_t *left = strips->to + (i * strips->words + w) * (size_t)strips->width;
    const uint32_t *right = j->b.to + (panel * strips->words + w) * PANEL;
    if (strips->tiles)
        tiled_strips(sums, left, count > 1 ? left + strips->words * TILED_ROWS : NULL, right, n,
                     w > 0);
    else if (strips->bf16 && BF16_DOT)
        tile_pairs(rows_of(strips, i), sums, left, right, n, w > 0);
    else
        tile_floats(rows_of(strips, i), sums, left, right, n, w > 0);
}

static void one_cell(const struct gemm_call *j, size_t chunk, size_t panel)
{
    _Alignas(64) float all[CELL_STRIPS * MOST_ROWS * PANEL];
    const struct strips *strips = &j->a;
    const size_t begin = strips->count * chunk / j->chunks,
                 end = strips->count * (chunk + 1) / j->chunks;
    const size_t unit = strips->tiles ? LINE : 1, words = strips->words / unit;
    const size_t steps = up(strips->words, j->cut->step) / j->cut->step + !words;
    for (size_t step = 0; step < steps; step++) {
        size_t w = words * step / steps * unit, n = words * (step + 1) / steps * unit - w, count;
        for (size_t i = begin; i < end; i += count) {
            float *sums = all + (i - begin) * (size_t)strips->width * PANEL;
            count = order_min(j->cut->at_once, end - i);
            for (size_t k = 0; k < count && step + 1 == steps; k++)
                fetch_tile(j, i + k, panel);
            multiply_strips(j, i, count, panel, w, n, sums);
            for (size_t k = 0; k < count && step + 1 == steps; k++)
                store_tile(j, i + k, panel, sums + k * (size_t)strips->width * PANEL);
        }
    }
}

static void cells(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct gemm_call *j = ctx;
    if (j->a.tiles)
        tiled_begin();
    for (size_t i = begin; i < end; i++)
        one_cell(j, i / j->b.count, i % j->b.count);
    if (j->a.tiles)
        tiled_end();
}

static struct strips strips_of(const struct gemm *gemm, struct factor of, size_t rows, int width,
                               void *to)
{
    int bf16 = gemm->dtype == DTYPE_BF16;
    return (struct strips){.of = of, .rows = rows, .K = gemm->K, .words = words_of(gemm->K, bf16),
                           .count = up(rows, (size_t)width) / (size_t)width, .width = width,
                           .bf16 = bf16, .to = to};
}

static int same(const struct strips *s, const struct strips *t)
{
    return s->of.x == t->of.x && s->of.row == t->of.row && s->of.step == t->of.step &&
           s->rows == t->rows && s->K == t->K && s->bf16 == t->bf16;
}

static const struct cutting *cutting_of(enum dtype dtype)
{
    return TILED && dtype == DTYPE_BF16 ? &by_tiles : &by_vectors;
}

static size_t strips_bytes(size_t rows, size_t width, size_t K, enum dtype dtype)
{
    return memory_rounded(up(rows, width) * words_of(K, dtype == DTYPE_BF16) * sizeof(uint32_t));
}

static void multiply(struct backend *backend, struct gemm_call *j)
{
    size_t strip = (size_t)j->a.width * j->a.words * sizeof(uint32_t) + 1;
    size_t most = order_min(CELL_STRIPS, j->cut->cell / strip + 1);
    j->chunks = (j->a.count + most - 1) / most;
    pool_run(backend->pool, j->chunks * j->b.count, grain(most * strip * PANEL), cells, j);
}

void OWN_CPU(gemm)(struct backend *backend, const struct gemm *product, size_t n, void *work)
{
    struct gemm_call last = {0};
    size_t beside = 0;
    for (size_t i = 0; i < n; i++) {
        size_t rows = (size_t)cutting_of(product[i].dtype)->rows;
        size_t bytes = strips_bytes(product[i].M, rows, product[i].K, product[i].dtype);
        beside = bytes > beside ? bytes : beside;
    }
    for (; n > 0; n--, product++) {
        struct gemm_call j = {.g = product, .cut = cutting_of(product->dtype)};
        j.a = strips_of(product, product->a, product->M, j.cut->rows, work);
        j.a.tiles = j.cut == &by_tiles;
        j.b = strips_of(product, product->b, product->N, PANEL, (char *)work + beside);
        if (!j.a.count || !j.b.count)
            continue;
        if (!same(&j.a, &last.a))
            pack(backend, &j.a);
        if (!same(&j.b, &last.b))
            pack(backend, &j.b);
        multiply(backend, &j);
        last = j;
    }
}

/* The work of the dtype that needs more. */
size_t OWN_CPU(gemm_work)(const struct backend *backend, size_t M, size_t N, size_t K)
{
    (void)backend;
    size_t most = 0;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        enum dtype dtype = bf16 ? DTYPE_BF16 : DTYPE_F32;
        size_t bytes = strips_bytes(M, (size_t)cutting_of(dtype)->rows, K, dtype) +
                       strips_bytes(N, PANEL, K, dtype);
        most = bytes > most ? bytes : most;
    }
    return most;
}
