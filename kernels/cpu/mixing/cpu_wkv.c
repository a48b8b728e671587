/* cpu_wkv.c - time mixing (kernels/wkv.h) on the CPU. A thread owns one head of one sequence.
 * Lanes are value channels.
 *
 * Cost per token and value of the state (E^2 values): the chunked form needs 2 multiply-adds (RWKV
 * 7: 4), and the scores of token pairs; the recurrent form needs 3 operations (RWKV 7: 5), the
 * decay included. The chunked form also moves the state through registers only twice a chunk (RWKV
 * 7: three times), the recurrent form once a token. */
#include "kernels/cpu/mixing/cpu_wkv.h"
#include "lib/base/order.h"

enum { TOGETHER = 8 /* heads whose states and rows fit the L2 cache */ };

/* ---- the chunked form ---- */

static void chunk_step(struct wkv_chunk *chunk, float *state, float *y)
{
    CPU(wkv_chunk_scores)(chunk);
    if (chunk->removes)
        CPU(wkv_chunk_solve)(chunk, state);
    CPU(wkv_chunk_read)(chunk, state, y);
    CPU(wkv_chunk_carry)(chunk, state);
}

/* ---- the recurrent form ---- */

/* Computes value channels j .. j + regs * LANES - 1 of y of a token, and of the state behind the
 * token. */
INLINE void token_columns(const int regs, const int removes, const struct wkv_chunk *chunk,
                          size_t token, float *state, size_t j, float *y)
{
    const size_t width = chunk->width, at = token * width;
    const float *back = chunk->keys + TOKENS * width;
    vec value[4], x[4], sum[4];
    for (int lane = 0; lane < regs; lane++) {
        value[lane] = load(chunk->values + at + j + (size_t)lane * LANES);
        x[lane] = sum[lane] = (vec){0};
    }
    for (size_t i = 0; removes && i < chunk->E; i++)
        for (int lane = 0; lane < regs; lane++)
            x[lane] += load(state + i * width + j + (size_t)lane * LANES) * chunk->a[at + i];
    float own = 0;
    for (size_t i = 0; i < chunk->E; i++) {
        const float receptance = chunk->r[at + i], k = chunk->keys[at + i],
                    decay = chunk->decay[at + i];
        if (!removes)
            own += receptance * chunk->bonus[i] * k;
        for (int lane = 0; lane < regs; lane++) {
            float *row = state + i * width + j + (size_t)lane * LANES;
            vec entry = load(row), next = entry * decay + value[lane] * k;
            if (removes)
                next += x[lane] * back[at + i];
            sum[lane] += (removes ? next : entry) * receptance;
            put(row, next);
        }
    }
    for (int lane = 0; lane < regs; lane++)
        put(y + j + (size_t)lane * LANES, removes ? sum[lane] : sum[lane] + value[lane] * own);
}

INLINE void token_step(const int removes, const struct wkv_chunk *chunk, size_t token, float *state,
                       float *y)
{
    size_t j = 0;
    for (; j + 4 * LANES <= chunk->width; j += 4 * LANES)
        token_columns(4, removes, chunk, token, state, j, y);
    for (; j < chunk->width; j += PANEL)
        token_columns(2, removes, chunk, token, state, j, y);
}

static void tokens_step(struct wkv_chunk *chunk, float *state, float *y)
{
    for (size_t token = 0; token < chunk->tokens; token++) {
        if (chunk->removes)
            token_step(1, chunk, token, state, chunk->left);
        else
            token_step(0, chunk, token, state, chunk->left);
        memcpy(y + token * chunk->stride, chunk->left, chunk->E * sizeof *y);
        CPU(wkv_chunk_fetch)(chunk, chunk->sources);
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

size_t CPU(wkv_work)(const struct backend *backend, size_t n_seqs, size_t max_rows, size_t heads,
                     size_t head_dim)
{
    (void)n_seqs, (void)max_rows, (void)heads;
    return pool_threads(backend->pool) * worker_floats(head_dim) * sizeof(float);
}

static int chunked(const struct wkv *wkv, size_t rows)
{
    return wkv->form == WKV_AUTO ? !wkv->in.a && rows >= TOKENS : wkv->form == WKV_CHUNKED;
}

/* Runs rows row .. row + n - 1 of one head, whose state is `state`. */
static void head_step(const struct wkv *wkv, struct wkv_chunk *chunk, int by_chunks, size_t row,
                      size_t n, size_t head, float *state, float *room)
{
    const size_t E = chunk->E, width = chunk->width;
    float *matrix = width == E ? state : room, *y = wkv->y + (row * wkv->in.heads + head) * E;
    CPU(wkv_chunk_load)(chunk, &wkv->in, row, n, head);
    chunk->next[chunk->sources++] = y + TOKENS * chunk->stride;
    if (matrix != state)
        wkv_rows_in(matrix, width, state, E, E, E);
    (by_chunks ? chunk_step : tokens_step)(chunk, matrix, y);
    if (matrix != state)
        wkv_rows_out(state, E, matrix, width, E, E);
}

/* Runs heads first .. last - 1 of a sequence. The heads take turns of TOKENS rows, so that adjacent
 * memory is read at about the same time. */
static void some_rows(const struct wkv *wkv, struct wkv_chunk *chunk, size_t seq, size_t first,
                      size_t last, float *room)
{
    const struct attn_seq *sequence = &wkv->in.seqs[seq];
    const size_t rows = (size_t)sequence->rows, E = chunk->E,
                 own = wkv->at ? (size_t)wkv->at[seq] : seq;
    const int by_chunks = chunked(wkv, rows);
    for (size_t done = 0; done < rows; done += TOKENS) {
        chunk->last = rows - done <= TOKENS;
        for (size_t head = first; head < last; head++)
            head_step(wkv, chunk, by_chunks, (size_t)sequence->row_begin + done,
                      order_min(TOKENS, rows - done), head,
                      wkv->state + (own * wkv->in.heads + head) * E * E, room);
    }
}

static void some_heads(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct wkv_job *j = ctx;
    const struct wkv_rows *in = &j->a->in;
    const size_t H = in->heads;
    float *work = j->work + worker * worker_floats(in->head_dim);
    struct wkv_chunk chunk = CPU(wkv_chunk_cut)(in, work);
    for (size_t i = begin, next; i < end; i = next) {
        next = order_min(i + TOGETHER, order_min(end, (i / H + 1) * H));
        some_rows(j->a, &chunk, i / H, i % H, next - i / H * H,
                  work + CPU(wkv_chunk_floats)(in->head_dim));
    }
}

void CPU(wkv)(struct backend *backend, const struct wkv *a, void *work)
{
    struct wkv_job j = {a, work};
    const size_t E = a->in.head_dim;
    pool_run(backend->pool, a->in.n_seqs * a->in.heads, grain(4 * E * E * a->in.max_rows),
             some_heads, &j);
}
