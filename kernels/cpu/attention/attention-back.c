/* attention-back.c - the gradients of attention (struct attn_back of train.h). With P = softmax(S)
 * and S = q k^T / sqrt(E), for each query head:
 *
 *   dv = P^T dy,  dP = dy v^T,  dS = P (dP - rowsum(P dP)) / sqrt(E),  dq = dS k,  dk = dS^T q
 *
 * With a causal mask the rows of a sequence see a growing number of its keys, with a full mask all
 * keys. Tiles of S and dP that no row sees are skipped, and sums over keys or rows skip zeros.
 * First keys hidden by a window are zeros in P. A thread owns a key head of a sequence and takes
 * its query heads in order. A tile:
 *
 *            K                    PANEL = 2 registers
 *        a +-----+            m +------+
 *   rows   | ... | x          K |      |   =  c [rows, PANEL], held in rows x 2 registers
 *   <= 12  +-----+              +------+
 *
 * For each k one row of m is loaded, each a(i, k) is broadcast, and rows x 2 fused multiply-adds
 * run. Every output has one accumulator and k ascends, so the shape of the tile does not change the
 * result. An element is a word: a float or, with attn_back.half where the processor multiplies
 * pairs, a pair of bf16 of an even k and the next. Tiles of level amx multiply pairs of 32 rows at
 * a time (amx/tiled.h). Their rows of a must be contiguous along k, so elements across rows are
 * transposed first. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/format/cpu_format.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/tile.h"
#include "kernels/cpu/vectors/transpose.h"

#include DENSE

/* AT_ONCE: rows of a product by tiles at once. TOGETHER: so many of these make whole groups of P
 * and dP. BEHIND: rows of words that tiles may read behind the last. */
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

/* out[rows, n / 2]: pairs of neighbours in a row of x. n is a multiple of PANEL. */
static void pair_along(uint32_t *out, const float *x, size_t rows, size_t n)
{
    for (size_t i = 0; i < rows * n; i += 2 * LANES, out += LANES) {
        vech pairs[2] = {bf16_narrow(load(x + i)), bf16_narrow(load(x + i + LANES))};
        memcpy(out, pairs, sizeof pairs);
    }
}

/* out[rows / 2, n]: pairs of an even row of x and the next row; behind the last row zeros. */
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

/* One head for some rows, zero-padded, in the two forms that products read: elements along a row,
 * and elements across rows. Both are the floats, or pairs of them. */
struct head {
    float *x; /* [rows, E'] */
    const void *along, *across;
};

/* Scratch of one worker: k^T and v^T [E, n'] in words; P and dP [rows, n'], pairs of them, and
 * these transposed [n', rows']; the number of keys that each row sees, and the number of first keys
 * hidden from it. `most`: limit of rows and of keys. */
struct scratch {
    uint32_t *kt, *vt;
    struct head k, q, dy;
    float *p, *dp;
    uint32_t *pairs, *turned;
    int32_t *sees, *hidden; /* ascending */
    size_t np, Ep, rows, n, most;
    int half;
};

static int by_tiles(const struct scratch *w) { return TILED && w->half; }

static size_t back_floats(size_t n, size_t E)
{
    return 2 * E * padded(n) + 6 * (n + BEHIND) * padded(E) + 3 * (n + BEHIND) * padded(n) +
           (TILED ? (padded(n) + BEHIND) * padded(n) : 0) + 2 * padded(n) + 64;
}

size_t OWN_CPU(attention_back_work)(const struct backend *b, size_t rows, size_t len, size_t heads,
                                    size_t head_dim)
{
    (void)rows, (void)heads;
    return pool_threads(b->pool) * back_floats(len, head_dim);
}

