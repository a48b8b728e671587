/* head.c - the output layer as one streaming pass over the vocabulary.
 *
 * The vocabulary is cut into chunks of CHUNK ids, at any number of threads. The logits of a chunk
 * for ROWS rows exist only in the worker's scratch; one `struct head_part` per (row, chunk) is
 * kept. Parts are merged in chunk order, so the answer has the same bits at every number of
 * threads. With head_query.dense all logits are stored before the first chunk is reduced; the
 * numbers and their order stay the same. */
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/noise.h"
#include "kernels/gumbel.h"
#include "kernels/cpu/softmax.h"
#include "kernels/sample.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"

enum { CHUNK = 1024, ROWS = 10 * TILE_ROWS, GROUP = 4 };

struct head_part {
    double score, sum, weighted, target; /* best noisy score; sum e^(l-max); sum e^(l-max)(l-max) */
    float max, best, next, chosen;       /* max of the softmax; two best logits; logit of `id` */
    int32_t id, best_id, next_id, bad;
};

/* For the divergence from xu (logits l'): cross = sum e^(l-max) (l-l'), sum = sum e^(l'-max). */
struct contrast {
    double cross, sum;
    float max, unused;
};

struct head_job {
    const struct mat *w;
    const float *x, *xu;
    size_t R, chunks;
    const struct head_query *q;
    float *logits;
    struct head_part *parts; /* [R, chunks] */
    struct contrast *contrasts; /* [R, chunks] */
    float *tiles;       /* per worker: [2, ROWS, CHUNK]; dense: per chunk [1 or 2, R, CHUNK] */
    char *x_packed, *xu_packed;
};

/* Bytes of the tiles of all workers or, if dense, of all chunks. */
static size_t tile_bytes(const struct backend *b, size_t R, size_t chunks, size_t dense)
{
    return (dense ? dense * chunks * R : pool_threads(b->pool) * 2 * ROWS) * CHUNK * sizeof(float);
}

/* Bytes of R packed rows: `most` for each ROWS rows, and `rest` for the remaining rows. */
static size_t packed_all(size_t R, size_t most, size_t rest) { return R / ROWS * most + rest; }

/* work holds tiles, packed x, packed xu, parts and contrasts. */
size_t OWN_CPU(head_work)(const struct backend *b, size_t R, size_t D, size_t V, size_t dense)
{
    size_t chunks = (V + CHUNK - 1) / CHUNK;
    size_t packed =
        packed_all(R, OWN_CPU(packed_most)(ROWS, D), OWN_CPU(packed_most)(R % ROWS, D));
    return tile_bytes(b, R, chunks, dense) + 2 * packed +
           R * chunks * (sizeof(struct head_part) + sizeof(struct contrast));
}

/* The lowest id whose logit is `value`; -1: none. Searches from the end: the lowest id remains. */
static int32_t find(const float *l, size_t n, float value)
{
    vecu id = splat_bits(INT32_MAX);
    for (size_t v = up(n, LANES); v > 0; v -= LANES)
        id = pick_bits(load(l + v - LANES) == value, count_from((uint32_t)(v - LANES)), id);
    uint32_t least = INT32_MAX;
    for (int i = 0; i < LANES; i++)
        least = id[i] < least ? id[i] : least;
    return least < n ? (int32_t)least : -1;
}

static int32_t find_after(const float *l, size_t n, float value, int32_t after)
{
    for (int32_t v = after + 1; v < (int32_t)n; v++)
        if (l[v] == value)
            return v;
    return -1;
}

/* Per lane: the two largest values so far; `finite` is NaN if a value was not finite, else 0. */
struct top {
    vec one, two, finite;
};

INLINE void top_add(struct top *t, vec x)
{
    t->two = vmax(vmin(x, t->one), t->two);
    t->one = vmax(x, t->one);
    t->finite += x - x;
}

