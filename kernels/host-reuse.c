/* host-reuse.c - the operations of reuse.h on the host. Sums are doubles in ascending order.
 * Threads divide the rows, and a row's score does not depend on the rows beside it. The choice by
 * scores is little work and runs sequence by sequence, on one thread. */
#include "kernels/reuse.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/host.h"

enum { WORTH_A_THREAD = 65536 };

/* The number of rows for one part of a loop whose rows take `operations` operations each. */
static size_t grain(size_t operations)
{
    return WORTH_A_THREAD / (operations + 1) + 1;
}

/* ---- the lowest scores ---- */

struct rank {
    double score;
    int32_t at;
};

static int by_score(const void *x, const void *y)
{
    const struct rank *a = x, *b = y;
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static int by_place(const void *x, const void *y)
{
    const struct rank *a = x, *b = y;
    return a->at < b->at ? -1 : a->at > b->at;
}

static struct rank rank_of(double score, int32_t at)
{
    return (struct rank){score == score ? score : -INFINITY, at};
}

/* Puts the `take` entries of lowest score first, sorted by place. */
static void least_first(struct rank *rank, size_t n, size_t take)
{
    assert(take <= n);
    qsort(rank, n, sizeof *rank, by_score);
    qsort(rank, take, sizeof *rank, by_place);
}

/* ---- choose ---- */

struct drift_loop {
    const struct drift *d;
    double *score; /* [T] */
};

/* Returns the signed square of the cosine, which has the same order as the cosine, and replaces the
 * stored values by the values of the row. */
static double drift_row(const struct drift *drift, size_t row)
{
    const float *values = (const float *)drift->v + row * drift->n;
    size_t at = (size_t)drift->slot[row] * drift->n;
    double dot = 0, now = 0, was = 0;
    for (size_t i = 0; i < drift->n; i++) {
        float x = drift->bias ? values[i] + drift->bias[i] : values[i],
              y = host_value(drift->kept, drift->dtype, at + i);
        if (drift->dtype == DTYPE_F32) {
            ((float *)drift->kept)[at + i] = x;
        } else {
            ((uint16_t *)drift->kept)[at + i] = bf16_of(x);
            x = host_value(drift->kept, drift->dtype, at + i);
        }
        dot += (double)x * y;
        now += (double)x * x;
        was += (double)y * y;
    }
    return now == 0 || was == 0 ? 0 : dot * fabs(dot) / (now * was);
}

static void drift_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct drift_loop *loop = ctx;
    (void)worker;
    for (size_t row = begin; row < end; row++)
        loop->score[row] = drift_row(loop->d, row);
}

static void choose_of(const struct drift *drift, size_t i, const double *score, struct rank *rank)
{
    const struct attn_seq *sequence = &drift->seqs[i];
    const struct share *share = &drift->part[i];
    const struct chosen *to = &drift->to;
    for (int32_t j = 0; j < sequence->rows; j++) {
        int apart = j >= share->first && j < share->first + share->n;
        rank[j] = rank_of(apart ? -INFINITY : score[sequence->row_begin + j],
                          sequence->row_begin + j);
        to->place[sequence->row_begin + j] = -1;
    }
    least_first(rank, (size_t)sequence->rows, (size_t)share->take);
    for (int32_t j = 0; j < share->take; j++) {
        int32_t row = rank[j].at;
        to->row[share->out + j] = row;
        to->slot[share->out + j] = drift->slot[row];
        to->pos[share->out + j] = drift->pos[row];
        to->place[row] = share->out + j;
    }
}

void host_choose(struct backend *backend, const struct drift *drift, void *work)
{
    struct drift_loop loop = {drift, work};
    pool_run(backend->pool, drift->T, grain(6 * drift->n), drift_rows, &loop);
    for (size_t i = 0; i < drift->n_seqs; i++)
        choose_of(drift, i, loop.score, (struct rank *)(void *)(loop.score + drift->T));
}

/* ---- settle ---- */

