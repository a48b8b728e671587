/* cpu_wkv-back.c - gradients of time mixing (struct wkv_back of kernels/wkv.h), one chunk at a
 * time, from the last to the first. dS' is the gradient of the state behind the chunk; ~ marks a
 * factor that is scaled by the decays up to the border of the chunk:
 *
 *   dz  = (I - A^ab)^-T (A^rb^T dy + ~b dS')                      gradient of x before it is solved
 *   dv  = A^rk^T dy + ~k dS' + A^ak^T dz
 *   dA^rk = dy v^T, dA^rb = dy x^T, dA^ak = dz v^T, dA^ab = dz x^T         where the A are not zero
 *   d~r = dy S^T, d~a = dz S^T, d~k = v dS'^T, d~b = x dS'^T
 *   dS  = D(0, C] dS' + ~r^T dy + ~a^T dz
 *
 * r, a, k and b get gradients from the pairs (dA) and from the scaled factors (d~). For a pair,
 * sum_q dA_tq k_q D(q, t] is a polynomial in the decays (Horner). w_t is part of the decay of every
 * pair (q, t') with q < t <= t'. Let G_t = w_1 + .. + w_t, and g_t its gradient: r dr + .. of the
 * factors that decay up to t, minus k dk + .. of those that decay from t on. Then dw_t = g_t + .. +
 * g_C, and g_C also has the products of dS' and S'.
 *
 * A thread owns a head of a sequence. */
#include "kernels/cpu/format/cpu_format.h"
#include "kernels/cpu/tile.h"
#include "kernels/cpu/vectors/transpose.h"
#include "kernels/cpu/mixing/cpu_wkv.h"

struct grads {
    float *states;            /* [chunks + 1, width, width] at the borders of chunks */
    float *xs;                /* [chunks, TOKENS, width]: x of RWKV 7 */
    float *g;                 /* [width, width]: dS' */
    float *turned;            /* [width, width] */
    float *values_turned;     /* [width, PAIR_ROW] */
    float *dy, *dz, *dv;      /* [TOKENS, width] */
    float *dr, *da, *dw;      /* the same */
    float *dkeys;             /* [2 TOKENS, width] */
    float *before, *after;    /* [TOKENS + 1, width]: D(0, t-1]; [TOKENS, width]: D(t, C] */
    float *dread, *dsolve;    /* [TOKENS, PAIR_ROW] */
    float *sum, *du;          /* [width] */
};

static size_t grads_floats(size_t rows, size_t E)
{
    size_t width = wkv_width(E), chunks = wkv_chunks(rows);
    return ((chunks + 3) * width + (chunks + 10) * TOKENS + PAIR_ROW + 3) * width +
           2 * TOKENS * PAIR_ROW;
}

static size_t worker_floats(size_t rows, size_t E)
{
    return CPU(wkv_chunk_floats)(E) + grads_floats(rows, E);
}

/* The floats of each worker; then du of every sequence. */
size_t CPU(wkv_back_work)(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                          size_t head_dim)
{
    return (pool_threads(b->pool) * worker_floats(max_rows, head_dim) + n_seqs * heads * head_dim) *
           sizeof(float);
}

static struct grads cut(float *at, size_t rows, size_t E)
{
    const size_t width = wkv_width(E), chunks = wkv_chunks(rows), some = TOKENS * width;
    struct grads g = {.states = at};
    g.g = g.states + (chunks + 1) * width * width;
    g.turned = g.g + width * width;
    g.values_turned = g.turned + width * width;
    g.xs = g.values_turned + width * PAIR_ROW;
    g.dy = g.xs + chunks * some;
    float **each[] = {&g.dz, &g.dv, &g.dr, &g.da, &g.dw, &g.after, &g.dkeys};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        *each[i] = g.dy + (i + 1) * some;
    g.before = g.dkeys + 2 * some;
    g.dread = g.before + some + width;
    g.dsolve = g.dread + TOKENS * PAIR_ROW;
    g.sum = g.dsolve + TOKENS * PAIR_ROW;
    g.du = g.sum + width;
    return g;
}