/* Finds the two best logits. Returns 1 if a logit is not finite. */
static int top_two(const float *logits, size_t n, struct head_part *part)
{
    vec low = splat(-INFINITY);
    struct top top[2] = {{low, low, {0}}, {low, low, {0}}};
    size_t at = 0, k = 4 * LANES;
    for (; at + 2 * LANES <= n; at += 2 * LANES) {
        top_add(&top[0], load(logits + at));
        top_add(&top[1], load(logits + at + LANES));
    }
    float left[6 * LANES];
    put(left, top[0].one);
    put(left + LANES, top[0].two);
    put(left + 2 * LANES, top[1].one);
    put(left + 3 * LANES, top[1].two);
    int bad = !(sum_lanes(__builtin_convertvector(top[0].finite + top[1].finite, vecd)) == 0);
    for (; at < n; at++) {
        left[k++] = logits[at];
        bad |= !isfinite(logits[at]);
    }
    float one = -INFINITY, two = -INFINITY;
    for (size_t i = 0; i < k; i++) {
        two = left[i] > one ? one : left[i] > two ? left[i] : two;
        one = left[i] > one ? left[i] : one;
    }
    part->best = one;
    part->next = two;
    return bad;
}

/* Finds the ids of the two best logits, relative to the chunk; among equals the lowest. */
static void top_ids(const float *l, size_t n, struct head_part *p)
{
    p->best_id = find(l, n, p->best);
    p->next_id =
        p->next == p->best ? find_after(l, n, p->next, p->best_id) : find(l, n, p->next);
}

/* Makes v the chosen id if its noisy score is the best so far; among equals the lowest id. */
static void race(const struct head_query *q, size_t r, size_t first, const float *l, size_t v,
                 struct head_part *p)
{
    if (l[v] == -INFINITY)
        return;
    const int32_t id = sample_id(q, (int32_t)(first + v));
    double score = gumbel_score(q->gumbel, l[v], q->temperature,
                                rng_at(q->seed, q->keys[r], (uint64_t)id));
    if (p->id < 0 || score > p->score || (score == p->score && (int32_t)v < p->id)) {
        p->score = score;
        p->id = (int32_t)v;
    }
}

/* Finds the best noisy score of a chunk. The best logit comes first, because few ids can beat its
 * score. Only for GUMBEL_F64 can ids be skipped (noise.h); with other noise every id is scored. */
static void race_all(const struct head_query *query, size_t row, size_t first, const float *logits,
                     size_t n, struct head_part *part)
{
    race(query, row, first, logits, (size_t)part->best_id, part);
    struct bar bar = bar_at(part->score, query->temperature);
    size_t at = 0;
    for (; at + LANES <= n && query->gumbel == GUMBEL_F64; at += LANES) {
        const vecu ids = query->ids ? load_bits(query->ids + first + at)
                                    : count_from((uint32_t)(first + at));
        vecu bits = rng_lanes(query->seed, query->keys[row], ids);
        veci may = may_win(&bar, load(logits + at), bits);
        if (!any_of(may))
            continue;
        for (size_t i = 0; i < LANES; i++)
            if (may[i])
                race(query, row, first, logits, at + i, part);
        bar = bar_at(part->score, query->temperature);
    }
    for (; at < n; at++)
        race(query, row, first, logits, at, part);
}

/* Sets the chosen id: that of the best logit or, at temperature > 0, of the best noisy score. */
static void choose(const struct head_query *q, size_t r, size_t first, const float *l, size_t n,
                   struct head_part *p)
{
    p->id = p->best == -INFINITY ? -1 : p->best_id;
    p->score = p->best;
    if (q->temperature > 0 && p->id >= 0) {
        p->id = -1;
        race_all(q, r, first, l, n, p);
    }
    p->chosen = p->id < 0 ? -INFINITY : l[p->id];
}

/* Sums for the softmax over the ids that are not quiet, relative to part->max. logits are padded
 * with -inf to a multiple of GROUP vectors. A group is summed in float, the groups in double. */
static void sums(const float *logits, size_t n, struct head_part *part)
{
    part->sum = part->weighted = 0;
    if (part->max == -INFINITY)
        return;
    vecd sum = {0}, weighted = {0};
    for (size_t at = 0; at < n; at += GROUP * LANES) {
        vec few = {0}, heavy = {0};
        for (size_t group = 0; group < GROUP * LANES; group += LANES) {
            /* clamped where e is 0: `below` may be -inf, and 0 * -inf would be NaN */
            vec below = vmax(splat(-100), load(logits + at + group) - part->max), e = vexp(below);
            few += e;
            heavy += e * below;
        }
        sum += __builtin_convertvector(few, vecd);
        weighted += __builtin_convertvector(heavy, vecd);
    }
    part->sum = sum_lanes(sum);
    part->weighted = sum_lanes(weighted);
}

