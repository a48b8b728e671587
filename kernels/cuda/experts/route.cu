/* route.cu - finds the experts of each row of a mixture (kernels/experts.h), and sorts the rows by
 * expert. The order of every step does not depend on timing, so a pass repeats bit for bit. */
#include "kernels/cuda/experts/mixture.h"

#include "kernels/cuda/device.cuh"

enum { ROUTE_WARPS = 8, ROUTE_ROWS = 4, A_LANE = EXPERTS_MOST / WARP, NONE = EXPERTS_MOST };
enum { AT_ONCE = 4 }; /* loads of a lane in sort_pairs */

/* Warp (e, c) writes the logits of expert e for ROUTE_ROWS rows from c ROUTE_ROWS on. */
template <class A>
static __global__ void __launch_bounds__(ROUTE_WARPS *WARP)
router_logits(float *y, const A *x, const float *w, uint32_t T, uint32_t n, uint32_t D)
{
    uint32_t e = blockIdx.x * ROUTE_WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    uint32_t first = blockIdx.y * ROUTE_ROWS, rows = min(T - first, (uint32_t)ROUTE_ROWS);
    float sum[ROUTE_ROWS] = {};
    let_next_start();
    wait_for_inputs();
    if (e >= n)
        return;
#pragma unroll 8 /* 8 loads in flight */
    for (uint32_t k = lane; k < D; k += WARP) {
        float value = w[(size_t)e * D + k];
#pragma unroll
        for (uint32_t row = 0; row < ROUTE_ROWS; row++)
            if (row < rows)
                sum[row] = fmaf(value, act_float(x[(size_t)(first + row) * D + k]), sum[row]);
    }
#pragma unroll
    for (uint32_t row = 0; row < ROUTE_ROWS; row++) {
        float all = warp_sum(sum[row]);
        if (lane == row && row < rows)
            y[(size_t)(first + row) * n + e] = all;
    }
}

/* Chooses the `used` experts with the largest value; among equals the lowest number. A NaN ranks
 * lowest. Experts are bits: bit i of a lane is expert 32 i + lane. Returns the bits of the chosen
 * experts; experts with a bit in `out` are not chosen. */
DEVICE uint32_t choose(const float value[A_LANE], uint32_t n, uint32_t used, uint32_t out)
{
    uint32_t taken = out, lane = threadIdx.x % WARP;
    for (uint32_t k = 0; k < used; k++) {
        float best = -INFINITY;
        uint32_t which = NONE;
#pragma unroll
        for (uint32_t i = 0; i < A_LANE; i++) {
            uint32_t e = WARP * i + lane;
            if (e < n && !(taken >> i & 1) && (which == NONE || value[i] > best)) {
                best = value[i] == value[i] ? value[i] : -INFINITY;
                which = e;
            }
        }
        float top = warp_max(best);
        which = warp_fold(best == top ? which : (uint32_t)NONE,
                          [](uint32_t at, uint32_t count) { return at < count ? at : count; });
        if (which % WARP == lane)
            taken |= 1u << which / WARP;
    }
    return taken & ~out;
}

/* The largest value of the `count` experts from `from` on, without expert `but`. *which = the
 * number of its expert. */
DEVICE float best_of(const float value[A_LANE], uint32_t from, uint32_t count, uint32_t but,
                     uint32_t *which)
{
    float best = -INFINITY;
    uint32_t mine = NONE;
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++) {
        uint32_t e = WARP * i + threadIdx.x % WARP;
        if (e - from < count && e != but && value[i] > best) {
            best = value[i];
            mine = e;
        }
    }
    float top = warp_max(best);
    *which = warp_fold(best == top ? mine : (uint32_t)NONE,
                       [](uint32_t at, uint32_t c) { return at < c ? at : c; });
    return top;
}

/* Parameters of the router with sigmoids; bias NULL: the router with softmax. */
struct routing {
    const float *bias;
    uint32_t groups, groups_used;
    float scale;
};

/* Returns the bits (as in choose()) of the experts in groups that the row does not use. Lane g
 * holds the score of group g. */
