/* draw.cu - draws answers of the head again among the ids that top-k and top-p leave, and finds the
 * most likely ids: kernels/sample.h on the device.
 *
 * A block has one row. The ids that stay are the ids whose logit is above a value, and the lowest
 * ids whose logit equals the value. This value and the bound of these ids are found bit by bit; for
 * each bit the block once counts ids, or sums their masses. The mass of an id is e^((logit - max) /
 * divisor). Masses are doubles, so that the same ids stay as on the host. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/head/head.h"
#include "kernels/cuda/head/noise.cuh"
#include "kernels/sample.h"

enum { DRAW_THREADS = 256 };

/* A row of logits, and the ids of it that stay. */
struct drawing {
    const float *l;
    size_t V;
    double max, divisor; /* largest logit; divisor of the logits */
    uint32_t value; /* ids whose ordered() logit is larger stay, */
    size_t id;      /* and ids below `id` whose ordered() logit is equal */
    double *shared; /* [DRAW_THREADS] */
};

/* Maps a float to an integer of the same order; both zeros give the same integer. */
DEVICE uint32_t ordered(float x)
{
    uint32_t bits = __float_as_uint(x + 0.0f);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

DEVICE bool stays(const struct drawing *drawing, size_t id)
{
    uint32_t value = ordered(drawing->l[id]);
    return value > drawing->value || (value == drawing->value && id < drawing->id);
}

DEVICE double mass(const struct drawing *drawing, float logit)
{
    return exp(((double)logit - drawing->max) / drawing->divisor);
}

/* Combines the values `mine` of all threads by f, in a fixed tree. Returns the result to every
 * thread. */
template <class F> DEVICE double joined(const struct drawing *drawing, double mine, F f)
{
    __syncthreads();
    drawing->shared[threadIdx.x] = mine;
    __syncthreads();
    for (uint32_t half = DRAW_THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            drawing->shared[threadIdx.x] = f(drawing->shared[threadIdx.x],
                                             drawing->shared[threadIdx.x + half]);
        __syncthreads();
    }
    return drawing->shared[0];
}

/* The sum of f(id) over all ids. */
template <class F> DEVICE double total(const struct drawing *drawing, F f)
{
    double sum = 0;
    for (size_t id = threadIdx.x; id < drawing->V; id += DRAW_THREADS)
        sum += f(id);
    return joined(drawing, sum, [](double a, double b) { return a + b; });
}

/* The largest number up to `most` for which f is true. f(0) must be true, and f must be false for
 * all numbers above one for which it is false. */
template <class F> DEVICE uint32_t last(uint32_t most, F f)
{
    uint32_t x = 0;
    for (uint32_t bit = 0x80000000u; bit; bit >>= 1)
        if ((x | bit) <= most && f(x | bit))
            x |= bit;
    return x;
}

/* Keeps, of the ids that stay, those among the k most likely ids of all, and ids that tie with the
 * last of these. */
DEVICE void keep_top_k(struct drawing *d, size_t k)
{
    const uint32_t value = last(UINT32_MAX, [=](uint32_t x) {
        return total(d, [=](size_t id) { return ordered(d->l[id]) >= x ? 1.0 : 0.0; }) >= (double)k;
    });
    if (value > d->value) {
        d->value = value;
        d->id = d->V;
    }
}

/* Keeps the most likely ids that hold the share p of the mass that stays. */
DEVICE void keep_top_p(struct drawing *d, double p)
{
    auto held = [=](uint32_t x) { /* the mass from x on */
        return total(d, [=](size_t token) {
            return stays(d, token) && ordered(d->l[token]) >= x ? mass(d, d->l[token]) : 0.0;
        });
    };
    const double want = p * held(0);
    const uint32_t x = last(UINT32_MAX, [=](uint32_t y) { return held(y) >= want; });
    const double above = x == UINT32_MAX ? 0 : held(x + 1);
    auto equal = [=](size_t below) {
        return total(d, [=](size_t token) {
            return token < below && ordered(d->l[token]) == x ? 1.0 : 0.0;
        });
    };
    const double all = equal(d->V), of_all = held(x) - above;
    double kept = 1;
    while (kept < all && above + kept / all * of_all < want)
        kept++;
    d->value = x;
    if (kept < all)
        d->id = last((uint32_t)d->V, [=](uint32_t id) { return equal(id) <= kept; });
}

/* The id with the best score; NOBODY: none. */
DEVICE int32_t draw(const struct drawing *drawing, const struct noise *noise)
{
    SHARED(struct racer, all);
    struct racer mine = noise_nobody();
    for (size_t id = threadIdx.x; id < drawing->V; id += DRAW_THREADS) {
        if (!(drawing->l[id] > -INFINITY) || !stays(drawing, id))
            continue;
        struct racer next = noise_racer(noise, drawing->l[id], (int32_t)id);
        if (noise_ahead(noise, &next, &mine))
            mine = next;
    }
    __syncthreads();
    all[threadIdx.x] = mine;
    __syncthreads();
    for (uint32_t half = DRAW_THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half &&
            noise_ahead(noise, &all[threadIdx.x + half], &all[threadIdx.x]))
            all[threadIdx.x] = all[threadIdx.x + half];
        __syncthreads();
    }
    return all[0].id;
}