static void tile_floats(size_t rows, const struct tile *t)
{
#define KERNEL(n) tile_rows(n, 0, t)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

/* c[M, N] (+)= a[M, K] m[K, N] with the strides and pointers of `t`. Tiles differ by at most one
 * row. */
static void product(size_t M, size_t N, size_t K, struct tile t)
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
            t.cols = N - j < PANEL ? N - j : PANEL;
            tile_floats(M * (i + 1) / tiles - first, &t);
        }
}

/* to[n, m] = from[m, n]^T; m and n are multiples of LANES. */
static void turn(float *to, const float *from, size_t m, size_t n)
{
    for (size_t i = 0; i < m; i += LANES)
        for (size_t j = 0; j < n; j += LANES) {
            vecu v[LANES];
            for (size_t k = 0; k < LANES; k++)
                v[k] = load_bits(from + (i + k) * n + j);
            transpose(v);
            for (size_t k = 0; k < LANES; k++)
                put_bits(to + (j + k) * m + i, v[k]);
        }
}

/* c[M, width] (+)= a m; rows have the width of a chunk's. */
static void add_rows(const struct wkv_chunk *c, float *to, size_t M, const float *a, size_t a_row,
                     size_t a_k, const float *m, size_t K, int add)
{
    product(M, c->width, K,
            (struct tile){.a = a, .a_row = a_row, .a_k = a_k, .m = m, .m_k = c->width, .c = to,
                          .ldc = c->width, .add = add});
}

/* Computes dz and dv. */
static void values_back(struct wkv_chunk *c, const struct grads *g)
{
    const size_t width = c->width;
    add_rows(c, g->dv, TOKENS, c->read, 1, PAIR_ROW, g->dy, TOKENS, 0);
    add_rows(c, g->dv, TOKENS, c->moved, width, 1, g->g, c->E, 1);
    if (!c->removes)
        return;
    add_rows(c, g->dz, TOKENS, c->read + TOKENS, 1, PAIR_ROW, g->dy, TOKENS, 0);
    add_rows(c, g->dz, TOKENS, c->moved + TOKENS * width, width, 1, g->g, c->E, 1);
    for (size_t q = TOKENS - 1; q-- > 0;)
        for (size_t e = 0; e < width; e += LANES) {
            vec sum = load(g->dz + q * width + e);
            for (size_t t = q + 1; t < TOKENS; t++)
                sum += load(g->dz + t * width + e) * c->solve[t * PAIR_ROW + TOKENS + q];
            put(g->dz + q * width + e, sum);
        }
    add_rows(c, g->dv, TOKENS, c->solve, 1, PAIR_ROW, g->dz, TOKENS, 1);
}

/* Computes dA of all pairs, including those that do not exist, and d~r, d~a, d~k, d~b. */
static void outer_back(struct wkv_chunk *c, const struct grads *g, const float *S)
{
    const size_t width = c->width;
    const struct tile pair = {.a_row = width, .a_k = 1, .m = g->values_turned, .m_k = PAIR_ROW,
                              .ldc = PAIR_ROW};
    struct tile t = pair;
    turn(g->values_turned, c->values, PAIR_ROW, width);
    turn(g->turned, S, width, width);
    t.a = g->dy, t.c = g->dread;
    product(TOKENS, c->pairs, c->E, t);
    add_rows(c, g->dr, TOKENS, g->dy, width, 1, g->turned, c->E, 0);
    if (c->removes) {
        t.a = g->dz, t.c = g->dsolve;
        product(TOKENS, c->pairs, c->E, t);
        add_rows(c, g->da, TOKENS, g->dz, width, 1, g->turned, c->E, 0);
    }
    turn(g->turned, g->g, width, width);
    add_rows(c, g->dkeys, c->pairs, c->values, width, 1, g->turned, c->E, 0);
}

