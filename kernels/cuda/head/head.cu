/* head.cu - the output layer as one streaming pass over the vocabulary.
 *
 * A product writes the logits of a chunk of ids to scratch. `head_reduce` reads them once and
 * leaves one `state` per row and piece of 32 * N ids. After all chunks, `head_answer` joins the
 * states of a row. head.h gives the sizes of chunks and pieces.
 *
 * A warp holds its piece in registers, so all results of it (best and second best, the draw under
 * noise, the maximum, the sums) are computed there one after another. Choices use total orders
 * (value, then id; noise.cuh), sums a fixed tree, so the same pass gives the same bits. Sums are
 * fp32 within a piece and double across pieces.
 *
 * One file because all results of a piece are computed while it lies in registers.
 */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/head/head.h"
#include "kernels/cuda/head/noise.cuh"

enum { HEAD_THREADS = 128, HEAD_WARPS = HEAD_THREADS / WARP };

/* The two best logits; among equals the lowest ids. NOBODY: there are fewer. */
struct top {
    float best, next;
    int32_t best_id, next_id;
};
/* The results of a piece. */
struct state {
    /* Over the ids that are not quiet: the maximum, the number of logits equal to it, and for the
     * logits below it the sums of e^(l-max) and of e^(l-max) (l-max). These are separate because
     * fp32 keeps nothing below 1e-7 beside 1, and the order of two nearly certain answers depends
     * on that. */
    float max, equal, below, weighted;
    struct top top;
    struct racer winner; /* if the temperature is not 0 */
    float target;        /* logit of the target; -inf: not in this piece */
    int32_t bad;
};

/* Sums for the comparison with xu over the same ids: sum e^(l-max) (l-l'), the maximum of l', sum
 * e^(l'-max'). */
struct contrast {
    float cross, max, sum;
};

struct reduction {
    const float *logits, *twin; /* [R, n] of the chunk; twin: logits of xu, or NULL */
    float *kept;                /* [R, V] for the caller, or NULL */
    struct state *states;       /* [R, count] */
    struct contrast *contrasts; /* [R, count] */
    size_t V;
    int32_t first, n;           /* the chunk */
    uint32_t R, pieces, count;  /* pieces of the chunk; count: of the vocabulary */
    double guide;               /* 1 + cfg_scale */
    struct head_query q;
};

/* ---- a piece in the registers of a warp ---- */

template <int N> struct piece {
    float x[N];       /* x[k] is the logit of id first + place(k); -inf: no such id */
    int32_t first, n; /* n: ids in the piece */
    int32_t lane;
};

template <int N> DEVICE int32_t place(const struct piece<N> *p, int k)
{
    return k * WARP + p->lane;
}

DEVICE int32_t lowest_of_warp(int32_t id)
{
    return warp_fold(id, [](int32_t a, int32_t b) { return min(a, b); });
}

/* Reads the piece. twin: logits of xu for guidance, or NULL. */
template <int N>
DEVICE void read(struct piece<N> *p, const float *logits, const float *twin, double guide)
{
#pragma unroll
    for (int k = 0; k < N; k++)
        p->x[k] = place(p, k) < p->n ? logits[place(p, k)] : -INFINITY;
    if (!twin)
        return;
#pragma unroll
    for (int k = 0; k < N; k++)
        if (place(p, k) < p->n) {
            double u = (double)twin[place(p, k)];
            p->x[k] = (float)__dadd_rn(u, __dmul_rn(guide, (double)p->x[k] - u));
        }
}

/* true if a logit of the warp is not finite. */
template <int N> DEVICE bool odd(const struct piece<N> *p)
{
    bool any = false;
#pragma unroll
    for (int k = 0; k < N; k++)
        any |= place(p, k) < p->n && !(fabsf(p->x[k]) < INFINITY);
    return __any_sync(EVERY_LANE, any);
}

/* Sets listed ids to -inf. Returns true if there were any. */
template <int N> DEVICE bool silence(struct piece<N> *p, const int32_t *ids, size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        int32_t at = ids[i] - p->first;
        if (at < 0 || at >= p->n)
            continue;
        any = true;
#pragma unroll
        for (int k = 0; k < N; k++)
            p->x[k] = place(p, k) == at ? -INFINITY : p->x[k];
    }
    return any;
}

/* Writes the logits for the caller. A NaN counts as -inf from here on. */
template <int N> DEVICE void keep(struct piece<N> *p, float *kept)
{
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (kept && place(p, k) < p->n)
            kept[place(p, k)] = p->x[k];
        p->x[k] = fmaxf(p->x[k], -INFINITY);
    }
}

