/* wkv_back.cu - gradients of time mixing on the device, chunk by chunk from the last to the first.
 * The formulas are in kernels/cpu/mixing/cpu_wkv-back.c, the layout in wkv.cuh. cuda_wkv_keep() has
 * computed the states at the borders of chunks, and x, again before.
 *
 * If each lane of a warp sums along a row of its own in shared memory, each lane begins at another
 * column, so that lanes read from different banks. */
#include <assert.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/layer/wkv.cuh"
#include "kernels/cuda/layer/wkv_kept.h"

struct wkv_back_room {
    float s[N * N], g[N * N]; /* the state before the chunk; dS' */
    struct wkv_tokens c;
    float dy[C * N], dz[C * N];
    float before[(C + 1) * N], after[C * N]; /* before: D(0, t-1], then in the last row D(0, C];
                                              * after: D(t, C] */
    float dread[C * PAIR_ROW], dsolve[C * PAIR_ROW];
    float own[C * N];  /* the terms of token t in the gradient of G_t */
    float last[C * N]; /* the terms of token t in the gradient of G_{t-1} */
    float sums[GROUPS * N];
};

/* Arguments of a block. */
struct wkv_back_call {
    struct wkv_back a;
    struct wkv_kept kept;
    float *du; /* [n_seqs * H, N] */
};

template <bool SEVEN> DEVICE void load(struct wkv_back_room *room, const struct wkv_back_call &j,
                                       const struct wkv_place &place, size_t first)
{
    const size_t n = tokens_from(place, first, C);
    const size_t head = place.seq * j.a.in.heads + place.head, number = first / C;
    const float *state = j.kept.states + (head * (j.kept.chunks + 1) + number) * N * N;
    const float *x = j.kept.xs + (head * j.kept.chunks + number) * C * N;
    chunk_load<SEVEN>(&room->c, j.a.in, place, first, n);
    for (unsigned i = threadIdx.x; i < N * N; i += THREADS)
        room->s[i] = state[i];
    for (unsigned i = threadIdx.x; i < C * N; i += THREADS) {
        size_t row = i / N, e = i % N,
               at = (place.first + first + row) * place.stride + place.head * place.E + e;
        room->dy[i] = row < n && e < place.E ? j.a.dy[at] : 0.0f;
        if (SEVEN)
            room->c.values[C * N + i] = x[i];
    }
}

/* Thread (0, i) computes before; thread (1, i) computes after. */
DEVICE void decays(struct wkv_back_room *room)
{
    const unsigned i = threadIdx.x % N, group = threadIdx.x / N;
    float decay = 1;
    for (unsigned token = 0; group == 0 && token < C; token++) {
        room->before[token * N + i] = decay;
        decay *= room->c.decay[token * N + i];
    }
    if (group == 0)
        room->before[C * N + i] = decay;
    for (unsigned token = C; group == 1 && token-- > 0;) {
        room->after[token * N + i] = decay;
        decay *= room->c.decay[token * N + i];
    }
}

/* sum[q] += sum_t m[t, q] x[t, i] + sum_e keys[q, e] after[q, e] dS'[e, i] for the tokens q of this
 * thread; keys NULL: only the first sum. */
DEVICE void add_values(float sum[TOKENS_EACH], const struct wkv_back_room *room, const float *m,
                       const float *x, const float *keys)
{
    const unsigned i = threadIdx.x % N, first = threadIdx.x / N * TOKENS_EACH;
    for (unsigned token = 0; token < C; token++)
        for (unsigned earlier = 0; earlier < TOKENS_EACH; earlier++)
            sum[earlier] = fmaf(m[token * PAIR_ROW + first + earlier], x[token * N + i],
                                sum[earlier]);
    for (unsigned e = 0; keys && e < N; e++)
        for (unsigned earlier = 0; earlier < TOKENS_EACH; earlier++) {
            unsigned at = (first + earlier) * N + e;
            sum[earlier] = fmaf(keys[at] * room->after[at], room->g[e * N + i], sum[earlier]);
        }
}

