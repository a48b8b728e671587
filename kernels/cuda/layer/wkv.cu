/* wkv.cu - time mixing on the device (kernels/wkv.h), in both forms. The recurrent form holds a
 * column of the state in the registers of a thread and reads tokens from shared memory, several
 * between two barriers. The chunked form is in wkv.cuh. */
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
    float a[BESIDE * N]; /* for RWKV 6: u k */
    float b[BESIDE * N];
};

/* Thread j owns column j of the state, and value channel j of all tokens. */
template <bool SEVEN>
static __global__ void __launch_bounds__(N) wkv_tokens(struct wkv w)
{
    let_next_start();
    wait_for_inputs();
    SHARED(struct tokens, m);
    const struct wkv_rows &in = w.in;
    const struct wkv_place p = place_here(in, w.at);
    const unsigned j = threadIdx.x;
    float *state = w.state + p.state, s[N];
    bool there = j < p.E;
    for (unsigned i = 0; i < N; i++)
        s[i] = there && i < p.E ? state[i * p.E + j] : 0.0f;
    for (size_t first = 0; first < p.rows; first += BESIDE) {
        const size_t n = tokens_from(p, first, BESIDE);
        __syncthreads();
        for (size_t t = 0; t < n; t++) {
            size_t at = (p.first + first + t) * p.stride + p.head * p.E + j, i = t * N + j;
            float k = there ? in.k[at] : 0.0f;
            m->r[i] = there ? in.r[at] : 0.0f;
            m->k[i] = k;
            m->decay[i] = there ? expf(in.w[at]) : 1.0f;
            if (SEVEN)
                m->b[i] = there ? in.b[at] : 0.0f;
            m->a[i] = !there ? 0.0f : SEVEN ? in.a[at] : k * in.u[p.head * p.E + j];
        }
        __syncthreads();
        for (size_t t = 0; t < n; t++) {
            size_t at = (p.first + first + t) * p.stride + p.head * p.E + j;
            float v = there ? in.v[at] : 0.0f, x = 0, part[SUMS] = {0, 0, 0, 0};
            for (unsigned i = 0; SEVEN && i < N; i++)
                part[i % SUMS] = fmaf(m->a[t * N + i], s[i], part[i % SUMS]);
            if (SEVEN)
                x = (part[0] + part[1]) + (part[2] + part[3]);
            for (unsigned i = 0; i < SUMS; i++)
                part[i] = 0;
            for (unsigned i = 0; i < N; i++) {
                float next = fmaf(m->k[t * N + i], v, s[i] * m->decay[t * N + i]);
                float seen = SEVEN ? fmaf(m->b[t * N + i], x, next)
                                   : fmaf(m->a[t * N + i], v, s[i]);
                part[i % SUMS] = fmaf(m->r[t * N + i], seen, part[i % SUMS]);
                s[i] = SEVEN ? seen : next;
            }
            if (there)
                w.y[at] = (part[0] + part[1]) + (part[2] + part[3]);
        }
    }
    for (unsigned i = 0; i < N; i++)
        if (there && i < p.E)
            state[i * p.E + j] = s[i];
}

/* ---- chunks ---- */

struct wkv_room {
    float s[N * N];
    struct wkv_tokens c;
    float whole[N]; /* D(0, C] */
};

/* Thread (0, i) scales r and a by the decay before each token, thread (1, i) k and b by the decay
 * after it. */
template <bool SEVEN> DEVICE void scale(struct wkv_room *m)
{
    struct wkv_tokens *c = &m->c;
    const unsigned i = threadIdx.x % N, g = threadIdx.x / N;
    float decay = 1;
    for (unsigned t = 0; g == 0 && t < C; t++) {
        float before = decay;
        decay *= c->decay[t * N + i];
        c->r[t * N + i] *= SEVEN ? decay : before;
        if (SEVEN)
            c->a[t * N + i] *= before;
    }
    if (g == 0)
        m->whole[i] = decay;
    for (unsigned t = C; g == 1 && t-- > 0;) {
        c->keys[t * N + i] *= decay;
        if (SEVEN)
            c->keys[(C + t) * N + i] *= decay;
        decay *= c->decay[t * N + i];
    }
}

/* x of all tokens; a is scaled. Thread (0, i) does the forward substitution. */
DEVICE void solve(struct wkv_room *m)
{
    struct wkv_tokens *c = &m->c;
    const unsigned i = threadIdx.x % N, g = threadIdx.x / N;
    float sum[TOKENS_EACH] = {}, *x = c->values + C * N;
    add_product(sum, c->a, N, m->s, N);
    add_product(sum, c->solve, PAIR_ROW, c->values, C);
    for (unsigned t = 0; t < TOKENS_EACH; t++)
        x[(g * TOKENS_EACH + t) * N + i] = sum[t];
    __syncthreads();
    float own[C];
    for (unsigned t = 0; g == 0 && t < C; t++) {
        own[t] = x[t * N + i];
        for (unsigned q = 0; q < t; q++)
            own[t] = fmaf(c->solve[t * PAIR_ROW + C + q], own[q], own[t]);
        x[t * N + i] = own[t];
    }
    __syncthreads();
}