template <int N> DEVICE float max_of(const struct piece<N> *p)
{
    float max = -INFINITY;
#pragma unroll
    for (int k = 0; k < N; k++)
        max = fmaxf(max, p->x[k]);
    return max;
}

/* The lane's lowest place other than `except` that holds `value`; NOBODY: none. */
template <int N> DEVICE int32_t find(const struct piece<N> *p, float value, int32_t except)
{
    int32_t found = NOBODY;
#pragma unroll
    for (int k = N - 1; k >= 0; k--)
        if (p->x[k] == value && place(p, k) < p->n && place(p, k) != except)
            found = place(p, k);
    return found;
}

/* The lane's x[k], for a k that is not a constant. */
template <int N> DEVICE float pick(const struct piece<N> *p, int k)
{
    float x = p->x[0];
#pragma unroll
    for (int i = 1; i < N; i++)
        x = i == k ? p->x[i] : x;
    return x;
}

/* ---- the results of a piece ---- */

/* Best and second best of the warp; *mine: the place of the lane's own best. Finds the values
 * first, then their places. */
template <int N> DEVICE struct top top_of(const struct piece<N> *p, int32_t *mine)
{
    float one = -INFINITY, two = -INFINITY;
#pragma unroll
    for (int k = 0; k < N; k++) {
        two = fmaxf(fminf(p->x[k], one), two);
        one = fmaxf(p->x[k], one);
    }
    *mine = find(p, one, NOBODY);
    struct top t;
    t.best = warp_max(one);
    int32_t best = lowest_of_warp(one == t.best ? *mine : NOBODY);
    t.next = warp_max(*mine == best ? two : one);
    int32_t next = lowest_of_warp(find(p, t.next, best));
    t.best_id = p->first + best; /* exists, because no piece is empty */
    t.next_id = next == NOBODY ? NOBODY : p->first + next;
    return t;
}

/* The winner under noise. Each lane starts from its best logit, at place `mine`. The best of these
 * is the bar: an id that cannot reach it needs no logarithms. */
template <int N>
DEVICE struct racer race(const struct piece<N> *p, const struct noise *noise, int32_t mine)
{
    struct racer ahead = noise_nobody();
    float best = mine == NOBODY ? -INFINITY : pick(p, mine / WARP);
    if (best > -INFINITY)
        ahead = noise_racer(noise, best, p->first + mine);
    float bar = warp_max(ahead.id == NOBODY ? -INFINITY : noise_low(noise, &ahead));
    uint32_t open = 0; /* bit k: x[k] may win */
#pragma unroll
    for (int k = 0; k < N; k++) {
        uint64_t bits = noise_bits(noise, p->first + place(p, k));
        if (p->x[k] > -INFINITY && noise_may_reach(noise, p->x[k], bits, bar))
            open |= 1u << k;
    }
    for (; open; open &= open - 1) {
        int k = __ffs((int)open) - 1;
        struct racer next = noise_racer(noise, pick(p, k), p->first + place(p, k));
        if (noise_ahead(noise, &next, &ahead))
            ahead = next;
    }
#pragma unroll 1
    for (int step = WARP / 2; step > 0; step /= 2) {
        struct racer other;
        other.logit = __shfl_xor_sync(EVERY_LANE, ahead.logit, step);
        other.near = __shfl_xor_sync(EVERY_LANE, ahead.near, step);
        other.id = __shfl_xor_sync(EVERY_LANE, ahead.id, step);
        if (noise_ahead(noise, &other, &ahead))
            ahead = other;
    }
    return ahead;
}

/* The sums of s, relative to s->max. */
template <int N> DEVICE void sums_of(const struct piece<N> *p, struct state *s)
{
    float equal = 0, below = 0, weighted = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
        /* clamped where e^d is 0: d may be -inf or NaN, and 0 * d would be NaN */
        float d = fmaxf(p->x[k] - s->max, -200.0f), e = exp2_near(1.44269504f * d);
        bool most = p->x[k] == s->max && s->max > -INFINITY;
        equal += most ? 1.0f : 0.0f;
        below += most ? 0.0f : e;
        weighted += e * d;
    }
    s->equal = warp_sum(equal);
    s->below = warp_sum(below);
    s->weighted = warp_sum(weighted);
}

