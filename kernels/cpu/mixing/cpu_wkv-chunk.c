/* cpu_wkv-chunk.c - a chunk of tokens of one head: the parts that the forward and the backward
 * pass of the chunked form share, and the forward pass. Lanes are value channels, so states are
 * read and written along rows and no sum crosses lanes. Products of token pairs are sums over
 * key channels. There lanes are key channels: LANES pairs at a time keep one vector of partial
 * sums each in registers, and the lanes of each vector are added at the end. */
#include "kernels/cpu/format/cpu_format.h"
#include "kernels/cpu/mixing/cpu_wkv.h"

enum {
    SUB = 4, /* tokens of a sub-chunk */
    BORDERS = TOKENS / SUB,
    KEYS = LANES / SUB, /* keys that make LANES pairs with the rows of a sub-chunk */
    SUMS = (SUB * (SUB + 1) / 2 + LANES - 1) / LANES * LANES, /* room for the pairs inside a
                                                               * sub-chunk */
    AHEAD = 3 * LANES / 8 /* rows to prefetch beside a tile: wide lanes make few tiles a chunk */
};

/* ---- a chunk's arrays ---- */

size_t CPU(wkv_chunk_floats)(size_t E)
{
    size_t width = wkv_width(E);
    return (11 * TOKENS + SUB + BORDERS + 3) * width + 2 * TOKENS * PAIR_ROW;
}

static float *take(float **at, size_t floats)
{
    float *p = *at;
    *at += floats;
    return p;
}

struct wkv_chunk CPU(wkv_chunk_cut)(const struct wkv_rows *in, float *at)
{
    const size_t width = wkv_width(in->head_dim), rows = TOKENS * width;
    struct wkv_chunk c = {.E = in->head_dim, .width = width, .removes = !!in->a};
    c.pairs = c.removes ? 2 * TOKENS : TOKENS;
    c.r = take(&at, rows);
    c.a = take(&at, rows);
    c.keys = take(&at, 2 * rows);
    c.values = take(&at, 2 * rows);
    c.decay = take(&at, rows);
    c.bonus = take(&at, width);
    c.left = take(&at, 2 * rows);
    c.moved = take(&at, 2 * rows);
    c.near = take(&at, SUB * width);
    c.step = take(&at, width);
    c.borders = take(&at, BORDERS * width);
    c.whole = take(&at, width);
    c.read = take(&at, TOKENS * PAIR_ROW);
    c.solve = take(&at, TOKENS * PAIR_ROW);
    return c;
}

void CPU(wkv_chunk_fetch)(struct wkv_chunk *c, size_t rows)
{
    for (; rows > 0 && c->fetched < c->tokens; rows--) {
        const float *row = c->next[c->source] + c->fetched * c->stride;
        for (size_t e = 0; e < c->E; e += LINE)
            __builtin_prefetch(row + e, 0, 2);
        if (++c->source == c->sources)
            c->source = 0, c->fetched++;
    }
}

static void load_rows(struct wkv_chunk *c, float *to, const float *from)
{
    wkv_rows_in(to, c->width, from, c->stride, c->tokens, c->E);
    c->next[c->sources++] = from + TOKENS * c->stride;
}

void CPU(wkv_chunk_load)(struct wkv_chunk *c, const struct wkv_rows *in, size_t row, size_t n,
                         size_t h)
{
    const size_t at = (row * in->heads + h) * c->E;
    c->stride = in->heads * c->E;
    c->tokens = n;
    c->sources = c->source = 0;
    c->fetched = c->last ? n : 0;
    load_rows(c, c->r, in->r + at);
    load_rows(c, c->keys, in->k + at);
    load_rows(c, c->values, in->v + at);
    load_rows(c, c->decay, in->w + at);
    for (size_t i = 0; i < n * c->width; i += LANES)
        put(c->decay + i, vexp(load(c->decay + i)));
    if (c->removes) {
        load_rows(c, c->a, in->a + at);
        load_rows(c, c->keys + TOKENS * c->width, in->b + at);
    } else {
        wkv_rows_in(c->bonus, c->width, in->u + h * c->E, 0, 1, c->E);
    }
}

/* Fills the tokens behind the last with zeros that do not decay. */
static void pad(struct wkv_chunk *c)
{
    const size_t width = c->width, n = c->tokens * width, left = TOKENS * width - n;
    float *rows[] = {c->r, c->a, c->keys, c->keys + TOKENS * width, c->values};
    for (size_t i = 0; left && i < sizeof rows / sizeof *rows; i++)
        memset(rows[i] + n, 0, left * sizeof(float));
    for (size_t i = n; i < n + left; i++)
        c->decay[i] = 1;
}