/* Sets the logits of listed ids in the chunk to -inf. Returns the number of such ids. */
static size_t silence(float *l, size_t first, size_t n, const int32_t *ids, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if ((size_t)ids[i] >= first && (size_t)ids[i] < first + n) {
            l[(size_t)ids[i] - first] = -INFINITY;
            found++;
        }
    return found;
}

static void reduce(const struct head_job *j, size_t row, size_t chunk, float *logits, size_t n)
{
    const struct head_query *query = j->q;
    struct head_part *part = &j->parts[row * j->chunks + chunk];
    size_t first = chunk * CHUNK;
    *part = (struct head_part){.target = -INFINITY};
    for (size_t at = n; at % (GROUP * LANES); at++)
        logits[at] = -INFINITY;
    part->bad = top_two(logits, n, part); /* before the bans: a banned NaN counts as bad too */
    if (silence(logits, first, n, query->ban, query->n_ban))
        top_two(logits, n, part);
    if (j->logits)
        memcpy(j->logits + row * j->w->rows + first, logits, n * sizeof *logits);
    top_ids(logits, n, part);
    choose(query, row, first, logits, n, part);
    part->max = part->best;
    if (silence(logits, first, n, query->quiet, query->n_quiet))
        part->max = max_of(logits, n);
    sums(logits, n, part);
    if (query->target && (size_t)query->target[row] >= first &&
        (size_t)query->target[row] < first + n)
        part->target = logits[(size_t)query->target[row] - first];
    if (part->id >= 0) /* a quiet id stays chosen but has probability 0 */
        part->chosen = logits[part->id];
    part->id += part->id < 0 ? 0 : (int32_t)first;
    part->best_id += part->best_id < 0 ? 0 : (int32_t)first;
    part->next_id += part->next_id < 0 ? 0 : (int32_t)first;
}

/* Computes the contrast of a row and a chunk: logits of x as reduce() leaves them, bare of xu. */
static void contrast_row(const struct head_job *j, size_t row, size_t chunk, const float *logits,
                         float *bare, size_t n)
{
    const struct head_query *query = j->q;
    float max = j->parts[row * j->chunks + chunk].max;
    struct contrast *both = &j->contrasts[row * j->chunks + chunk];
    struct head_part was = {0};
    vecd cross = {0};
    for (size_t at = n; at % (GROUP * LANES); at++)
        bare[at] = -INFINITY;
    silence(bare, chunk * CHUNK, n, query->ban, query->n_ban);
    silence(bare, chunk * CHUNK, n, query->quiet, query->n_quiet);
    was.max = max_of(bare, n);
    sums(bare, n, &was);
    for (size_t at = 0; at < n; at += LANES) {
        vec now = load(logits + at), apart = now - load(bare + at);
        veci some = now > splat(-INFINITY);
        vec e = vexp(vmax(splat(-100), now - max));
        cross += __builtin_convertvector(pick(some, e * apart, splat(0)), vecd);
    }
    *both = (struct contrast){sum_lanes(cross), was.sum, was.max, 0};
}

/* l = u + scale (l - u): guidance, with the conditional logits in l. */
static void guide_row(float *l, const float *u, float scale, size_t n)
{
    for (size_t v = 0; v < n; v++)
        l[v] = u[v] + scale * (l[v] - u[v]);
}

/* The address in packed x of the rows from r0 on; r0 is a multiple of ROWS. */
static char *packed_at(const struct head_job *j, char *packed, size_t r0)
{
    return packed + packed_all(r0, OWN_CPU(packed_bytes)(j->w, ROWS), 0);
}

static void pack_x(const struct head_job *j, char *packed, const float *x)
{
    for (size_t r = 0; r < j->R; r += ROWS)
        OWN_CPU(pack_rows)(packed_at(j, packed, r), x + r * j->w->cols, j->w,
                           j->R - r < ROWS ? j->R - r : ROWS);
}