/* Computes dz; thread (0, i) does the back substitution. */
DEVICE void solve_back(struct wkv_back_room *room)
{
    const unsigned i = threadIdx.x % N, group = threadIdx.x / N;
    float sum[TOKENS_EACH] = {};
    add_values(sum, room, room->c.read + C, room->dy, room->c.keys + C * N);
    for (unsigned earlier = 0; earlier < TOKENS_EACH; earlier++)
        room->dz[(group * TOKENS_EACH + earlier) * N + i] = sum[earlier];
    __syncthreads();
    for (unsigned earlier = C; group == 0 && earlier-- > 0;) {
        float own = room->dz[earlier * N + i];
        for (unsigned token = earlier + 1; token < C; token++)
            own = fmaf(room->c.solve[token * PAIR_ROW + C + earlier], room->dz[token * N + i], own);
        room->dz[earlier * N + i] = own;
    }
    __syncthreads();
}

template <bool SEVEN>
DEVICE void values_back(struct wkv_back_room *room, float *dv, const struct wkv_place &place,
                        size_t n)
{
    const unsigned i = threadIdx.x % N, first = threadIdx.x / N * TOKENS_EACH;
    float sum[TOKENS_EACH] = {};
    add_values(sum, room, room->c.read, room->dy, room->c.keys);
    if (SEVEN)
        add_values(sum, room, room->c.solve, room->dz, NULL);
    for (unsigned earlier = 0; earlier < TOKENS_EACH; earlier++)
        if (first + earlier < n && i < place.E)
            dv[(first + earlier) * place.stride + i] = sum[earlier];
}

/* Thread (t, q) owns dA of the pair (t, q): sums over j of dy[t, j] and, if SEVEN, of dz[t, j]
 * times values[q, j], for v and, if SEVEN, for x. */
template <bool SEVEN> DEVICE void pairs_back(struct wkv_back_room *room)
{
    const unsigned token = threadIdx.x / C, earlier = threadIdx.x % C;
    static_assert(THREADS == C * C, "a thread a pair");
    float of_y[2] = {0, 0}, of_z[2] = {0, 0};
    for (unsigned k = 0; k < N; k++) {
        unsigned j = (k + earlier) % N;
        for (unsigned x = 0; x < (SEVEN ? 2 : 1); x++) {
            float value = room->c.values[(x * C + earlier) * N + j];
            of_y[x] = fmaf(room->dy[token * N + j], value, of_y[x]);
            if (SEVEN)
                of_z[x] = fmaf(room->dz[token * N + j], value, of_z[x]);
        }
    }
    for (unsigned x = 0; x < (SEVEN ? 2 : 1); x++) {
        room->dread[token * PAIR_ROW + x * C + earlier] = of_y[x];
        if (SEVEN)
            room->dsolve[token * PAIR_ROW + x * C + earlier] = of_z[x];
    }
}

/* sum[t] = sum_j rows[t, j] matrix[i, j] for this thread's tokens. */
DEVICE void by_row(float sum[TOKENS_EACH], const float *rows, const float *matrix)
{
    const unsigned i = threadIdx.x % N, first = threadIdx.x / N * TOKENS_EACH;
    for (unsigned token = 0; token < TOKENS_EACH; token++)
        sum[token] = 0;
    for (unsigned k = 0; k < N; k++) {
        unsigned j = (k + i) % N;
        float y = matrix[i * N + j];
        for (unsigned token = 0; token < TOKENS_EACH; token++)
            sum[token] = fmaf(rows[(first + token) * N + j], y, sum[token]);
    }
}

/* The sum over q < end of m_tq key_q D(q, end - 1], for the keys k and, if SEVEN, also b. */
template <bool SEVEN>
DEVICE float of_keys(const struct wkv_tokens *tokens, const float *m, unsigned end, unsigned i)
{
    float sum = 0;
    for (unsigned earlier = 0; earlier < end; earlier++) {
        sum = fmaf(m[earlier], tokens->keys[earlier * N + i], sum * tokens->decay[earlier * N + i]);
        if (SEVEN)
            sum = fmaf(m[C + earlier], tokens->keys[(C + earlier) * N + i], sum);
    }
    return sum;
}

/* For token q = earlier: the sum over later tokens of the terms of r and, if SEVEN, of a (and of r
 * of q itself). column: 0 for the key k, C for b. */
template <bool SEVEN>
DEVICE float of_left(const struct wkv_back_room *room, unsigned earlier, unsigned column,
                     unsigned i)
{
    const struct wkv_tokens *tokens = &room->c;
    const float *read = room->dread + column + earlier, *solve = room->dsolve + column + earlier;
    float sum = 0;
    for (unsigned token = C; token-- > earlier + 1;) {
        float r = tokens->r[token * N + i], decay = tokens->decay[token * N + i];
        if (SEVEN)
            sum = fmaf(fmaf(r, read[token * PAIR_ROW], sum), decay,
                       tokens->a[token * N + i] * solve[token * PAIR_ROW]);
        else
            sum = fmaf(r, read[token * PAIR_ROW], sum * decay);
    }
    return SEVEN ? fmaf(tokens->r[earlier * N + i], read[earlier * PAIR_ROW], sum) : sum;
}

