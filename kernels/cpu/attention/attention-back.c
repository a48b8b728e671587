/* attention-back.c - the gradients of attention (struct attn_back of train.h). With P = softmax(S)
 * and S = q k^T / sqrt(E), for each query head:
 *
 *   dv = P^T dy,  dP = dy v^T,  dS = P (dP - rowsum(P dP)) / sqrt(E),  dq = dS k,  dk = dS^T q
 *
 * With a causal mask the rows of a sequence see a growing number of its keys, with a full mask all
 * keys. Tiles of S and dP that no row sees are skipped, and sums over keys or rows skip terms that
 * are zero. Keys that a window hides are zeros in P. A thread owns a key head of a sequence and
 * takes its query heads in order. A product is computed in tiles:
 *
 *            K                    PANEL = 2 registers
 *        a +-----+            m +------+
 *   rows   | ... | x          K |      |   =  c [rows, PANEL], held in rows x 2 registers
 *   <= 12  +-----+              +------+
 *
 * For each k one row of m is loaded, each a(i, k) is broadcast, and rows x 2 fused multiply-adds
 * run. Every output has one accumulator and k ascends, so the shape of the tile does not change the
 * result. An element is a word: a float or, with attn_back.half on a processor that multiplies
 * pairs, a pair of bf16 (an even k and k + 1). The level amx multiplies pairs of 32 rows at a time
 * by tile instructions (amx/tiled.h). These need rows of a that are contiguous along k, so elements
 * across rows are transposed first. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/format/cpu_format.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/tile.h"
#include "kernels/cpu/vectors/transpose.h"

#include DENSE

/* PAIRED: the level can multiply pairs. AT_ONCE: rows that tile instructions multiply at once.
 * TOGETHER: rows of P and dP in one call of softmax_back() with tile instructions; AT_ONCE is a
 * multiple. BEHIND: rows of words that tile instructions may read behind the last row. */
enum { PAIRED = BF16_DOT || TILED, AT_ONCE = 32, TOGETHER = 8, BEHIND = TILED ? AT_ONCE : 1 };

static size_t padded(size_t n) { return (n + PANEL - 1) / PANEL * PANEL; }

/* ---- tiles ---- */