static struct scratch cut(float *base, size_t rows, size_t n, size_t E, int half)
{
    size_t most = rows > n ? rows : n;
    struct scratch w = {.np = padded(n), .Ep = padded(E), .rows = rows, .n = n, .most = most,
                        .half = half};
    struct head *heads[] = {&w.k, &w.q, &w.dy};
    w.kt = (uint32_t *)(void *)base;
    w.vt = w.kt + E * w.np;
    base += 2 * E * w.np;
    for (int i = 0; i < 3; i++, base += 2 * (most + BEHIND) * w.Ep) {
        heads[i]->x = base;
        heads[i]->along = half ? base + most * w.Ep : base;
        heads[i]->across = half ? base + most * w.Ep + most * w.Ep / 2 : base;
    }
    w.p = base;
    w.dp = w.p + most * w.np;
    w.pairs = (uint32_t *)(void *)(w.dp + most * w.np);
    w.turned = w.pairs + (most + BEHIND) * w.np;
    w.sees = (int32_t *)(void *)(w.turned + (TILED ? (padded(most) + BEHIND) * padded(most) : 0));
    w.hidden = w.sees + padded(most);
    return w;
}

/* The outputs of a product that are needed, or the terms of its sums that are not zero. */
enum span { SEEN_OUTPUTS, SEEN_KEYS, SEEING_ROWS };

static size_t first_seeing(const struct scratch *w, size_t key)
{
    size_t row = 0;
    while (row < w->rows && (size_t)w->sees[row] <= key)
        row++;
    return row;
}

/* One or two tiles of 16 rows; a_k is 1. */
static void tile_tiles(size_t rows, const struct tile *t)
{
    _Alignas(64) float sums[AT_ONCE * PANEL];
    tiled_product(rows, PANEL, t->K, sums, PANEL, t->a, t->a_row, t->m, t->m_k);
    for (size_t i = 0; i < rows; i++)
        tile_store(t->c + i * t->ldc, load(sums + i * PANEL), load(sums + i * PANEL + LANES),
                   t->cols, t->add);
}

/* c[M, N] (+)= a[M, K] m[K, N] with the strides and pointers of `t`. Columns are the outer loop, so
 * a panel of m stays in the first cache for all rows. */
static void product(const struct scratch *w, enum span span, size_t M, size_t N, size_t K,
                    struct tile t)
{
    const struct tile all = t;
    const size_t of = w->half ? 2 : 1; /* elements in a word */
    const size_t most = by_tiles(w) ? AT_ONCE : TILE_ROWS;
    for (size_t j = 0; j < N; j += PANEL)
        for (size_t i = 0; i < M; i += most) {
            size_t rows = M - i < most ? M - i : most, to = K;
            size_t from = span == SEEING_ROWS ? first_seeing(w, i) / of : 0;
            if (span == SEEN_KEYS)
                to = (size_t)w->sees[i + rows - 1];
            if (span == SEEN_OUTPUTS && j >= (size_t)w->sees[i + rows - 1])
                continue;
            t.a = word_at(all.a, i * t.a_row + from * t.a_k);
            t.m = word_at(all.m, from * t.m_k + j);
            t.c = all.c + i * t.ldc + j;
            t.K = (to + of - 1) / of - from;
            t.cols = N - j < PANEL ? N - j : PANEL;
            (by_tiles(w) ? tile_tiles : w->half ? tile_pairs : tile_floats)(rows, &t);
        }
}

/* Loads one head of x (row stride `stride`). */
static void load_head(const struct scratch *w, const struct head *h, const float *x, size_t stride,
                      size_t rows, size_t E)
{
    memset(h->x, 0, rows * w->Ep * sizeof *x);
    for (size_t t = 0; t < rows; t++)
        memcpy(h->x + t * w->Ep, x + t * stride, E * sizeof *x);
    if (!w->half)
        return;
    uint32_t *along = (uint32_t *)(void *)(h->x + w->most * w->Ep);
    pair_along(along, h->x, rows, w->Ep);
    pair_across(along + w->most * w->Ep / 2, h->x, rows, w->Ep);
}

/* out[words of E, n'] = the keys (elements along their rows), transposed, zero-padded. */
static void turn_head(const struct scratch *w, uint32_t *out, const struct head *h, size_t E)
{
    size_t words = w->half ? (E + 1) / 2 : E, row = w->half ? w->Ep / 2 : w->Ep;
    memset(out, 0, words * w->np * sizeof *out);
    for (size_t t = 0; t < w->n; t++)
        for (size_t e = 0; e < words; e++)
            out[e * w->np + t] = word(word_at(h->along, t * row + e));
}