/* Computes the gradients of r, a, k and b. Returns this thread's part of the gradient of u_i. to:
 * index of the first token in the gradient arrays. */
template <bool SEVEN> DEVICE float rows_back(struct wkv_back_room *room,
                                             const struct wkv_back &back, size_t to,
                                             const struct wkv_place &place, size_t n)
{
    const struct wkv_tokens *tokens = &room->c;
    const unsigned i = threadIdx.x % N, first = threadIdx.x / N * TOKENS_EACH;
    float dr[TOKENS_EACH], da[TOKENS_EACH], dk[TOKENS_EACH], db[TOKENS_EACH], du = 0;
    by_row(dr, room->dy, room->s);
    by_row(dk, tokens->values, room->g);
    if (SEVEN) {
        by_row(da, room->dz, room->s);
        by_row(db, tokens->values + C * N, room->g);
    }
#pragma unroll
    for (unsigned x = 0; x < TOKENS_EACH; x++) {
        const unsigned token = first + x, at = token * N + i;
        const float *before = room->before + at;
        dr[x] = fmaf(
            dr[x], SEVEN ? before[N] : before[0],
            of_keys<SEVEN>(tokens, room->dread + token * PAIR_ROW, SEVEN ? token + 1 : token, i));
        dk[x] = fmaf(dk[x], room->after[at], of_left<SEVEN>(room, token, 0, i));
        float read = tokens->r[at] * dr[x], key = tokens->keys[at] * dk[x];
        if (SEVEN) {
            da[x] = fmaf(da[x], before[0],
                         of_keys<SEVEN>(tokens, room->dsolve + token * PAIR_ROW, token, i));
            db[x] = fmaf(db[x], room->after[at], of_left<SEVEN>(room, token, C, i));
            room->own[at] = read - key - tokens->keys[C * N + at] * db[x];
            room->last[at] = tokens->a[at] * da[x];
        } else {
            const float own = room->dread[token * PAIR_ROW + token];
            room->own[at] = -key;
            room->last[at] = read;
            dr[x] = fmaf(tokens->bonus[i] * tokens->keys[at], own, dr[x]);
            dk[x] = fmaf(tokens->bonus[i] * tokens->r[at], own, dk[x]);
            du = fmaf(tokens->r[at] * tokens->keys[at], own, du);
        }
        if (token < n && i < place.E) {
            back.dr[to + token * place.stride + i] = dr[x];
            back.dk[to + token * place.stride + i] = dk[x];
            if (SEVEN) {
                back.da[to + token * place.stride + i] = da[x];
                back.db[to + token * place.stride + i] = db[x];
            }
        }
    }
    return du;
}

/* sums[g, i] = sum_j dS'_ij S'_ij over a part of the columns. */
DEVICE void border_sums(struct wkv_back_room *room, const float *next)
{
    const unsigned i = threadIdx.x % N, group = threadIdx.x / N;
    float sum = 0;
    for (unsigned k = 0; k < ROWS_EACH; k++) {
        unsigned j = group * ROWS_EACH + (k + i) % ROWS_EACH;
        sum = fmaf(room->g[i * N + j], next[i * N + j], sum);
    }
    room->sums[group * N + i] = sum;
}

/* Computes dw; thread (0, i) owns channel i. */
DEVICE void decays_back(const struct wkv_back_room *room, float *dw, const struct wkv_place &place,
                        size_t n)
{
    const unsigned i = threadIdx.x;
    if (i >= N)
        return;
    float sum = 0;
    for (unsigned group = 0; group < GROUPS; group++)
        sum += room->sums[group * N + i];
    for (unsigned token = C; token-- > 0;) {
        sum += room->own[token * N + i];
        if (token < n && i < place.E)
            dw[token * place.stride + i] = sum;
        sum += room->last[token * N + i];
    }
}

