/* host-reuse.c - choosing rows on the host (reuse.h). Sums are doubles in ascending order. Threads
 * divide the rows, and a row's score does not depend on the rows beside it. Choosing among scores
 * is little work and runs sequence by sequence. */
#include "kernels/reuse.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/host.h"

enum { WORTH_A_THREAD = 65536 };

/* Rows of one part of a loop, when each row takes `operations`. */
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

/* The signed square of the cosine, which sorts like the cosine. The stored values become those of
 * row t. */
static double drift_row(const struct drift *d, size_t t)
{
    const float *v = (const float *)d->v + t * d->n;
    size_t at = (size_t)d->slot[t] * d->n;
    double dot = 0, now = 0, was = 0;
    for (size_t i = 0; i < d->n; i++) {
        float x = d->bias ? v[i] + d->bias[i] : v[i], y = host_value(d->kept, d->dtype, at + i);
        if (d->dtype == DTYPE_F32) {
            ((float *)d->kept)[at + i] = x;
        } else {
            ((uint16_t *)d->kept)[at + i] = bf16_of(x);
            x = host_value(d->kept, d->dtype, at + i);
        }
        dot += (double)x * y;
        now += (double)x * x;
        was += (double)y * y;
    }
    return now == 0 || was == 0 ? 0 : dot * fabs(dot) / (now * was);
}

static void drift_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct drift_loop *l = ctx;
    (void)worker;
    for (size_t t = begin; t < end; t++)
        l->score[t] = drift_row(l->d, t);
}

static void choose_of(const struct drift *d, size_t i, const double *score, struct rank *rank)
{
    const struct attn_seq *s = &d->seqs[i];
    const struct share *c = &d->part[i];
    const struct chosen *to = &d->to;
    for (int32_t j = 0; j < s->rows; j++) {
        int apart = j >= c->first && j < c->first + c->n;
        rank[j] = rank_of(apart ? -INFINITY : score[s->row_begin + j], s->row_begin + j);
        to->place[s->row_begin + j] = -1;
    }
    least_first(rank, (size_t)s->rows, (size_t)c->take);
    for (int32_t j = 0; j < c->take; j++) {
        int32_t row = rank[j].at;
        to->row[c->out + j] = row;
        to->slot[c->out + j] = d->slot[row];
        to->pos[c->out + j] = d->pos[row];
        to->place[row] = c->out + j;
    }
}

void host_choose(struct backend *b, const struct drift *d, void *work)
{
    struct drift_loop l = {d, work};
    pool_run(b->pool, d->T, grain(6 * d->n), drift_rows, &l);
    for (size_t i = 0; i < d->n_seqs; i++)
        choose_of(d, i, l.score, (struct rank *)(void *)(l.score + d->T));
}

/* ---- settle ---- */

static void settle_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct outputs *o = ctx;
    (void)worker;
    for (size_t t = begin; t < end; t++) {
        int32_t place = o->place ? o->place[t] : (int32_t)t;
        float *x = (float *)o->x + t * o->D, *kept = (float *)o->kept + (size_t)o->slot[t] * o->D;
        const float *sum = (const float *)o->sum + (place < 0 ? 0 : (size_t)place * o->D);
        for (size_t i = 0; i < o->D; i++) {
            kept[i] = place < 0 ? kept[i] : sum[i] - x[i];
            x[i] = place < 0 ? x[i] + kept[i] : sum[i];
        }
    }
}

void host_settle(struct backend *b, const struct outputs *o)
{
    pool_run(b->pool, o->T, grain(4 * o->D), settle_rows, (void *)(uintptr_t)o);
}

/* ---- sift ---- */

struct sift_loop {
    const struct sift *s;
    double *asked; /* [n_seqs, K*E] sums of the block's queries over the heads that share a key */
    double *score; /* [T] */
};

static void add_queries(const struct sift *s, size_t i, double *asked)
{
    size_t E = s->head_dim, KE = s->kv_heads * E, group = s->heads / s->kv_heads;
    const struct share *c = &s->part[i];
    size_t first = (size_t)(s->seqs[i].row_begin + c->first);
    memset(asked, 0, KE * sizeof *asked);
    for (size_t t = first; t < first + (size_t)c->n; t++)
        for (size_t h = 0; h < s->heads; h++)
            for (size_t e = 0; e < E; e++)
                asked[h / group * E + e] += ((const float *)s->q)[(t * s->heads + h) * E + e];
}

static void score_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct sift_loop *l = ctx;
    const struct sift *s = l->s;
    size_t n = s->kv_heads * s->head_dim, i = 0;
    (void)worker;
    for (size_t t = begin; t < end; t++) {
        while (t >= (size_t)(s->seqs[i].row_begin + s->seqs[i].rows))
            i++;
        double sum = 0;
        for (size_t e = 0; e < n; e++)
            sum += l->asked[i * n + e] * (double)host_value(s->from.k, s->from.dtype, t * n + e);
        l->score[t] = sum;
    }
}

/* The row at place j among the rows of the sequence outside the block. */
static int32_t outside(const struct share *c, int32_t j)
{
    return j < c->first ? j : j + c->n;
}

static void copy_slot(const struct sift *s, size_t row, size_t slot)
{
    size_t bytes = s->kv_heads * s->head_dim * dtype_value_bytes(s->to.dtype);
    memcpy((char *)s->to.k + slot * bytes, (const char *)s->from.k + row * bytes, bytes);
    memcpy((char *)s->to.v + slot * bytes, (const char *)s->from.v + row * bytes, bytes);
}

static void sift_of(const struct sift *s, size_t i, const double *score, struct rank *rank)
{
    const struct share *c = &s->part[i];
    int32_t base = s->seqs[i].row_begin, n = s->seqs[i].rows - c->n;
    for (int32_t j = 0; j < n; j++) {
        double most = score[base + outside(c, j)];
        for (int32_t k = j ? j - 1 : j; k <= j + 1 && k < n; k++)
            most = fmax(most, score[base + outside(c, k)]);
        rank[j] = rank_of(-most, base + outside(c, j));
    }
    least_first(rank, (size_t)n, (size_t)c->take);
    for (int32_t j = 0; j < c->take; j++)
        copy_slot(s, (size_t)rank[j].at, (size_t)(c->out + j));
}

void host_sift(struct backend *b, const struct sift *s, void *work)
{
    size_t n = s->kv_heads * s->head_dim;
    struct sift_loop l = {s, work, (double *)work + s->n_seqs * n};
    for (size_t i = 0; i < s->n_seqs; i++)
        add_queries(s, i, l.asked + i * n);
    pool_run(b->pool, s->T, grain(2 * n), score_rows, &l);
    for (size_t i = 0; i < s->n_seqs; i++)
        sift_of(s, i, l.score, (struct rank *)(void *)(l.score + s->T));
}