/* The number of ids of a chunk. */
static size_t ids_of(const struct head_job *j, size_t chunk)
{
    size_t left = j->w->rows - chunk * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

/* Computes logits of a chunk after guidance, for rows from r0 on; logits of xu go to `guide`. */
static void multiply(const struct head_job *j, size_t chunk, float *tile, float *guide, size_t r0,
                     size_t rows)
{
    size_t first = chunk * CHUNK, n = ids_of(j, chunk);
    OWN_CPU(packed_product)(tile, CHUNK, packed_at(j, j->x_packed, r0), j->w, rows, first, n);
    if (j->xu) {
        float scale = (float)(1 + j->q->cfg_scale);
        OWN_CPU(packed_product)(guide, CHUNK, packed_at(j, j->xu_packed, r0), j->w, rows, first, n);
        for (size_t r = 0; r < rows && !j->q->divergence; r++)
            guide_row(tile + r * CHUNK, guide + r * CHUNK, scale, n);
    }
}

/* Reduces the logits of a chunk to one head_part per row. */
static void reduce_rows(const struct head_job *j, size_t chunk, float *tile, float *guide,
                        size_t r0, size_t rows)
{
    size_t n = ids_of(j, chunk);
    for (size_t r = 0; r < rows; r++)
        reduce(j, r0 + r, chunk, tile + r * CHUNK, n);
    for (size_t r = 0; r < rows && j->q->divergence; r++)
        contrast_row(j, r0 + r, chunk, tile + r * CHUNK, guide + r * CHUNK, n);
}

static void chunk_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct head_job *j = ctx;
    float *tile = j->tiles + worker * 2 * ROWS * CHUNK;
    for (size_t c = begin; c < end; c++)
        for (size_t r = 0; r < j->R; r += ROWS) {
            size_t rows = j->R - r < ROWS ? j->R - r : ROWS;
            multiply(j, c, tile, tile + ROWS * CHUNK, r, rows);
            reduce_rows(j, c, tile, tile + ROWS * CHUNK, r, rows);
        }
}

/* dense: the address of the logits of a chunk; the logits of xu for this chunk follow. */
static float *dense_chunk(const struct head_job *j, size_t chunk)
{
    return j->tiles + (j->xu ? 2 : 1) * chunk * j->R * CHUNK;
}

static void dense_logits(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct head_job *j = ctx;
    (void)worker;
    for (size_t c = begin; c < end; c++)
        for (size_t r = 0; r < j->R; r += ROWS) {
            float *tile = dense_chunk(j, c) + r * CHUNK;
            multiply(j, c, tile, tile + j->R * CHUNK, r, j->R - r < ROWS ? j->R - r : ROWS);
        }
}

static void dense_answers(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct head_job *j = ctx;
    (void)worker;
    for (size_t c = begin; c < end; c++) {
        float *tile = dense_chunk(j, c);
        reduce_rows(j, c, tile, tile + j->R * CHUNK, 0, j->R);
    }
}

/* Inserts (value, id) into the two best if it is large enough; earlier ids win ties. */
static void offer(struct head_part *p, float value, int32_t id)
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

static void merge(const struct head_job *j, size_t row, struct head_row *out)
{
    struct head_part all = {
        .max = -INFINITY, .id = -1, .best_id = -1, .next_id = -1, .target = -INFINITY};
    const struct head_part *parts = j->parts + row * j->chunks;
    for (size_t chunk = 0; chunk < j->chunks; chunk++)
        all.max = parts[chunk].max > all.max ? parts[chunk].max : all.max;
    for (size_t chunk = 0; chunk < j->chunks; chunk++) {
        const struct head_part *part = &parts[chunk];
        all.bad |= part->bad;
        offer(&all, part->best, part->best_id);
        offer(&all, part->next, part->next_id);
        if (part->id >= 0 && (all.id < 0 || part->score > all.score)) {
            all.id = part->id;
            all.score = part->score;
            all.chosen = part->chosen;
        }
        all.target = part->target > all.target ? part->target : all.target;
        if (part->max > -INFINITY) {
            double shift = (double)part->max - all.max, scale = exp(shift);
            all.sum += scale * part->sum;
            all.weighted += scale * (part->weighted + shift * part->sum);
        }
    }
    double lse = (double)all.max + log(all.sum), next = all.next;
    for (size_t i = 0; i < j->q->n_quiet; i++)
        if (j->q->quiet[i] == all.next_id)
            next = -INFINITY;
    *out = (struct head_row){.id = sample_id(j->q, all.id),
                             .runner_up = sample_id(j->q, all.next_id),
                             .bad = all.bad || all.id < 0};
    out->gap = all.next_id < 0 ? INFINITY : all.best - all.next;
    out->log_prob = all.id < 0 ? 0 : all.chosen - lse;
    out->prob = (float)exp(out->log_prob);
    out->best_log_prob = all.sum > 0 ? (double)all.max - lse : -INFINITY;
    out->runner_up_prob = all.next_id < 0 ? 0 : (float)exp(next - lse);
    out->entropy = (float)(log(all.sum) - all.weighted / all.sum);
    out->target_log_prob = j->q->target ? all.target - lse : 0;
}