/* Writes the measures of softmax(scale * logits) over the ids that stay. */
DEVICE void measure(const struct drawing *d, double scale, const struct head_query *q,
                    struct head_row *out)
{
    double most = -INFINITY;
    for (size_t id = threadIdx.x; id < d->V; id += DRAW_THREADS)
        if (stays(d, id) && !sample_is_quiet(q, (int32_t)id))
            most = fmax(most, (double)d->l[id]);
    const double max = joined(d, most, [](double a, double b) { return fmax(a, b); });
    auto apart = [=](size_t id) { return scale * ((double)d->l[id] - max); };
    auto counts = [=](size_t id) {
        return stays(d, id) && d->l[id] > -INFINITY && !sample_is_quiet(q, (int32_t)id);
    };
    const double sum = total(d, [=](size_t id) { return counts(id) ? exp(apart(id)) : 0.0; });
    const double weighted =
        total(d, [=](size_t id) { return counts(id) ? exp(apart(id)) * apart(id) : 0.0; });
    if (threadIdx.x > 0)
        return;
    const int32_t next = out->runner_up;
    out->log_prob = sample_is_quiet(q, out->id) ? -INFINITY : apart((size_t)out->id) - log(sum);
    out->prob = (float)exp(out->log_prob);
    out->best_log_prob = sum > 0 ? -log(sum) : -INFINITY;
    out->runner_up_prob =
        next >= 0 && counts((size_t)next) ? (float)(exp(apart((size_t)next)) / sum) : 0.0f;
    out->entropy = sum > 0 ? (float)(log(sum) - weighted / sum) : 0.0f; /* 0: only quiet ids */
}

/* Block r draws for row r. */
static __global__ void __launch_bounds__(DRAW_THREADS)
draw_row(const float *logits, size_t V, const struct head_query query, struct head_row *out)
{
    SHARED(double, shared);
    let_next_start();
    wait_for_inputs();
    const size_t row = blockIdx.x;
    struct drawing drawing = {logits + row * V, V, 0, sample_divisor(&query), 0, V, shared};
    const struct noise noise = noise_of(&query, row);
    if (out[row].bad)
        return;
    drawing.max = (double)drawing.l[out[row].id]; /* the best logit, as the query had no noise */
    const bool by_mass = query.top_p > 0 && query.top_p < 1;
    if (by_mass && query.top_p_of_all)
        keep_top_p(&drawing, query.top_p);
    if (query.top_k > 0 && query.top_k < V)
        keep_top_k(&drawing, query.top_k);
    if (by_mass && !query.top_p_of_all)
        keep_top_p(&drawing, query.top_p);
    const int32_t id = query.temperature > 0 ? draw(&drawing, &noise) : out[row].id;
    if (threadIdx.x == 0)
        out[row].id = id;
    __syncthreads();
    if (!query.drawn) {
        drawing.value = 0;
        drawing.id = V;
    }
    measure(&drawing, query.drawn ? 1 / drawing.divisor : 1, &query, &out[row]);
}

void cuda_head_draw(struct backend *backend, const float *logits, size_t rows, size_t V,
                    const struct head_query *query, struct head_row *out)
{
    launch(backend, draw_row, dim3((unsigned)rows), dim3(DRAW_THREADS),
           DRAW_THREADS * sizeof(struct racer) > DRAW_THREADS * sizeof(double)
               ? DRAW_THREADS * sizeof(struct racer)
               : DRAW_THREADS * sizeof(double),
           logits, V, *query, out);
}

/* ---- the most likely ids ---- */

/* The next id behind `last` in the order of descending logits, then ascending ids; last NOBODY: the
 * first id. NOBODY: there is none. */
DEVICE int32_t next_best(const struct drawing *d, int32_t last)
{
    SHARED(int32_t, all);
    auto ahead = [=](int32_t x, int32_t y) {
        return y == NOBODY || (x != NOBODY && (d->l[x] > d->l[y] || (d->l[x] == d->l[y] && x < y)));
    };
    int32_t mine = NOBODY;
    for (int32_t v = (int32_t)threadIdx.x; v < (int32_t)d->V; v += DRAW_THREADS)
        if ((last == NOBODY || (v != last && ahead(last, v))) && ahead(v, mine))
            mine = v;
    __syncthreads();
    all[threadIdx.x] = mine;
    __syncthreads();
    for (uint32_t half = DRAW_THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half && ahead(all[threadIdx.x + half], all[threadIdx.x]))
            all[threadIdx.x] = all[threadIdx.x + half];
        __syncthreads();
    }
    return all[0];
}

/* Block r finds the most likely ids of row r. */
static __global__ void __launch_bounds__(DRAW_THREADS)
top_row(const float *logits, size_t V, const struct head_row *out, struct head_top *tops)
{
    SHARED(double, shared);
    let_next_start();
    wait_for_inputs();
    const size_t row = blockIdx.x;
    struct drawing d = {logits + row * V, V, 0, 1, 0, V, shared};
    int32_t best = NOBODY;
    if (out[row].bad)
        return;
    for (int i = 0; i < HEAD_TOPS; i++) {
        best = (size_t)i < V ? next_best(&d, best) : NOBODY;
        d.max = i == 0 ? (double)d.l[best] : d.max;
        if (threadIdx.x == 0)
            tops[row].id[i] = (size_t)i < V ? best : -1;
    }
    const double sum = total(&d, [=](size_t token) { return mass(&d, d.l[token]); });
    for (int i = (int)threadIdx.x; i < HEAD_TOPS; i += DRAW_THREADS) {
        const int32_t id = tops[row].id[i];
        tops[row].prob[i] = id < 0 ? 0.0f : (float)(mass(&d, d.l[id]) / sum);
    }
}

void cuda_head_tops(struct backend *backend, const float *logits, size_t rows, size_t V,
                    const struct head_row *out, struct head_top *tops)
{
    launch(backend, top_row, dim3((unsigned)rows), dim3(DRAW_THREADS),
           DRAW_THREADS * sizeof(double), logits, V, out, tops);
}
