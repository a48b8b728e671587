/* wkv-chunk.c - a chunk of tokens of one head: what both directions of the chunked form share, and
 * what it reads. Lanes are value channels, so that a state is read and written along its rows and
 * no sum runs over lanes. All that pairs of tokens share are sums over key channels: there lanes
 * are key channels, LANES pairs at a time keep a vector of sums each in registers, and their lanes
 * are added up at the end.
 */
#include "kernels/cpu/format.h"
#include "kernels/cpu/wkv.h"

enum { KEYS = LANES / 4 /* of LANES pairs */ };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* ---- a chunk's arrays ---- */

size_t CPU(wkv_chunk_floats)(size_t E)
{
    size_t width = wkv_width(E);
    return (11 * TOKENS + 2) * width + 2 * TOKENS * PAIR_ROW;
}

static float *take(float **at, size_t floats)
{
    float *p = *at;
    *at += floats;
    return p;
}

struct chunk CPU(wkv_chunk_cut)(const struct wkv_rows *in, float *at)
{
    const size_t width = wkv_width(in->head_dim), rows = TOKENS * width;
    struct chunk c = {.E = in->head_dim, .width = width, .removes = !!in->a};
    c.pairs = c.removes ? 2 * TOKENS : TOKENS;
    c.r = take(&at, rows);
    c.a = take(&at, rows);
    c.keys = take(&at, 2 * rows);
    c.values = take(&at, 2 * rows);
    c.decay = take(&at, rows);
    c.bonus = take(&at, width);
    c.before = take(&at, rows + width);
    c.after = take(&at, rows);
    c.scaled = take(&at, 2 * rows);
    c.read = take(&at, TOKENS * PAIR_ROW);
    c.solve = take(&at, TOKENS * PAIR_ROW);
    return c;
}

void CPU(wkv_chunk_fetch)(struct chunk *c, size_t rows)
{
    for (; rows > 0 && c->fetched < c->tokens; rows--) {
        const float *row = c->next[c->source] + c->fetched * c->stride;
        for (size_t e = 0; e < c->E; e += LINE)
            __builtin_prefetch(row + e, 0, 2);
        if (++c->source == c->sources)
            c->source = 0, c->fetched++;
    }
}

static void load_rows(struct chunk *c, float *to, const float *from)
{
    wkv_rows_in(to, c->width, from, c->stride, c->tokens, c->E);
    c->next[c->sources++] = from + TOKENS * c->stride;
}