static void decays_around(const struct wkv_chunk *c, const struct grads *g)
{
    const size_t width = c->width;
    for (size_t e = 0; e < width; e += LANES) {
        vec before = splat(1), after = splat(1);
        for (size_t t = 0; t < TOKENS; t++) {
            const size_t at = t * width + e, last = (TOKENS - 1 - t) * width + e;
            put(g->before + at, before);
            put(g->after + last, after);
            before = wkv_both(before, load(c->decay + at));
            after = wkv_both(after, load(c->decay + last));
        }
        put(g->before + TOKENS * width + e, before);
    }
}

/* d[t] = d[t] * scale + sum_q m_tq key_q D(q, t'], with t' = t or t - 1, for one or two keys. */
INLINE void left_back(const struct wkv_chunk *c, float *d, const float *scale, const float *m,
                      size_t t, const int removes, const int own)
{
    const size_t width = c->width, end = own ? t + 1 : t;
    m += t * PAIR_ROW;
    for (size_t e = 0; e < width; e += LANES) {
        vec sum = {0};
        for (size_t q = 0; q < end; q++) {
            const float *k = c->keys + q * width + e;
            sum = sum * load(c->decay + q * width + e) + load(k) * m[q];
            if (removes)
                sum += load(k + TOKENS * width) * m[TOKENS + q];
        }
        put(d + t * width + e, load(d + t * width + e) * load(scale + t * width + e) + sum);
    }
}

/* d[q] = d[q] after_q + the sum of r and a over the tokens behind q. m, solve: columns of q. */
INLINE void key_back(const struct wkv_chunk *c, float *d, const float *after, const float *read,
                     const float *solve, size_t q, const int removes)
{
    const size_t width = c->width;
    for (size_t e = 0; e < width; e += LANES) {
        vec sum = {0};
        for (size_t t = TOKENS; t-- > q + 1;) {
            const size_t at = t * width + e;
            vec r = load(c->r + at) * read[t * PAIR_ROW], decay = load(c->decay + at);
            if (removes)
                sum = (sum + r) * decay + load(c->a + at) * solve[t * PAIR_ROW];
            else
                sum = sum * decay + r;
        }
        if (removes)
            sum += load(c->r + q * width + e) * read[q * PAIR_ROW];
        put(d + q * width + e, load(d + q * width + e) * load(after + q * width + e) + sum);
    }
}

static void rows_back6(const struct wkv_chunk *c, const struct grads *g)
{
    for (size_t t = 0; t < TOKENS; t++) {
        left_back(c, g->dr, g->before, g->dread, t, 0, 0);
        key_back(c, g->dkeys, g->after, g->dread + t, NULL, t, 0);
    }
}

static void rows_back7(const struct wkv_chunk *c, const struct grads *g)
{
    for (size_t t = 0; t < TOKENS; t++) {
        left_back(c, g->dr, g->before + c->width, g->dread, t, 1, 1);
        left_back(c, g->da, g->before, g->dsolve, t, 1, 0);
        key_back(c, g->dkeys, g->after, g->dread + t, g->dsolve + t, t, 1);
        key_back(c, g->dkeys + TOKENS * c->width, g->after, g->dread + TOKENS + t,
                 g->dsolve + TOKENS + t, t, 1);
    }
}

/* sum[i] = sum_j dS'_ij S'_ij. */
static void border_sums(const struct wkv_chunk *c, const struct grads *g, const float *next)
{
    const size_t width = c->width;
    for (size_t i = 0; i < width; i += LANES) {
        vec v[LANES];
        for (size_t k = 0; k < LANES; k++) {
            v[k] = (vec){0};
            for (size_t j = 0; j < width; j += LANES)
                v[k] += load(g->g + (i + k) * width + j) * load(next + (i + k) * width + j);
        }
        put(g->sum + i, add_lanes(v));
    }
}