/* Runs one tile of 1..TILE_ROWS rows. */
static void tile_floats(size_t rows, const struct tile *t)
{
#define KERNEL(n) tile_rows(n, 0, t)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

static void tile_pairs(size_t rows, const struct tile *t)
{
#define KERNEL(n) tile_rows(n, 1, t)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

/* ---- words ---- */

/* out[rows, n / 2] = pairs of neighbours in a row of x[rows, n]. n is a multiple of PANEL. */
static void pair_along(uint32_t *out, const float *x, size_t rows, size_t n)
{
    for (size_t i = 0; i < rows * n; i += 2 * LANES, out += LANES) {
        vech pairs[2] = {bf16_narrow(load(x + i)), bf16_narrow(load(x + i + LANES))};
        memcpy(out, pairs, sizeof pairs);
    }
}

/* out[rows / 2, n] = pairs of an even row of x[rows, n] and the next row; zeros behind the last
 * row. */
static void pair_across(uint32_t *out, const float *x, size_t rows, size_t n)
{
    for (size_t i = 0; i < rows; i += 2)
        for (size_t j = 0; j < n; j += LANES, out += LANES) {
            const float *at = x + i * n + j;
            vec next = i + 1 < rows ? load(at + n) : (vec){0};
            vecu even = __builtin_convertvector(bf16_narrow(load(at)), vecu);
            put_bits(out, even | __builtin_convertvector(bf16_narrow(next), vecu) << 16);
        }
}

/* ---- one key head ---- */

/* Some rows of one head, padded with zeros to E' values, in the two forms that products read:
 * elements along a row, and elements across rows. Without pairs both forms are x itself. */
struct head {
    float *x; /* [rows, E'] */
    const void *along, *across;
};

/* Scratch of one worker. kt, vt: k^T and v^T [E, n'] in words. k, q, dy: one head. p, dp: P and dP
 * [rows, n']; pairs: pairs of P or dP; turned: the pairs transposed [n', rows']. sees: the number
 * of keys that each row sees; hidden: the number of first keys that a window hides from it. np, Ep:
 * n and E rounded up to whole panels. most: the larger of rows and keys n. */
struct scratch {
    uint32_t *kt, *vt;
    struct head k, q, dy;
    float *p, *dp;
    uint32_t *pairs, *turned;
    int32_t *sees, *hidden; /* ascending */
    size_t np, Ep, rows, n, most;
    int half;
};

static int by_tiles(const struct scratch *scratch) { return TILED && scratch->half; }

static size_t back_floats(size_t n, size_t E)
{
    return 2 * E * padded(n) + 6 * (n + BEHIND) * padded(E) + 3 * (n + BEHIND) * padded(n) +
           (TILED ? (padded(n) + BEHIND) * padded(n) : 0) + 2 * padded(n) + 64;
}

size_t OWN_CPU(attention_back_work)(const struct backend *backend, size_t rows, size_t len,
                                    size_t heads, size_t head_dim)
{
    (void)rows, (void)heads;
    return pool_threads(backend->pool) * back_floats(len, head_dim);
}

static struct scratch cut(float *base, size_t rows, size_t n, size_t E, int half)
{
    size_t most = rows > n ? rows : n;
    struct scratch scratch = {.np = padded(n), .Ep = padded(E), .rows = rows, .n = n, .most = most,
                              .half = half};
    struct head *heads[] = {&scratch.k, &scratch.q, &scratch.dy};
    scratch.kt = (uint32_t *)(void *)base;
    scratch.vt = scratch.kt + E * scratch.np;
    base += 2 * E * scratch.np;
    for (int i = 0; i < 3; i++, base += 2 * (most + BEHIND) * scratch.Ep) {
        heads[i]->x = base;
        heads[i]->along = half ? base + most * scratch.Ep : base;
        heads[i]->across = half ? base + most * scratch.Ep + most * scratch.Ep / 2 : base;
    }
    scratch.p = base;
    scratch.dp = scratch.p + most * scratch.np;
    scratch.pairs = (uint32_t *)(void *)(scratch.dp + most * scratch.np);
    scratch.turned = scratch.pairs + (most + BEHIND) * scratch.np;
    scratch.sees = (int32_t *)(void *)(scratch.turned +
                                       (TILED ? (padded(most) + BEHIND) * padded(most) : 0));
    scratch.hidden = scratch.sees + padded(most);
    return scratch;
}

/* The part of a product that is computed: outputs for keys that a row sees, sums over keys that a
 * row sees, or sums over rows that see a key. */
enum span { SEEN_OUTPUTS, SEEN_KEYS, SEEING_ROWS };

static size_t first_seeing(const struct scratch *scratch, size_t key)
{
    size_t row = 0;
    while (row < scratch->rows && (size_t)scratch->sees[row] <= key)
        row++;
    return row;
}

/* Multiplies one or two tiles of 16 rows by tile instructions; tile->a_k is 1. */
static void tile_tiles(size_t rows, const struct tile *tile)
{
    _Alignas(64) float sums[AT_ONCE * PANEL];
    tiled_product(rows, PANEL, tile->K, sums, PANEL, tile->a, tile->a_row, tile->m, tile->m_k);
    for (size_t i = 0; i < rows; i++)
        tile_store(tile->c + i * tile->ldc, load(sums + i * PANEL), load(sums + i * PANEL + LANES),
                   tile->cols, tile->add);
}

/* c[height, width] = a[height, K] m[K, width], or c += if tile.add, with the strides and pointers
 * of `tile`. Columns are the outer loop, so a panel of m stays in the L1 cache for all rows. */
static void product(const struct scratch *scratch, enum span span, size_t height, size_t width,
                    size_t K, struct tile tile)
{
    const struct tile all = tile;
    const size_t of = scratch->half ? 2 : 1; /* elements in a word */
    const size_t most = by_tiles(scratch) ? AT_ONCE : TILE_ROWS;
    for (size_t j = 0; j < width; j += PANEL)
        for (size_t i = 0; i < height; i += most) {
            size_t rows = height - i < most ? height - i : most, to = K;
            size_t from = span == SEEING_ROWS ? first_seeing(scratch, i) / of : 0;
            if (span == SEEN_KEYS)
                to = (size_t)scratch->sees[i + rows - 1];
            if (span == SEEN_OUTPUTS && j >= (size_t)scratch->sees[i + rows - 1])
                continue;
            tile.a = word_at(all.a, i * tile.a_row + from * tile.a_k);
            tile.m = word_at(all.m, from * tile.m_k + j);
            tile.c = all.c + i * tile.ldc + j;
            tile.K = (to + of - 1) / of - from;
            tile.cols = width - j < PANEL ? width - j : PANEL;
            (by_tiles(scratch) ? tile_tiles
             : scratch->half   ? tile_pairs
                               : tile_floats)(rows, &tile);
        }
}

/* Fills *head from one head of x, whose rows are `stride` values apart. */
static void load_head(const struct scratch *scratch, const struct head *head, const float *x,
                      size_t stride, size_t rows, size_t E)
{
    memset(head->x, 0, rows * scratch->Ep * sizeof *x);
    for (size_t row = 0; row < rows; row++)
        memcpy(head->x + row * scratch->Ep, x + row * stride, E * sizeof *x);
    if (!scratch->half)
        return;
    uint32_t *along = (uint32_t *)(void *)(head->x + scratch->most * scratch->Ep);
    pair_along(along, head->x, rows, scratch->Ep);
    pair_across(along + scratch->most * scratch->Ep / 2, head->x, rows, scratch->Ep);
}

/* out[words of E, n'] = the rows of *head (keys or values, elements along rows), transposed and
 * padded with zeros. */
static void turn_head(const struct scratch *scratch, uint32_t *out, const struct head *head,
                      size_t E)
{
    size_t words = scratch->half ? (E + 1) / 2 : E,
           row = scratch->half ? scratch->Ep / 2 : scratch->Ep;
    memset(out, 0, words * scratch->np * sizeof *out);
    for (size_t at = 0; at < scratch->n; at++)
        for (size_t e = 0; e < words; e++)
            out[e * scratch->np + at] = word(word_at(head->along, at * row + e));
}

/* Computes P of all rows; entries of keys that a row does not see are zeros. */
static void probabilities(const struct scratch *scratch, size_t E)
{
    product(scratch, SEEN_OUTPUTS, scratch->rows, scratch->np, E,
            (struct tile){.a = scratch->q.along,
                          .a_row = scratch->half ? scratch->Ep / 2 : scratch->Ep, .a_k = 1,
                          .m = scratch->kt, .m_k = scratch->np, .c = scratch->p,
                          .ldc = scratch->np});
    for (size_t i = 0; i < scratch->rows; i++) {
        size_t n = (size_t)scratch->sees[i], whole = (n + LANES - 1) / LANES * LANES;
        for (int32_t j = 0; j < scratch->hidden[i]; j++)
            scratch->p[i * scratch->np + (size_t)j] = -INFINITY;
        softmax_row(scratch->p + i * scratch->np, n, (float)(1 / sqrt((double)E)));
        memset(scratch->p + i * scratch->np + whole, 0, (scratch->np - whole) * sizeof *scratch->p);
    }
}

/* Overwrites dP by dS, for `rows` rows from row i on. Rows are summed side by side, because the
 * additions of one sum must wait for each other. */
INLINE void softmax_back(const struct scratch *scratch, size_t i, const int rows, size_t E)
{
    const size_t np = scratch->np, n = (size_t)scratch->sees[i + (size_t)rows - 1];
    const float scale = (float)(1 / sqrt((double)E));
    const float *share = scratch->p + i * np;
    float *dp = scratch->dp + i * np;
    double dot[(int)TILE_ROWS > TOGETHER ? (int)TILE_ROWS : TOGETHER] = {0};
    for (size_t j = 0; j < n; j++)
        for (int row = 0; row < rows; row++)
            dot[row] += (double)share[(size_t)row * np + j] * dp[(size_t)row * np + j];
    for (int row = 0; row < rows; row++, share += np, dp += np) {
        for (size_t j = 0; j < n; j++)
            dp[j] = share[j] * (dp[j] - (float)dot[row]) * scale;
        memset(dp + n, 0, (np - n) * sizeof *dp);
    }
}

/* Overwrites dP by dS for all rows, in the groups of the tiles of dP: keys that one row of a group
 * sees are computed for the whole group. */
static void scores_back(const struct scratch *scratch, size_t E)
{
    size_t i = 0;
    for (; by_tiles(scratch) && i + TOGETHER <= scratch->rows; i += TOGETHER)
        softmax_back(scratch, i, TOGETHER, E);
    for (; !by_tiles(scratch) && i + TILE_ROWS <= scratch->rows; i += TILE_ROWS)
        softmax_back(scratch, i, TILE_ROWS, E);
    for (; i < scratch->rows; i++)
        softmax_back(scratch, i, 1, E);
}

/* The length of a row of `turned`: a word for each pair of rows, in whole vectors. */
static size_t turned_row(const struct scratch *scratch)
{
    return up((scratch->rows + 1) / 2, LANES);
}

/* turned[n', rows'] = pairs transposed, with zeros behind the last row. */
static void turn_pairs(const struct scratch *scratch)
{
    const size_t rows = (scratch->rows + 1) / 2, ld = turned_row(scratch);
    for (size_t i = 0; i < rows; i += LANES)
        for (size_t j = 0; j < scratch->np; j += LANES) {
            vecu v[LANES];
            for (size_t row = 0; row < LANES; row++)
                v[row] = i + row < rows ? load_bits(scratch->pairs + (i + row) * scratch->np + j)
                                        : (vecu){0};
            transpose(v);
            for (size_t row = 0; row < LANES; row++)
                put_bits(scratch->turned + (j + row) * ld + i, v[row]);
        }
}

/* P or dS transposed, as the first factor of products that sum over rows: words across rows. */
static struct tile across(const struct scratch *scratch, const float *p)
{
    if (!scratch->half)
        return (struct tile){.a = p, .a_row = 1, .a_k = scratch->np};
    pair_across(scratch->pairs, p, scratch->rows, scratch->np);
    if (!TILED)
        return (struct tile){.a = scratch->pairs, .a_row = 1, .a_k = scratch->np};
    turn_pairs(scratch);
    return (struct tile){.a = scratch->turned, .a_row = turned_row(scratch), .a_k = 1};
}

/* P or dS as the first factor of products that sum over keys: words along keys. */
static struct tile along(const struct scratch *scratch, const float *p)
{
    if (!scratch->half)
        return (struct tile){.a = p, .a_row = scratch->np, .a_k = 1};
    pair_along(scratch->pairs, p, scratch->rows, scratch->np);
    return (struct tile){.a = scratch->pairs, .a_row = scratch->np / 2, .a_k = 1};
}

/* Adds the second factor m[., E'] and the output c (row stride ldc) to `tile`. */
static struct tile by(struct tile tile, const struct scratch *scratch, const void *m, float *c,
                      size_t ldc, int add)
{
    tile.m = m, tile.m_k = scratch->Ep, tile.c = c, tile.ldc = ldc, tile.add = add;
    return tile;
}

/* One query head of a sequence. The first query head of a key head overwrites dk and dv. */
static void one_head(const struct attn_back *back, const struct attn_seq *sequence, size_t head,
                     int first, const struct scratch *scratch)
{
    size_t E = back->head_dim, HE = back->heads * E, KE = back->kv_heads * E, n = scratch->n,
           rows = scratch->rows;
    size_t kh = head / (back->heads / back->kv_heads),
           at = (size_t)sequence->row_begin * HE + head * E;
    size_t kat = (size_t)sequence->slot_begin * KE + kh * E, of = scratch->half ? 2 : 1;
    load_head(scratch, &scratch->q, back->q + at, HE, rows, E);
    load_head(scratch, &scratch->dy, back->dy + at, HE, rows, E);
    probabilities(scratch, E);
    product(
        scratch, SEEING_ROWS, n, E, rows,
        by(across(scratch, scratch->p), scratch, scratch->dy.across, back->dv + kat, KE, !first));
    product(scratch, SEEN_OUTPUTS, rows, scratch->np, E,
            (struct tile){.a = scratch->dy.along, .a_row = scratch->Ep / of, .a_k = 1,
                          .m = scratch->vt, .m_k = scratch->np, .c = scratch->dp,
                          .ldc = scratch->np});
    scores_back(scratch, E);
    product(scratch, SEEN_KEYS, rows, E, n,
            by(along(scratch, scratch->dp), scratch, scratch->k.across, back->dq + at, HE, 0));
    product(
        scratch, SEEING_ROWS, n, E, rows,
        by(across(scratch, scratch->dp), scratch, scratch->q.across, back->dk + kat, KE, !first));
}

struct attn_back_job {
    const struct attn_back *a;
    float *work;
};

static void key_head(const struct attn_back *back, const struct attn_seq *sequence, size_t kh,
                     float *work)
{
    size_t n = (size_t)sequence->n_slots, E = back->head_dim, KE = back->kv_heads * E;
    size_t group = back->heads / back->kv_heads, at = (size_t)sequence->slot_begin * KE + kh * E;
    struct scratch scratch = cut(work, (size_t)sequence->rows, n, E, PAIRED && back->half);
    for (size_t i = 0; i < scratch.rows; i++) {
        scratch.sees[i] = back->causal ? back->pos[(size_t)sequence->row_begin + i] + 1
                                       : sequence->n_slots;
        scratch.hidden[i] = back->window ? scratch.sees[i] - (int32_t)back->window : 0;
    }
    load_head(&scratch, &scratch.k, back->v + at, KE, n, E);
    turn_head(&scratch, scratch.vt, &scratch.k, E);
    load_head(&scratch, &scratch.k, back->k + at, KE, n, E);
    turn_head(&scratch, scratch.kt, &scratch.k, E);
    for (size_t head = 0; head < group; head++)
        one_head(back, sequence, kh * group + head, head == 0, &scratch);
}

static void key_heads(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct attn_back_job *job = ctx;
    const struct attn_back *back = job->a;
    float *work = job->work + worker * back_floats(back->max_slots, back->head_dim);
    if (back->half)
        tiled_begin();
    for (size_t i = begin; i < end; i++)
        key_head(back, &back->seqs[i / back->kv_heads], i % back->kv_heads, work);
    if (back->half)
        tiled_end();
}

void OWN_CPU(attention_back)(struct backend *backend, const struct attn_back *back, float *work)
{
    struct attn_back_job job = {back, work};
    pool_run(backend->pool, back->n_seqs * back->kv_heads, 1, key_heads, &job);
}
