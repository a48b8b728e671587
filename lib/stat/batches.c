/* batches.c - see batches.h. A batch is a row, each member a column (column.h); equal or close
 * values take almost no memory. Rows that did not come in order are sorted by a list of their
 * indices and merged while they are copied into new columns.
 */
#include "lib/stat/batches.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"

static void put_row(struct batches *b, const struct batches_one *row)
{
    for (size_t i = 0; i < BATCHES_IDLE_W; i++)
        column_add(&b->of[i], row->of[i]);
    b->n++;
}

double batches_get(const struct batches *b, enum batches_member of, size_t i)
{
    return i < b->of[of].n ? column_at(&b->of[of], i) : (double)NAN;
}

int64_t batches_launch(const struct batches *b, size_t i)
{
    return (int64_t)batches_get(b, BATCHES_LAUNCH, i);
}

/* By launch, round and id. */
static int compare_places(const double *x, const double *y)
{
    for (int i = BATCHES_LAUNCH; i <= BATCHES_ID; i++)
        if (x[i] < y[i] || x[i] > y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* Adds `one` to *sum if both are of one batch; returns 1 then. The sums are of whole numbers, so
 * their order does not matter. */
static int merge(struct batches_one *sum, const struct batches_one *one)
{
    static const enum batches_member added[] = {BATCHES_TO_EOS, BATCHES_SLOTS, BATCHES_TEXT,
                                                BATCHES_REQUESTS};
    if (sum->of[BATCHES_ID] < 0 || compare_places(sum->of, one->of))
        return 0;
    sum->of[BATCHES_NS] = fmax(sum->of[BATCHES_NS], one->of[BATCHES_NS]);
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        sum->of[added[i]] += one->of[added[i]];
    return 1;
}

static void close_last(struct batches *b)
{
    if (b->open)
        put_row(b, &b->last);
    b->open = 0;
}

void batches_add(struct batches *b, const struct batches_one *request)
{
    if (b->open && merge(&b->last, request))
        return;
    close_last(b);
    b->last = *request;
    b->open = 1;
}

struct batch_key { double of[BATCHES_ID + 1]; size_t row; };

static int by_place(const void *a, const void *b)
{
    const struct batch_key *x = a, *y = b;
    int d = compare_places(x->of, y->of);
    return d ? d : (x->row > y->row) - (x->row < y->row);
}

static struct batch_key place_of(const struct batches *b, size_t row)
{
    struct batch_key p = {.row = row};
    for (int i = BATCHES_LAUNCH; i <= BATCHES_ID; i++)
        p.of[i] = column_at(&b->of[i], row);
    return p;
}

/* 1: sorted, and every batch comes once. */
static int is_in_order(const struct batches *b)
{
    struct batch_key before = {.of = {-1, -1, -1}};
    for (size_t i = 0; i < b->n; i++) {
        struct batch_key here = place_of(b, i);
        int d = compare_places(before.of, here.of);
        if (d > 0 || (d == 0 && here.of[BATCHES_ID] >= 0))
            return 0;
        before = here;
    }
    return 1;
}

void batches_finish(struct batches *b)
{
    close_last(b);
    if (is_in_order(b))
        return;
    struct batch_key *places = mem_zero(b->n, sizeof *places);
    struct batches sorted = {0};
    for (size_t i = 0; i < b->n; i++)
        places[i] = place_of(b, i);
    qsort(places, b->n, sizeof *places, by_place);
    for (size_t i = 0; i < b->n; i++) {
        struct batches_one one;
        for (size_t k = 0; k < BATCHES_IDLE_W; k++)
            one.of[k] = column_at(&b->of[k], places[i].row);
        batches_add(&sorted, &one);
    }
    close_last(&sorted);
    free(places);
    batches_free(b);
    *b = sorted;
}

void batches_add_idle(struct batches *b, double watts)
{
    column_add(&b->of[BATCHES_IDLE_W], watts);
}

void batches_free(struct batches *b)
{
    for (size_t i = 0; i < BATCHES_MEMBERS; i++)
        column_free(&b->of[i]);
    *b = (struct batches){0};
}

/* ---- samples ---- */

static double work_done(const struct batches *b, enum batches_share share, size_t i)
{
    switch (share) {
    case SHARE_FLOPS: return batches_get(b, BATCHES_FLOPS, i);
    case SHARE_BYTES: return batches_get(b, BATCHES_BYTES, i);
    case SHARE_PREFILL_FLOPS: return batches_get(b, BATCHES_PREFILL_FLOPS, i);
    case SHARE_DECODE_BYTES:
        return batches_get(b, BATCHES_BYTES, i) - batches_get(b, BATCHES_PREFILL_BYTES, i);
    }
    return NAN;
}

/* The time of the work of work_done(), ns. */
static double time_taken(const struct batches *b, enum batches_share share, size_t i)
{
    double ns = batches_get(b, BATCHES_NS, i);
    if (share == SHARE_FLOPS || share == SHARE_BYTES)
        return ns;
    double first = batches_get(b, BATCHES_PREFILL_NS, i);
    return share == SHARE_PREFILL_FLOPS ? first : ns - first;
}

size_t batches_shares(const struct batches *b, enum batches_share share, double most,
                      struct launch_sample *samples)
{
    size_t m = 0;
    for (size_t i = 0; i < b->n; i++) {
        double done = work_done(b, share, i), could = time_taken(b, share, i) / 1e9 * most;
        if (isnan(done) || !(could > 0)) /* NaN: a text of one token has no pass after the first */
            continue;
        if (samples)
            samples[m] = (struct launch_sample){batches_launch(b, i), done, could};
        m++;
    }
    return m;
}

size_t batches_rates(const struct batches *b, enum batches_member of, struct launch_sample *samples)
{
    size_t m = 0;
    for (size_t i = 0; i < b->n; i++) {
        double v = batches_get(b, of, i);
        if (isnan(v))
            continue;
        if (samples)
            samples[m] = (struct launch_sample){batches_launch(b, i), v,
                                                batches_get(b, BATCHES_NS, i) / 1e9};
        m++;
    }
    return m;
}

size_t batches_capped(const struct batches *b, struct launch_sample *samples)
{
    size_t m = 0;
    for (size_t i = 0; i < b->n; i++) {
        double looks = batches_get(b, BATCHES_LOOKS, i), v = batches_get(b, BATCHES_CAPPED, i);
        if (!(looks > 0) || isnan(v))
            continue;
        if (samples)
            samples[m] = (struct launch_sample){batches_launch(b, i), v, looks};
        m++;
    }
    return m;
}