/* P of the rows; zeros for keys that a row does not see. */
static void probabilities(const struct scratch *w, size_t E)
{
    product(w, SEEN_OUTPUTS, w->rows, w->np, E,
            (struct tile){.a = w->q.along, .a_row = w->half ? w->Ep / 2 : w->Ep, .a_k = 1,
                          .m = w->kt, .m_k = w->np, .c = w->p, .ldc = w->np});
    for (size_t i = 0; i < w->rows; i++) {
        size_t n = (size_t)w->sees[i], whole = (n + LANES - 1) / LANES * LANES;
        for (int32_t j = 0; j < w->hidden[i]; j++)
            w->p[i * w->np + (size_t)j] = -INFINITY;
        softmax_row(w->p + i * w->np, n, (float)(1 / sqrt((double)E)));
        memset(w->p + i * w->np + whole, 0, (w->np - whole) * sizeof *w->p);
    }
}

/* Writes dS over dP, from row i on. Several rows are summed side by side, so that the additions of
 * one sum need not wait for another's. */
INLINE void softmax_back(const struct scratch *w, size_t i, const int rows, size_t E)
{
    const size_t np = w->np, n = (size_t)w->sees[i + (size_t)rows - 1];
    const float scale = (float)(1 / sqrt((double)E));
    const float *p = w->p + i * np;
    float *dp = w->dp + i * np;
    double dot[(int)TILE_ROWS > TOGETHER ? (int)TILE_ROWS : TOGETHER] = {0};
    for (size_t j = 0; j < n; j++)
        for (int r = 0; r < rows; r++)
            dot[r] += (double)p[(size_t)r * np + j] * dp[(size_t)r * np + j];
    for (int r = 0; r < rows; r++, p += np, dp += np) {
        for (size_t j = 0; j < n; j++)
            dp[j] = p[j] * (dp[j] - (float)dot[r]) * scale;
        memset(dp + n, 0, (np - n) * sizeof *dp);
    }
}

/* Rows run in the groups of dP's tiles: keys that one row of a group sees are computed for the
 * whole group. */
static void scores_back(const struct scratch *w, size_t E)
{
    size_t i = 0;
    for (; by_tiles(w) && i + TOGETHER <= w->rows; i += TOGETHER)
        softmax_back(w, i, TOGETHER, E);
    for (; !by_tiles(w) && i + TILE_ROWS <= w->rows; i += TILE_ROWS)
        softmax_back(w, i, TILE_ROWS, E);
    for (; i < w->rows; i++)
        softmax_back(w, i, 1, E);
}

/* Words of the pairs of all rows, in whole vectors. */
static size_t turned_row(const struct scratch *w) { return up((w->rows + 1) / 2, LANES); }

/* turned[n', rows'] = the pairs transposed, zeros behind the last row. */
static void turn_pairs(const struct scratch *w)
{
    const size_t rows = (w->rows + 1) / 2, ld = turned_row(w);
    for (size_t i = 0; i < rows; i += LANES)
        for (size_t j = 0; j < w->np; j += LANES) {
            vecu v[LANES];
            for (size_t r = 0; r < LANES; r++)
                v[r] = i + r < rows ? load_bits(w->pairs + (i + r) * w->np + j) : (vecu){0};
            transpose(v);
            for (size_t r = 0; r < LANES; r++)
                put_bits(w->turned + (j + r) * ld + i, v[r]);
        }
}

/* P or dS transposed, as first factor of products over rows: words across rows. */
static struct tile across(const struct scratch *w, const float *p)
{
    if (!w->half)
        return (struct tile){.a = p, .a_row = 1, .a_k = w->np};
    pair_across(w->pairs, p, w->rows, w->np);
    if (!TILED)
        return (struct tile){.a = w->pairs, .a_row = 1, .a_k = w->np};
    turn_pairs(w);
    return (struct tile){.a = w->turned, .a_row = turned_row(w), .a_k = 1};
}

