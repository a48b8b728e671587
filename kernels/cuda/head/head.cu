/* head.cu - the output layer as one streaming pass over the vocabulary.
 *
 * A product writes the logits of a chunk of ids to scratch. `head_reduce` reads them once and
 * leaves one `state` per row and piece of 32 * N ids (piece.cuh). After all chunks, `head_answer`
 * joins the states of a row in a fixed tree, with sums in double. If top-k or top-p filter the ids,
 * draw.cu draws again. head.h gives the sizes of chunks and pieces. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/head/head.h"
#include "kernels/cuda/head/piece.cuh"
#include "kernels/sample.h"

enum { HEAD_THREADS = 128, HEAD_WARPS = HEAD_THREADS / WARP };

struct reduction {
    const float *logits, *twin; /* [R, n] logits of the chunk; twin: logits of xu, or NULL */
    float *kept;                /* [R, V] logits for the caller, or NULL */
    struct state *states;       /* [R, count] */
    struct contrast *contrasts; /* [R, count] */
    size_t V;
    int32_t first, n;           /* first id and number of ids of the chunk */
    uint32_t R, pieces, count;  /* R: rows; pieces: number of pieces of the chunk; count: of the
                                 * vocabulary */
    double guide;               /* 1 + cfg_scale */
    struct head_query q;
};

/* Warp i reduces piece i % pieces of row i / pieces: states[row, piece]. COMPARES: twin is a row to
 * compare with, and contrasts[row, piece] is written too. */