DEVICE uint32_t leave_out(const float value[A_LANE], uint32_t n, struct routing routing)
{
    const uint32_t lane = threadIdx.x % WARP, each = n / routing.groups;
    uint32_t which, other, out = 0;
    float score = -INFINITY;
    bool waits = lane < routing.groups;
    for (uint32_t g = 0; g < routing.groups; g++) {
        float sum = best_of(value, g * each, each, NONE, &which);
        sum += best_of(value, g * each, each, which, &other);
        score = lane == g ? sum : score;
    }
    for (uint32_t k = 0; k < routing.groups_used; k++) {
        float top = warp_max(waits ? score : -INFINITY);
        which = warp_fold(waits && score == top ? lane : (uint32_t)NONE,
                          [](uint32_t at, uint32_t count) { return at < count ? at : count; });
        waits = waits && lane != which;
    }
    const uint32_t unused = __ballot_sync(EVERY_LANE, waits);
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++) {
        uint32_t g = (WARP * i + lane) / each;
        out |= (g < WARP ? unused >> g & 1 : 0) << i;
    }
    return out;
}

/* Chooses the experts of a row by softmax or, if BIASED, by sigmoids; returns bits as choose()
 * does. values: the logits, which are overwritten. shares: output, p of each expert. */
template <bool BIASED>
DEVICE uint32_t choose_by(float values[A_LANE], float shares[A_LANE], uint32_t n, uint32_t used,
                          struct routing routing)
{
    const uint32_t lane = threadIdx.x % WARP;
    float top = -INFINITY, sum = 0;
    uint32_t taken;
    for (uint32_t i = 0; i < A_LANE; i++)
        top = fmaxf(top, values[i]);
    top = BIASED ? 0 : warp_max(top);
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++) {
        const bool there = WARP * i + lane < n;
        shares[i] = BIASED ? 1 / (1 + expf(-values[i])) : there ? expf(values[i] - top) : 0;
        if (BIASED && there)
            values[i] = shares[i] + routing.bias[WARP * i + lane];
    }
    taken = choose(values, n, used, BIASED ? leave_out(values, n, routing) : 0);
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++)
        sum += !BIASED || (taken >> i & 1) ? shares[i] : 0;
    sum = warp_sum(sum);
    const float by = BIASED ? routing.scale / (used > 1 ? sum + 1e-20f : 1) : 1;
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++)
        shares[i] = BIASED ? shares[i] * by : shares[i] / sum;
    return taken;
}

/* Warp t writes the experts of row t, ascending, and their shares. */
template <bool BIASED>
static __global__ void __launch_bounds__(ROUTE_WARPS *WARP)
choose_experts(int32_t *chosen, float *share, const float *logits, uint32_t T, uint32_t n,
               uint32_t used, struct routing routing)
{
    uint32_t row = blockIdx.x * ROUTE_WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float values[A_LANE], shares[A_LANE];
    let_next_start();
    wait_for_inputs();
    if (row >= T)
        return;
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++)
        values[i] = WARP * i + lane < n ? logits[(size_t)row * n + WARP * i + lane] : -INFINITY;
    uint32_t taken = choose_by<BIASED>(values, shares, n, used, routing), at = row * used;
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++) {
        bool mine = taken >> i & 1;
        uint32_t votes = __ballot_sync(EVERY_LANE, mine);
        uint32_t to = at + (uint32_t)__popc(votes & ((1u << lane) - 1));
        if (mine) {
            chosen[to] = (int32_t)(WARP * i + lane);
            share[to] = shares[i];
        }
        at += (uint32_t)__popc(votes);
    }
}

/* of[i] = the expert of pair base + i * WARP + lane, or NONE from `end` on. All loads are in flight
 * together. */
DEVICE void load_experts(uint32_t of[AT_ONCE], const int32_t *chosen, uint32_t base, uint32_t end)
{
#pragma unroll
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        uint32_t at = base + i * WARP + threadIdx.x % WARP;
        of[i] = at < end ? (uint32_t)chosen[at] : (uint32_t)NONE;
    }
}