static void settle_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct outputs *outputs = ctx;
    (void)worker;
    for (size_t row = begin; row < end; row++) {
        int32_t place = outputs->place ? outputs->place[row] : (int32_t)row;
        float *x = (float *)outputs->x + row * outputs->D,
              *kept = (float *)outputs->kept + (size_t)outputs->slot[row] * outputs->D;
        const float *sum = (const float *)outputs->sum +
                           (place < 0 ? 0 : (size_t)place * outputs->D);
        for (size_t i = 0; i < outputs->D; i++) {
            kept[i] = place < 0 ? kept[i] : sum[i] - x[i];
            x[i] = place < 0 ? x[i] + kept[i] : sum[i];
        }
    }
}

void host_settle(struct backend *backend, const struct outputs *outputs)
{
    pool_run(backend->pool, outputs->T, grain(4 * outputs->D), settle_rows,
             (void *)(uintptr_t)outputs);
}

/* ---- sift ---- */

struct sift_loop {
    const struct sift *s;
    double *asked; /* [n_seqs, K*E] sums of the block's queries over rows, and over the heads that
                    * share a key head */
    double *score; /* [T] */
};

static void add_queries(const struct sift *sift, size_t i, double *asked)
{
    size_t E = sift->head_dim, KE = sift->kv_heads * E, group = sift->heads / sift->kv_heads;
    const struct share *share = &sift->part[i];
    size_t first = (size_t)(sift->seqs[i].row_begin + share->first);
    memset(asked, 0, KE * sizeof *asked);
    for (size_t row = first; row < first + (size_t)share->n; row++)
        for (size_t head = 0; head < sift->heads; head++)
            for (size_t e = 0; e < E; e++)
                asked[head / group * E + e] +=
                    ((const float *)sift->q)[(row * sift->heads + head) * E + e];
}

static void score_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct sift_loop *loop = ctx;
    const struct sift *sift = loop->s;
    size_t n = sift->kv_heads * sift->head_dim, i = 0;
    (void)worker;
    for (size_t row = begin; row < end; row++) {
        while (row >= (size_t)(sift->seqs[i].row_begin + sift->seqs[i].rows))
            i++;
        double sum = 0;
        for (size_t e = 0; e < n; e++)
            sum += loop->asked[i * n + e] *
                   (double)host_value(sift->from.k, sift->from.dtype, row * n + e);
        loop->score[row] = sum;
    }
}

/* The row at place j among the rows of the sequence outside the block. */
static int32_t outside(const struct share *share, int32_t j)
{
    return j < share->first ? j : j + share->n;
}

static void copy_slot(const struct sift *sift, size_t row, size_t slot)
{
    size_t bytes = sift->kv_heads * sift->head_dim * dtype_value_bytes(sift->to.dtype);
    memcpy((char *)sift->to.k + slot * bytes, (const char *)sift->from.k + row * bytes, bytes);
    memcpy((char *)sift->to.v + slot * bytes, (const char *)sift->from.v + row * bytes, bytes);
}

static void sift_of(const struct sift *sift, size_t i, const double *score, struct rank *rank)
{
    const struct share *share = &sift->part[i];
    int32_t base = sift->seqs[i].row_begin, n = sift->seqs[i].rows - share->n;
    for (int32_t j = 0; j < n; j++) {
        double most = score[base + outside(share, j)];
        for (int32_t k = j ? j - 1 : j; k <= j + 1 && k < n; k++)
            most = fmax(most, score[base + outside(share, k)]);
        rank[j] = rank_of(-most, base + outside(share, j));
    }
    least_first(rank, (size_t)n, (size_t)share->take);
    for (int32_t j = 0; j < share->take; j++)
        copy_slot(sift, (size_t)rank[j].at, (size_t)(share->out + j));
}

void host_sift(struct backend *backend, const struct sift *sift, void *work)
{
    size_t n = sift->kv_heads * sift->head_dim;
    struct sift_loop loop = {sift, work, (double *)work + sift->n_seqs * n};
    for (size_t i = 0; i < sift->n_seqs; i++)
        add_queries(sift, i, loop.asked + i * n);
    pool_run(backend->pool, sift->T, grain(2 * n), score_rows, &loop);
    for (size_t i = 0; i < sift->n_seqs; i++)
        sift_of(sift, i, loop.score, (struct rank *)(void *)(loop.score + sift->T));
}
