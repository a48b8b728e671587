/* cpu_wkv-chunk.c - a chunk of tokens of one head: the parts that the forward and the backward pass
 * of the chunked form share, and the forward pass. Lanes are value channels, so states are read and
 * written along rows and no sum crosses lanes. The scores of token pairs (A of kernels/wkv.h) are
 * sums over key channels, so there lanes are key channels. LANES pairs are computed at a time, each
 * with one vector of partial sums; the lanes of each vector are added at the end. */
#include "kernels/cpu/format/cpu_format.h"
#include "kernels/cpu/mixing/cpu_wkv.h"

enum {
    SUB = 4, /* tokens of a sub-chunk */
    BORDERS = TOKENS / SUB,
    KEYS = LANES / SUB, /* keys that give LANES pairs with the rows of a sub-chunk */
    SUMS = (SUB * (SUB + 1) / 2 + LANES - 1) / LANES * LANES, /* room for the pairs inside a
                                                               * sub-chunk */
    AHEAD = 3 * LANES / 8 /* rows to prefetch beside a tile: more with wide lanes, where a chunk has
                           * fewer tiles */
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
    struct wkv_chunk chunk = {.E = in->head_dim, .width = width, .removes = !!in->a};
    chunk.pairs = chunk.removes ? 2 * TOKENS : TOKENS;
    chunk.r = take(&at, rows);
    chunk.a = take(&at, rows);
    chunk.keys = take(&at, 2 * rows);
    chunk.values = take(&at, 2 * rows);
    chunk.decay = take(&at, rows);
    chunk.bonus = take(&at, width);
    chunk.left = take(&at, 2 * rows);
    chunk.moved = take(&at, 2 * rows);
    chunk.near = take(&at, SUB * width);
    chunk.step = take(&at, width);
    chunk.borders = take(&at, BORDERS * width);
    chunk.whole = take(&at, width);
    chunk.read = take(&at, TOKENS * PAIR_ROW);
    chunk.solve = take(&at, TOKENS * PAIR_ROW);
    return chunk;
}

void CPU(wkv_chunk_fetch)(struct wkv_chunk *chunk, size_t rows)
{
    for (; rows > 0 && chunk->fetched < chunk->tokens; rows--) {
        const float *row = chunk->next[chunk->source] + chunk->fetched * chunk->stride;
        for (size_t e = 0; e < chunk->E; e += LINE)
            __builtin_prefetch(row + e, 0, 2);
        if (++chunk->source == chunk->sources)
            chunk->source = 0, chunk->fetched++;
    }
}

static void load_rows(struct wkv_chunk *chunk, float *to, const float *from)
{
    wkv_rows_in(to, chunk->width, from, chunk->stride, chunk->tokens, chunk->E);
    chunk->next[chunk->sources++] = from + TOKENS * chunk->stride;
}

void CPU(wkv_chunk_load)(struct wkv_chunk *chunk, const struct wkv_rows *in, size_t row, size_t n,
                         size_t head)
{
    const size_t at = (row * in->heads + head) * chunk->E;
    chunk->stride = in->heads * chunk->E;
    chunk->tokens = n;
    chunk->sources = chunk->source = 0;
    chunk->fetched = chunk->last ? n : 0;
    load_rows(chunk, chunk->r, in->r + at);
    load_rows(chunk, chunk->keys, in->k + at);
    load_rows(chunk, chunk->values, in->v + at);
    load_rows(chunk, chunk->decay, in->w + at);
    for (size_t i = 0; i < n * chunk->width; i += LANES)
        put(chunk->decay + i, vexp(load(chunk->decay + i)));
    if (chunk->removes) {
        load_rows(chunk, chunk->a, in->a + at);
        load_rows(chunk, chunk->keys + TOKENS * chunk->width, in->b + at);
    } else {
        wkv_rows_in(chunk->bonus, chunk->width, in->u + head * chunk->E, 0, 1, chunk->E);
    }
}

/* Fills the tokens behind the last with zeros that do not decay. */
static void pad(struct wkv_chunk *chunk)
{
    const size_t width = chunk->width, n = chunk->tokens * width, left = TOKENS * width - n;
    float *rows[] = {chunk->r, chunk->a, chunk->keys, chunk->keys + TOKENS * width, chunk->values};
    for (size_t i = 0; left && i < sizeof rows / sizeof *rows; i++)
        memset(rows[i] + n, 0, left * sizeof(float));
    for (size_t i = n; i < n + left; i++)
        chunk->decay[i] = 1;
}

