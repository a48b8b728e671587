/* cpu_wkv-back.c - gradients of time mixing (struct wkv_back of kernels/wkv.h), one chunk at a
 * time, from the last to the first. S is the state before the chunk, S' the state behind it, dS and
 * dS' are their gradients. ~ marks a factor that is scaled by the decays between its token and the
 * border of the chunk. D and A are defined in kernels/wkv.h.
 *
 *   dz  = (I - A^ab)^-T (A^rb^T dy + ~b dS')                      gradient of x before it is solved
 *   dv  = A^rk^T dy + ~k dS' + A^ak^T dz
 *   dA^rk = dy v^T, dA^rb = dy x^T, dA^ak = dz v^T, dA^ab = dz x^T         where the A are not zero
 *   d~r = dy S^T, d~a = dz S^T, d~k = v dS'^T, d~b = x dS'^T
 *   dS  = D(0, C] dS' + ~r^T dy + ~a^T dz
 *
 * r, a, k and b get gradients from the pairs (dA) and from the scaled factors (d~). For the pairs,
 * sum_q dA_tq k_q D(q, t] is a polynomial in the decays, which is computed by Horner's scheme. w_t
 * is part of the decay of every pair (q, t') with q < t <= t'. Let G_t = w_1 + .. + w_t, and g_t
 * the gradient of G_t. g_t is the sum of r dr and a da of the factors that decay up to t, minus the
 * sum of k dk and b db of the factors that decay from t on. Then dw_t = g_t + .. + g_C, and g_C
 * also has the products of dS' and S'.
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
    float *dr, *da, *dw;      /* [TOKENS, width] */
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

/* work holds the floats of each worker, then du of every sequence. */
size_t CPU(wkv_back_work)(const struct backend *backend, size_t n_seqs, size_t max_rows,
                          size_t heads, size_t head_dim)
{
    return (pool_threads(backend->pool) * worker_floats(max_rows, head_dim) +
            n_seqs * heads * head_dim) *
           sizeof(float);
}

static struct grads cut(float *at, size_t rows, size_t E)
{
    const size_t width = wkv_width(E), chunks = wkv_chunks(rows), some = TOKENS * width;
    struct grads grads = {.states = at};
    grads.g = grads.states + (chunks + 1) * width * width;
    grads.turned = grads.g + width * width;
    grads.values_turned = grads.turned + width * width;
    grads.xs = grads.values_turned + width * PAIR_ROW;
    grads.dy = grads.xs + chunks * some;
    float **each[] = {&grads.dz, &grads.dv,    &grads.dr,   &grads.da,
                      &grads.dw, &grads.after, &grads.dkeys};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        *each[i] = grads.dy + (i + 1) * some;
    grads.before = grads.dkeys + 2 * some;
    grads.dread = grads.before + some + width;
    grads.dsolve = grads.dread + TOKENS * PAIR_ROW;
    grads.sum = grads.dsolve + TOKENS * PAIR_ROW;
    grads.du = grads.sum + width;
    return grads;
}