/* The comparison of both rows: p as sums_of() has it, `was` the piece of the other row. */
template <int N>
DEVICE struct contrast contrast_of(const struct piece<N> *p, const struct piece<N> *was, float max)
{
    struct contrast c = {0, warp_max(max_of(was)), 0};
#pragma unroll
    for (int k = 0; k < N; k++) {
        float e = exp2_near(1.44269504f * fmaxf(p->x[k] - max, -200.0f));
        c.cross += p->x[k] > -INFINITY ? e * (p->x[k] - was->x[k]) : 0;
        c.sum += exp2_near(1.44269504f * fmaxf(was->x[k] - c.max, -200.0f));
    }
    c.cross = warp_sum(c.cross);
    c.sum = warp_sum(c.sum);
    return c;
}

/* The logit of a target at a place in this piece. */
template <int N> DEVICE float logit_at(const struct piece<N> *p, int32_t at)
{
    return __shfl_sync(EVERY_LANE, pick(p, at / WARP), at % WARP);
}

/* Warp i reduces piece i % pieces of row i / pieces: states[row, piece]. COMPARES: the twin is a
 * row to compare with, and contrasts[row, piece] are written too. */
template <int N, bool COMPARES>
__global__ void __launch_bounds__(HEAD_THREADS) head_reduce(const struct reduction a)
{
    let_next_start();
    wait_for_inputs();
    uint32_t unit = blockIdx.x * HEAD_WARPS + threadIdx.x / WARP;
    if (unit >= a.R * a.pieces)
        return;
    uint32_t row = unit / a.pieces, at = unit % a.pieces;
    int32_t begin = (int32_t)at * WARP * N; /* within the chunk */
    struct piece<N> p;
    p.first = a.first + begin;
    p.n = min(a.n - begin, WARP * N);
    p.lane = (int32_t)(threadIdx.x % WARP);
    size_t from = (size_t)row * (size_t)a.n + (size_t)begin;
    read(&p, a.logits + from, a.twin && !COMPARES ? a.twin + from : nullptr, a.guide);

    struct state s;
    s.bad = odd(&p); /* before the bans: a banned NaN counts as bad too */
    silence(&p, a.q.ban, a.q.n_ban);
    keep(&p, a.kept ? a.kept + row * a.V + (size_t)p.first : nullptr);
    int32_t mine;
    s.top = top_of(&p, &mine);
    s.winner = noise_nobody();
    if (a.q.temperature > 0) {
        struct noise noise = noise_of(&a.q, row);
        s.winner = race(&p, &noise, mine);
    }
    int32_t target = a.q.target ? a.q.target[row] - p.first : -1;
    s.target = target >= 0 && target < p.n ? logit_at(&p, target) : -INFINITY;
    s.max = s.top.best;
    if (silence(&p, a.q.quiet, a.q.n_quiet))
        s.max = warp_max(max_of(&p));
    sums_of(&p, &s);
    size_t to = (size_t)row * a.count + (uint32_t)a.first / (WARP * N) + at;
    if (p.lane == 0)
        a.states[to] = s;
    if constexpr (COMPARES) {
        struct piece<N> was = p;
        read(&was, a.twin + from, nullptr, 0);
        silence(&was, a.q.ban, a.q.n_ban);
        silence(&was, a.q.quiet, a.q.n_quiet);
        struct contrast c = contrast_of(&p, &was, s.max);
        if (was.lane == 0)
            a.contrasts[to] = c;
    }
}

/* ---- all pieces of a row ---- */

struct whole {
    double sum, weighted;
    float max, target;
    struct top top;
    struct racer winner;
    int32_t bad;
};

DEVICE struct whole whole_of_none(void)
{
    struct whole w = {0, 0, -INFINITY, -INFINITY, {-INFINITY, -INFINITY, NOBODY, NOBODY},
                      noise_nobody(), 0};
    return w;
}

/* The sum of e^(l-max). */
DEVICE double state_sum(const struct state *s)
{
    return (double)s->equal + (double)s->below;
}

DEVICE struct whole whole_of(const struct state *s)
{
    struct whole w = {state_sum(s), (double)s->weighted, s->max, s->target, s->top, s->winner,
                      s->bad};
    return w;
}

/* Rescales a's sums to `max`. */
DEVICE void raise(struct whole *a, float max)
{
    if (a->max < max) {
        double shift = (double)a->max - (double)max, scale = exp(shift);
        a->weighted = scale > 0 ? scale * (a->weighted + shift * a->sum) : 0;
        a->sum *= scale;
        a->max = max;
    }
}

DEVICE bool above(float x, int32_t x_id, float y, int32_t y_id)
{
    return x > y || (x == y && x_id < y_id);
}