template <int N, bool COMPARES>
__global__ void __launch_bounds__(HEAD_THREADS) head_reduce(const struct reduction reduction)
{
    let_next_start();
    wait_for_inputs();
    uint32_t unit = blockIdx.x * HEAD_WARPS + threadIdx.x / WARP;
    if (unit >= reduction.R * reduction.pieces)
        return;
    uint32_t row = unit / reduction.pieces, at = unit % reduction.pieces;
    int32_t begin = (int32_t)at * WARP * N; /* within the chunk */
    struct piece<N> part;
    part.first = reduction.first + begin;
    part.n = min(reduction.n - begin, WARP * N);
    part.lane = (int32_t)(threadIdx.x % WARP);
    size_t from = (size_t)row * (size_t)reduction.n + (size_t)begin;
    read(&part, reduction.logits + from,
         reduction.twin && !COMPARES ? reduction.twin + from : nullptr, reduction.guide);

    struct state state;
    state.bad = odd(&part); /* before the bans: a banned NaN counts as bad too */
    silence(&part, reduction.q.ban, reduction.q.n_ban);
    keep(&part, reduction.kept ? reduction.kept + row * reduction.V + (size_t)part.first : nullptr);
    int32_t mine;
    state.top = top_of(&part, &mine);
    state.winner = noise_nobody();
    if (reduction.q.temperature > 0) {
        struct noise noise = noise_of(&reduction.q, row);
        state.winner = race(&part, &noise, mine);
    }
    int32_t target = reduction.q.target ? reduction.q.target[row] - part.first : -1;
    state.target = target >= 0 && target < part.n ? logit_at(&part, target) : -INFINITY;
    state.max = state.top.best;
    if (silence(&part, reduction.q.quiet, reduction.q.n_quiet))
        state.max = warp_max(max_of(&part));
    sums_of(&part, &state);
    size_t to = (size_t)row * reduction.count + (uint32_t)reduction.first / (WARP * N) + at;
    if (part.lane == 0)
        reduction.states[to] = state;
    if constexpr (COMPARES) {
        struct piece<N> was = part;
        read(&was, reduction.twin + from, nullptr, 0);
        silence(&was, reduction.q.ban, reduction.q.n_ban);
        silence(&was, reduction.q.quiet, reduction.q.n_quiet);
        struct contrast contrast = contrast_of(&part, &was, state.max);
        if (was.lane == 0)
            reduction.contrasts[to] = contrast;
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
    struct whole whole = {0, 0, -INFINITY, -INFINITY, {-INFINITY, -INFINITY, NOBODY, NOBODY},
                          noise_nobody(), 0};
    return whole;
}

/* The sum of e^(l-max). */
DEVICE double state_sum(const struct state *state)
{
    return (double)state->equal + (double)state->below;
}

DEVICE struct whole whole_of(const struct state *state)
{
    struct whole whole = {state_sum(state), (double)state->weighted, state->max, state->target,
                          state->top, state->winner, state->bad};
    return whole;
}

/* Rescales the sums of *whole to the larger maximum `max`. */
DEVICE void raise(struct whole *whole, float max)
{
    if (whole->max < max) {
        double shift = (double)whole->max - (double)max, scale = exp(shift);
        whole->weighted = scale > 0 ? scale * (whole->weighted + shift * whole->sum) : 0;
        whole->sum *= scale;
        whole->max = max;
    }
}

DEVICE bool above(float x, int32_t x_id, float y, int32_t y_id)
{
    return x > y || (x == y && x_id < y_id);
}

DEVICE void offer(struct top *top, float value, int32_t id)
{
    if (above(value, id, top->best, top->best_id)) {
        top->next = top->best;
        top->next_id = top->best_id;
        top->best = value;
        top->best_id = id;
    } else if (above(value, id, top->next, top->next_id)) {
        top->next = value;
        top->next_id = id;
    }
}

/* *a = the results over the ids of *a and b together. */
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
DEVICE struct head_row row_of(const struct whole *whole, const struct head_query *query, size_t row)
{
    struct racer first = {whole->top.best, whole->top.best,
                          whole->top.best > -INFINITY ? whole->top.best_id : NOBODY};
    if (query->temperature > 0)
        first = whole->winner;
    double lse = (double)whole->max + log(whole->sum);
    struct head_row out;
    out.id = first.id == NOBODY ? -1 : first.id;
    out.runner_up = whole->top.next_id == NOBODY ? -1 : whole->top.next_id;
    out.log_prob = out.id < 0                   ? 0
                   : sample_is_quiet(query, out.id) ? -INFINITY
                                                    : (double)first.logit - lse;
    out.prob = (float)exp(out.log_prob);
    out.best_log_prob = whole->sum > 0 ? (double)whole->max - lse : -INFINITY;
    double next =
        sample_is_quiet(query, out.runner_up) ? -INFINITY : (double)whole->top.next - lse;
    out.runner_up_prob = out.runner_up < 0 ? 0.0f : (float)exp(next);
    out.gap = out.runner_up < 0 ? INFINITY : whole->top.best - whole->top.next;
    out.entropy = (float)(log(whole->sum) - whole->weighted / whole->sum);
    out.target_log_prob = !query->target ? 0
                          : sample_is_quiet(query, query->target[row])
                              ? -INFINITY
                              : (double)whole->target - lse;
    out.bad = whole->bad || out.id < 0;
    out.divergence = 0;
    out.id = sample_id(query, out.id);
    out.runner_up = sample_id(query, out.runner_up);
    return out;
}

/* Block r writes the answer of row r. Thread i joins states i, i + HEAD_THREADS, ...; then the
 * threads' results are joined in a tree. */
static __global__ void __launch_bounds__(HEAD_THREADS)
head_answer(const struct state *states, uint32_t count, const struct head_query query,
            struct head_row *out)
{
    SHARED(struct whole, all);
    let_next_start();
    wait_for_inputs();
    size_t row = blockIdx.x;
    struct noise noise = noise_of(&query, row);
    struct whole mine = whole_of_none();
    for (uint32_t i = threadIdx.x; i < count; i += HEAD_THREADS)
        join(&mine, whole_of(&states[row * count + i]), &noise);
    all[threadIdx.x] = mine;
#pragma unroll 1
    for (uint32_t half = HEAD_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            join(&all[threadIdx.x], all[threadIdx.x + half], &noise);
    }
    if (threadIdx.x == 0)
        out[row] = row_of(&all[0], &query, row);
}

/* Thread r computes the divergence of row r: sum p (l - l') - (lse - lse'), with lse = log sum
 * e^l. */
static __global__ void __launch_bounds__(HEAD_THREADS)
head_diverge(const struct state *states, const struct contrast *contrasts, uint32_t count,
             uint32_t R, struct head_row *out)
{
    let_next_start();
    wait_for_inputs();
    size_t row = (size_t)blockIdx.x * HEAD_THREADS + threadIdx.x;
    if (row >= R)
        return;
    const struct state *state = states + row * count;
    const struct contrast *contrast = contrasts + row * count;
    double sum = 0, was = 0, cross = 0;
    float max = -INFINITY, was_max = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        max = fmaxf(max, state[i].max);
        was_max = fmaxf(was_max, contrast[i].max);
    }
    for (uint32_t i = 0; i < count; i++) {
        double scale = state[i].max > -INFINITY ? exp((double)state[i].max - (double)max) : 0;
        sum += scale * state_sum(&state[i]);
        cross += scale > 0 ? scale * (double)contrast[i].cross : 0;
        was += contrast[i].max > -INFINITY
                   ? exp((double)contrast[i].max - (double)was_max) * (double)contrast[i].sum
                   : 0;
    }
    double d = cross / sum - ((double)max + log(sum)) + ((double)was_max + log(was));
    out[row].divergence = (float)(d > 0 ? d
                                        : 0 * d); /* rounding may give a value below 0; NaN stays
                                                       * NaN */
}

