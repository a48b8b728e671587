/* attention-dense.c - attention with its scores in memory: for `dense` heads at a time the products
 * of all rows with all keys are stored in work, become probabilities, and multiply the values. It
 * exists to be compared with attention.c, which never stores more than a tile of scores. It is made
 * of existing parts: products (gemm.c) and a softmax of rows.
 *
 *     work:  scores [dense, T, S']: a row uses as many as its sequence has keys; S' is the largest
 *              number of keys, rounded up to whole vectors
 *            keys and values of one sequence and key head as rows of floats, [S, E] each
 *            the work of a product
 *
 * The bits of a row depend only on the row and its key list, not on how many heads are in work. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/attention/fetch.h"
#include "kernels/cpu/softmax.h"
#include "kernels/host.h"
#include "lib/base/order.h"

struct dense_room {
    size_t row, head; /* floats: row, of a row of scores; head, of the scores of one head */
    size_t keys;      /* bytes of the keys; the values take the same */
    float *scores, *k, *v;
    void *rest;
};

static size_t scores_bytes(size_t T, size_t max_slots, size_t dense)
{
    return memory_rounded(dense * T * up(max_slots, LANES) * sizeof(float));
}

static struct dense_room room_of(const struct attn *a, void *work)
{
    struct dense_room r = {.row = up(a->max_slots, LANES),
                           .keys = memory_rounded(a->max_slots * a->head_dim * sizeof(float))};
    char *at = (char *)work + scores_bytes(a->T, a->max_slots, a->dense);
    r.head = a->T * r.row;
    r.scores = work;
    r.k = (float *)(void *)at;
    r.v = (float *)(void *)(at + r.keys);
    r.rest = at + 2 * r.keys;
    return r;
}

size_t CPU(attention_dense_work)(const struct backend *b, size_t T, size_t max_slots,
                                 size_t head_dim, size_t dense)
{
    return scores_bytes(T, max_slots, dense) +
           2 * memory_rounded(max_slots * head_dim * sizeof(float)) +
           order_max(CPU(gemm_work)(b, T, max_slots, head_dim),
                  CPU(gemm_work)(b, T, head_dim, max_slots));
}

/* ---- one sequence, one head ---- */

struct turn {
    const struct attn *a;
    const struct attn_seq *s;
    size_t head, kh;
    struct dense_room room;
    float *scores; /* [rows, room.row] */
};

static void fetch_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct turn *t = ctx;
    const struct attn *a = t->a;
    const size_t E = a->head_dim;
    (void)worker;
    for (size_t j = begin; j < end; j++) {
        size_t slot = (size_t)a->slots[(size_t)t->s->slot_begin + j];
        size_t at = (slot * a->kv_heads + t->kh) * E;
        for (size_t e = 0; e < E && a->kv.dtype == DTYPE_BF16; e++) {
            t->room.k[j * E + e] = bf16_float(((const uint16_t *)a->kv.k)[at + e]);
            t->room.v[j * E + e] = bf16_float(((const uint16_t *)a->kv.v)[at + e]);
        }
        if (a->kv.dtype == DTYPE_F32) {
            memcpy(t->room.k + j * E, (const float *)a->kv.k + at, E * sizeof(float));
            memcpy(t->room.v + j * E, (const float *)a->kv.v + at, E * sizeof(float));
        }
    }
}

/* The last position that a row at `pos` may see. */
static int32_t last_seen(const struct attn *a, int32_t pos)
{
    int32_t block = (int32_t)a->mask_block;
    return a->mask == MASK_FULL     ? INT32_MAX
           : a->mask == MASK_CAUSAL ? pos
                                    : (pos / block + 1) * block - 1;
}

static void softmax_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct turn *t = ctx;
    const struct attn *a = t->a;
    const int32_t *slot_pos = a->slot_pos + t->s->slot_begin;
    const float scale = (float)(1 / sqrt((double)a->head_dim));
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        float *p = t->scores + i * t->room.row;
        int32_t last = last_seen(a, a->pos[(size_t)t->s->row_begin + i]), n = t->s->n_slots;
        int32_t first = a->window ? last - (int32_t)a->window + 1 : INT32_MIN;
        int odd = 0;
        for (int32_t j = 0; j < n; j++) {
            p[j] = slot_pos[j] <= last && slot_pos[j] >= first ? p[j] : -INFINITY;
            odd |= p[j] != p[j];
        }
        softmax_row(p, (size_t)n, scale);
        for (int32_t j = 0; j < n && odd; j++) /* a maximum may skip NaN */
            p[j] = NAN;
    }
}

static void one_turn(struct backend *b, struct turn *t)
{
    const struct attn *a = t->a;
    const size_t E = a->head_dim, rows = (size_t)t->s->rows, S = (size_t)t->s->n_slots;
    const size_t first = ((size_t)t->s->row_begin * a->heads + t->head) * E, HE = a->heads * E;
    const enum dtype dtype = BF16_DOT && a->half ? DTYPE_BF16 : DTYPE_F32;
    const struct gemm scores = {.M = rows, .N = S, .K = E, .ldc = t->room.row, .dtype = dtype,
                                .a = {(const float *)a->q + first, HE, 1},
                                .b = {t->room.k, E, 1}, .c = t->scores};
    const struct gemm values = {.M = rows, .N = E, .K = S, .ldc = HE, .dtype = dtype,
                                .a = {t->scores, t->room.row, 1},
                                .b = {t->room.v, 1, E}, .c = (float *)a->y + first};
    CPU(gemm)(b, &scores, 1, t->room.rest);
    pool_run(b->pool, rows, grain(16 * S), softmax_part, t);
    CPU(gemm)(b, &values, 1, t->room.rest);
}

void CPU(attention_dense)(struct backend *b, const struct attn *a, void *work)
{
    const struct dense_room room = room_of(a, work);
    const size_t group = a->heads / a->kv_heads;
    for (size_t head = 0; head < a->heads; head++)
        for (size_t s = 0; s < a->n_seqs; s++) {
            const struct attn_seq *q = &a->seqs[s];
            struct turn t = {.a = a, .s = q, .head = head, .kh = head / group, .room = room};
            t.scores = room.scores + head % a->dense * room.head +
                       (size_t)q->row_begin * room.row;
            if (head % group == 0 || a->n_seqs > 1)
                pool_run(b->pool, (size_t)q->n_slots, grain(2 * a->head_dim), fetch_part, &t);
            one_turn(b, &t);
        }
}
