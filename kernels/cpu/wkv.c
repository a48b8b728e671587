/* wkv.c - time mixing (kernels/wkv.h) on the CPU. A thread owns a head of a sequence; lanes are
 * value channels, so that a state is read and written along its rows and no sum runs over lanes.
 * All that pairs of tokens share are sums over key channels: there lanes are key channels, each
 * pair keeps a vector of sums, and the lanes of LANES pairs are added up by turning them.
 *
 * Of E^2 multiply-adds for a token the chunked form has 2 and what pairs share (RWKV 7: 4), the
 * recurrent one 3 (RWKV 7: 5); what chunks save is the way of the state through registers, once a
 * chunk and not once a token. Gradients have the chunked form alone: it needs no state of a token.
 */
#include "kernels/cpu/wkv.h"

#include "kernels/cpu/format.h"
#include "kernels/cpu/transpose.h"

enum { PAIRS = TOKENS * (TOKENS + 1) / 2, PAIRS_ROOM = (PAIRS + LANES - 1) / LANES * LANES };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* ---- products ---- */

static void tile_floats(size_t rows, const struct tile *t)
{
#define KERNEL(n) tile_rows(n, 0, t)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

/* Tiles differ by at most one row. */
void CPU(wkv_product)(size_t M, size_t N, size_t K, struct tile t)
{
    const struct tile all = t;
    const size_t tiles = (M + TILE_ROWS - 1) / TILE_ROWS;
    t.K = K;
    for (size_t j = 0; j < N; j += PANEL)
        for (size_t i = 0; i < tiles; i++) {
            size_t first = M * i / tiles;
            t.a = word_at(all.a, first * t.a_row);
            t.m = word_at(all.m, j);
            t.c = all.c + first * t.ldc + j;
            t.cols = least(PANEL, N - j);
            tile_floats(M * (i + 1) / tiles - first, &t);
        }
}

/* ---- a chunk's arrays ---- */

size_t CPU(wkv_chunk_floats)(size_t E)
{
    size_t width = wkv_width(E);
    return (11 * TOKENS + 2) * width + 2 * TOKENS * PAIR_ROW + 2 * PAIRS_ROOM * LANES;
}

static float *take(float **at, size_t floats)
{
    float *p = *at;
    *at += floats;
    return p;
}

struct chunk CPU(wkv_chunk_cut)(const struct wkv_rows *in, size_t h, float *at)
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
    c.partial = take(&at, 2 * PAIRS_ROOM * LANES);
    if (!c.removes)
        wkv_rows_in(c.bonus, width, in->u + h * c.E, 0, 1, c.E);
    return c;
}

/* Rows of a head lie too far apart for the processor to foresee: those of the next chunk are asked
 * for now, to come to the second cache. */
static void load_rows(const struct chunk *c, float *to, const float *from, size_t stride)
{
    wkv_rows_in(to, c->width, from, stride, c->tokens, c->E);
    from += TOKENS * stride;
    for (size_t t = 0; t < c->tokens; t++, from += stride)
        for (size_t e = 0; e < c->E; e += LINE)
            __builtin_prefetch(from + e, 0, 2);
}