/* The outputs of the first n tokens. */
template <bool SEVEN>
DEVICE void read_out(struct wkv_room *m, float *y, const struct wkv_place &p, size_t n)
{
    const unsigned i = threadIdx.x % N, first = threadIdx.x / N * TOKENS_EACH;
    float sum[TOKENS_EACH] = {};
    add_product(sum, m->c.r, N, m->s, N);
    add_product(sum, m->c.read, PAIR_ROW, m->c.values, SEVEN ? 2 * C : C);
    for (unsigned t = 0; t < TOKENS_EACH; t++)
        if (first + t < n && i < p.E)
            y[(first + t) * p.stride + p.head * p.E + i] = sum[t];
}

/* Writes the state before chunk `number`, or behind the last one; and x of a chunk. */
DEVICE void keep_state(const struct wkv_room *m, const struct wkv_kept &to, size_t head,
                       size_t number)
{
    float *state = to.states + (head * (to.chunks + 1) + number) * N * N;
    for (unsigned i = threadIdx.x; i < N * N; i += THREADS)
        state[i] = m->s[i];
}

DEVICE void keep_x(const struct wkv_room *m, const struct wkv_kept &to, size_t head, size_t number)
{
    float *x = to.xs + (head * to.chunks + number) * C * N;
    for (unsigned i = threadIdx.x; i < C * N; i += THREADS)
        x[i] = m->c.values[C * N + i];
}

/* KEEP: for the gradients, without y; w.state is read (NULL: zeros) and not written. */
template <bool SEVEN, bool KEEP>
static __global__ void __launch_bounds__(THREADS) wkv_chunks_of(struct wkv w, struct wkv_kept to)
{
    let_next_start();
    wait_for_inputs();
    SHARED(struct wkv_room, m);
    const struct wkv_place p = place_here(w.in, w.at);
    const size_t head = p.seq * w.in.heads + p.head;
    state_load(m->s, w.state ? w.state + p.state : NULL, p.E);
    for (size_t first = 0; first < p.rows; first += C) {
        size_t n = tokens_from(p, first, C);
        chunk_load<SEVEN>(&m->c, w.in, p, first, n);
        __syncthreads();
        chunk_scores<SEVEN>(&m->c, 0);
        if (SEVEN)
            chunk_scores<SEVEN>(&m->c, C);
        __syncthreads();
        scale<SEVEN>(m);
        __syncthreads();
        if (SEVEN)
            solve(m);
        if (KEEP)
            keep_state(m, to, head, first / C);
        else
            read_out<SEVEN>(m, w.y + (p.first + first) * p.stride, p, n);
        if (KEEP && SEVEN)
            keep_x(m, to, head, first / C);
        __syncthreads();
        add_outer(m->s, m->whole, m->c.keys, m->c.values, SEVEN ? 2 * C : C);
        __syncthreads();
    }
    __syncthreads(); /* if there was no chunk */
    if (KEEP)
        keep_state(m, to, head, (p.rows + C - 1) / C);
    else
        state_store(w.state + p.state, m->s, p.E);
}

/* ---- launches ---- */

static dim3 heads_of(const struct wkv_rows *in)
{
    assert(in->head_dim <= N);
    return dim3((unsigned)in->heads, (unsigned)in->n_seqs);
}

size_t cuda_wkv_work(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                     size_t head_dim)
{
    (void)b, (void)n_seqs, (void)max_rows, (void)heads, (void)head_dim;
    return 0;
}

void cuda_wkv(struct backend *b, const struct wkv *w, void *work)
{
    struct range here("wkv");
    const struct wkv_kept none = {};
    (void)work;
    if (w->form == WKV_AUTO ? w->in.max_rows >= C : w->form == WKV_CHUNKED)
        launch(b, w->in.a ? wkv_chunks_of<true, false> : wkv_chunks_of<false, false>,
               heads_of(&w->in), dim3(THREADS), sizeof(struct wkv_room), *w, none);
    else
        launch(b, w->in.a ? wkv_tokens<true> : wkv_tokens<false>, heads_of(&w->in), dim3(N),
               sizeof(struct tokens), *w);
}

void cuda_wkv_keep(struct backend *b, const struct wkv_rows *in, const float *state,
                   const struct wkv_kept *to)
{
    const struct wkv w = {*in, const_cast<float *>(state), NULL, WKV_CHUNKED, NULL};
    launch(b, in->a ? wkv_chunks_of<true, true> : wkv_chunks_of<false, true>, heads_of(in),
           dim3(THREADS), sizeof(struct wkv_room), w, *to);
}