/* ---- the operation ---- */

/* Bytes of the results of a piece. */
static size_t left_bytes(int guided)
{
    return sizeof(struct state) + (guided ? sizeof(struct contrast) : 0);
}

static void reduce(struct backend *backend, const struct head_plan *plan,
                   const struct reduction *reduction)
{
    void (*few)(struct reduction) = head_reduce<HEAD_FEW, false>;
    void (*many)(struct reduction) = head_reduce<HEAD_MANY, false>;
    if (reduction->q.divergence) {
        few = head_reduce<HEAD_FEW, true>;
        many = head_reduce<HEAD_MANY, true>;
    }
    launch(backend, plan->each == HEAD_FEW ? few : many,
           dim3(blocks_of(reduction->R * reduction->pieces, HEAD_WARPS)), dim3(HEAD_THREADS), 0,
           *reduction);
}

size_t cuda_head_by_work(const struct backend *backend, const struct head_plan *plan, size_t rows,
                         size_t D, size_t V, int guided)
{
    size_t rest = V % plan->chunk; /* a smaller product may need more */
    size_t whole = V < plan->chunk ? 0 : cuda_matmul_work(backend, rows, D, plan->chunk);
    size_t last = rest ? cuda_matmul_work(backend, rows, D, rest) : 0;
    return head_scratch_of(plan, rows, V, guided, left_bytes(guided)).product +
           (whole > last ? whole : last);
}

size_t cuda_head_work(const struct backend *backend, size_t rows, size_t D, size_t V, size_t dense)
{
    size_t most = 0;
    for (int guided = 0; guided < (dense == 1 ? 1 : 2); guided++) {
        struct head_plan plan = head_plan_of(rows, V, guided, dense, device_of(backend)->sms);
        size_t bytes = cuda_head_by_work(backend, &plan, rows, D, V, guided);
        most = bytes > most ? bytes : most;
    }
    return most;
}

void cuda_head_by(struct backend *backend, const struct head_plan *plan, const struct mat *weight,
                  const act *x, const act *xu, size_t rows, const struct head_query *query,
                  struct head_row *out, float *logits, void *work)
{
    size_t V = weight->rows;
    const int draws = sample_needs_logits(query, V);
    struct head_query first = *query;
    first.temperature = draws ? 0 : query->temperature;
    struct head_scratch at = head_scratch_of(plan, rows, V, xu != nullptr,
                                             left_bytes(xu != nullptr));
    char *scratch = (char *)work;
    struct reduction reduction = {};
    reduction.logits = (float *)work;
    reduction.twin = xu ? (float *)(scratch + at.twin) : nullptr;
    reduction.kept = logits;
    reduction.states = (struct state *)(scratch + at.states);
    reduction.V = V;
    reduction.R = (uint32_t)rows;
    reduction.count = (uint32_t)head_pieces(plan, V);
    reduction.contrasts = (struct contrast *)(void *)(reduction.states + rows * reduction.count);
    reduction.guide = 1 + query->cfg_scale;
    reduction.q = first;
    for (size_t first = 0; first < V; first += plan->chunk) {
        size_t n = V - first < plan->chunk ? V - first : plan->chunk;
        cuda_logits(backend, (float *)work, weight, first, n, x, rows, scratch + at.product);
        if (xu)
            cuda_logits(backend, (float *)(scratch + at.twin), weight, first, n, xu, rows,
                        scratch + at.product);
        reduction.first = (int32_t)first;
        reduction.n = (int32_t)n;
        reduction.pieces = (uint32_t)head_pieces(plan, n);
        reduce(backend, plan, &reduction);
    }
    launch(backend, head_answer, dim3(reduction.R), dim3(HEAD_THREADS),
           HEAD_THREADS * sizeof(struct whole), reduction.states, reduction.count, first, out);
    if (query->divergence)
        launch(backend, head_diverge, dim3(blocks_of(reduction.R, HEAD_THREADS)),
               dim3(HEAD_THREADS), 0, (const struct state *)reduction.states,
               (const struct contrast *)reduction.contrasts, reduction.count, reduction.R, out);
    if (draws)
        cuda_head_draw(backend, logits, rows, V, query, out);
    if (query->tops)
        cuda_head_tops(backend, logits, rows, V, out, query->tops);
}

void cuda_head(struct backend *backend, const struct mat *weight, const act *x, const act *xu,
               size_t rows, const struct head_query *query, struct head_row *out, float *logits,
               void *work)
{
    struct range here("head");
    struct head_plan plan =
        head_plan_of(rows, weight->rows, xu != nullptr, query->dense, device_of(backend)->sms);
    cuda_head_by(backend, &plan, weight, x, xu, rows, query, out, logits, work);
}
