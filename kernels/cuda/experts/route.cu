/* route.cu - which experts each row of a mixture uses (kernels/experts.h), and the rows in the
 * order of their experts. Each step has an order of its own that does not depend on time, so a pass
 * repeats bit for bit. */
#include "kernels/cuda/experts/mixture.h"

#include "kernels/cuda/device.cuh"

enum { ROUTE_WARPS = 8, ROUTE_ROWS = 4, A_LANE = EXPERTS_MOST / WARP, NONE = EXPERTS_MOST };
enum { AT_ONCE = 4 }; /* loads of a lane in sort_pairs */

/* Warp (e, c) writes the logits of expert e for rows c ROUTE_ROWS ... */
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
        float v = w[(size_t)e * D + k];
#pragma unroll
        for (uint32_t t = 0; t < ROUTE_ROWS; t++)
            if (t < rows)
                sum[t] = fmaf(v, act_float(x[(size_t)(first + t) * D + k]), sum[t]);
    }
#pragma unroll
    for (uint32_t t = 0; t < ROUTE_ROWS; t++) {
        float all = warp_sum(sum[t]);
        if (lane == t && t < rows)
            y[(size_t)(first + t) * n + e] = all;
    }
}

/* Chooses the experts with the largest v; among equals the lowest number. Returns bit i for each
 * chosen expert 32 i + lane. A NaN ranks lowest. Experts with a bit in `out` are not chosen. */
DEVICE uint32_t choose(const float v[A_LANE], uint32_t n, uint32_t used, uint32_t out)
{
    uint32_t taken = out, lane = threadIdx.x % WARP;
    for (uint32_t k = 0; k < used; k++) {
        float best = -INFINITY;
        uint32_t which = NONE;
#pragma unroll
        for (uint32_t i = 0; i < A_LANE; i++) {
            uint32_t e = WARP * i + lane;
            if (e < n && !(taken >> i & 1) && (which == NONE || v[i] > best)) {
                best = v[i] == v[i] ? v[i] : -INFINITY;
                which = e;
            }
        }
        float top = warp_max(best);
        which = warp_fold(best == top ? which : (uint32_t)NONE,
                          [](uint32_t a, uint32_t c) { return a < c ? a : c; });
        if (which % WARP == lane)
            taken |= 1u << which / WARP;
    }
    return taken & ~out;
}

/* The largest v of the `count` experts from `from` on without `but`. *which: its number. */
DEVICE float best_of(const float v[A_LANE], uint32_t from, uint32_t count, uint32_t but,
                     uint32_t *which)
{
    float best = -INFINITY;
    uint32_t mine = NONE;
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++) {
        uint32_t e = WARP * i + threadIdx.x % WARP;
        if (e - from < count && e != but && v[i] > best) {
            best = v[i];
            mine = e;
        }
    }
    float top = warp_max(best);
    *which = warp_fold(best == top ? mine : (uint32_t)NONE,
                       [](uint32_t a, uint32_t c) { return a < c ? a : c; });
    return top;
}

/* The router with a bias; bias NULL: the router without a bias. */
struct routing {
    const float *bias;
    uint32_t groups, groups_used;
    float scale;
};

/* Returns bit i for each expert 32 i + lane of a group that the row does not use. Lane g has the
 * score of group g. */
DEVICE uint32_t leave_out(const float v[A_LANE], uint32_t n, struct routing r)
{
    const uint32_t lane = threadIdx.x % WARP, each = n / r.groups;
    uint32_t which, other, out = 0;
    float score = -INFINITY;
    bool waits = lane < r.groups;
    for (uint32_t g = 0; g < r.groups; g++) {
        float sum = best_of(v, g * each, each, NONE, &which);
        sum += best_of(v, g * each, each, which, &other);
        score = lane == g ? sum : score;
    }
    for (uint32_t k = 0; k < r.groups_used; k++) {
        float top = warp_max(waits ? score : -INFINITY);
        which = warp_fold(waits && score == top ? lane : (uint32_t)NONE,
                          [](uint32_t a, uint32_t c) { return a < c ? a : c; });
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

/* The choice of a row by softmax or by sigmoids, as of choose(). v: logits, which change; p: then
 * the shares. */
template <bool BIASED>
DEVICE uint32_t choose_by(float v[A_LANE], float p[A_LANE], uint32_t n, uint32_t used,
                          struct routing r)
{
    const uint32_t lane = threadIdx.x % WARP;
    float top = -INFINITY, sum = 0;
    uint32_t taken;
    for (uint32_t i = 0; i < A_LANE; i++)
        top = fmaxf(top, v[i]);
    top = BIASED ? 0 : warp_max(top);
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++) {
        const bool there = WARP * i + lane < n;
        p[i] = BIASED ? 1 / (1 + expf(-v[i])) : there ? expf(v[i] - top) : 0;
        if (BIASED && there)
            v[i] = p[i] + r.bias[WARP * i + lane];
    }
    taken = choose(v, n, used, BIASED ? leave_out(v, n, r) : 0);
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++)
        sum += !BIASED || (taken >> i & 1) ? p[i] : 0;
    sum = warp_sum(sum);
    const float by = BIASED ? r.scale / (used > 1 ? sum + 1e-20f : 1) : 1;
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++)
        p[i] = BIASED ? p[i] * by : p[i] / sum;
    return taken;
}