static void clear(struct wkv_chunk *chunk)
{
    for (size_t e = 0; e < chunk->width; e++)
        chunk->borders[e] = 1;
    memset(chunk->read, 0, TOKENS * PAIR_ROW * sizeof(float));
    memset(chunk->solve, 0, TOKENS * PAIR_ROW * sizeof(float));
    chunk->cleared = 1;
}

/* ---- scores of token pairs ----
 *
 * Sub-chunks of SUB tokens run one after another (secondary chunking, section 4 of arXiv
 * 2312.06635). The `near` rows of a sub-chunk are decayed from its start; the keys of all earlier
 * tokens are decayed up to this start. So the scores of near rows and earlier keys are plain
 * products, and afterwards each key is decayed over the whole sub-chunk at once. At the end of the
 * chunk keys have the decay that the state needs. */

/* The keys that a row reads. */
enum reads {
    COMING, /* a: keys of earlier tokens, before the decay of the row's token */
    BONUS,  /* r of RWKV 6: as COMING, and the key of the row's token times u */
    LEAVING /* r of RWKV 7: keys up to the row's token, after its decay */
};

/* The rows of r or of a, and the arrays that are made from them. */
struct side {
    const float *rows;
    float *left, *pairs;
};

/* A decayed key. Values below 1e-30 become zero, for the reason given at wkv_both(). */
INLINE vec faded(vec x)
{
    const vec size = (vec)((vecu)x & 0x7fffffffu);
    return pick(size < 1e-30f, splat(0), x);
}

/* Makes the `near` and `left` rows of the sub-chunk at `token`. It also sets `step`, the decay of
 * the whole sub-chunk, and an entry of `borders`, the decay from the start of the chunk up to the
 * end of the sub-chunk; the last entry is D(0, C]. */
INLINE void rows_within(struct wkv_chunk *chunk, const struct side *side, size_t token,
                        const enum reads reads)
{
    const size_t width = chunk->width;
    const float *rows = side->rows + token * width, *decay = chunk->decay + token * width;
    float *left = side->left + token * width, *border = chunk->borders + token / SUB * width;
    for (size_t e = 0; e < width; e += LANES) {
        const vec first = load(border + e);
        vec product = splat(1);
        for (size_t i = 0; i < SUB; i++) {
            const size_t at = i * width + e;
            const vec next = wkv_both(product, load(decay + at));
            const vec x = load(rows + at) * (reads == LEAVING ? next : product);
            put(chunk->near + at, x);
            put(left + at, x * first);
            product = next;
        }
        put(chunk->step + e, product);
        put(border + width + e, wkv_both(first, product));
    }
}

/* Makes the `moved` keys of the sub-chunk, decayed up to its end. */
static void keys_within(struct wkv_chunk *chunk, size_t first)
{
    const size_t width = chunk->width;
    const float *keys = chunk->keys + first * width, *decay = chunk->decay + first % TOKENS * width;
    float *moved = chunk->moved + first * width;
    for (size_t e = 0; e < width; e += LANES) {
        vec product = splat(1);
        for (size_t i = SUB; i-- > 0;) {
            const size_t at = i * width + e;
            put(moved + at, load(keys + at) * product);
            product = wkv_both(product, load(decay + at));
        }
    }
}

/* Adds LANES channels of the scores of token i of a sub-chunk with the keys up to token i. */
INLINE void token_within(const size_t i, vec *sum, vec *key, vec x, vec decay, vec own, vec bonus,
                         const enum reads reads)
{
    sum += i * (i + 1) / 2;
    for (size_t earlier = 0; earlier < i; earlier++) {
        const vec was = key[earlier];
        key[earlier] *= decay;
        sum[earlier] += x * (reads == LEAVING ? key[earlier] : was);
    }
    if (reads != COMING)
        sum[i] += x * (reads == BONUS ? own * bonus : own);
    key[i] = own;
}

