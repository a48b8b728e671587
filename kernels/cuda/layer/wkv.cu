/* wkv.cu - time mixing on the device (kernels/wkv.h), in both forms. In the recurrent form a thread
 * holds a column of the state in registers and reads tokens from shared memory, several tokens
 * between two barriers. The chunked form uses the functions of wkv.cuh. */
#include "kernels/cuda/layer/wkv_kept.h"

#include <assert.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/layer/wkv.cuh"

/* ---- token by token ---- */

enum {
    BESIDE = 8, /* tokens between two barriers */
    SUMS = 4    /* independent partial sums */
};

struct tokens {
    float r[BESIDE * N], k[BESIDE * N], decay[BESIDE * N];
    float a[BESIDE * N]; /* RWKV 6: u k */
    float b[BESIDE * N];
};

/* Thread j owns column j of the state, and value channel j of all tokens. */
template <bool SEVEN>
static __global__ void __launch_bounds__(N) wkv_tokens(struct wkv wkv)
{
    let_next_start();
    wait_for_inputs();
    SHARED(struct tokens, tokens);
    const struct wkv_rows &in = wkv.in;
    const struct wkv_place place = place_here(in, wkv.at);
    const unsigned j = threadIdx.x;
    float *state = wkv.state + place.state, s[N];
    bool there = j < place.E;
    for (unsigned i = 0; i < N; i++)
        s[i] = there && i < place.E ? state[i * place.E + j] : 0.0f;
    for (size_t first = 0; first < place.rows; first += BESIDE) {
        const size_t n = tokens_from(place, first, BESIDE);
        __syncthreads();
        for (size_t row = 0; row < n; row++) {
            size_t at = (place.first + first + row) * place.stride + place.head * place.E + j,
                   i = row * N + j;
            float k = there ? in.k[at] : 0.0f;
            tokens->r[i] = there ? in.r[at] : 0.0f;
            tokens->k[i] = k;
            tokens->decay[i] = there ? expf(in.w[at]) : 1.0f;
            if (SEVEN)
                tokens->b[i] = there ? in.b[at] : 0.0f;
            tokens->a[i] = !there ? 0.0f : SEVEN ? in.a[at] : k * in.u[place.head * place.E + j];
        }
        __syncthreads();
        for (size_t row = 0; row < n; row++) {
            size_t at = (place.first + first + row) * place.stride + place.head * place.E + j;
            float value = there ? in.v[at] : 0.0f, x = 0, part[SUMS] = {0, 0, 0, 0};
            for (unsigned i = 0; SEVEN && i < N; i++)
                part[i % SUMS] = fmaf(tokens->a[row * N + i], s[i], part[i % SUMS]);
            if (SEVEN)
                x = (part[0] + part[1]) + (part[2] + part[3]);
            for (unsigned i = 0; i < SUMS; i++)
                part[i] = 0;
            for (unsigned i = 0; i < N; i++) {
                float next = fmaf(tokens->k[row * N + i], value, s[i] * tokens->decay[row * N + i]);
                float seen = SEVEN ? fmaf(tokens->b[row * N + i], x, next)
                                   : fmaf(tokens->a[row * N + i], value, s[i]);
                part[i % SUMS] = fmaf(tokens->r[row * N + i], seen, part[i % SUMS]);
                s[i] = SEVEN ? seen : next;
            }
            if (there)
                wkv.y[at] = (part[0] + part[1]) + (part[2] + part[3]);
        }
    }
    for (unsigned i = 0; i < N; i++)
        if (there && i < place.E)
            state[i * place.E + j] = s[i];
}

/* ---- chunks ---- */

struct wkv_room {
    float s[N * N];
    struct wkv_tokens c;
    float whole[N]; /* D(0, C] */
};

/* Thread (0, i) scales r and a of each token by the decay from the start of the chunk, thread (1,
 * i) scales k and b by the decay up to its end. */
template <bool SEVEN> DEVICE void scale(struct wkv_room *room)
{
    struct wkv_tokens *tokens = &room->c;
    const unsigned i = threadIdx.x % N, group = threadIdx.x / N;
    float decay = 1;
    for (unsigned token = 0; group == 0 && token < C; token++) {
        float before = decay;
        decay *= tokens->decay[token * N + i];
        tokens->r[token * N + i] *= SEVEN ? decay : before;
        if (SEVEN)
            tokens->a[token * N + i] *= before;
    }
    if (group == 0)
        room->whole[i] = decay;
    for (unsigned token = C; group == 1 && token-- > 0;) {
        tokens->keys[token * N + i] *= decay;
        if (SEVEN)
            tokens->keys[(C + token) * N + i] *= decay;
        decay *= tokens->decay[token * N + i];
    }
}

/* Computes x of all tokens, after scale(). Thread (0, i) does the forward substitution. */
DEVICE void solve(struct wkv_room *room)
{
    struct wkv_tokens *tokens = &room->c;
    const unsigned i = threadIdx.x % N, group = threadIdx.x / N;
    float sum[TOKENS_EACH] = {}, *x = tokens->values + C * N;
    add_product(sum, tokens->a, N, room->s, N);
    add_product(sum, tokens->solve, PAIR_ROW, tokens->values, C);
    for (unsigned token = 0; token < TOKENS_EACH; token++)
        x[(group * TOKENS_EACH + token) * N + i] = sum[token];
    __syncthreads();
    float own[C];
    for (unsigned token = 0; group == 0 && token < C; token++) {
        own[token] = x[token * N + i];
        for (unsigned earlier = 0; earlier < token; earlier++)
            own[token] = fmaf(tokens->solve[token * PAIR_ROW + C + earlier], own[earlier],
                              own[token]);
        x[token * N + i] = own[token];
    }
    __syncthreads();
}

