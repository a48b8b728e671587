/* head.cu - the output layer as one streaming pass over the vocabulary.
 *
 * A product writes the logits of a chunk of ids to scratch. `head_reduce` reads them once and
 * leaves one `state` per row and piece of 32 * N ids (piece.cuh). After all chunks, `head_answer`
 * joins the states of a row in a fixed tree, with sums in double. Where a filter chooses among the
 * ids, draw.cu draws again. head.h gives the sizes of chunks and pieces. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/head/head.h"
#include "kernels/cuda/head/piece.cuh"
#include "kernels/sample.h"

enum { HEAD_THREADS = 128, HEAD_WARPS = HEAD_THREADS / WARP };

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
    out.log_prob = out.id < 0                   ? 0
                   : sample_is_quiet(q, out.id) ? -INFINITY
                                                : (double)first.logit - lse;
    out.prob = (float)exp(out.log_prob);
    out.best_log_prob = w->sum > 0 ? (double)w->max - lse : -INFINITY;
    double next =
        sample_is_quiet(q, out.runner_up) ? -INFINITY : (double)w->top.next - lse;
    out.runner_up_prob = out.runner_up < 0 ? 0.0f : (float)exp(next);
    out.gap = out.runner_up < 0 ? INFINITY : w->top.best - w->top.next;
    out.entropy = (float)(log(w->sum) - w->weighted / w->sum);
    out.target_log_prob = !q->target                         ? 0
                          : sample_is_quiet(q, q->target[r]) ? -INFINITY
                                                             : (double)w->target - lse;
    out.bad = w->bad || out.id < 0;
    out.divergence = 0;
    out.id = sample_id(q, out.id);
    out.runner_up = sample_id(q, out.runner_up);
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
    const int draws = sample_needs_logits(q, V);
    struct head_query first = *q;
    first.temperature = draws ? 0 : q->temperature;
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
    a.q = first;
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
           a.states, a.count, first, out);
    if (q->divergence)
        launch(b, head_diverge, dim3(blocks_of(a.R, HEAD_THREADS)), dim3(HEAD_THREADS), 0,
               (const struct state *)a.states, (const struct contrast *)a.contrasts, a.count, a.R,
               out);
    if (draws)
        cuda_head_draw(b, logits, R, V, q, out);
    if (q->tops)
        cuda_head_tops(b, logits, R, V, out, q->tops);
}

void cuda_head(struct backend *b, const struct mat *w, const act *x, const act *xu, size_t R,
               const struct head_query *q, struct head_row *out, float *logits, void *work)
{
    struct range here("head");
    struct head_plan plan =
        head_plan_of(R, w->rows, xu != nullptr, q->dense, device_of(b)->sms);
    cuda_head_by(b, &plan, w, x, xu, R, q, out, logits, work);
}