/* Block e finds the index of the first pair of expert e among the sorted pairs, and writes its
 * pairs from there on, rows ascending. Each warp has an equal part of all pairs: it first counts,
 * then writes behind the pairs of earlier warps. */
static __global__ void __launch_bounds__(ROUTE_WARPS *WARP)
sort_pairs(struct mixture mixture, int32_t *active, uint32_t pairs, uint32_t used)
{
    SHARED(uint32_t, belows);
    uint32_t *const counts = belows + ROUTE_WARPS;
    const uint32_t e = blockIdx.x, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const uint32_t part = plan_up(pairs, ROUTE_WARPS), first = warp * part;
    const uint32_t end = min(first + part, pairs);
    uint32_t below = 0, count = 0, all = 0, of[AT_ONCE];
    let_next_start();
    wait_for_inputs();
    for (uint32_t base = first; base < end; base += AT_ONCE * WARP) {
        load_experts(of, mixture.chosen, base, end);
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            below += (uint32_t)__popc(__ballot_sync(EVERY_LANE, of[i] < e));
            count += (uint32_t)__popc(__ballot_sync(EVERY_LANE, of[i] == e));
        }
    }
    belows[warp] = below;
    counts[warp] = count;
    __syncthreads();
    below = 0;
    for (uint32_t w = 0; w < ROUTE_WARPS; w++) {
        below += belows[w];
        all += counts[w];
    }
    if (threadIdx.x == 0) {
        mixture.begin[e] = (int32_t)below;
        if (e == gridDim.x - 1)
            mixture.begin[e + 1] = (int32_t)pairs;
        if (all)
            atomicAdd(active, 1);
    }
    for (uint32_t w = 0; w < warp; w++)
        below += counts[w];
    for (uint32_t base = first; count && base < end; base += AT_ONCE * WARP) {
        load_experts(of, mixture.chosen, base, end);
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            uint32_t at = base + i * WARP + lane;
            uint32_t votes = __ballot_sync(EVERY_LANE, of[i] == e);
            uint32_t to = below + (uint32_t)__popc(votes & ((1u << lane) - 1));
            if (of[i] == e) {
                mixture.row[to] = (int32_t)(at / used);
                mixture.place[at] = (int32_t)to;
            }
            below += (uint32_t)__popc(votes);
        }
    }
}

template <class A>
static void start_logits(const struct backend *backend, const struct experts *experts, float *y,
                         size_t T)
{
    const uint32_t n = (uint32_t)experts->n, D = (uint32_t)experts->router->cols;
    launch(backend, router_logits<A>, dim3(blocks_of(n, ROUTE_WARPS), blocks_of(T, ROUTE_ROWS)),
           dim3(ROUTE_WARPS * WARP), 0, y, static_cast<const A *>(experts->x),
           static_cast<const float *>(experts->router->data), (uint32_t)T, n, D);
}

void route(const struct backend *backend, const struct experts *experts,
           const struct mixture *mixture, size_t T)
{
    const uint32_t n = (uint32_t)experts->n, used = (uint32_t)experts->used;
    if (backend->act == DTYPE_F32)
        start_logits<float>(backend, experts, mixture->logits, T);
    else
        start_logits<uint16_t>(backend, experts, mixture->logits, T);
    const struct routing routing = {experts->bias, (uint32_t)experts->groups,
                                    (uint32_t)experts->groups_used, experts->scale};
    launch(backend, experts->bias ? choose_experts<true> : choose_experts<false>,
           dim3(blocks_of(T, ROUTE_WARPS)), dim3(ROUTE_WARPS * WARP), 0, mixture->chosen,
           mixture->share, mixture->logits, (uint32_t)T, n, used, routing);
    launch(backend, sort_pairs, dim3(n), dim3(ROUTE_WARPS * WARP),
           2 * ROUTE_WARPS * sizeof(uint32_t), *mixture, experts->active, (uint32_t)(T * used),
           used);
}