DEVICE void offer(struct top *t, float value, int32_t id)
{
    if (above(value, id, t->best, t->best_id)) {
        t->next = t->best;
        t->next_id = t->best_id;
        t->best = value;
        t->best_id = id;
    } else if (above(value, id, t->next, t->next_id)) {
        t->next = value;
        t->next_id = id;
    }
}

/* a = the results of the ids of a and b together. */
DEVICE void join(struct whole *a, struct whole b, const struct noise *noise)
{
    float max = fmaxf(a->max, b.max);
    raise(a, max);
    raise(&b, max);
    a->sum += b.sum;
    a->weighted += b.weighted;
    offer(&a->top, b.top.best, b.top.best_id);
    offer(&a->top, b.top.next, b.top.next_id);
    if (noise_ahead(noise, &b.winner, &a->winner))
        a->winner = b.winner;
    a->target = fmaxf(a->target, b.target);
    a->bad |= b.bad;
}

DEVICE bool listed(const int32_t *ids, size_t n, int32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* The answer for the caller. A quiet id stays chosen but has probability 0. */
DEVICE struct head_row row_of(const struct whole *w, const struct head_query *q, size_t r)
{
    struct racer first = {w->top.best, w->top.best, w->top.best > -INFINITY ? w->top.best_id
                                                                            : NOBODY};
    if (q->temperature > 0)
        first = w->winner;
    double lse = (double)w->max + log(w->sum);
    struct head_row out;
    out.id = first.id == NOBODY ? -1 : first.id;
    out.runner_up = w->top.next_id == NOBODY ? -1 : w->top.next_id;
    out.log_prob = out.id < 0                               ? 0
                   : listed(q->quiet, q->n_quiet, out.id) ? -INFINITY
                                                            : (double)first.logit - lse;
    out.prob = (float)exp(out.log_prob);
    double next = listed(q->quiet, q->n_quiet, out.runner_up) ? -INFINITY
                                                              : (double)w->top.next - lse;
    out.runner_up_prob = out.runner_up < 0 ? 0.0f : (float)exp(next);
    out.gap = out.runner_up < 0 ? INFINITY : w->top.best - w->top.next;
    out.entropy = (float)(log(w->sum) - w->weighted / w->sum);
    out.target_log_prob = !q->target                                    ? 0
                          : listed(q->quiet, q->n_quiet, q->target[r]) ? -INFINITY
                                                                        : (double)w->target - lse;
    out.bad = w->bad || out.id < 0;
    out.divergence = 0;
    return out;
}

/* Block r answers for row r. Thread i joins states i, i + HEAD_THREADS...; then a tree joins the
 * threads. */
static __global__ void __launch_bounds__(HEAD_THREADS)
head_answer(const struct state *states, uint32_t count, const struct head_query q,
            struct head_row *out)
{
    SHARED(struct whole, all);
    let_next_start();
    wait_for_inputs();
    size_t r = blockIdx.x;
    struct noise noise = noise_of(&q, r);
    struct whole mine = whole_of_none();
    for (uint32_t i = threadIdx.x; i < count; i += HEAD_THREADS)
        join(&mine, whole_of(&states[r * count + i]), &noise);
    all[threadIdx.x] = mine;
#pragma unroll 1
    for (uint32_t half = HEAD_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            join(&all[threadIdx.x], all[threadIdx.x + half], &noise);
    }
    if (threadIdx.x == 0)
        out[r] = row_of(&all[0], &q, r);
}

/* Thread r: the divergence of row r, sum p (l - l') - (lse - lse'). */
static __global__ void __launch_bounds__(HEAD_THREADS)
head_diverge(const struct state *states, const struct contrast *contrasts, uint32_t count,
             uint32_t R, struct head_row *out)
{
    let_next_start();
    wait_for_inputs();
    size_t r = (size_t)blockIdx.x * HEAD_THREADS + threadIdx.x;
    if (r >= R)
        return;
    const struct state *s = states + r * count;
    const struct contrast *c = contrasts + r * count;
    double sum = 0, was = 0, cross = 0;
    float max = -INFINITY, was_max = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        max = fmaxf(max, s[i].max);
        was_max = fmaxf(was_max, c[i].max);
    }
    for (uint32_t i = 0; i < count; i++) {
        double scale = s[i].max > -INFINITY ? exp((double)s[i].max - (double)max) : 0;
        sum += scale * state_sum(&s[i]);
        cross += scale > 0 ? scale * (double)c[i].cross : 0;
        was += c[i].max > -INFINITY ? exp((double)c[i].max - (double)was_max) * (double)c[i].sum
                                    : 0;
    }
    double d = cross / sum - ((double)max + log(sum)) + ((double)was_max + log(was));
    out[r].divergence = (float)(d > 0 ? d : 0 * d); /* rounding may give a value below 0; NaN stays
                                                     * NaN */
}