/* Warp t writes the experts of row t, ascending, and their shares. */
template <bool BIASED>
static __global__ void __launch_bounds__(ROUTE_WARPS *WARP)
choose_experts(int32_t *chosen, float *share, const float *logits, uint32_t T, uint32_t n,
               uint32_t used, struct routing r)
{
    uint32_t t = blockIdx.x * ROUTE_WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float v[A_LANE], p[A_LANE];
    let_next_start();
    wait_for_inputs();
    if (t >= T)
        return;
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++)
        v[i] = WARP * i + lane < n ? logits[(size_t)t * n + WARP * i + lane] : -INFINITY;
    uint32_t taken = choose_by<BIASED>(v, p, n, used, r), at = t * used;
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++) {
        bool mine = taken >> i & 1;
        uint32_t votes = __ballot_sync(EVERY_LANE, mine);
        uint32_t to = at + (uint32_t)__popc(votes & ((1u << lane) - 1));
        if (mine) {
            chosen[to] = (int32_t)(WARP * i + lane);
            share[to] = p[i];
        }
        at += (uint32_t)__popc(votes);
    }
}

/* Puts the lanes' values of `pairs` from `base` on into of[]; NONE beyond `end`. All loads wait
 * together. */
DEVICE void load_experts(uint32_t of[AT_ONCE], const int32_t *chosen, uint32_t base, uint32_t end)
{
#pragma unroll
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        uint32_t at = base + i * WARP + threadIdx.x % WARP;
        of[i] = at < end ? (uint32_t)chosen[at] : (uint32_t)NONE;
    }
}

/* Block e finds where the pairs of expert e begin, and puts them there, rows ascending. Its warps
 * have equal parts of the pairs: each counts in its part, then writes behind the earlier warps. */
static __global__ void __launch_bounds__(ROUTE_WARPS *WARP)
sort_pairs(struct mixture m, int32_t *active, uint32_t pairs, uint32_t used)
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
        load_experts(of, m.chosen, base, end);
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
        m.begin[e] = (int32_t)below;
        if (e == gridDim.x - 1)
            m.begin[e + 1] = (int32_t)pairs;
        if (all)
            atomicAdd(active, 1);
    }
    for (uint32_t w = 0; w < warp; w++)
        below += counts[w];
    for (uint32_t base = first; count && base < end; base += AT_ONCE * WARP) {
        load_experts(of, m.chosen, base, end);
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            uint32_t at = base + i * WARP + lane;
            uint32_t votes = __ballot_sync(EVERY_LANE, of[i] == e);
            uint32_t to = below + (uint32_t)__popc(votes & ((1u << lane) - 1));
            if (of[i] == e) {
                m.row[to] = (int32_t)(at / used);
                m.place[at] = (int32_t)to;
            }
            below += (uint32_t)__popc(votes);
        }
    }
}

template <class A>
static void start_logits(const struct backend *b, const struct experts *a, float *y, size_t T)
{
    const uint32_t n = (uint32_t)a->n, D = (uint32_t)a->router->cols;
    launch(b, router_logits<A>, dim3(blocks_of(n, ROUTE_WARPS), blocks_of(T, ROUTE_ROWS)),
           dim3(ROUTE_WARPS * WARP), 0, y, static_cast<const A *>(a->x),
           static_cast<const float *>(a->router->data), (uint32_t)T, n, D);
}

void route(const struct backend *b, const struct experts *a, const struct mixture *m, size_t T)
{
    const uint32_t n = (uint32_t)a->n, used = (uint32_t)a->used;
    if (b->act == DTYPE_F32)
        start_logits<float>(b, a, m->logits, T);
    else
        start_logits<uint16_t>(b, a, m->logits, T);
    const struct routing r = {a->bias, (uint32_t)a->groups, (uint32_t)a->groups_used, a->scale};
    launch(b, a->bias ? choose_experts<true> : choose_experts<false>,
           dim3(blocks_of(T, ROUTE_WARPS)), dim3(ROUTE_WARPS * WARP), 0, m->chosen, m->share,
           m->logits, (uint32_t)T, n, used, r);
    launch(b, sort_pairs, dim3(n), dim3(ROUTE_WARPS * WARP), 2 * ROUTE_WARPS * sizeof(uint32_t), *m,
           a->active, (uint32_t)(T * used), used);
}