/* Writes y of the first n tokens. */
template <bool SEVEN>
DEVICE void read_out(struct wkv_room *room, float *y, const struct wkv_place &place, size_t n)
{
    const unsigned i = threadIdx.x % N, first = threadIdx.x / N * TOKENS_EACH;
    float sum[TOKENS_EACH] = {};
    add_product(sum, room->c.r, N, room->s, N);
    add_product(sum, room->c.read, PAIR_ROW, room->c.values, SEVEN ? 2 * C : C);
    for (unsigned token = 0; token < TOKENS_EACH; token++)
        if (first + token < n && i < place.E)
            y[(first + token) * place.stride + place.head * place.E + i] = sum[token];
}

/* keep_state() stores the state before chunk `number` (or behind the last chunk), keep_x() stores x
 * of a chunk. */
DEVICE void keep_state(const struct wkv_room *room, const struct wkv_kept &to, size_t head,
                       size_t number)
{
    float *state = to.states + (head * (to.chunks + 1) + number) * N * N;
    for (unsigned i = threadIdx.x; i < N * N; i += THREADS)
        state[i] = room->s[i];
}

DEVICE void keep_x(const struct wkv_room *room, const struct wkv_kept &to, size_t head,
                   size_t number)
{
    float *x = to.xs + (head * to.chunks + number) * C * N;
    for (unsigned i = threadIdx.x; i < C * N; i += THREADS)
        x[i] = room->c.values[C * N + i];
}

/* KEEP: computes *to for the gradients and no y; wkv.state is read (NULL: zeros) and not
 * written. */
template <bool SEVEN, bool KEEP>
static __global__ void __launch_bounds__(THREADS) wkv_chunks_of(struct wkv wkv, struct wkv_kept to)
{
    let_next_start();
    wait_for_inputs();
    SHARED(struct wkv_room, room);
    const struct wkv_place place = place_here(wkv.in, wkv.at);
    const size_t head = place.seq * wkv.in.heads + place.head;
    state_load(room->s, wkv.state ? wkv.state + place.state : NULL, place.E);
    for (size_t first = 0; first < place.rows; first += C) {
        size_t n = tokens_from(place, first, C);
        chunk_load<SEVEN>(&room->c, wkv.in, place, first, n);
        __syncthreads();
        chunk_scores<SEVEN>(&room->c, 0);
        if (SEVEN)
            chunk_scores<SEVEN>(&room->c, C);
        __syncthreads();
        scale<SEVEN>(room);
        __syncthreads();
        if (SEVEN)
            solve(room);
        if (KEEP)
            keep_state(room, to, head, first / C);
        else
            read_out<SEVEN>(room, wkv.y + (place.first + first) * place.stride, place, n);
        if (KEEP && SEVEN)
            keep_x(room, to, head, first / C);
        __syncthreads();
        add_outer(room->s, room->whole, room->c.keys, room->c.values, SEVEN ? 2 * C : C);
        __syncthreads();
    }
    __syncthreads(); /* needed if there was no chunk */
    if (KEEP)
        keep_state(room, to, head, (place.rows + C - 1) / C);
    else
        state_store(wkv.state + place.state, room->s, place.E);
}

/* ---- launches ---- */

static dim3 heads_of(const struct wkv_rows *in)
{
    assert(in->head_dim <= N);
    return dim3((unsigned)in->heads, (unsigned)in->n_seqs);
}

size_t cuda_wkv_work(const struct backend *backend, size_t n_seqs, size_t max_rows, size_t heads,
                     size_t head_dim)
{
    (void)backend, (void)n_seqs, (void)max_rows, (void)heads, (void)head_dim;
    return 0;
}

void cuda_wkv(struct backend *backend, const struct wkv *wkv, void *work)
{
    struct range here("wkv");
    const struct wkv_kept none = {};
    (void)work;
    if (wkv->form == WKV_AUTO ? wkv->in.max_rows >= C : wkv->form == WKV_CHUNKED)
        launch(backend, wkv->in.a ? wkv_chunks_of<true, false> : wkv_chunks_of<false, false>,
               heads_of(&wkv->in), dim3(THREADS), sizeof(struct wkv_room), *wkv, none);
    else
        launch(backend, wkv->in.a ? wkv_tokens<true> : wkv_tokens<false>, heads_of(&wkv->in),
               dim3(N), sizeof(struct tokens), *wkv);
}

void cuda_wkv_keep(struct backend *backend, const struct wkv_rows *in, const float *state,
                   const struct wkv_kept *to)
{
    const struct wkv wkv = {*in, const_cast<float *>(state), NULL, WKV_CHUNKED, NULL};
    launch(backend, in->a ? wkv_chunks_of<true, true> : wkv_chunks_of<false, true>, heads_of(in),
           dim3(THREADS), sizeof(struct wkv_room), wkv, *to);
}
