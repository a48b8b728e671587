/* wkv_back.cu - gradients of time mixing on the device, chunk by chunk from the last to the first.
 * The formulas are in kernels/cpu/mixing/cpu_wkv-back.c, the layout in wkv.cuh. States at the
 * borders of chunks, and x, were computed again before (cuda_wkv_keep).
 *
 * Where each lane of a warp sums along a different row of shared memory, each lane begins at
 * another column, so that lanes read from different banks. */
#include <assert.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/layer/wkv.cuh"
#include "kernels/cuda/layer/wkv_kept.h"

struct wkv_back_room {
    float s[N * N], g[N * N]; /* the state before the chunk; dS' */
    struct wkv_tokens c;
    float dy[C * N], dz[C * N];
    float before[(C + 1) * N], after[C * N]; /* D(0, t-1], and the last row D(0, C]; D(t, C] */
    float dread[C * PAIR_ROW], dsolve[C * PAIR_ROW];
    float own[C * N];  /* the part of t in the gradient of G_t */
    float last[C * N]; /* its part in the gradient of G_{t-1} */
    float sums[GROUPS * N];
};

/* Arguments of a block. */
struct wkv_back_call {
    struct wkv_back a;
    struct wkv_kept kept;
    float *du; /* [n_seqs * H, N] */
};

template <bool SEVEN> DEVICE void load(struct wkv_back_room *m, const struct wkv_back_call &j,
                                       const struct wkv_place &p, size_t first)
{
    const size_t n = tokens_from(p, first, C);
    const size_t head = p.seq * j.a.in.heads + p.head, number = first / C;
    const float *state = j.kept.states + (head * (j.kept.chunks + 1) + number) * N * N;
    const float *x = j.kept.xs + (head * j.kept.chunks + number) * C * N;
    chunk_load<SEVEN>(&m->c, j.a.in, p, first, n);
    for (unsigned i = threadIdx.x; i < N * N; i += THREADS)
        m->s[i] = state[i];
    for (unsigned i = threadIdx.x; i < C * N; i += THREADS) {
        size_t t = i / N, e = i % N, at = (p.first + first + t) * p.stride + p.head * p.E + e;
        m->dy[i] = t < n && e < p.E ? j.a.dy[at] : 0.0f;
        if (SEVEN)
            m->c.values[C * N + i] = x[i];
    }
}

/* Thread (0, i) computes before; thread (1, i) computes after. */
DEVICE void decays(struct wkv_back_room *m)
{
    const unsigned i = threadIdx.x % N, g = threadIdx.x / N;
    float decay = 1;
    for (unsigned t = 0; g == 0 && t < C; t++) {
        m->before[t * N + i] = decay;
        decay *= m->c.decay[t * N + i];
    }
    if (g == 0)
        m->before[C * N + i] = decay;
    for (unsigned t = C; g == 1 && t-- > 0;) {
        m->after[t * N + i] = decay;
        decay *= m->c.decay[t * N + i];
    }
}

/* sum[q] += sum_t m[t, q] x[t, i] + sum_e keys[q, e] after[q, e] dS'[e, i] for the tokens q of this
 * thread; without keys only the first sum. */
DEVICE void add_values(float sum[TOKENS_EACH], const struct wkv_back_room *r, const float *m,
                       const float *x, const float *keys)
{
    const unsigned i = threadIdx.x % N, first = threadIdx.x / N * TOKENS_EACH;
    for (unsigned t = 0; t < C; t++)
        for (unsigned q = 0; q < TOKENS_EACH; q++)
            sum[q] = fmaf(m[t * PAIR_ROW + first + q], x[t * N + i], sum[q]);
    for (unsigned e = 0; keys && e < N; e++)
        for (unsigned q = 0; q < TOKENS_EACH; q++) {
            unsigned at = (first + q) * N + e;
            sum[q] = fmaf(keys[at] * r->after[at], r->g[e * N + i], sum[q]);
        }
}