/* P or dS as first factor of products over keys: words along keys. */
static struct tile along(const struct scratch *w, const float *p)
{
    if (!w->half)
        return (struct tile){.a = p, .a_row = w->np, .a_k = 1};
    pair_along(w->pairs, p, w->rows, w->np);
    return (struct tile){.a = w->pairs, .a_row = w->np / 2, .a_k = 1};
}

/* m[, E] of a head as second factor; c has row stride ldc. */
static struct tile by(struct tile a, const struct scratch *w, const void *m, float *c, size_t ldc,
                      int add)
{
    a.m = m, a.m_k = w->Ep, a.c = c, a.ldc = ldc, a.add = add;
    return a;
}

/* Query head h of a sequence. The first query head of a key head overwrites dk and dv. */
static void one_head(const struct attn_back *a, const struct attn_seq *s, size_t h, int first,
                     const struct scratch *w)
{
    size_t E = a->head_dim, HE = a->heads * E, KE = a->kv_heads * E, n = w->n, rows = w->rows;
    size_t kh = h / (a->heads / a->kv_heads), at = (size_t)s->row_begin * HE + h * E;
    size_t kat = (size_t)s->slot_begin * KE + kh * E, of = w->half ? 2 : 1;
    load_head(w, &w->q, a->q + at, HE, rows, E);
    load_head(w, &w->dy, a->dy + at, HE, rows, E);
    probabilities(w, E);
    product(w, SEEING_ROWS, n, E, rows,
            by(across(w, w->p), w, w->dy.across, a->dv + kat, KE, !first));
    product(w, SEEN_OUTPUTS, rows, w->np, E,
            (struct tile){.a = w->dy.along, .a_row = w->Ep / of, .a_k = 1, .m = w->vt,
                          .m_k = w->np, .c = w->dp, .ldc = w->np});
    scores_back(w, E);
    product(w, SEEN_KEYS, rows, E, n, by(along(w, w->dp), w, w->k.across, a->dq + at, HE, 0));
    product(w, SEEING_ROWS, n, E, rows,
            by(across(w, w->dp), w, w->q.across, a->dk + kat, KE, !first));
}

struct attn_back_job {
    const struct attn_back *a;
    float *work;
};

static void key_head(const struct attn_back *a, const struct attn_seq *s, size_t kh, float *work)
{
    size_t n = (size_t)s->n_slots, E = a->head_dim, KE = a->kv_heads * E;
    size_t group = a->heads / a->kv_heads, at = (size_t)s->slot_begin * KE + kh * E;
    struct scratch w = cut(work, (size_t)s->rows, n, E, PAIRED && a->half);
    for (size_t i = 0; i < w.rows; i++) {
        w.sees[i] = a->causal ? a->pos[(size_t)s->row_begin + i] + 1 : s->n_slots;
        w.hidden[i] = a->window ? w.sees[i] - (int32_t)a->window : 0;
    }
    load_head(&w, &w.k, a->v + at, KE, n, E);
    turn_head(&w, w.vt, &w.k, E);
    load_head(&w, &w.k, a->k + at, KE, n, E);
    turn_head(&w, w.kt, &w.k, E);
    for (size_t h = 0; h < group; h++)
        one_head(a, s, kh * group + h, h == 0, &w);
}

static void key_heads(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct attn_back_job *job = ctx;
    const struct attn_back *a = job->a;
    float *work = job->work + worker * back_floats(a->max_slots, a->head_dim);
    if (a->half)
        tiled_begin();
    for (size_t i = begin; i < end; i++)
        key_head(a, &a->seqs[i / a->kv_heads], i % a->kv_heads, work);
    if (a->half)
        tiled_end();
}

void OWN_CPU(attention_back)(struct backend *b, const struct attn_back *a, float *work)
{
    struct attn_back_job job = {a, work};
    pool_run(b->pool, a->n_seqs * a->kv_heads, 1, key_heads, &job);
}