static void clear(struct wkv_chunk *c)
{
    for (size_t e = 0; e < c->width; e++)
        c->borders[e] = 1;
    memset(c->read, 0, TOKENS * PAIR_ROW * sizeof(float));
    memset(c->solve, 0, TOKENS * PAIR_ROW * sizeof(float));
    c->cleared = 1;
}

/* ---- products of token pairs ----
 *
 * Sub-chunks of SUB tokens run one after another (secondary chunking, section 4 of the source of
 * kernels/wkv.h). `near` rows are decayed from the start of their sub-chunk; keys of all earlier
 * tokens are decayed up to there. Their pairs then are plain products, and a key moves on by a
 * whole sub-chunk at once. At the end of the chunk keys are decayed as the state needs them. */

/* The keys that a row reads. */
enum reads {
    COMING, /* keys of earlier tokens, as they arrive at its own: a */
    BONUS,  /* the same, and its own key with u: r of RWKV 6 */
    LEAVING /* keys up to its own, as they leave it: r of RWKV 7 */
};

/* r or a, and the arrays made from it. */
struct side {
    const float *rows;
    float *left, *pairs;
};

/* A decayed key; zero below 1e-30, for the reason given at wkv_both(). */
INLINE vec faded(vec x)
{
    const vec size = (vec)((vecu)x & 0x7fffffffu);
    return pick(size < 1e-30f, splat(0), x);
}

/* Makes the `near` and `left` rows of the sub-chunk at token t. step: the decay of the whole
 * sub-chunk. borders: the decay up to its start, then up to its end; the last entry is that of the
 * chunk. */
INLINE void rows_within(struct wkv_chunk *c, const struct side *s, size_t t, const enum reads reads)
{
    const size_t width = c->width;
    const float *rows = s->rows + t * width, *decay = c->decay + t * width;
    float *left = s->left + t * width, *border = c->borders + t / SUB * width;
    for (size_t e = 0; e < width; e += LANES) {
        const vec first = load(border + e);
        vec d = splat(1);
        for (size_t i = 0; i < SUB; i++) {
            const size_t at = i * width + e;
            const vec next = wkv_both(d, load(decay + at));
            const vec x = load(rows + at) * (reads == LEAVING ? next : d);
            put(c->near + at, x);
            put(left + at, x * first);
            d = next;
        }
        put(c->step + e, d);
        put(border + width + e, wkv_both(first, d));
    }
}

/* Makes the sub-chunk's keys as they leave it. */
static void keys_within(struct wkv_chunk *c, size_t first)
{
    const size_t width = c->width;
    const float *keys = c->keys + first * width, *decay = c->decay + first % TOKENS * width;
    float *moved = c->moved + first * width;
    for (size_t e = 0; e < width; e += LANES) {
        vec d = splat(1);
        for (size_t i = SUB; i-- > 0;) {
            const size_t at = i * width + e;
            put(moved + at, load(keys + at) * d);
            d = wkv_both(d, load(decay + at));
        }
    }
}

/* Channels e and on of token i of a sub-chunk, and the keys up to its own. */
INLINE void token_within(const size_t i, vec *sum, vec *key, vec x, vec decay, vec own, vec u,
                         const enum reads reads)
{
    sum += i * (i + 1) / 2;
    for (size_t q = 0; q < i; q++) {
        const vec was = key[q];
        key[q] *= decay;
        sum[q] += x * (reads == LEAVING ? key[q] : was);
    }
    if (reads != COMING)
        sum[i] += x * (reads == BONUS ? own * u : own);
    key[i] = own;
}

/* The pairs of its rows with its own keys, from `first` on. */
INLINE void pairs_within(const struct wkv_chunk *c, const struct side *s, size_t first, size_t t,
                         const enum reads reads)
{
    const size_t width = c->width;
    const float *x = s->rows + t * width, *keys = c->keys + first * width;
    const float *decay = c->decay + t * width;
    float *to = s->pairs + t * PAIR_ROW + first, sums[SUMS];
    vec sum[SUMS];
    for (int i = 0; i < SUMS; i++)
        sum[i] = (vec){0};
    for (size_t e = 0; e < width; e += LANES) {
        const vec u = reads == BONUS ? load(c->bonus + e) : (vec){0};
        vec key[SUB];
#define TOKEN(i)                                                                                   \
    token_within(i, sum, key, load(x + i * width + e), load(decay + i * width + e),                \
                 load(keys + i * width + e), u, reads)
        _Static_assert(SUB == 4, "a line for each token");
        TOKEN(0), TOKEN(1), TOKEN(2), TOKEN(3);
#undef TOKEN
    }
    for (int i = 0; i < SUMS; i += LANES)
        put(sums + i, add_lanes(sum + i));
    for (int i = 0; i < SUB; i++)
        for (int q = 0; q <= i; q++)
            to[i * PAIR_ROW + q] = sums[i * (i + 1) / 2 + q];
}