/* The scores of the rows of a sub-chunk with its own keys, from key `first` on. */
INLINE void pairs_within(const struct wkv_chunk *chunk, const struct side *side, size_t first,
                         size_t token, const enum reads reads)
{
    const size_t width = chunk->width;
    const float *x = side->rows + token * width, *keys = chunk->keys + first * width;
    const float *decay = chunk->decay + token * width;
    float *to = side->pairs + token * PAIR_ROW + first, sums[SUMS];
    vec sum[SUMS];
    for (int i = 0; i < SUMS; i++)
        sum[i] = (vec){0};
    for (size_t e = 0; e < width; e += LANES) {
        const vec bonus = reads == BONUS ? load(chunk->bonus + e) : (vec){0};
        vec key[SUB];
#define TOKEN(i)                                                                                   \
    token_within(i, sum, key, load(x + i * width + e), load(decay + i * width + e),                \
                 load(keys + i * width + e), bonus, reads)
        _Static_assert(SUB == 4, "a line for each token");
        TOKEN(0), TOKEN(1), TOKEN(2), TOKEN(3);
#undef TOKEN
    }
    for (int i = 0; i < SUMS; i += LANES)
        put(sums + i, add_lanes(sum + i));
    for (int i = 0; i < SUB; i++)
        for (int row = 0; row <= i; row++)
            to[i * PAIR_ROW + row] = sums[i * (i + 1) / 2 + row];
}

/* The scores of the rows of a sub-chunk with KEYS keys of earlier tokens, from key `first` on. When
 * r is computed, these keys are then decayed over the sub-chunk. */
INLINE void pairs_before(const struct wkv_chunk *chunk, const struct side *side, size_t first,
                         size_t token, const enum reads reads)
{
    const size_t width = chunk->width;
    float *keys = chunk->moved + first * width, *to = side->pairs + token * PAIR_ROW + first,
          sums[LANES];
    vec sum[LANES];
    for (int i = 0; i < LANES; i++)
        sum[i] = (vec){0};
    for (size_t e = 0; e < width; e += LANES) {
        vec key[KEYS];
        for (size_t j = 0; j < KEYS; j++)
            key[j] = load(keys + j * width + e);
        for (size_t i = 0; i < SUB; i++)
            for (size_t j = 0; j < KEYS; j++)
                sum[i * KEYS + j] += load(chunk->near + i * width + e) * key[j];
        for (size_t j = 0; reads != COMING && j < KEYS; j++)
            put(keys + j * width + e, faded(key[j] * load(chunk->step + e)));
    }
    put(sums, add_lanes(sum));
    for (int i = 0; i < SUB; i++)
        for (int j = 0; j < KEYS; j++)
            to[i * PAIR_ROW + j] = sums[i * KEYS + j];
}

/* All scores of r or of a for the sub-chunk at `token`. r comes last, because it decays the
 * keys. */
INLINE void sub_scores(struct wkv_chunk *chunk, const struct side *side, size_t token,
                       const enum reads reads)
{
    rows_within(chunk, side, token, reads);
    for (size_t kind = 0; kind < chunk->pairs; kind += TOKENS) {
        pairs_within(chunk, side, kind + token, token, reads);
        for (size_t earlier = 0; earlier < token; earlier += KEYS) {
            pairs_before(chunk, side, kind + earlier, token, reads);
            CPU(wkv_chunk_fetch)(chunk, KEYS);
        }
        if (reads != COMING)
            keys_within(chunk, kind + token);
    }
}

void CPU(wkv_chunk_scores)(struct wkv_chunk *chunk)
{
    const struct side receptance = {chunk->r, chunk->left, chunk->read};
    const struct side removal = {chunk->a, chunk->left + TOKENS * chunk->width, chunk->solve};
    pad(chunk);
    if (!chunk->cleared) /* entries whose token is before the key are always zero */
        clear(chunk);
    for (size_t token = 0; token < TOKENS; token += SUB) {
        if (chunk->removes) {
            sub_scores(chunk, &removal, token, COMING);
            sub_scores(chunk, &receptance, token, LEAVING);
        } else {
            sub_scores(chunk, &receptance, token, BONUS);
        }
    }
}

/* ---- states and values ---- */

/* The number of rows of the tile that begins at `row`, of M rows; tiles differ by at most one row.
 * 0: the end. */
INLINE size_t tile_of(size_t M, size_t row)
{
    const size_t left = M - row, tiles = (left + TILE_ROWS - 1) / TILE_ROWS;
    return tiles ? left / tiles : 0;
}

/* sum[rows, PANEL] += a[rows, K] m[K, PANEL]. Rows of a are a_row apart, rows of m `width`. */
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

