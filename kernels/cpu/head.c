/* head.c - the output layer as one streaming pass over the vocabulary.
 *
 * The vocabulary is cut into chunks of CHUNK ids, whatever the number of threads. A chunk's logits
 * for ROWS rows live in the worker's scratch only; what survives is one `struct part` per (row,
 * chunk). Parts are then merged in chunk order, so the answer has the same bits at every thread
 * count.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/softmax.h"
#include "lib/base/rng.h"

enum { CHUNK = 1024, ROWS = 4 * TILE_ROWS };

struct part {
    double score, sum, weighted, target; /* best noisy score; sum e^(l-max); sum e^(l-max)(l-max) */
    float max, best, next, chosen;       /* of the softmax; two best logits; logit of `id` */
    int32_t id, best_id, next_id, bad;
};

struct head_job {
    const struct mat *w;
    const float *x, *xu;
    size_t R, chunks;
    const struct head_query *q;
    float *logits;
    struct part *parts; /* [R, chunks] */
    float *tiles;       /* per worker: [2, ROWS, CHUNK] */
};

size_t CPU(head_work)(const struct backend *b, size_t R, size_t V)
{
    size_t chunks = (V + CHUNK - 1) / CHUNK;
    size_t parts = R * chunks * sizeof(struct part) / sizeof(float) + 64;
    return parts + pool_threads(b->pool) * 2 * ROWS * CHUNK;
}

static int32_t find(const float *l, size_t n, float value, int32_t except)
{
    for (size_t v = 0; v < n; v++)
        if (l[v] == value && (int32_t)v != except)
            return (int32_t)v;
    return -1;
}

/* The two best logits, lowest id first among equals; ids are relative to the chunk. */
static void top_two(const float *l, size_t n, struct part *p)
{
    float one = -INFINITY, two = -INFINITY;
    vec m1 = splat(-INFINITY), m2 = m1;
    size_t v = 0;
    for (; v + LANES <= n; v += LANES) {
        vec x = load(l + v);
        m2 = vmax(m2, pick(x > m1, m1, x));
        m1 = vmax(x, m1);
    }
    float left[2 * LANES + LANES];
    put(left, m1);
    put(left + LANES, m2);
    size_t k = 2 * LANES;
    for (; v < n; v++)
        left[k++] = l[v];
    for (size_t i = 0; i < k; i++) {
        two = left[i] > one ? one : left[i] > two ? left[i] : two;
        one = left[i] > one ? left[i] : one;
    }
    p->best = one;
    p->next = two;
    p->best_id = find(l, n, one, -1);
    p->next_id = n > 1 ? find(l, n, two, p->best_id) : -1;
}

static double gumbel(const struct head_query *q, size_t r, size_t v)
{
    double u = rng_unit(rng_at(q->seed, q->keys[r], v)) + 0x1p-54; /* never 0 */
    return -log(-log(u));
}

/* The chosen id: the best logit, or the best noisy score at a temperature. */
static void choose(const struct head_query *q, size_t r, size_t first, const float *l, size_t n,
                   struct part *p)
{
    p->id = p->best == -INFINITY ? -1 : p->best_id;
    p->score = p->best;
    if (q->temperature > 0) {
        p->id = -1;
        p->score = -INFINITY;
        for (size_t v = 0; v < n; v++) {
            if (l[v] == -INFINITY)
                continue;
            double score = l[v] + q->temperature * gumbel(q, r, first + v);
            if (p->id < 0 || score > p->score) {
                p->score = score;
                p->id = (int32_t)v;
            }
        }
    }
    p->chosen = p->id < 0 ? -INFINITY : l[p->id];
}

/* Sums for the softmax over what is not quiet; the tail of l up to LANES is scratch. */
static void sums(const float *l, size_t n, struct part *p)
{
    p->max = max_of(l, n);
    p->sum = p->weighted = 0;
    if (p->max == -INFINITY)
        return;
    vecd sum = {0}, weighted = {0};
    for (size_t v = 0; v < n; v += LANES) {
        vec d = load(l + v) - p->max, e = vexp(d);
        sum += __builtin_convertvector(e, vecd);
        /* where e is 0, d may be -inf: 0 * d would be NaN */
        weighted += __builtin_convertvector(e * pick(e > 0.0f, d, splat(0.0f)), vecd);
    }
    p->sum = sum_lanes(sum);
    p->weighted = sum_lanes(weighted);
}

static int not_finite(const float *l, size_t n)
{
    veci bad = {0};
    size_t v = 0;
    for (; v + LANES <= n; v += LANES) {
        vec d = load(l + v);
        bad |= ~(d - d == 0.0f);
    }
    int any = 0;
    for (int i = 0; i < LANES; i++)
        any |= bad[i] != 0;
    for (; v < n; v++)
        any |= !isfinite(l[v]);
    return any;
}

static void silence(float *l, size_t first, size_t n, const int32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((size_t)ids[i] >= first && (size_t)ids[i] < first + n)
            l[(size_t)ids[i] - first] = -INFINITY;
}