/* The pairs of its rows with KEYS keys of earlier tokens, from `first` on; r then moves these keys
 * on. */
INLINE void pairs_before(const struct wkv_chunk *c, const struct side *s, size_t first, size_t t,
                         const enum reads reads)
{
    const size_t width = c->width;
    float *keys = c->moved + first * width, *to = s->pairs + t * PAIR_ROW + first, sums[LANES];
    vec sum[LANES];
    for (int i = 0; i < LANES; i++)
        sum[i] = (vec){0};
    for (size_t e = 0; e < width; e += LANES) {
        vec key[KEYS];
        for (size_t j = 0; j < KEYS; j++)
            key[j] = load(keys + j * width + e);
        for (size_t i = 0; i < SUB; i++)
            for (size_t j = 0; j < KEYS; j++)
                sum[i * KEYS + j] += load(c->near + i * width + e) * key[j];
        for (size_t j = 0; reads != COMING && j < KEYS; j++)
            put(keys + j * width + e, faded(key[j] * load(c->step + e)));
    }
    put(sums, add_lanes(sum));
    for (int i = 0; i < SUB; i++)
        for (int j = 0; j < KEYS; j++)
            to[i * PAIR_ROW + j] = sums[i * KEYS + j];
}

/* All pairs of r or of a for the sub-chunk at token t; r runs last and moves the keys. */
INLINE void sub_scores(struct wkv_chunk *c, const struct side *s, size_t t, const enum reads reads)
{
    rows_within(c, s, t, reads);
    for (size_t kind = 0; kind < c->pairs; kind += TOKENS) {
        pairs_within(c, s, kind + t, t, reads);
        for (size_t q = 0; q < t; q += KEYS) {
            pairs_before(c, s, kind + q, t, reads);
            CPU(wkv_chunk_fetch)(c, KEYS);
        }
        if (reads != COMING)
            keys_within(c, kind + t);
    }
}

void CPU(wkv_chunk_scores)(struct wkv_chunk *c)
{
    const struct side r = {c->r, c->left, c->read};
    const struct side a = {c->a, c->left + TOKENS * c->width, c->solve};
    pad(c);
    if (!c->cleared) /* where a token comes before the key, the entry is always zero */
        clear(c);
    for (size_t t = 0; t < TOKENS; t += SUB) {
        if (c->removes) {
            sub_scores(c, &a, t, COMING);
            sub_scores(c, &r, t, LEAVING);
        } else {
            sub_scores(c, &r, t, BONUS);
        }
    }
}

/* ---- states and values ---- */

/* Rows of the tile that begins at row t of M; tiles differ by at most one row. */
INLINE size_t tile_of(size_t M, size_t t)
{
    const size_t left = M - t, tiles = (left + TILE_ROWS - 1) / TILE_ROWS;
    return tiles ? left / tiles : 0;
}

/* sum[rows, PANEL] += a m. Rows of a lie a_row apart, rows of m as in a chunk. */
INLINE void add_product(const int rows, vec (*sum)[2], const float *a, size_t a_row, const float *m,
                        size_t width, size_t K)
{
    for (size_t k = 0; k < K; k++, m += width) {
        vec lo = load(m), hi = load(m + LANES);
        for (int i = 0; i < rows; i++) {
            sum[i][0] += lo * a[(size_t)i * a_row + k];
            sum[i][1] += hi * a[(size_t)i * a_row + k];
        }
    }
}

/* sum: for tokens from t on and value channels from j on, the terms from the state, from the values
 * of all tokens up to each, and from the first n_x x. */
INLINE void read_tile(const int rows, vec (*sum)[2], const struct wkv_chunk *c, const float *left,
                      const float *pairs, const float *S, size_t t, size_t j, size_t n_x)
{
    const size_t width = c->width;
    const float *v = c->values + j;
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = (vec){0};
    pairs += t * PAIR_ROW;
    add_product(rows, sum, left + t * width, width, S + j, width, c->E);
    add_product(rows, sum, pairs, PAIR_ROW, v, width, t + (size_t)rows);
    add_product(rows, sum, pairs + TOKENS, PAIR_ROW, v + TOKENS * width, width, n_x);
}