/* dw, from the other gradients without the bonus. */
static void decays_back(const struct wkv_chunk *c, const struct grads *g)
{
    const size_t width = c->width, n = TOKENS * width;
    for (size_t e = 0; e < width; e += LANES) {
        vec sum = load(g->sum + e);
        for (size_t at = n - width + e; at < n; at -= width) {
            vec reads = load(c->r + at) * load(g->dr + at);
            sum -= load(c->keys + at) * load(g->dkeys + at);
            if (c->removes)
                sum += reads - load(c->keys + n + at) * load(g->dkeys + n + at);
            put(g->dw + at, sum);
            sum += c->removes ? load(c->a + at) * load(g->da + at) : reads;
        }
    }
}

/* Gradients of the bonus of RWKV 6: y_t += (sum_i r_i u_i k_i) v_t. */
static void bonus_back(const struct wkv_chunk *c, const struct grads *g)
{
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t e = 0; e < c->width; e += LANES) {
            const size_t at = t * c->width + e;
            const float own = g->dread[t * PAIR_ROW + t];
            vec u = load(c->bonus + e), r = load(c->r + at), k = load(c->keys + at);
            put(g->dr + at, load(g->dr + at) + u * k * own);
            put(g->dkeys + at, load(g->dkeys + at) + u * r * own);
            put(g->du + e, load(g->du + e) + r * k * own);
        }
}

/* dS. */
static void state_back(struct wkv_chunk *c, const struct grads *g)
{
    const size_t width = c->width;
    for (size_t i = 0; i < c->E; i++)
        for (size_t j = 0; j < width; j += LANES)
            put(g->g + i * width + j, load(g->g + i * width + j) * c->whole[i]);
    add_rows(c, g->g, c->E, c->left, 1, width, g->dy, TOKENS, 1);
    if (c->removes)
        add_rows(c, g->g, c->E, c->left + TOKENS * width, 1, width, g->dz, TOKENS, 1);
}

static void chunk_back(struct wkv_chunk *c, const struct grads *g, const float *S)
{
    CPU(wkv_chunk_scores)(c);
    values_back(c, g);
    outer_back(c, g, S);
    decays_around(c, g);
    if (c->removes)
        rows_back7(c, g);
    else
        rows_back6(c, g);
    border_sums(c, g, S + c->width * c->width);
    decays_back(c, g);
    if (!c->removes)
        bonus_back(c, g);
    state_back(c, g);
}

/* ---- heads ---- */

struct wkv_back_job {
    const struct wkv_back *a;
    float *work, *du; /* [n_seqs, H*E] */
};

/* Computes the states at the borders of chunks, and x. */
static void forward(struct wkv_chunk *c, const struct grads *g, const struct wkv_rows *in,
                    size_t seq, size_t h)
{
    const size_t first = (size_t)in->seqs[seq].row_begin, rows = (size_t)in->seqs[seq].rows;
    const size_t width = c->width;
    for (size_t i = 0; i < wkv_chunks(rows); i++) {
        size_t left = rows - i * TOKENS;
        float *next = g->states + (i + 1) * width * width;
        c->last = i + 1 == wkv_chunks(rows);
        CPU(wkv_chunk_load)(c, in, first + i * TOKENS, left < TOKENS ? left : TOKENS, h);
        CPU(wkv_chunk_scores)(c);
        if (c->removes) {
            CPU(wkv_chunk_solve)(c, next - width * width);
            memcpy(g->xs + i * TOKENS * width, c->values + TOKENS * width,
                   TOKENS * width * sizeof *next);
        }
        memcpy(next, next - width * width, width * width * sizeof *next);
        CPU(wkv_chunk_carry)(c, next);
    }
}