/* The divergence of a row: sum p (l - l') - (lse - lse'), with lse = log sum e^l. */
static float divergence(const struct head_job *j, size_t row)
{
    const struct head_part *part = j->parts + row * j->chunks;
    const struct contrast *both = j->contrasts + row * j->chunks;
    double sum = 0, was = 0, cross = 0;
    float max = -INFINITY, was_max = -INFINITY;
    for (size_t i = 0; i < j->chunks; i++) {
        max = part[i].max > max ? part[i].max : max;
        was_max = both[i].max > was_max ? both[i].max : was_max;
    }
    for (size_t i = 0; i < j->chunks; i++) {
        double scale = part[i].max > -INFINITY ? exp((double)part[i].max - max) : 0;
        sum += scale * part[i].sum;
        cross += scale > 0 ? scale * both[i].cross : 0;
        was += both[i].max > -INFINITY ? exp((double)both[i].max - was_max) * both[i].sum : 0;
    }
    double kl = cross / sum - (max + log(sum)) + (was_max + log(was));
    return (float)(kl > 0 ? kl : 0 * kl); /* rounding may give a value below 0; NaN stays NaN */
}

struct draws {
    const struct head_query *q;
    const float *logits;
    size_t V;
    struct head_row *out;
    int32_t *ids; /* [workers, V] */
};

static void draw_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct draws *d = ctx;
    for (size_t r = begin; r < end; r++) {
        const float *logits = d->logits + r * d->V;
        if (sample_needs_logits(d->q, d->V))
            sample_row(logits, d->V, d->q, r, &d->out[r], d->ids + worker * d->V);
        if (d->q->tops && !d->out[r].bad)
            sample_tops(logits, d->V, &d->q->tops[r]);
    }
}

/* Draws from the stored logits if needed (sample.h), and finds the most likely ids. */
static void draw_all(struct backend *b, const struct head_job *j, const struct head_query *q,
                     struct head_row *out)
{
    size_t V = j->w->rows;
    struct draws d = {q, j->logits, V, out, mem_alloc(pool_threads(b->pool) * V * sizeof *d.ids)};
    pool_run(b->pool, j->R, 1, draw_rows, &d);
    free(d.ids);
}

void OWN_CPU(head)(struct backend *backend, const struct mat *weight, const act *x, const act *xu,
                   size_t rows, const struct head_query *query, struct head_row *out, float *logits,
                   void *work)
{
    const int draws = sample_needs_logits(query, weight->rows);
    struct head_query first = *query;
    first.temperature = draws ? 0 : query->temperature;
    struct head_job j = {.w = weight, .x = x, .xu = xu, .R = rows, .q = &first, .logits = logits,
                         .chunks = (weight->rows + CHUNK - 1) / CHUNK, .tiles = work};
    size_t packed = packed_all(rows, OWN_CPU(packed_bytes)(weight, ROWS),
                               OWN_CPU(packed_bytes)(weight, rows % ROWS));
    j.x_packed = (char *)work +
                 tile_bytes(backend, rows, j.chunks, query->dense ? 1 + (xu != NULL) : 0);
    j.xu_packed = j.x_packed + packed;
    j.parts = (struct head_part *)(void *)(j.xu_packed + packed);
    j.contrasts = (struct contrast *)(void *)(j.parts + rows * j.chunks);
    pack_x(&j, j.x_packed, x);
    if (xu)
        pack_x(&j, j.xu_packed, xu);
    pool_run(backend->pool, j.chunks, 1, query->dense ? dense_logits : chunk_part, &j);
    if (query->dense)
        pool_run(backend->pool, j.chunks, 1, dense_answers, &j);
    for (size_t row = 0; row < rows; row++)
        merge(&j, row, &out[row]);
    for (size_t row = 0; row < rows && query->divergence; row++)
        out[row].divergence = divergence(&j, row);
    if (draws || query->tops)
        draw_all(backend, &j, query, out);
}
