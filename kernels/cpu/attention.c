/* attention.c - softmax(q k^T / sqrt(E)) v over a list of cache slots.
 *
 * One task owns one (sequence, key head). It copies that head's keys (transposed) and values out of
 * the cache once, into its worker's scratch, and then runs tiles of query rows through the product
 * kernel: scores, softmax, values. The scores of ROWS rows exist at a time, never the whole T x T.
 */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/tile.h"
#include "kernels/host.h"

enum { ROWS = 4 * TILE_ROWS };

static size_t padded(size_t n) { return (n + PANEL - 1) / PANEL * PANEL; }

/* Floats of scratch for one worker: keys [E, S'], values [S, E'], scores [ROWS, S']. */
static size_t worker_floats(size_t slots, size_t E)
{
    return E * padded(slots) + slots * padded(E) + (size_t)ROWS * padded(slots) + 64;
}

size_t CPU(attention_work)(const struct backend *b, size_t max_rows, size_t max_slots,
                           size_t head_dim, size_t group)
{
    (void)max_rows, (void)group;
    return pool_threads(b->pool) * worker_floats(max_slots, head_dim);
}

struct scratch {
    float *keys, *values, *scores;
    size_t S; /* padded number of slots: the row stride of keys and scores */
};

static float cached(const struct attn *a, const void *cache, size_t i)
{
    return a->kv_dtype == DTYPE_F32 ? ((const float *)cache)[i]
                                    : bf16_float(((const uint16_t *)cache)[i]);
}

static void fetch(const struct attn *a, const struct attn_seq *s, size_t kh,
                  const struct scratch *w)
{
    size_t E = a->head_dim, stride = a->kv_heads * E, Ep = padded(E);
    for (size_t j = 0; j < w->S; j++) {
        size_t at = j < s->n_slots ? (size_t)s->slots[j] * stride + kh * E : 0;
        for (size_t e = 0; e < E; e++)
            w->keys[e * w->S + j] = j < s->n_slots ? cached(a, a->k, at + e) : 0;
    }
    for (size_t j = 0; j < s->n_slots; j++) {
        for (size_t e = 0; e < E; e++)
            w->values[j * Ep + e] = cached(a, a->v, (size_t)s->slots[j] * stride + kh * E + e);
        memset(w->values + j * Ep + E, 0, (Ep - E) * sizeof(float));
    }
}

/* The last position that a row at `pos` may see. */
static int32_t last_seen(const struct attn *a, int32_t pos)
{
    if (a->mask == MASK_FULL)
        return INT32_MAX;
    if (a->mask == MASK_CAUSAL)
        return pos;
    int32_t block = (int32_t)a->mask_block;
    return (pos / block + 1) * block - 1;
}

static void mask_row(const struct attn *a, const struct attn_seq *s, int32_t pos, float *scores)
{
    int32_t last = last_seen(a, pos);
    if (last == INT32_MAX)
        return;
    for (size_t j = 0; j < s->n_slots; j++)
        scores[j] = s->slot_pos[j] <= last ? scores[j] : -INFINITY;
}

static void attend(const struct attn *a, const struct attn_seq *s, size_t h,
                   const struct scratch *w)
{
    size_t E = a->head_dim, HE = a->heads * E, n = s->n_slots;
    float scale = (float)(1 / sqrt((double)E));
    for (size_t r = 0; r < s->rows; r += ROWS) {
        size_t rows = s->rows - r < ROWS ? s->rows - r : ROWS, row = s->row_begin + r;
        CPU(product)
        (rows, w->S, E, a->q + row * HE + h * E, HE, 1, w->keys, w->S, w->scores, w->S, 0);
        for (size_t i = 0; i < rows; i++) {
            mask_row(a, s, a->pos[row + i], w->scores + i * w->S);
            softmax_row(w->scores + i * w->S, n, scale);
        }
        CPU(product)
        (rows, E, n, w->scores, w->S, 1, w->values, padded(E), a->y + row * HE + h * E, HE, 0);
    }
}

struct job {
    const struct attn *a;
    float *work;
    size_t worker_size;
};

static void heads_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct job *job = ctx;
    const struct attn *a = job->a;
    size_t group = a->heads / a->kv_heads;
    for (size_t i = begin; i < end; i++) {
        const struct attn_seq *s = &a->seqs[i / a->kv_heads];
        size_t kh = i % a->kv_heads, S = padded(s->n_slots);
        float *base = job->work + worker * job->worker_size;
        struct scratch w = {.keys = base, .S = S};
        w.scores = base + a->head_dim * S;
        w.values = w.scores + (size_t)ROWS * S;
        fetch(a, s, kh, &w);
        for (size_t h = kh * group; h < (kh + 1) * group; h++)
            attend(a, s, h, &w);
    }
}

void CPU(attention)(struct backend *b, const struct attn *a, float *work)
{
    size_t most = 1, pairs = 1, tasks = a->n_seqs * a->kv_heads;
    for (size_t s = 0; s < a->n_seqs; s++) {
        most = a->seqs[s].n_slots > most ? a->seqs[s].n_slots : most;
        pairs += a->seqs[s].rows * a->seqs[s].n_slots;
    }
    /* below 64k products a part costs less than waking a thread for it */
    size_t products = 2 * pairs * a->heads * a->head_dim / (tasks ? tasks : 1);
    struct job job = {a, work, worker_floats(most, a->head_dim)};
    pool_run(b->pool, tasks, 65536 / (products + 1) + 1, heads_part, &job);
}
