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
#pragma unroll 8 /* so many loads in flight */
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

/* Returns bit i for each chosen expert 32 i + lane: the largest v, equal ones by their number. A
 * NaN is the least. */
DEVICE uint32_t choose(const float v[A_LANE], uint32_t n, uint32_t used)
{
    uint32_t taken = 0, lane = threadIdx.x % WARP;
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
    return taken;
}

/* Warp t writes the experts of row t, ascending, and their shares. */
static __global__ void __launch_bounds__(ROUTE_WARPS *WARP)
choose_experts(int32_t *chosen, float *share, const float *logits, uint32_t T, uint32_t n,
               uint32_t used)
{
    uint32_t t = blockIdx.x * ROUTE_WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float v[A_LANE], top = -INFINITY, sum = 0;
    let_next_start();
    wait_for_inputs();
    if (t >= T)
        return;
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++) {
        v[i] = WARP * i + lane < n ? logits[(size_t)t * n + WARP * i + lane] : -INFINITY;
        top = fmaxf(top, v[i]);
    }
    top = warp_max(top);
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++)
        sum += WARP * i + lane < n ? expf(v[i] - top) : 0;
    sum = warp_sum(sum);
    uint32_t taken = choose(v, n, used), at = t * used;
#pragma unroll
    for (uint32_t i = 0; i < A_LANE; i++) {
        bool mine = taken >> i & 1;
        uint32_t votes = __ballot_sync(EVERY_LANE, mine);
        uint32_t to = at + (uint32_t)__popc(votes & ((1u << lane) - 1));
        if (mine) {
            chosen[to] = (int32_t)(WARP * i + lane);
            share[to] = expf(v[i] - top) / sum;
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
    launch(b, choose_experts, dim3(blocks_of(T, ROUTE_WARPS)), dim3(ROUTE_WARPS * WARP), 0,
           m->chosen, m->share, m->logits, (uint32_t)T, n, used);
    launch(b, sort_pairs, dim3(n), dim3(ROUTE_WARPS * WARP), 2 * ROUTE_WARPS * sizeof(uint32_t), *m,
           a->active, (uint32_t)(T * used), used);
}