static void reduce(const struct head_job *j, size_t r, size_t chunk, float *l, size_t n)
{
    const struct head_query *q = j->q;
    struct part *p = &j->parts[r * j->chunks + chunk];
    size_t first = chunk * CHUNK;
    *p = (struct part){.bad = not_finite(l, n), .target = -INFINITY};
    silence(l, first, n, q->ban, q->n_ban);
    if (j->logits)
        memcpy(j->logits + r * j->w->rows + first, l, n * sizeof *l);
    top_two(l, n, p);
    choose(q, r, first, l, n, p);
    silence(l, first, n, q->quiet, q->n_quiet);
    for (size_t v = n; v % LANES; v++)
        l[v] = -INFINITY;
    sums(l, n, p);
    if (q->target && (size_t)q->target[r] >= first && (size_t)q->target[r] < first + n)
        p->target = l[(size_t)q->target[r] - first];
    if (p->id >= 0) /* a quiet id keeps its place but has no probability */
        p->chosen = l[p->id];
    p->id += p->id < 0 ? 0 : (int32_t)first;
    p->best_id += p->best_id < 0 ? 0 : (int32_t)first;
    p->next_id += p->next_id < 0 ? 0 : (int32_t)first;
}

static void chunk_rows(const struct head_job *j, size_t chunk, float *tile, size_t r0, size_t rows)
{
    size_t first = chunk * CHUNK, D = j->w->cols;
    size_t n = j->w->rows - first < CHUNK ? j->w->rows - first : CHUNK;
    float *guide = tile + ROWS * CHUNK;
    CPU(matmul_part)(tile, CHUNK, j->x + r0 * D, j->w, rows, first, n);
    if (j->xu) {
        float scale = (float)(1 + j->q->cfg_scale);
        CPU(matmul_part)(guide, CHUNK, j->xu + r0 * D, j->w, rows, first, n);
        for (size_t i = 0; i < rows * CHUNK; i++)
            if (i % CHUNK < n)
                tile[i] = guide[i] + scale * (tile[i] - guide[i]);
    }
    for (size_t r = 0; r < rows; r++)
        reduce(j, r0 + r, chunk, tile + r * CHUNK, n);
}

static void chunk_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct head_job *j = ctx;
    float *tile = j->tiles + worker * 2 * ROWS * CHUNK;
    for (size_t c = begin; c < end; c++)
        for (size_t r = 0; r < j->R; r += ROWS)
            chunk_rows(j, c, tile, r, j->R - r < ROWS ? j->R - r : ROWS);
}

/* Puts `value`, `id` into the pair (best, next) when it belongs there; earlier ids win ties. */
static void offer(struct part *p, float value, int32_t id)
{
    if (id < 0)
        return;
    if (p->best_id < 0 || value > p->best) {
        p->next = p->best;
        p->next_id = p->best_id;
        p->best = value;
        p->best_id = id;
    } else if (p->next_id < 0 || value > p->next) {
        p->next = value;
        p->next_id = id;
    }
}

static void merge(const struct head_job *j, size_t r, struct head_row *out)
{
    struct part all = {
        .max = -INFINITY, .id = -1, .best_id = -1, .next_id = -1, .target = -INFINITY};
    const struct part *parts = j->parts + r * j->chunks;
    for (size_t c = 0; c < j->chunks; c++)
        all.max = parts[c].max > all.max ? parts[c].max : all.max;
    for (size_t c = 0; c < j->chunks; c++) {
        const struct part *p = &parts[c];
        all.bad |= p->bad;
        offer(&all, p->best, p->best_id);
        offer(&all, p->next, p->next_id);
        if (p->id >= 0 && (all.id < 0 || p->score > all.score)) {
            all.id = p->id;
            all.score = p->score;
            all.chosen = p->chosen;
        }
        all.target = p->target > all.target ? p->target : all.target;
        if (p->max > -INFINITY) {
            double shift = (double)p->max - all.max, scale = exp(shift);
            all.sum += scale * p->sum;
            all.weighted += scale * (p->weighted + shift * p->sum);
        }
    }
    double lse = (double)all.max + log(all.sum);
    double next = all.next;
    for (size_t i = 0; i < j->q->n_quiet; i++)
        if (j->q->quiet[i] == all.next_id)
            next = -INFINITY;
    *out = (struct head_row){.id = all.id, .runner_up = all.next_id, .bad = all.bad || all.id < 0};
    out->gap = all.next_id < 0 ? INFINITY : all.best - all.next;
    out->log_prob = all.id < 0 ? 0 : all.chosen - lse;
    out->prob = (float)exp(out->log_prob);
    out->runner_up_prob = all.next_id < 0 ? 0 : (float)exp(next - lse);
    out->entropy = (float)(log(all.sum) - all.weighted / all.sum);
    out->target_log_prob = j->q->target ? all.target - lse : 0;
}

void CPU(head)(struct backend *b, const struct mat *w, const float *x, const float *xu, size_t R,
               const struct head_query *q, struct head_row *out, float *logits, float *work)
{
    struct head_job j = {.w = w,
                         .x = x,
                         .xu = xu,
                         .R = R,
                         .q = q,
                         .logits = logits,
                         .chunks = (w->rows + CHUNK - 1) / CHUNK,
                         .tiles = work};
    j.parts = (struct part *)(void *)(work + pool_threads(b->pool) * 2 * ROWS * CHUNK);
    pool_run(b->pool, j.chunks, 1, chunk_part, &j);
    for (size_t r = 0; r < R; r++)
        merge(&j, r, &out[r]);
}
