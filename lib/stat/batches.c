/* batches.c - see batches.h. Requests of one batch follow each other in the stream of a generator,
 * so the last batch stays open and takes its further requests. If the requests came in another
 * order, batches_finish() sorts the rows and merges them again. */
#include "lib/stat/batches.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"

static void put_row(struct batches *batches, const struct batches_one *row)
{
    MEM_GROW(batches->row, batches->n, batches->cap);
    batches->row[batches->n++] = *row;
}

double batches_get(const struct batches *batches, enum batches_member of, size_t i)
{
    if (of == BATCHES_IDLE_W)
        return i < batches->n_idle ? batches->idle_w[i] : (double)NAN;
    return i < batches->n ? batches->row[i].of[of] : (double)NAN;
}

int64_t batches_launch(const struct batches *batches, size_t i)
{
    return (int64_t)batches_get(batches, BATCHES_LAUNCH, i);
}

/* Orders by launch, round and id. */
static int compare_places(const double *x, const double *y)
{
    for (int i = BATCHES_LAUNCH; i <= BATCHES_ID; i++)
        if (x[i] < y[i] || x[i] > y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* If both are of one batch, adds `one` to *sum and returns 1. All summed values are whole numbers,
 * so the order of the requests does not change the sums. */
static int merge(struct batches_one *sum, const struct batches_one *one)
{
    static const enum batches_member added[] = {BATCHES_TO_EOS, BATCHES_SLOTS, BATCHES_TEXT,
                                                BATCHES_REQUESTS, BATCHES_GOOD};
    if (sum->of[BATCHES_ID] < 0 || compare_places(sum->of, one->of))
        return 0;
    sum->of[BATCHES_NS] = fmax(sum->of[BATCHES_NS], one->of[BATCHES_NS]);
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        sum->of[added[i]] += one->of[added[i]];
    return 1;
}

static void close_last(struct batches *batches)
{
    if (batches->open)
        put_row(batches, &batches->last);
    batches->open = 0;
}

void batches_add(struct batches *batches, const struct batches_one *request)
{
    if (batches->open && merge(&batches->last, request))
        return;
    close_last(batches);
    batches->last = *request;
    batches->open = 1;
}

/* Rows of one batch stay in the order in which they came. */
static int by_batch(const void *a, const void *b)
{
    const struct batches_one *const *x = a, *const *y = b;
    int d = compare_places((*x)->of, (*y)->of);
    return d ? d : (*x > *y) - (*x < *y);
}

/* 1: the rows are sorted, and every batch has one row. */
static int is_in_order(const struct batches *batches)
{
    for (size_t i = 1; i < batches->n; i++) {
        int d = compare_places(batches->row[i - 1].of, batches->row[i].of);
        if (d > 0 || (d == 0 && batches->row[i].of[BATCHES_ID] >= 0))
            return 0;
    }
    return 1;
}

void batches_finish(struct batches *batches)
{
    close_last(batches);
    if (is_in_order(batches))
        return;
    const struct batches_one **rows = mem_zero(batches->n, sizeof *rows);
    struct batches sorted = {0};
    for (size_t i = 0; i < batches->n; i++)
        rows[i] = &batches->row[i];
    qsort(rows, batches->n, sizeof *rows, by_batch);
    for (size_t i = 0; i < batches->n; i++)
        batches_add(&sorted, rows[i]);
    close_last(&sorted);
    free(rows);
    batches_free(batches);
    *batches = sorted;
}

int batches_check(const struct batches *batches, struct err *e)
{
    for (size_t i = 0; i < batches->n; i++) {
        const double *row = batches->row[i].of;
        if (row[BATCHES_REQUESTS] > row[BATCHES_FILLED])
            return err_set(e, EXIT_BAD_DATA, "batch_filled of batch %.0f in launch %.0f, round "
                           "%.0f: expected the number of its answers, %.0f, got %.0f",
                           row[BATCHES_ID], row[BATCHES_LAUNCH], row[BATCHES_ROUND],
                           row[BATCHES_REQUESTS], row[BATCHES_FILLED]);
    }
    return 0;
}

void batches_add_idle(struct batches *batches, double watts)
{
    MEM_GROW(batches->idle_w, batches->n_idle, batches->cap_idle);
    batches->idle_w[batches->n_idle++] = watts;
}

void batches_free(struct batches *batches)
{
    free(batches->row);
    free(batches->idle_w);
    *batches = (struct batches){0};
}

/* ---- samples ---- */

static double work_done(const struct batches *batches, enum batches_share share, size_t i)
{
    switch (share) {
    case SHARE_FLOPS: return batches_get(batches, BATCHES_FLOPS, i);
    case SHARE_BYTES: return batches_get(batches, BATCHES_BYTES, i);
    case SHARE_PREFILL_FLOPS: return batches_get(batches, BATCHES_PREFILL_FLOPS, i);
    case SHARE_DECODE_BYTES:
        return batches_get(batches, BATCHES_BYTES, i) -
               batches_get(batches, BATCHES_PREFILL_BYTES, i);
    }
    return NAN;
}

/* The time in ns in which the work of work_done() was done. */
static double time_taken(const struct batches *batches, enum batches_share share, size_t i)
{
    double ns = batches_get(batches, BATCHES_NS, i);
    if (share == SHARE_FLOPS || share == SHARE_BYTES)
        return ns;
    double first = batches_get(batches, BATCHES_PREFILL_NS, i);
    return share == SHARE_PREFILL_FLOPS ? first : ns - first;
}

size_t batches_shares(const struct batches *batches, enum batches_share share, double most,
                      struct launch_sample *samples)
{
    size_t m = 0;
    for (size_t i = 0; i < batches->n; i++) {
        double done = work_done(batches, share, i),
               could = time_taken(batches, share, i) / 1e9 * most;
        if (isnan(done) || !(could > 0)) /* NaN: a text of one token has no pass after the first */
            continue;
        if (samples)
            samples[m] = (struct launch_sample){batches_launch(batches, i), done, could};
        m++;
    }
    return m;
}

size_t batches_rates(const struct batches *batches, enum batches_member of,
                     struct launch_sample *samples)
{
    size_t m = 0;
    for (size_t i = 0; i < batches->n; i++) {
        double v = batches_get(batches, of, i);
        if (isnan(v))
            continue;
        if (samples)
            samples[m] = (struct launch_sample){batches_launch(batches, i), v,
                                                batches_get(batches, BATCHES_NS, i) / 1e9};
        m++;
    }
    return m;
}

size_t batches_capped(const struct batches *batches, struct launch_sample *samples)
{
    size_t m = 0;
    for (size_t i = 0; i < batches->n; i++) {
        double looks = batches_get(batches, BATCHES_LOOKS, i),
               v = batches_get(batches, BATCHES_CAPPED, i);
        if (!(looks > 0) || isnan(v))
            continue;
        if (samples)
            samples[m] = (struct launch_sample){batches_launch(batches, i), v, looks};
        m++;
    }
    return m;
}