/* Writes the gradients of a chunk's rows to their arrays. */
static void put_rows(const struct wkv_back *a, const struct wkv_chunk *c, const struct grads *g,
                     size_t row, size_t h)
{
    const size_t stride = a->in.heads * c->E, at = row * stride + h * c->E, width = c->width;
    wkv_rows_out(a->dr + at, stride, g->dr, width, c->tokens, c->E);
    wkv_rows_out(a->dw + at, stride, g->dw, width, c->tokens, c->E);
    wkv_rows_out(a->dk + at, stride, g->dkeys, width, c->tokens, c->E);
    wkv_rows_out(a->dv + at, stride, g->dv, width, c->tokens, c->E);
    if (!c->removes)
        return;
    wkv_rows_out(a->da + at, stride, g->da, width, c->tokens, c->E);
    wkv_rows_out(a->db + at, stride, g->dkeys + TOKENS * width, width, c->tokens, c->E);
}

static void backward(struct wkv_chunk *c, const struct grads *g, const struct wkv_back *a,
                     size_t seq, size_t h)
{
    const struct attn_seq *s = &a->in.seqs[seq];
    const size_t stride = a->in.heads * c->E, width = c->width, some = TOKENS * width;
    c->last = 1; /* the next chunk lies before this one */
    for (size_t i = wkv_chunks((size_t)s->rows); i-- > 0;) {
        size_t row = (size_t)s->row_begin + i * TOKENS, left = (size_t)s->rows - i * TOKENS;
        CPU(wkv_chunk_load)(c, &a->in, row, left < TOKENS ? left : TOKENS, h);
        memset(g->dy, 0, some * sizeof(float));
        wkv_rows_in(g->dy, width, a->dy + row * stride + h * c->E, stride, c->tokens, c->E);
        if (c->removes)
            memcpy(c->values + some, g->xs + i * some, some * sizeof(float));
        chunk_back(c, g, g->states + i * width * width);
        put_rows(a, c, g, row, h);
    }
}

static void one_head(const struct wkv_back_job *j, size_t seq, size_t h, float *work)
{
    const struct wkv_back *a = j->a;
    const size_t E = a->in.head_dim, at = (seq * a->in.heads + h) * E * E;
    struct wkv_chunk c = CPU(wkv_chunk_cut)(&a->in, work);
    struct grads g = cut(work + CPU(wkv_chunk_floats)(E), a->in.max_rows, E);
    const size_t width = c.width;
    memset(g.states, 0, width * width * sizeof(float));
    memset(g.g, 0, width * width * sizeof(float));
    memset(g.du, 0, width * sizeof(float));
    if (!c.removes) /* for RWKV 7 they are transposed with the others */
        memset(c.values + TOKENS * width, 0, TOKENS * width * sizeof(float));
    if (a->state)
        wkv_rows_in(g.states, width, a->state + at, E, E, E);
    if (a->dstate)
        wkv_rows_in(g.g, width, a->dstate + at, E, E, E);
    forward(&c, &g, &a->in, seq, h);
    backward(&c, &g, a, seq, h);
    if (a->dstate)
        wkv_rows_out(a->dstate + at, E, g.g, width, E, E);
    memcpy(j->du + (seq * a->in.heads + h) * E, g.du, E * sizeof(float));
}

static void some_heads(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct wkv_back_job *j = ctx;
    const struct wkv_rows *in = &j->a->in;
    float *work = j->work + worker * worker_floats(in->max_rows, in->head_dim);
    for (size_t i = begin; i < end; i++)
        one_head(j, i / in->heads, i % in->heads, work);
}

void CPU(wkv_back)(struct backend *b, const struct wkv_back *a, void *work)
{
    const size_t E = a->in.head_dim, HE = a->in.heads * E;
    struct wkv_back_job j = {a, work, NULL};
    j.du = j.work + pool_threads(b->pool) * worker_floats(a->in.max_rows, E);
    pool_run(b->pool, a->in.n_seqs * a->in.heads, grain(16 * E * E * a->in.max_rows), some_heads,
             &j);
    for (size_t s = 0; a->du && !a->in.a && s < a->in.n_seqs; s++)
        for (size_t i = 0; i < HE; i++)
            a->du[i] += j.du[s * HE + i];
}