/* sum[rows, PANEL] for `rows` tokens from `token` on and value channels from j on: the terms of the
 * state, of the values of tokens up to the end of this tile, and of the first n_x rows of x. */
INLINE void read_tile(const int rows, vec (*sum)[2], const struct wkv_chunk *chunk,
                      const float *left, const float *pairs, const float *state, size_t token,
                      size_t j, size_t n_x)
{
    const size_t width = chunk->width;
    const float *value = chunk->values + j;
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = (vec){0};
    pairs += token * PAIR_ROW;
    add_product(rows, sum, left + token * width, width, state + j, width, chunk->E);
    add_product(rows, sum, pairs, PAIR_ROW, value, width, token + (size_t)rows);
    add_product(rows, sum, pairs + TOKENS, PAIR_ROW, value + TOKENS * width, width, n_x);
}

/* Computes x of `rows` tokens from `token` on. The loop over panels is in this function, because
 * the compiler then keeps all sums in registers. */
INLINE void solve_rows(const int rows, struct wkv_chunk *chunk, const float *state, size_t token)
{
    const size_t width = chunk->width;
    const float *solve = chunk->solve + token * PAIR_ROW + TOKENS + token;
    for (size_t j = 0; j < width; j += PANEL) {
        float *x = chunk->values + (TOKENS + token) * width + j;
        vec sum[TILE_ROWS][2];
        read_tile(rows, sum, chunk, chunk->left + TOKENS * width, chunk->solve, state, token, j,
                  token);
        for (int row = 0; row < rows; row++)
            for (int i = row + 1; i < rows; i++) {
                sum[i][0] += sum[row][0] * solve[i * PAIR_ROW + row];
                sum[i][1] += sum[row][1] * solve[i * PAIR_ROW + row];
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

/* Computes y of `rows` tokens from `token` on, in whole panels. */
INLINE void y_rows(const int rows, struct wkv_chunk *chunk, const float *state, size_t token,
                   float *y, size_t stride)
{
    for (size_t j = 0; j < chunk->width; j += PANEL) {
        vec sum[TILE_ROWS][2];
        CPU(wkv_chunk_fetch)(chunk, AHEAD);
        read_tile(rows, sum, chunk, chunk->left, chunk->read, state, token, j,
                  chunk->removes ? token + (size_t)rows : 0);
        for (int i = 0; i < rows; i++) {
            put(y + (token + (size_t)i) * stride + j, sum[i][0]);
            put(y + (token + (size_t)i) * stride + j + LANES, sum[i][1]);
        }
    }
}

void CPU(wkv_chunk_read)(struct wkv_chunk *c, const float *S, float *y)
{
    const int whole = c->width == c->E;
    float *to = whole ? y : c->left + TOKENS * c->width; /* these rows are not read any more */
    const size_t stride = whole ? c->stride : c->width;
    for (size_t t = 0, n; (n = tile_of(c->tokens, t)); t += n) {
#define KERNEL(n) y_rows(n, c, S, t, to, stride)
        WITH_ROWS(n, KERNEL)
#undef KERNEL
    }
    if (!whole)
        wkv_rows_out(y, c->stride, to, stride, c->tokens, c->E);
}

/* Replaces rows i .. i + rows - 1 of the state by the state behind the chunk: the decayed rows,
 * plus the terms of the tokens. */
INLINE void carry_rows(const int rows, const struct wkv_chunk *chunk, float *state, size_t i)
{
    const size_t width = chunk->width;
    const float *whole = chunk->whole + i, *k = chunk->moved + i, *value = chunk->values;
    for (size_t j = 0; j < width; j += PANEL) {
        vec sum[TILE_ROWS][2];
        for (int row = 0; row < rows; row++) {
            sum[row][0] = load(state + (size_t)row * width + j) * whole[row];
            sum[row][1] = load(state + (size_t)row * width + j + LANES) * whole[row];
        }
        for (size_t earlier = 0; earlier < chunk->pairs; earlier++) {
            vec lo = load(value + earlier * width + j),
                hi = load(value + earlier * width + j + LANES);
            for (int row = 0; row < rows; row++) {
                sum[row][0] += lo * k[earlier * width + (size_t)row];
                sum[row][1] += hi * k[earlier * width + (size_t)row];
            }
        }
        for (int row = 0; row < rows; row++) {
            put(state + (size_t)row * width + j, sum[row][0]);
            put(state + (size_t)row * width + j + LANES, sum[row][1]);
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
