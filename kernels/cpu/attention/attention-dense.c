/* attention-dense.c - attention with its scores in memory: for `dense` heads at a time the products
 * of all rows with all keys are stored in work, become probabilities, and multiply the values. It
 * exists to measure how much memory attention.c saves, which never stores more than a tile of
 * scores. It uses the products of gemm.c and a softmax of rows.
 *
 *     work:  scores [dense, T, S']: a row uses as many as its sequence has keys; S' is the largest
 *              number of keys, rounded up to whole vectors
 *            keys and values of one sequence and key head as rows of floats, [S, E] each
 *            the work of a product
 *
 * The bits of a row depend only on the row and its key list, not on the number of heads in work. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/attention/fetch.h"
#include "kernels/cpu/softmax.h"
#include "kernels/host.h"
#include "lib/base/order.h"

struct dense_room {
    size_t row, head; /* in floats: row, the length of a row of scores; head, the scores of one
                       * head */
    size_t keys;      /* bytes of the keys; the values take as many */
    float *scores, *k, *v;
    void *rest;
};

static size_t scores_bytes(size_t T, size_t max_slots, size_t dense)
{
    return memory_rounded(dense * T * up(max_slots, LANES) * sizeof(float));
}

static struct dense_room room_of(const struct attn *attention, void *work)
{
    struct dense_room room = {
        .row = up(attention->max_slots, LANES),
        .keys = memory_rounded(attention->max_slots * attention->head_dim * sizeof(float))};
    char *at = (char *)work + scores_bytes(attention->T, attention->max_slots, attention->dense);
    room.head = attention->T * room.row;
    room.scores = work;
    room.k = (float *)(void *)at;
    room.v = (float *)(void *)(at + room.keys);
    room.rest = at + 2 * room.keys;
    return room;
}

size_t CPU(attention_dense_work)(const struct backend *backend, size_t T, size_t max_slots,
                                 size_t head_dim, size_t dense)
{
    return scores_bytes(T, max_slots, dense) +
           2 * memory_rounded(max_slots * head_dim * sizeof(float)) +
           order_max(CPU(gemm_work)(backend, T, max_slots, head_dim),
                     CPU(gemm_work)(backend, T, head_dim, max_slots));
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
    const struct turn *turn = ctx;
    const struct attn *attention = turn->a;
    const size_t E = attention->head_dim;
    (void)worker;
    for (size_t j = begin; j < end; j++) {
        size_t slot = (size_t)attention->slots[(size_t)turn->s->slot_begin + j];
        size_t at = (slot * attention->kv_heads + turn->kh) * E;
        for (size_t e = 0; e < E && attention->kv.dtype == DTYPE_BF16; e++) {
            turn->room.k[j * E + e] = bf16_float(((const uint16_t *)attention->kv.k)[at + e]);
            turn->room.v[j * E + e] = bf16_float(((const uint16_t *)attention->kv.v)[at + e]);
        }
        if (attention->kv.dtype == DTYPE_F32) {
            memcpy(turn->room.k + j * E, (const float *)attention->kv.k + at, E * sizeof(float));
            memcpy(turn->room.v + j * E, (const float *)attention->kv.v + at, E * sizeof(float));
        }
    }
}

/* The last position that a row at `pos` may see. */
static int32_t last_seen(const struct attn *attention, int32_t pos)
{
    int32_t block = (int32_t)attention->mask_block;
    return attention->mask == MASK_FULL     ? INT32_MAX
           : attention->mask == MASK_CAUSAL ? pos
                                            : (pos / block + 1) * block - 1;
}

static void softmax_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct turn *turn = ctx;
    const struct attn *attention = turn->a;
    const int32_t *slot_pos = attention->slot_pos + turn->s->slot_begin;
    const float scale = (float)(1 / sqrt((double)attention->head_dim));
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        float *score = turn->scores + i * turn->room.row;
        int32_t last = last_seen(attention, attention->pos[(size_t)turn->s->row_begin + i]),
                n = turn->s->n_slots;
        int32_t first = attention->window ? last - (int32_t)attention->window + 1 : INT32_MIN;
        int odd = 0;
        for (int32_t j = 0; j < n; j++) {
            score[j] = slot_pos[j] <= last && slot_pos[j] >= first ? score[j] : -INFINITY;
            odd |= score[j] != score[j];
        }
        softmax_row(score, (size_t)n, scale);
        for (int32_t j = 0; j < n && odd; j++) /* if a score is NaN the row is NaN; the maximum in
                                                * softmax_row() may skip NaN */
            score[j] = NAN;
    }
}

static void one_turn(struct backend *backend, struct turn *turn)
{
    const struct attn *attention = turn->a;
    const size_t E = attention->head_dim, rows = (size_t)turn->s->rows,
                 slots = (size_t)turn->s->n_slots;
    const size_t first = ((size_t)turn->s->row_begin * attention->heads + turn->head) * E,
                 HE = attention->heads * E;
    const enum dtype dtype = BF16_DOT && attention->half ? DTYPE_BF16 : DTYPE_F32;
    const struct gemm scores = {.M = rows, .N = slots, .K = E, .ldc = turn->room.row,
                                .dtype = dtype, .a = {(const float *)attention->q + first, HE, 1},
                                .b = {turn->room.k, E, 1}, .c = turn->scores};
    const struct gemm values = {.M = rows, .N = E, .K = slots, .ldc = HE, .dtype = dtype,
                                .a = {turn->scores, turn->room.row, 1},
                                .b = {turn->room.v, 1, E}, .c = (float *)attention->y + first};
    CPU(gemm)(backend, &scores, 1, turn->room.rest);
    pool_run(backend->pool, rows, grain(16 * slots), softmax_part, turn);
    CPU(gemm)(backend, &values, 1, turn->room.rest);
}

void CPU(attention_dense)(struct backend *backend, const struct attn *attention, void *work)
{
    const struct dense_room room = room_of(attention, work);
    const size_t group = attention->heads / attention->kv_heads;
    for (size_t head = 0; head < attention->heads; head++)
        for (size_t sequence = 0; sequence < attention->n_seqs; sequence++) {
            const struct attn_seq *own = &attention->seqs[sequence];
            struct turn turn = {
                .a = attention, .s = own, .head = head, .kh = head / group, .room = room};
            turn.scores = room.scores + head % attention->dense * room.head +
                          (size_t)own->row_begin * room.row;
            if (head % group == 0 || attention->n_seqs > 1)
                pool_run(backend->pool, (size_t)own->n_slots, grain(2 * attention->head_dim),
                         fetch_part, &turn);
            one_turn(backend, &turn);
        }
}