/* x of tokens from t on. The loop over panels is inside, because the compiler unrolls an inner loop
 * early enough to keep all sums in registers. */
INLINE void solve_rows(const int rows, struct wkv_chunk *c, const float *S, size_t t)
{
    const size_t width = c->width;
    const float *solve = c->solve + t * PAIR_ROW + TOKENS + t;
    for (size_t j = 0; j < width; j += PANEL) {
        float *x = c->values + (TOKENS + t) * width + j;
        vec sum[TILE_ROWS][2];
        read_tile(rows, sum, c, c->left + TOKENS * width, c->solve, S, t, j, t);
        for (int q = 0; q < rows; q++)
            for (int i = q + 1; i < rows; i++) {
                sum[i][0] += sum[q][0] * solve[i * PAIR_ROW + q];
                sum[i][1] += sum[q][1] * solve[i * PAIR_ROW + q];
            }
        for (int i = 0; i < rows; i++) {
            put(x + (size_t)i * width, sum[i][0]);
            put(x + (size_t)i * width + LANES, sum[i][1]);
        }
    }
}

void CPU(wkv_chunk_solve)(struct wkv_chunk *c, const float *S)
{
    for (size_t t = 0, n; (n = tile_of(TOKENS, t)); t += n) {
#define KERNEL(n) solve_rows(n, c, S, t)
        WITH_ROWS(n, KERNEL)
#undef KERNEL
    }
}

/* y of tokens from t on, in whole panels. */
INLINE void y_rows(const int rows, struct wkv_chunk *c, const float *S, size_t t, float *y,
                   size_t stride)
{
    for (size_t j = 0; j < c->width; j += PANEL) {
        vec sum[TILE_ROWS][2];
        CPU(wkv_chunk_fetch)(c, AHEAD);
        read_tile(rows, sum, c, c->left, c->read, S, t, j, c->removes ? t + (size_t)rows : 0);
        for (int i = 0; i < rows; i++) {
            put(y + (t + (size_t)i) * stride + j, sum[i][0]);
            put(y + (t + (size_t)i) * stride + j + LANES, sum[i][1]);
        }
    }
}

void CPU(wkv_chunk_read)(struct wkv_chunk *c, const float *S, float *y)
{
    const int whole = c->width == c->E;
    float *to = whole ? y : c->left + TOKENS * c->width; /* rows that are not read any more */
    const size_t stride = whole ? c->stride : c->width;
    for (size_t t = 0, n; (n = tile_of(c->tokens, t)); t += n) {
#define KERNEL(n) y_rows(n, c, S, t, to, stride)
        WITH_ROWS(n, KERNEL)
#undef KERNEL
    }
    if (!whole)
        wkv_rows_out(y, c->stride, to, stride, c->tokens, c->E);
}

/* Rows i.. of S, PANEL columns: decayed, plus the terms of the tokens. */
INLINE void carry_rows(const int rows, const struct wkv_chunk *c, float *S, size_t i)
{
    const size_t width = c->width;
    const float *whole = c->whole + i, *k = c->moved + i, *v = c->values;
    for (size_t j = 0; j < width; j += PANEL) {
        vec sum[TILE_ROWS][2];
        for (int m = 0; m < rows; m++) {
            sum[m][0] = load(S + (size_t)m * width + j) * whole[m];
            sum[m][1] = load(S + (size_t)m * width + j + LANES) * whole[m];
        }
        for (size_t q = 0; q < c->pairs; q++) {
            vec lo = load(v + q * width + j), hi = load(v + q * width + j + LANES);
            for (int m = 0; m < rows; m++) {
                sum[m][0] += lo * k[q * width + (size_t)m];
                sum[m][1] += hi * k[q * width + (size_t)m];
            }
        }
        for (int m = 0; m < rows; m++) {
            put(S + (size_t)m * width + j, sum[m][0]);
            put(S + (size_t)m * width + j + LANES, sum[m][1]);
        }
    }
}

void CPU(wkv_chunk_carry)(struct wkv_chunk *c, float *S)
{
    for (size_t i = 0, n; (n = tile_of(c->E, i)); i += n) {
        CPU(wkv_chunk_fetch)(c, AHEAD);
#define KERNEL(n) carry_rows(n, c, S + i * c->width, i)
        WITH_ROWS(n, KERNEL)
#undef KERNEL
    }
}