/* dz. Thread (0, i) does the substitution. */
DEVICE void solve_back(struct wkv_back_room *m)
{
    const unsigned i = threadIdx.x % N, g = threadIdx.x / N;
    float sum[TOKENS_EACH] = {};
    add_values(sum, m, m->c.read + C, m->dy, m->c.keys + C * N);
    for (unsigned q = 0; q < TOKENS_EACH; q++)
        m->dz[(g * TOKENS_EACH + q) * N + i] = sum[q];
    __syncthreads();
    for (unsigned q = C; g == 0 && q-- > 0;) {
        float own = m->dz[q * N + i];
        for (unsigned t = q + 1; t < C; t++)
            own = fmaf(m->c.solve[t * PAIR_ROW + C + q], m->dz[t * N + i], own);
        m->dz[q * N + i] = own;
    }
    __syncthreads();
}

template <bool SEVEN>
DEVICE void values_back(struct wkv_back_room *m, float *dv, const struct wkv_place &p, size_t n)
{
    const unsigned i = threadIdx.x % N, first = threadIdx.x / N * TOKENS_EACH;
    float sum[TOKENS_EACH] = {};
    add_values(sum, m, m->c.read, m->dy, m->c.keys);
    if (SEVEN)
        add_values(sum, m, m->c.solve, m->dz, NULL);
    for (unsigned q = 0; q < TOKENS_EACH; q++)
        if (first + q < n && i < p.E)
            dv[(first + q) * p.stride + i] = sum[q];
}

/* Thread (t, q) owns dA of that pair: sum_j left[t, j] values[q, j] for v and, if SEVEN, for x. */
template <bool SEVEN> DEVICE void pairs_back(struct wkv_back_room *m)
{
    const unsigned t = threadIdx.x / C, q = threadIdx.x % C;
    static_assert(THREADS == C * C, "a thread a pair");
    float of_y[2] = {0, 0}, of_z[2] = {0, 0};
    for (unsigned k = 0; k < N; k++) {
        unsigned j = (k + q) % N;
        for (unsigned x = 0; x < (SEVEN ? 2 : 1); x++) {
            float v = m->c.values[(x * C + q) * N + j];
            of_y[x] = fmaf(m->dy[t * N + j], v, of_y[x]);
            if (SEVEN)
                of_z[x] = fmaf(m->dz[t * N + j], v, of_z[x]);
        }
    }
    for (unsigned x = 0; x < (SEVEN ? 2 : 1); x++) {
        m->dread[t * PAIR_ROW + x * C + q] = of_y[x];
        if (SEVEN)
            m->dsolve[t * PAIR_ROW + x * C + q] = of_z[x];
    }
}

/* sum[t] = sum_j rows[t, j] matrix[i, j] for this thread's tokens. */
DEVICE void by_row(float sum[TOKENS_EACH], const float *rows, const float *matrix)
{
    const unsigned i = threadIdx.x % N, first = threadIdx.x / N * TOKENS_EACH;
    for (unsigned t = 0; t < TOKENS_EACH; t++)
        sum[t] = 0;
    for (unsigned k = 0; k < N; k++) {
        unsigned j = (k + i) % N;
        float y = matrix[i * N + j];
        for (unsigned t = 0; t < TOKENS_EACH; t++)
            sum[t] = fmaf(rows[(first + t) * N + j], y, sum[t]);
    }
}

/* sum_q m_tq key_q D(q, t'] over q < end, for one or two keys. */
template <bool SEVEN>
DEVICE float of_keys(const struct wkv_tokens *c, const float *m, unsigned end, unsigned i)
{
    float sum = 0;
    for (unsigned q = 0; q < end; q++) {
        sum = fmaf(m[q], c->keys[q * N + i], sum * c->decay[q * N + i]);
        if (SEVEN)
            sum = fmaf(m[C + q], c->keys[(C + q) * N + i], sum);
    }
    return sum;
}

/* The sum over r and a of the tokens from q on. column: C for b. */
template <bool SEVEN>
DEVICE float of_left(const struct wkv_back_room *m, unsigned q, unsigned column, unsigned i)
{
    const struct wkv_tokens *c = &m->c;
    const float *read = m->dread + column + q, *solve = m->dsolve + column + q;
    float sum = 0;
    for (unsigned t = C; t-- > q + 1;) {
        float r = c->r[t * N + i], decay = c->decay[t * N + i];
        if (SEVEN)
            sum = fmaf(fmaf(r, read[t * PAIR_ROW], sum), decay,
                       c->a[t * N + i] * solve[t * PAIR_ROW]);
        else
            sum = fmaf(r, read[t * PAIR_ROW], sum * decay);
    }
    return SEVEN ? fmaf(c->r[q * N + i], read[q * PAIR_ROW], sum) : sum;
}