void CPU(wkv_chunk_load)(struct chunk *c, const struct wkv_rows *in, size_t row, size_t n,
                         size_t h)
{
    const size_t stride = in->heads * c->E, at = row * stride + h * c->E;
    c->tokens = n;
    load_rows(c, c->r, in->r + at, stride);
    load_rows(c, c->keys, in->k + at, stride);
    load_rows(c, c->values, in->v + at, stride);
    load_rows(c, c->decay, in->w + at, stride);
    for (size_t i = 0; i < n * c->width; i += LANES)
        put(c->decay + i, vexp(load(c->decay + i)));
    if (!c->removes)
        return;
    load_rows(c, c->a, in->a + at, stride);
    load_rows(c, c->keys + TOKENS * c->width, in->b + at, stride);
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
    for (size_t e = 0; e < width; e += LANES) {
        vec ahead = splat(1), behind = splat(1);
        for (size_t t = 0; t < TOKENS; t++) {
            put(c->before + t * width + e, ahead);
            ahead = both(ahead, c->decay + t * width + e);
        }
        put(c->before + TOKENS * width + e, ahead);
        for (size_t t = TOKENS; t-- > 0;) {
            put(c->after + t * width + e, behind);
            behind = both(behind, c->decay + t * width + e);
        }
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

/* Where the vectors of pair (t, q), q <= t, lie: (0, 0), (1, 0), (1, 1), (2, 0)... */
INLINE float *pair_at(float *partial, size_t t, size_t q)
{
    return partial + (t * (t + 1) / 2 + q) * LANES;
}

/* Sums of one panel of key channels, the first of them or a later one, lane by lane: of key row q
 * with r of all t >= q and, of RWKV 7, with a of all t > q. On its way the key decays: RWKV 7 reads
 * what has decayed in t too, RWKV 6 and a what came to t. */
INLINE void add_pairs(const struct chunk *c, const float *right, size_t q, size_t e,
                      const int removes, const int first)
{
    const size_t width = c->width;
    float *of_r = c->partial, *of_a = c->partial + PAIRS_ROOM * LANES;
    const float *k = right + q * width + e;
    vec lo = load(k), hi = load(k + LANES);
    for (size_t t = q; t < TOKENS; t++) {
        const size_t at = t * width + e;
        const float *r = c->r + at, *a = c->a + at, *decay = c->decay + at;
        float *to = pair_at(of_r, t, q);
        vec sum;
        if (removes && t > q) {
            float *to_a = pair_at(of_a, t, q);
            sum = load(a) * lo + load(a + LANES) * hi;
            put(to_a, first ? sum : load(to_a) + sum);
            lo *= load(decay), hi *= load(decay + LANES);
        }
        sum = load(r) * lo + load(r + LANES) * hi;
        if (!removes && t == q)
            sum = load(r) * load(c->bonus + e) * lo +
                  load(r + LANES) * load(c->bonus + e + LANES) * hi;
        put(to, first ? sum : load(to) + sum);
        if (!removes && t > q)
            lo *= load(decay), hi *= load(decay + LANES);
    }
}

/* out[t, q] = the sums of the lanes; zeros for q > t and, without `own`, for q = t. */
static void add_lanes(float *partial, float *out, int own)
{
    float *flat = partial;
    for (size_t p = 0; p < PAIRS; p += LANES) {
        vecu v[LANES];
        for (size_t i = 0; i < LANES; i++)
            v[i] = p + i < PAIRS ? load_bits(partial + (p + i) * LANES) : (vecu){0};
        transpose(v);
        vec sum = (vec)v[0];
        for (int i = 1; i < LANES; i++)
            sum += (vec)v[i];
        put(flat + p, sum); /* over what has been read */
    }
    for (size_t t = 0; t < TOKENS; t++) {
        size_t n = own ? t + 1 : t;
        memcpy(out + t * PAIR_ROW, flat + t * (t + 1) / 2, n * sizeof *out);
        memset(out + t * PAIR_ROW + n, 0, (TOKENS - n) * sizeof *out);
    }
}

INLINE void scores(const struct chunk *c, const float *right, const int removes, size_t column)
{
    for (size_t q = 0; q < TOKENS; q++)
        add_pairs(c, right, q, 0, removes, 1);
    for (size_t e = PANEL; e < c->width; e += PANEL)
        for (size_t q = 0; q < TOKENS; q++)
            add_pairs(c, right, q, e, removes, 0);
    add_lanes(c->partial, c->read + column, 1);
    if (removes)
        add_lanes(c->partial + PAIRS_ROOM * LANES, c->solve + column, 0);
}

void CPU(wkv_chunk_scores)(struct chunk *c)
{
    if (!c->removes) {
        scores(c, c->keys, 0, 0);
        return;
    }
    scores(c, c->keys, 1, 0);
    scores(c, c->keys + TOKENS * c->width, 1, TOKENS);
}

/* ---- the chunked form ---- */

void CPU(wkv_chunk_solve)(struct chunk *c, const float *S)
{
    const size_t width = c->width;
    float *x = c->values + TOKENS * width;
    multiply(c->scaled, c->a, c->before, TOKENS * width);
    CPU(wkv_product)(TOKENS, width, c->E,
                     (struct tile){.a = c->scaled, .a_row = width, .a_k = 1, .m = S, .m_k = width,
                                   .c = x, .ldc = width});
    CPU(wkv_product)(TOKENS, width, TOKENS,
                     (struct tile){.a = c->solve, .a_row = PAIR_ROW, .a_k = 1, .m = c->values,
                                   .m_k = width, .c = x, .ldc = width, .add = 1});
    for (size_t t = 1; t < TOKENS; t++)
        for (size_t e = 0; e < width; e += LANES) {
            vec sum = load(x + t * width + e);
            for (size_t q = 0; q < t; q++)
                sum += load(x + q * width + e) * c->solve[t * PAIR_ROW + TOKENS + q];
            put(x + t * width + e, sum);
        }
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
#define KERNEL(n) carry_rows(n, c, at, i)
        WITH_ROWS(least(TILE_ROWS, c->E - i), KERNEL)
#undef KERNEL
    }
}

/* y: of the first token, rows `stride` apart. */
static void chunk_step(struct chunk *c, float *S, float *y, size_t stride)
{
    const size_t width = c->width;
    CPU(wkv_chunk_pad)(c);
    CPU(wkv_chunk_scores)(c);
    if (c->removes)
        CPU(wkv_chunk_solve)(c, S);
    CPU(wkv_chunk_scale_left)(c);
    CPU(wkv_product)(c->tokens, c->E, c->E,
                     (struct tile){.a = c->scaled, .a_row = width, .a_k = 1, .m = S, .m_k = width,
                                   .c = y, .ldc = stride});
    CPU(wkv_product)(c->tokens, c->E, c->pairs,
                     (struct tile){.a = c->read, .a_row = PAIR_ROW, .a_k = 1, .m = c->values,
                                   .m_k = width, .c = y, .ldc = stride, .add = 1});
    CPU(wkv_chunk_carry)(c, S);
}

/* ---- the recurrent form ---- */

/* Value channels j .. j + regs * LANES - 1 of token t: y, and the state behind it. */
INLINE void token_columns(const int regs, const int removes, const struct chunk *c, size_t t,
                          float *S, size_t j, float *y)
{
    const size_t width = c->width, at = t * width;
    const float *b = c->keys + TOKENS * width;
    vec v[4], x[4], sum[4];
    for (int g = 0; g < regs; g++) {
        v[g] = load(c->values + at + j + (size_t)g * LANES);
        x[g] = sum[g] = (vec){0};
    }
    for (size_t i = 0; removes && i < c->E; i++)
        for (int g = 0; g < regs; g++)
            x[g] += load(S + i * width + j + (size_t)g * LANES) * c->a[at + i];
    float own = 0;
    for (size_t i = 0; i < c->E; i++) {
        const float r = c->r[at + i], k = c->keys[at + i], decay = c->decay[at + i];
        if (!removes)
            own += r * c->bonus[i] * k;
        for (int g = 0; g < regs; g++) {
            float *p = S + i * width + j + (size_t)g * LANES;
            vec s = load(p), next = s * decay + v[g] * k;
            if (removes)
                next += x[g] * b[at + i];
            sum[g] += (removes ? next : s) * r;
            put(p, next);
        }
    }
    for (int g = 0; g < regs; g++)
        put(y + j + (size_t)g * LANES, removes ? sum[g] : sum[g] + v[g] * own);
}

INLINE void token_step(const int removes, const struct chunk *c, size_t t, float *S, float *y)
{
    size_t j = 0;
    for (; j + 4 * LANES <= c->width; j += 4 * LANES)
        token_columns(4, removes, c, t, S, j, y);
    for (; j < c->width; j += PANEL)
        token_columns(2, removes, c, t, S, j, y);
}

static void tokens_step(struct chunk *c, float *S, float *y, size_t stride)
{
    for (size_t t = 0; t < c->tokens; t++) {
        if (c->removes)
            token_step(1, c, t, S, c->scaled);
        else
            token_step(0, c, t, S, c->scaled);
        memcpy(y + t * stride, c->scaled, c->E * sizeof *y);
    }
}

/* ---- heads ---- */

struct job {
    const struct wkv *a;
    float *work;
};

static size_t worker_floats(size_t E)
{
    return CPU(wkv_chunk_floats)(E) + wkv_width(E) * wkv_width(E);
}

size_t CPU(wkv_work)(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                     size_t head_dim)
{
    (void)n_seqs, (void)max_rows, (void)heads;
    return pool_threads(b->pool) * worker_floats(head_dim) * sizeof(float);
}

static int chunked(const struct wkv *a, size_t rows)
{
    return a->form == WKV_AUTO ? !a->in.a && rows >= TOKENS : a->form == WKV_CHUNKED;
}

static void one_head(const struct wkv *a, size_t seq, size_t h, float *work)
{
    const struct wkv_rows *in = &a->in;
    const struct attn_seq *s = &in->seqs[seq];
    const size_t E = in->head_dim, stride = in->heads * E, rows = (size_t)s->rows;
    struct chunk c = CPU(wkv_chunk_cut)(in, h, work);
    const size_t own = a->at ? (size_t)a->at[seq] : seq;
    float *state = a->state + (own * in->heads + h) * E * E, *S = state;
    if (c.width != E) {
        S = work + CPU(wkv_chunk_floats)(E);
        wkv_rows_in(S, c.width, state, E, E, E);
    }
    for (size_t done = 0; done < rows; done += TOKENS) {
        size_t row = (size_t)s->row_begin + done;
        CPU(wkv_chunk_load)(&c, in, row, least(TOKENS, rows - done), h);
        (chunked(a, rows) ? chunk_step : tokens_step)(&c, S, a->y + row * stride + h * E, stride);
    }
    if (S != state)
        wkv_rows_out(state, E, S, c.width, E, E);
}

static void some_heads(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct job *j = ctx;
    const size_t H = j->a->in.heads;
    for (size_t i = begin; i < end; i++)
        one_head(j->a, i / H, i % H, j->work + worker * worker_floats(j->a->in.head_dim));
}

void CPU(wkv)(struct backend *b, const struct wkv *a, void *work)
{
    struct job j = {a, work};
    const size_t E = a->in.head_dim;
    pool_run(b->pool, a->in.n_seqs * a->in.heads, grain(4 * E * E * a->in.max_rows), some_heads,
             &j);
}