/* Scales r and a by the decays with which they multiply the state. */
template <bool SEVEN> DEVICE void scale_left(struct wkv_back_room *room)
{
    for (unsigned i = threadIdx.x; i < C * N; i += THREADS) {
        room->c.r[i] *= room->before[SEVEN ? i + N : i];
        if (SEVEN)
            room->c.a[i] *= room->before[i];
    }
}

template <bool SEVEN>
static __global__ void __launch_bounds__(THREADS) wkv_chunks_back(struct wkv_back_call j)
{
    let_next_start();
    wait_for_inputs();
    SHARED(struct wkv_back_room, room);
    const struct wkv_place place = place_here(j.a.in, NULL);
    const size_t head = place.seq * j.a.in.heads + place.head;
    float du = 0;
    state_load(room->g, j.a.dstate ? j.a.dstate + place.state : NULL, place.E);
    for (size_t number = (place.rows + C - 1) / C; number-- > 0;) {
        const size_t first = number * C, n = tokens_from(place, first, C);
        const size_t to = (place.first + first) * place.stride + place.head * place.E;
        load<SEVEN>(room, j, place, first);
        __syncthreads();
        decays(room);
        chunk_scores<SEVEN>(&room->c, 0);
        if (SEVEN)
            chunk_scores<SEVEN>(&room->c, C);
        border_sums(room, j.kept.states + (head * (j.kept.chunks + 1) + number + 1) * N * N);
        __syncthreads();
        if (SEVEN)
            solve_back(room);
        values_back<SEVEN>(room, j.a.dv + to, place, n);
        pairs_back<SEVEN>(room);
        __syncthreads();
        du += rows_back<SEVEN>(room, j.a, to, place, n);
        __syncthreads();
        decays_back(room, j.a.dw + to, place, n);
        scale_left<SEVEN>(room);
        __syncthreads();
        add_outer(room->g, room->before + C * N, room->c.r, room->dy, C);
        if (SEVEN)
            add_outer(room->g, NULL, room->c.a, room->dz, C);
        __syncthreads();
    }
    room->sums[threadIdx.x] = du;
    __syncthreads();
    if (j.a.dstate)
        state_store(j.a.dstate + place.state, room->g, place.E);
    for (unsigned group = 1; threadIdx.x < N && group < GROUPS; group++)
        du += room->sums[group * N + threadIdx.x];
    if (threadIdx.x < N)
        j.du[head * N + threadIdx.x] = du;
}

/* Thread (h, i) adds the gradients of u_i of head h over all sequences. */
static __global__ void __launch_bounds__(N) wkv_add_bonus(struct wkv_back_call j)
{
    let_next_start();
    wait_for_inputs();
    const size_t E = j.a.in.head_dim, H = j.a.in.heads, head = blockIdx.x, i = threadIdx.x;
    if (i >= E)
        return;
    float sum = j.a.du[head * E + i];
    for (size_t sequence = 0; sequence < j.a.in.n_seqs; sequence++)
        sum += j.du[(sequence * H + head) * N + i];
    j.a.du[head * E + i] = sum;
}

static size_t states_floats(size_t heads, size_t chunks)
{
    return heads * (chunks + 1) * N * N;
}

size_t cuda_wkv_back_work(const struct backend *backend, size_t n_seqs, size_t max_rows,
                          size_t heads, size_t head_dim)
{
    size_t all = n_seqs * heads, chunks = wkv_chunks(max_rows);
    (void)backend, (void)head_dim;
    return (states_floats(all, chunks) + all * chunks * C * N + all * N) * sizeof(float);
}

void cuda_wkv_back(struct backend *backend, const struct wkv_back *back, void *work)
{
    struct range here("wkv_back");
    const struct wkv_rows *in = &back->in;
    const size_t all = in->n_seqs * in->heads, chunks = wkv_chunks(in->max_rows);
    struct wkv_back_call j = {*back, {(float *)work, NULL, chunks}, NULL};
    j.kept.xs = j.kept.states + states_floats(all, chunks);
    j.du = j.kept.xs + all * chunks * C * N;
    assert(in->head_dim <= N);
    cuda_wkv_keep(backend, in, back->state, &j.kept);
    launch(backend, in->a ? wkv_chunks_back<true> : wkv_chunks_back<false>,
           dim3((unsigned)in->heads, (unsigned)in->n_seqs), dim3(THREADS),
           sizeof(struct wkv_back_room), j);
    if (!in->a && back->du)
        launch(backend, wkv_add_bonus, dim3((unsigned)in->heads), dim3(N), 0, j);
}