void CPU(wkv_chunk_load)(struct chunk *c, const struct wkv_rows *in, size_t row, size_t n,
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

/* The product of two decays. What no sum in fp32 will show is zero: the last numbers before zero
 * are slow to compute with. */
INLINE vec both(vec x, const float *decay)
{
    vec y = x * load(decay);
    return pick(y < 1e-30f, splat(0), y);
}

void CPU(wkv_chunk_pad)(struct chunk *c)
{
    const size_t width = c->width, n = c->tokens, left = (TOKENS - n) * width;
    float *rows[] = {c->r, c->a, c->keys, c->keys + TOKENS * width, c->values};
    for (size_t i = 0; left && i < sizeof rows / sizeof *rows; i++)
        memset(rows[i] + n * width, 0, left * sizeof(float));
    for (size_t i = n * width; i < TOKENS * width; i++)
        c->decay[i] = 1;
    for (size_t e = 0; e < width; e += PANEL) {
        vec ahead[2] = {splat(1), splat(1)}, behind[2] = {splat(1), splat(1)};
        for (size_t t = 0; t < TOKENS; t++)
            for (size_t g = 0; g < 2; g++) {
                const size_t at = t * width + e + g * LANES;
                const size_t last = (TOKENS - 1 - t) * width + e + g * LANES;
                put(c->before + at, ahead[g]);
                put(c->after + last, behind[g]);
                ahead[g] = both(ahead[g], c->decay + at);
                behind[g] = both(behind[g], c->decay + last);
            }
        put(c->before + TOKENS * width + e, ahead[0]);
        put(c->before + TOKENS * width + e + LANES, ahead[1]);
    }
}

/* to[rows, width] = x * y, row by row. */
static void multiply(float *to, const float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        put(to + i, load(x + i) * load(y + i));
}

void CPU(wkv_chunk_scale_left)(struct chunk *c)
{
    const size_t n = TOKENS * c->width;
    multiply(c->scaled, c->r, c->removes ? c->before + c->width : c->before, n);
    if (c->removes)
        multiply(c->scaled + n, c->a, c->before, n);
}

void CPU(wkv_chunk_scale_keys)(struct chunk *c)
{
    const size_t n = TOKENS * c->width;
    multiply(c->scaled, c->keys, c->after, n);
    if (c->removes)
        multiply(c->scaled + n, c->keys + n, c->after, n);
}

/* ---- what pairs of tokens share ---- */

/* to[KEYS]: of a token that is `ahead` of the first of the keys; zeros for those before which it
 * is, or, without `own`, not after. */
INLINE void put_pairs(float *to, const float *sums, int ahead, const int own)
{
    for (int j = 0; j < KEYS; j++)
        to[j] = ahead >= j + !own ? sums[j] : 0;
}

/* read and solve of KEYS keys, row q and on, with r of the tokens from t up to the end, four at a
 * time, or with r and a, of two. `from` has the keys as they came to token t, scaled gets them as
 * they leave; a key decays on its way: RWKV 7 reads what has decayed in t too, RWKV 6 and a what
 * came to t. On the diagonal a key does not decay before there is one and in its own token. */
INLINE void sum_pairs(struct chunk *c, const float *from, size_t t, size_t end, size_t q,
                      size_t column, const int removes, const int diagonal)
{
    const size_t width = c->width;
    const int tokens = removes ? 2 : 4;
    float *to = c->scaled;
    for (; t < end; t += (size_t)tokens, from = to) {
        const float *decay[4][KEYS], *r = c->r + t * width, *a = c->a + t * width;
        float sums[LANES];
        vec sum[LANES];
        for (int i = 0; i < tokens; i++)
            for (int j = 0; j < KEYS; j++) {
                const size_t token = t + (size_t)i;
                decay[i][j] = diagonal && token <= q + (size_t)j ? c->before /* ones */
                                                                 : c->decay + token * width;
            }
        for (int i = 0; i < LANES; i++)
            sum[i] = (vec){0};
        for (size_t e = 0; e < width; e += LANES) {
            vec key[KEYS];
            for (int j = 0; j < KEYS; j++)
                key[j] = load(from + (size_t)j * width + e);
            for (int i = 0; i < tokens; i++)
                for (int j = 0; j < KEYS; j++) {
                    vec *s = sum + (removes ? 2 * i : i) * KEYS + j;
                    if (removes) {
                        s[KEYS] += load(a + (size_t)i * width + e) * key[j];
                        key[j] *= load(decay[i][j] + e);
                    }
                    s[0] += load(r + (size_t)i * width + e) * key[j];
                    if (!removes)
                        key[j] *= load(decay[i][j] + e);
                }
            for (int j = 0; j < KEYS; j++)
                put(to + (size_t)j * width + e, key[j]);
        }
        put(sums, add_lanes(sum));
        for (int i = 0; i < tokens; i++) {
            const size_t at = (t + (size_t)i) * PAIR_ROW + column + q;
            const int ahead = diagonal ? (int)(t - q) + i : LANES;
            put_pairs(c->read + at, sums + (removes ? 2 * i : i) * KEYS, ahead, 1);
            if (removes)
                put_pairs(c->solve + at, sums + (2 * i + 1) * KEYS, ahead, 0);
        }
        CPU(wkv_chunk_fetch)(c, removes ? 1 : 2);
    }
}

INLINE void scores(struct chunk *c, const float *right, const int removes, size_t column)
{
    const size_t tokens = removes ? 2 : 4;
    for (size_t q = 0; q < TOKENS; q += KEYS) {
        const size_t t = q / tokens * tokens, apart = (q + KEYS + tokens - 1) / tokens * tokens;
        sum_pairs(c, right + q * c->width, t, apart, q, column, removes, 1);
        sum_pairs(c, c->scaled, apart, TOKENS, q, column, removes, 0);
    }
}

/* The diagonal of A^rk as RWKV 6 has it. */
static void own_scores(const struct chunk *c)
{
    const size_t width = c->width;
    for (size_t t = 0; t < TOKENS; t += LANES) {
        vec sum[LANES];
        float sums[LANES];
        for (int i = 0; i < LANES; i++)
            sum[i] = (vec){0};
        for (size_t e = 0; e < width; e += LANES)
            for (int i = 0; i < LANES; i++) {
                const size_t at = (t + (size_t)i) * width + e;
                sum[i] += load(c->r + at) * (load(c->keys + at) * load(c->bonus + e));
            }
        put(sums, add_lanes(sum));
        for (size_t i = 0; i < LANES; i++)
            c->read[(t + i) * PAIR_ROW + t + i] = sums[i];
    }
}

void CPU(wkv_chunk_scores)(struct chunk *c)
{
    if (!c->cleared) { /* where a token comes before the key there is never anything else */
        memset(c->read, 0, TOKENS * PAIR_ROW * sizeof(float));
        memset(c->solve, 0, TOKENS * PAIR_ROW * sizeof(float));
        c->cleared = 1;
    }
    if (!c->removes) {
        scores(c, c->keys, 0, 0);
        own_scores(c);
        return;
    }
    scores(c, c->keys, 1, 0);
    scores(c, c->keys + TOKENS * c->width, 1, TOKENS);
}

/* ---- states and values ---- */

/* Rows of the tile that begins at row t of M: tiles differ by at most one row. */
INLINE size_t tile_of(size_t M, size_t t)
{
    const size_t left = M - t, tiles = (left + TILE_ROWS - 1) / TILE_ROWS;
    return tiles ? left / tiles : 0;
}

/* sum[rows, PANEL] += a m; rows of a lie a_row apart, those of m as far as a chunk's. */
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

/* sum: of tokens t and on, value channels j and on, what is read of the state, of the values of all
 * tokens so far, these included, and of the first n_x x. */
INLINE void read_tile(const int rows, vec (*sum)[2], const struct chunk *c, const float *left,
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

/* x of tokens t and on. The loop over panels is in here: the compiler unrolls loops inside a loop
 * early enough to keep all sums in registers. */
INLINE void solve_rows(const int rows, struct chunk *c, const float *S, size_t t)
{
    const size_t width = c->width;
    const float *solve = c->solve + t * PAIR_ROW + TOKENS + t;
    for (size_t j = 0; j < width; j += PANEL) {
        float *x = c->values + (TOKENS + t) * width + j;
        vec sum[TILE_ROWS][2];
        read_tile(rows, sum, c, c->scaled + TOKENS * width, c->solve, S, t, j, t);
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

void CPU(wkv_chunk_solve)(struct chunk *c, const float *S)
{
    for (size_t t = 0, n; (n = tile_of(TOKENS, t)); t += n) {
#define KERNEL(n) solve_rows(n, c, S, t)
        WITH_ROWS(n, KERNEL)
#undef KERNEL
    }
}

/* y of tokens t and on, whole panels. */
INLINE void y_rows(const int rows, const struct chunk *c, const float *S, size_t t, float *y,
                   size_t stride)
{
    for (size_t j = 0; j < c->width; j += PANEL) {
        vec sum[TILE_ROWS][2];
        read_tile(rows, sum, c, c->scaled, c->read, S, t, j, c->removes ? t + (size_t)rows : 0);
        for (int i = 0; i < rows; i++) {
            put(y + (t + (size_t)i) * stride + j, sum[i][0]);
            put(y + (t + (size_t)i) * stride + j + LANES, sum[i][1]);
        }
    }
}

void CPU(wkv_chunk_read)(const struct chunk *c, const float *S, float *y)
{
    const int whole = c->width == c->E;
    float *to = whole ? y : c->scaled + TOKENS * c->width; /* which nobody reads any more */
    const size_t stride = whole ? c->stride : c->width;
    for (size_t t = 0, n; (n = tile_of(c->tokens, t)); t += n) {
#define KERNEL(n) y_rows(n, c, S, t, to, stride)
        WITH_ROWS(n, KERNEL)
#undef KERNEL
    }
    if (!whole)
        wkv_rows_out(y, c->stride, to, stride, c->tokens, c->E);
}

/* Rows i.. of S, PANEL columns: decayed, and what the tokens add. */
INLINE void carry_rows(const int rows, const struct chunk *c, float *S, size_t i)
{
    const size_t width = c->width;
    const float *whole = c->before + TOKENS * width + i, *k = c->scaled + i, *v = c->values;
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

void CPU(wkv_chunk_carry)(struct chunk *c, float *S)
{
    CPU(wkv_chunk_scale_keys)(c);
    for (size_t i = 0; i < c->E; i += TILE_ROWS) {
        float *at = S + i * c->width;
        CPU(wkv_chunk_fetch)(c, 4);
#define KERNEL(n) carry_rows(n, c, at, i)
        WITH_ROWS(least(TILE_ROWS, c->E - i), KERNEL)
#undef KERNEL
    }
}