/* ---- the operation ---- */

/* Bytes of the results of a piece. */
static size_t left_bytes(int guided)
{
    return sizeof(struct state) + (guided ? sizeof(struct contrast) : 0);
}

static void reduce(struct backend *b, const struct head_plan *plan, const struct reduction *a)
{
    void (*few)(struct reduction) = head_reduce<HEAD_FEW, false>;
    void (*many)(struct reduction) = head_reduce<HEAD_MANY, false>;
    if (a->q.divergence) {
        few = head_reduce<HEAD_FEW, true>;
        many = head_reduce<HEAD_MANY, true>;
    }
    launch(b, plan->each == HEAD_FEW ? few : many, dim3(blocks_of(a->R * a->pieces, HEAD_WARPS)),
           dim3(HEAD_THREADS), 0, *a);
}

size_t cuda_head_by_work(const struct backend *b, const struct head_plan *plan, size_t R, size_t D,
                         size_t V, int guided)
{
    size_t rest = V % plan->chunk; /* a smaller product may need more */
    size_t whole = V < plan->chunk ? 0 : cuda_matmul_work(b, R, D, plan->chunk);
    size_t last = rest ? cuda_matmul_work(b, R, D, rest) : 0;
    return head_scratch_of(plan, R, V, guided, left_bytes(guided)).product +
           (whole > last ? whole : last);
}

size_t cuda_head_work(const struct backend *b, size_t R, size_t D, size_t V, size_t dense)
{
    size_t most = 0;
    for (int guided = 0; guided < (dense == 1 ? 1 : 2); guided++) {
        struct head_plan plan = head_plan_of(R, V, guided, dense, device_of(b)->sms);
        size_t bytes = cuda_head_by_work(b, &plan, R, D, V, guided);
        most = bytes > most ? bytes : most;
    }
    return most;
}

void cuda_head_by(struct backend *b, const struct head_plan *plan, const struct mat *w,
                  const act *x, const act *xu, size_t R, const struct head_query *q,
                  struct head_row *out, float *logits, void *work)
{
    size_t V = w->rows;
    struct head_scratch at = head_scratch_of(plan, R, V, xu != nullptr, left_bytes(xu != nullptr));
    char *scratch = (char *)work;
    struct reduction a = {};
    a.logits = (float *)work;
    a.twin = xu ? (float *)(scratch + at.twin) : nullptr;
    a.kept = logits;
    a.states = (struct state *)(scratch + at.states);
    a.V = V;
    a.R = (uint32_t)R;
    a.count = (uint32_t)head_pieces(plan, V);
    a.contrasts = (struct contrast *)(void *)(a.states + R * a.count);
    a.guide = 1 + q->cfg_scale;
    a.q = *q;
    for (size_t first = 0; first < V; first += plan->chunk) {
        size_t n = V - first < plan->chunk ? V - first : plan->chunk;
        cuda_logits(b, (float *)work, w, first, n, x, R, scratch + at.product);
        if (xu)
            cuda_logits(b, (float *)(scratch + at.twin), w, first, n, xu, R, scratch + at.product);
        a.first = (int32_t)first;
        a.n = (int32_t)n;
        a.pieces = (uint32_t)head_pieces(plan, n);
        reduce(b, plan, &a);
    }
    launch(b, head_answer, dim3(a.R), dim3(HEAD_THREADS), HEAD_THREADS * sizeof(struct whole),
           a.states, a.count, *q, out);
    if (q->divergence)
        launch(b, head_diverge, dim3(blocks_of(a.R, HEAD_THREADS)), dim3(HEAD_THREADS), 0,
               (const struct state *)a.states, (const struct contrast *)a.contrasts, a.count, a.R,
               out);
}

void cuda_head(struct backend *b, const struct mat *w, const act *x, const act *xu, size_t R,
               const struct head_query *q, struct head_row *out, float *logits, void *work)
{
    struct range here("head");
    struct head_plan plan =
        head_plan_of(R, w->rows, xu != nullptr, q->dense, device_of(b)->sms);
    cuda_head_by(b, &plan, w, x, xu, R, q, out, logits, work);
}