/* Gradients of r, a, k and b. Returns this thread's part of the gradient of u_i. to: row of the
 * first token in the gradient arrays. */
template <bool SEVEN> DEVICE float rows_back(struct wkv_back_room *m, const struct wkv_back &a,
                                             size_t to, const struct wkv_place &p, size_t n)
{
    const struct wkv_tokens *c = &m->c;
    const unsigned i = threadIdx.x % N, first = threadIdx.x / N * TOKENS_EACH;
    float dr[TOKENS_EACH], da[TOKENS_EACH], dk[TOKENS_EACH], db[TOKENS_EACH], du = 0;
    by_row(dr, m->dy, m->s);
    by_row(dk, c->values, m->g);
    if (SEVEN) {
        by_row(da, m->dz, m->s);
        by_row(db, c->values + C * N, m->g);
    }
#pragma unroll
    for (unsigned x = 0; x < TOKENS_EACH; x++) {
        const unsigned t = first + x, at = t * N + i;
        const float *before = m->before + at;
        dr[x] = fmaf(dr[x], SEVEN ? before[N] : before[0],
                     of_keys<SEVEN>(c, m->dread + t * PAIR_ROW, SEVEN ? t + 1 : t, i));
        dk[x] = fmaf(dk[x], m->after[at], of_left<SEVEN>(m, t, 0, i));
        float read = c->r[at] * dr[x], key = c->keys[at] * dk[x];
        if (SEVEN) {
            da[x] = fmaf(da[x], before[0],
                         of_keys<SEVEN>(c, m->dsolve + t * PAIR_ROW, t, i));
            db[x] = fmaf(db[x], m->after[at], of_left<SEVEN>(m, t, C, i));
            m->own[at] = read - key - c->keys[C * N + at] * db[x];
            m->last[at] = c->a[at] * da[x];
        } else {
            const float own = m->dread[t * PAIR_ROW + t];
            m->own[at] = -key;
            m->last[at] = read;
            dr[x] = fmaf(c->bonus[i] * c->keys[at], own, dr[x]);
            dk[x] = fmaf(c->bonus[i] * c->r[at], own, dk[x]);
            du = fmaf(c->r[at] * c->keys[at], own, du);
        }
        if (t < n && i < p.E) {
            a.dr[to + t * p.stride + i] = dr[x];
            a.dk[to + t * p.stride + i] = dk[x];
            if (SEVEN) {
                a.da[to + t * p.stride + i] = da[x];
                a.db[to + t * p.stride + i] = db[x];
            }
        }
    }
    return du;
}

/* sums[g, i] = sum_j dS'_ij S'_ij over a part of the columns. */
DEVICE void border_sums(struct wkv_back_room *m, const float *next)
{
    const unsigned i = threadIdx.x % N, g = threadIdx.x / N;
    float sum = 0;
    for (unsigned k = 0; k < ROWS_EACH; k++) {
        unsigned j = g * ROWS_EACH + (k + i) % ROWS_EACH;
        sum = fmaf(m->g[i * N + j], next[i * N + j], sum);
    }
    m->sums[g * N + i] = sum;
}

/* dw, by thread (0, i). */
DEVICE void decays_back(const struct wkv_back_room *m, float *dw, const struct wkv_place &p,
                        size_t n)
{
    const unsigned i = threadIdx.x;
    if (i >= N)
        return;
    float sum = 0;
    for (unsigned g = 0; g < GROUPS; g++)
        sum += m->sums[g * N + i];
    for (unsigned t = C; t-- > 0;) {
        sum += m->own[t * N + i];
        if (t < n && i < p.E)
            dw[t * p.stride + i] = sum;
        sum += m->last[t * N + i];
    }
}

/* Scales r and a as they multiply the state. */
template <bool SEVEN> DEVICE void scale_left(struct wkv_back_room *m)
{
    for (unsigned i = threadIdx.x; i < C * N; i += THREADS) {
        m->c.r[i] *= m->before[SEVEN ? i + N : i];
        if (SEVEN)
            m->c.a[i] *= m->before[i];
    }
}

