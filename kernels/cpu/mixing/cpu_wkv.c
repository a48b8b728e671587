/* cpu_wkv.c - time mixing (kernels/wkv.h) on the CPU. A thread owns one head of one sequence.
 * Lanes are value channels.
 *
 * Cost per token, in multiply-adds on the E^2 state: the chunked form needs 2 (RWKV 7: 4) plus
 * the products of token pairs; the recurrent form needs 3 operations (RWKV 7: 5), the decay
 * included. The chunked form also moves the state through registers only twice a chunk (RWKV 7:
 * three times), the recurrent form once a token. */
#include "kernels/cpu/mixing/cpu_wkv.h"
#include "lib/base/order.h"

enum { TOGETHER = 8 /* heads whose states and rows fit the second cache */ };

/* ---- the chunked form ---- */

static void chunk_step(struct wkv_chunk *c, float *S, float *y)
{
    CPU(wkv_chunk_scores)(c);
    if (c->removes)
        CPU(wkv_chunk_solve)(c, S);
    CPU(wkv_chunk_read)(c, S, y);
    CPU(wkv_chunk_carry)(c, S);
}

/* ---- the recurrent form ---- */

/* Value channels j .. j + regs * LANES - 1 of token t: y, and the state behind the token. */
INLINE void token_columns(const int regs, const int removes, const struct wkv_chunk *c, size_t t,
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

INLINE void token_step(const int removes, const struct wkv_chunk *c, size_t t, float *S, float *y)
{
    size_t j = 0;
    for (; j + 4 * LANES <= c->width; j += 4 * LANES)
        token_columns(4, removes, c, t, S, j, y);
    for (; j < c->width; j += PANEL)
        token_columns(2, removes, c, t, S, j, y);
}

static void tokens_step(struct wkv_chunk *c, float *S, float *y)
{
    for (size_t t = 0; t < c->tokens; t++) {
        if (c->removes)
            token_step(1, c, t, S, c->left);
        else
            token_step(0, c, t, S, c->left);
        memcpy(y + t * c->stride, c->left, c->E * sizeof *y);
        CPU(wkv_chunk_fetch)(c, c->sources);
    }
}

/* ---- heads ---- */

struct wkv_job {
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

/* Runs rows row .. row + n - 1 of a head. state: the state of the head. */
static void head_step(const struct wkv *a, struct wkv_chunk *c, int by_chunks, size_t row, size_t n,
                      size_t h, float *state, float *room)
{
    const size_t E = c->E, width = c->width;
    float *S = width == E ? state : room, *y = a->y + (row * a->in.heads + h) * E;
    CPU(wkv_chunk_load)(c, &a->in, row, n, h);
    c->next[c->sources++] = y + TOKENS * c->stride;
    if (S != state)
        wkv_rows_in(S, width, state, E, E, E);
    (by_chunks ? chunk_step : tokens_step)(c, S, y);
    if (S != state)
        wkv_rows_out(state, E, S, width, E, E);
}

/* Runs heads first .. last - 1 of a sequence, TOKENS rows of each in turn, so that adjacent memory
 * is read soon after. */
static void some_rows(const struct wkv *a, struct wkv_chunk *c, size_t seq, size_t first,
                      size_t last, float *room)
{
    const struct attn_seq *s = &a->in.seqs[seq];
    const size_t rows = (size_t)s->rows, E = c->E, own = a->at ? (size_t)a->at[seq] : seq;
    const int by_chunks = chunked(a, rows);
    for (size_t done = 0; done < rows; done += TOKENS) {
        c->last = rows - done <= TOKENS;
        for (size_t h = first; h < last; h++)
            head_step(a, c, by_chunks, (size_t)s->row_begin + done,
                      order_min(TOKENS, rows - done), h,
                      a->state + (own * a->in.heads + h) * E * E, room);
    }
}

static void some_heads(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct wkv_job *j = ctx;
    const struct wkv_rows *in = &j->a->in;
    const size_t H = in->heads;
    float *work = j->work + worker * worker_floats(in->head_dim);
    struct wkv_chunk c = CPU(wkv_chunk_cut)(in, work);
    for (size_t i = begin, next; i < end; i = next) {
        next = order_min(i + TOGETHER, order_min(end, (i / H + 1) * H));
        some_rows(j->a, &c, i / H, i % H, next - i / H * H,
                  work + CPU(wkv_chunk_floats)(in->head_dim));
    }
}

void CPU(wkv)(struct backend *b, const struct wkv *a, void *work)
{
    struct wkv_job j = {a, work};
    const size_t E = a->in.head_dim;
    pool_run(b->pool, a->in.n_seqs * a->in.heads, grain(4 * E * E * a->in.max_rows), some_heads,
             &j);
}