static void tile_floats(size_t rows, const struct tile *t)
{
#define KERNEL(n) tile_rows(n, 0, t)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

/* c[M, N] = a[M, K] m[K, N], or c += if tile.add, with the strides and pointers of `tile`. Tiles
 * differ by at most one row. */
static void product(size_t M, size_t N, size_t K, struct tile tile)
{
    const struct tile all = tile;
    const size_t tiles = (M + TILE_ROWS - 1) / TILE_ROWS;
    tile.K = K;
    for (size_t j = 0; j < N; j += PANEL)
        for (size_t i = 0; i < tiles; i++) {
            size_t first = M * i / tiles;
            tile.a = word_at(all.a, first * tile.a_row);
            tile.m = word_at(all.m, j);
            tile.c = all.c + first * tile.ldc + j;
            tile.cols = N - j < PANEL ? N - j : PANEL;
            tile_floats(M * (i + 1) / tiles - first, &tile);
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

/* to[M, width] = a[M, K] pairs[K, width], or += if `add`; width: chunk->width. */
static void add_rows(const struct wkv_chunk *chunk, float *to, size_t M, const float *a,
                     size_t a_row, size_t a_k, const float *pairs, size_t K, int add)
{
    product(M, chunk->width, K,
            (struct tile){.a = a, .a_row = a_row, .a_k = a_k, .m = pairs, .m_k = chunk->width,
                          .c = to, .ldc = chunk->width, .add = add});
}

/* Computes dz and dv. */
static void values_back(struct wkv_chunk *chunk, const struct grads *grads)
{
    const size_t width = chunk->width;
    add_rows(chunk, grads->dv, TOKENS, chunk->read, 1, PAIR_ROW, grads->dy, TOKENS, 0);
    add_rows(chunk, grads->dv, TOKENS, chunk->moved, width, 1, grads->g, chunk->E, 1);
    if (!chunk->removes)
        return;
    add_rows(chunk, grads->dz, TOKENS, chunk->read + TOKENS, 1, PAIR_ROW, grads->dy, TOKENS, 0);
    add_rows(chunk, grads->dz, TOKENS, chunk->moved + TOKENS * width, width, 1, grads->g, chunk->E,
             1);
    for (size_t token = TOKENS - 1; token-- > 0;)
        for (size_t e = 0; e < width; e += LANES) {
            vec sum = load(grads->dz + token * width + e);
            for (size_t later = token + 1; later < TOKENS; later++)
                sum += load(grads->dz + later * width + e) *
                       chunk->solve[later * PAIR_ROW + TOKENS + token];
            put(grads->dz + token * width + e, sum);
        }
    add_rows(chunk, grads->dv, TOKENS, chunk->solve, 1, PAIR_ROW, grads->dz, TOKENS, 1);
}

/* Computes dA of all pairs of tokens (also of pairs with q > t, which are not read), and d~r, d~a,
 * d~k, d~b. */
static void outer_back(struct wkv_chunk *chunk, const struct grads *grads, const float *state)
{
    const size_t width = chunk->width;
    const struct tile pair = {.a_row = width, .a_k = 1, .m = grads->values_turned, .m_k = PAIR_ROW,
                              .ldc = PAIR_ROW};
    struct tile tile = pair;
    turn(grads->values_turned, chunk->values, PAIR_ROW, width);
    turn(grads->turned, state, width, width);
    tile.a = grads->dy, tile.c = grads->dread;
    product(TOKENS, chunk->pairs, chunk->E, tile);
    add_rows(chunk, grads->dr, TOKENS, grads->dy, width, 1, grads->turned, chunk->E, 0);
    if (chunk->removes) {
        tile.a = grads->dz, tile.c = grads->dsolve;
        product(TOKENS, chunk->pairs, chunk->E, tile);
        add_rows(chunk, grads->da, TOKENS, grads->dz, width, 1, grads->turned, chunk->E, 0);
    }
    turn(grads->turned, grads->g, width, width);
    add_rows(chunk, grads->dkeys, chunk->pairs, chunk->values, width, 1, grads->turned, chunk->E,
             0);
}

static void decays_around(const struct wkv_chunk *chunk, const struct grads *grads)
{
    const size_t width = chunk->width;
    for (size_t e = 0; e < width; e += LANES) {
        vec before = splat(1), after = splat(1);
        for (size_t token = 0; token < TOKENS; token++) {
            const size_t at = token * width + e, last = (TOKENS - 1 - token) * width + e;
            put(grads->before + at, before);
            put(grads->after + last, after);
            before = wkv_both(before, load(chunk->decay + at));
            after = wkv_both(after, load(chunk->decay + last));
        }
        put(grads->before + TOKENS * width + e, before);
    }
}

/* With t = token: change[t] = change[t] * scale[t] + sum_q pairs_tq key_q D(q, t']. own 1: t' = t
 * and q = t is included; own 0: t' = t - 1. removes 1: also the sum over b. */
INLINE void left_back(const struct wkv_chunk *chunk, float *change, const float *scale,
                      const float *pairs, size_t token, const int removes, const int own)
{
    const size_t width = chunk->width, end = own ? token + 1 : token;
    pairs += token * PAIR_ROW;
    for (size_t e = 0; e < width; e += LANES) {
        vec sum = {0};
        for (size_t earlier = 0; earlier < end; earlier++) {
            const float *k = chunk->keys + earlier * width + e;
            sum = sum * load(chunk->decay + earlier * width + e) + load(k) * pairs[earlier];
            if (removes)
                sum += load(k + TOKENS * width) * pairs[TOKENS + earlier];
        }
        put(change + token * width + e,
            load(change + token * width + e) * load(scale + token * width + e) + sum);
    }
}

/* With q = token: change[q] = change[q] * after[q] + the sum over tokens t > q of the terms of r_t
 * and a_t (for r of RWKV 7 also t = q). read, solve: column q of dA. */
INLINE void key_back(const struct wkv_chunk *chunk, float *change, const float *after,
                     const float *read, const float *solve, size_t token, const int removes)
{
    const size_t width = chunk->width;
    for (size_t e = 0; e < width; e += LANES) {
        vec sum = {0};
        for (size_t later = TOKENS; later-- > token + 1;) {
            const size_t at = later * width + e;
            vec receptance = load(chunk->r + at) * read[later * PAIR_ROW],
                decay = load(chunk->decay + at);
            if (removes)
                sum = (sum + receptance) * decay + load(chunk->a + at) * solve[later * PAIR_ROW];
            else
                sum = sum * decay + receptance;
        }
        if (removes)
            sum += load(chunk->r + token * width + e) * read[token * PAIR_ROW];
        put(change + token * width + e,
            load(change + token * width + e) * load(after + token * width + e) + sum);
    }
}

static void rows_back6(const struct wkv_chunk *chunk, const struct grads *grads)
{
    for (size_t token = 0; token < TOKENS; token++) {
        left_back(chunk, grads->dr, grads->before, grads->dread, token, 0, 0);
        key_back(chunk, grads->dkeys, grads->after, grads->dread + token, NULL, token, 0);
    }
}

static void rows_back7(const struct wkv_chunk *chunk, const struct grads *grads)
{
    for (size_t token = 0; token < TOKENS; token++) {
        left_back(chunk, grads->dr, grads->before + chunk->width, grads->dread, token, 1, 1);
        left_back(chunk, grads->da, grads->before, grads->dsolve, token, 1, 0);
        key_back(chunk, grads->dkeys, grads->after, grads->dread + token, grads->dsolve + token,
                 token, 1);
        key_back(chunk, grads->dkeys + TOKENS * chunk->width, grads->after,
                 grads->dread + TOKENS + token, grads->dsolve + TOKENS + token, token, 1);
    }
}

/* sum[i] = sum_j dS'_ij S'_ij. */
static void border_sums(const struct wkv_chunk *chunk, const struct grads *grads, const float *next)
{
    const size_t width = chunk->width;
    for (size_t i = 0; i < width; i += LANES) {
        vec v[LANES];
        for (size_t k = 0; k < LANES; k++) {
            v[k] = (vec){0};
            for (size_t j = 0; j < width; j += LANES)
                v[k] += load(grads->g + (i + k) * width + j) * load(next + (i + k) * width + j);
        }
        put(grads->sum + i, add_lanes(v));
    }
}

/* Computes dw from the other gradients, before the bonus is added to them. */
static void decays_back(const struct wkv_chunk *chunk, const struct grads *grads)
{
    const size_t width = chunk->width, n = TOKENS * width;
    for (size_t e = 0; e < width; e += LANES) {
        vec sum = load(grads->sum + e);
        for (size_t at = n - width + e; at < n; at -= width) {
            vec reads = load(chunk->r + at) * load(grads->dr + at);
            sum -= load(chunk->keys + at) * load(grads->dkeys + at);
            if (chunk->removes)
                sum += reads - load(chunk->keys + n + at) * load(grads->dkeys + n + at);
            put(grads->dw + at, sum);
            sum += chunk->removes ? load(chunk->a + at) * load(grads->da + at) : reads;
        }
    }
}

/* Gradients of the bonus of RWKV 6: y_t += (sum_i r_i u_i k_i) v_t. */
static void bonus_back(const struct wkv_chunk *chunk, const struct grads *grads)
{
    for (size_t token = 0; token < TOKENS; token++)
        for (size_t e = 0; e < chunk->width; e += LANES) {
            const size_t at = token * chunk->width + e;
            const float own = grads->dread[token * PAIR_ROW + token];
            vec u = load(chunk->bonus + e), r = load(chunk->r + at), k = load(chunk->keys + at);
            put(grads->dr + at, load(grads->dr + at) + u * k * own);
            put(grads->dkeys + at, load(grads->dkeys + at) + u * r * own);
            put(grads->du + e, load(grads->du + e) + r * k * own);
        }
}

/* Replaces dS' in grads->g by dS. */
static void state_back(struct wkv_chunk *chunk, const struct grads *grads)
{
    const size_t width = chunk->width;
    for (size_t i = 0; i < chunk->E; i++)
        for (size_t j = 0; j < width; j += LANES)
            put(grads->g + i * width + j, load(grads->g + i * width + j) * chunk->whole[i]);
    add_rows(chunk, grads->g, chunk->E, chunk->left, 1, width, grads->dy, TOKENS, 1);
    if (chunk->removes)
        add_rows(chunk, grads->g, chunk->E, chunk->left + TOKENS * width, 1, width, grads->dz,
                 TOKENS, 1);
}

static void chunk_back(struct wkv_chunk *chunk, const struct grads *grads, const float *state)
{
    CPU(wkv_chunk_scores)(chunk);
    values_back(chunk, grads);
    outer_back(chunk, grads, state);
    decays_around(chunk, grads);
    if (chunk->removes)
        rows_back7(chunk, grads);
    else
        rows_back6(chunk, grads);
    border_sums(chunk, grads, state + chunk->width * chunk->width);
    decays_back(chunk, grads);
    if (!chunk->removes)
        bonus_back(chunk, grads);
    state_back(chunk, grads);
}

/* ---- heads ---- */

struct wkv_back_job {
    const struct wkv_back *a;
    float *work, *du; /* [n_seqs, H*E] */
};

/* Computes the states at the borders of chunks, and x. */
static void forward(struct wkv_chunk *chunk, const struct grads *grads, const struct wkv_rows *in,
                    size_t seq, size_t head)
{
    const size_t first = (size_t)in->seqs[seq].row_begin, rows = (size_t)in->seqs[seq].rows;
    const size_t width = chunk->width;
    for (size_t i = 0; i < wkv_chunks(rows); i++) {
        size_t left = rows - i * TOKENS;
        float *next = grads->states + (i + 1) * width * width;
        chunk->last = i + 1 == wkv_chunks(rows);
        CPU(wkv_chunk_load)(chunk, in, first + i * TOKENS, left < TOKENS ? left : TOKENS, head);
        CPU(wkv_chunk_scores)(chunk);
        if (chunk->removes) {
            CPU(wkv_chunk_solve)(chunk, next - width * width);
            memcpy(grads->xs + i * TOKENS * width, chunk->values + TOKENS * width,
                   TOKENS * width * sizeof *next);
        }
        memcpy(next, next - width * width, width * width * sizeof *next);
        CPU(wkv_chunk_carry)(chunk, next);
    }
}

/* Writes the gradients of a chunk's rows to their arrays. */
static void put_rows(const struct wkv_back *back, const struct wkv_chunk *chunk,
                     const struct grads *grads, size_t row, size_t head)
{
    const size_t stride = back->in.heads * chunk->E, at = row * stride + head * chunk->E,
                 width = chunk->width;
    wkv_rows_out(back->dr + at, stride, grads->dr, width, chunk->tokens, chunk->E);
    wkv_rows_out(back->dw + at, stride, grads->dw, width, chunk->tokens, chunk->E);
    wkv_rows_out(back->dk + at, stride, grads->dkeys, width, chunk->tokens, chunk->E);
    wkv_rows_out(back->dv + at, stride, grads->dv, width, chunk->tokens, chunk->E);
    if (!chunk->removes)
        return;
    wkv_rows_out(back->da + at, stride, grads->da, width, chunk->tokens, chunk->E);
    wkv_rows_out(back->db + at, stride, grads->dkeys + TOKENS * width, width, chunk->tokens,
                 chunk->E);
}

static void backward(struct wkv_chunk *chunk, const struct grads *grads,
                     const struct wkv_back *back, size_t seq, size_t head)
{
    const struct attn_seq *sequence = &back->in.seqs[seq];
    const size_t stride = back->in.heads * chunk->E, width = chunk->width, some = TOKENS * width;
    chunk->last = 1; /* no prefetch: the next chunk lies before this one */
    for (size_t i = wkv_chunks((size_t)sequence->rows); i-- > 0;) {
        size_t row = (size_t)sequence->row_begin + i * TOKENS,
               left = (size_t)sequence->rows - i * TOKENS;
        CPU(wkv_chunk_load)(chunk, &back->in, row, left < TOKENS ? left : TOKENS, head);
        memset(grads->dy, 0, some * sizeof(float));
        wkv_rows_in(grads->dy, width, back->dy + row * stride + head * chunk->E, stride,
                    chunk->tokens, chunk->E);
        if (chunk->removes)
            memcpy(chunk->values + some, grads->xs + i * some, some * sizeof(float));
        chunk_back(chunk, grads, grads->states + i * width * width);
        put_rows(back, chunk, grads, row, head);
    }
}

static void one_head(const struct wkv_back_job *j, size_t seq, size_t head, float *work)
{
    const struct wkv_back *back = j->a;
    const size_t E = back->in.head_dim, at = (seq * back->in.heads + head) * E * E;
    struct wkv_chunk chunk = CPU(wkv_chunk_cut)(&back->in, work);
    struct grads grads = cut(work + CPU(wkv_chunk_floats)(E), back->in.max_rows, E);
    const size_t width = chunk.width;
    memset(grads.states, 0, width * width * sizeof(float));
    memset(grads.g, 0, width * width * sizeof(float));
    memset(grads.du, 0, width * sizeof(float));
    if (!chunk.removes) /* outer_back() transposes these rows too; RWKV 7 fills them with x */
        memset(chunk.values + TOKENS * width, 0, TOKENS * width * sizeof(float));
    if (back->state)
        wkv_rows_in(grads.states, width, back->state + at, E, E, E);
    if (back->dstate)
        wkv_rows_in(grads.g, width, back->dstate + at, E, E, E);
    forward(&chunk, &grads, &back->in, seq, head);
    backward(&chunk, &grads, back, seq, head);
    if (back->dstate)
        wkv_rows_out(back->dstate + at, E, grads.g, width, E, E);
    memcpy(j->du + (seq * back->in.heads + head) * E, grads.du, E * sizeof(float));
}

static void some_heads(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct wkv_back_job *j = ctx;
    const struct wkv_rows *in = &j->a->in;
    float *work = j->work + worker * worker_floats(in->max_rows, in->head_dim);
    for (size_t i = begin; i < end; i++)
        one_head(j, i / in->heads, i % in->heads, work);
}

void CPU(wkv_back)(struct backend *backend, const struct wkv_back *back, void *work)
{
    const size_t E = back->in.head_dim, HE = back->in.heads * E;
    struct wkv_back_job j = {back, work, NULL};
    j.du = j.work + pool_threads(backend->pool) * worker_floats(back->in.max_rows, E);
    pool_run(backend->pool, back->in.n_seqs * back->in.heads, grain(16 * E * E * back->in.max_rows),
             some_heads, &j);
    for (size_t sequence = 0; back->du && !back->in.a && sequence < back->in.n_seqs; sequence++)
        for (size_t i = 0; i < HE; i++)
            back->du[i] += j.du[sequence * HE + i];
}