template <bool SEVEN>
static __global__ void __launch_bounds__(THREADS) wkv_chunks_back(struct wkv_back_call j)
{
    let_next_start();
    wait_for_inputs();
    SHARED(struct wkv_back_room, m);
    const struct wkv_place p = place_here(j.a.in, NULL);
    const size_t head = p.seq * j.a.in.heads + p.head;
    float du = 0;
    state_load(m->g, j.a.dstate ? j.a.dstate + p.state : NULL, p.E);
    for (size_t number = (p.rows + C - 1) / C; number-- > 0;) {
        const size_t first = number * C, n = tokens_from(p, first, C);
        const size_t to = (p.first + first) * p.stride + p.head * p.E;
        load<SEVEN>(m, j, p, first);
        __syncthreads();
        decays(m);
        chunk_scores<SEVEN>(&m->c, 0);
        if (SEVEN)
            chunk_scores<SEVEN>(&m->c, C);
        border_sums(m, j.kept.states + (head * (j.kept.chunks + 1) + number + 1) * N * N);
        __syncthreads();
        if (SEVEN)
            solve_back(m);
        values_back<SEVEN>(m, j.a.dv + to, p, n);
        pairs_back<SEVEN>(m);
        __syncthreads();
        du += rows_back<SEVEN>(m, j.a, to, p, n);
        __syncthreads();
        decays_back(m, j.a.dw + to, p, n);
        scale_left<SEVEN>(m);
        __syncthreads();
        add_outer(m->g, m->before + C * N, m->c.r, m->dy, C);
        if (SEVEN)
            add_outer(m->g, NULL, m->c.a, m->dz, C);
        __syncthreads();
    }
    m->sums[threadIdx.x] = du;
    __syncthreads();
    if (j.a.dstate)
        state_store(j.a.dstate + p.state, m->g, p.E);
    for (unsigned g = 1; threadIdx.x < N && g < GROUPS; g++)
        du += m->sums[g * N + threadIdx.x];
    if (threadIdx.x < N)
        j.du[head * N + threadIdx.x] = du;
}

/* Thread (h, i) sums the gradients of u over all sequences. */
static __global__ void __launch_bounds__(N) wkv_add_bonus(struct wkv_back_call j)
{
    let_next_start();
    wait_for_inputs();
    const size_t E = j.a.in.head_dim, H = j.a.in.heads, h = blockIdx.x, i = threadIdx.x;
    if (i >= E)
        return;
    float sum = j.a.du[h * E + i];
    for (size_t s = 0; s < j.a.in.n_seqs; s++)
        sum += j.du[(s * H + h) * N + i];
    j.a.du[h * E + i] = sum;
}

static size_t states_floats(size_t heads, size_t chunks)
{
    return heads * (chunks + 1) * N * N;
}

size_t cuda_wkv_back_work(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                          size_t head_dim)
{
    size_t all = n_seqs * heads, chunks = wkv_chunks(max_rows);
    (void)b, (void)head_dim;
    return (states_floats(all, chunks) + all * chunks * C * N + all * N) * sizeof(float);
}

void cuda_wkv_back(struct backend *b, const struct wkv_back *a, void *work)
{
    struct range here("wkv_back");
    const struct wkv_rows *in = &a->in;
    const size_t all = in->n_seqs * in->heads, chunks = wkv_chunks(in->max_rows);
    struct wkv_back_call j = {*a, {(float *)work, NULL, chunks}, NULL};
    j.kept.xs = j.kept.states + states_floats(all, chunks);
    j.du = j.kept.xs + all * chunks * C * N;
    assert(in->head_dim <= N);
    cuda_wkv_keep(b, in, a->state, &j.kept);
    launch(b, in->a ? wkv_chunks_back<true> : wkv_chunks_back<false>,
           dim3((unsigned)in->heads, (unsigned)in->n_seqs), dim3(THREADS),
           sizeof(struct wkv_back_room), j);
    if (!in->a && a->du)
        launch(b, wkv_add_bonus, dim3((unsigned)in->heads), dim3(N), 0, j);
}
