/* attention_join.cuh - combines the parts that the splits of a list leave (attention_plan.h,
 * "parts"), always in the order of the splits. So the bits do not depend on which block ends last.
 * Parts are not read through the L1 cache, because another multiprocessor wrote them during this
 * kernel. */
#pragma once

#include "kernels/cuda/attention/attention_step.cuh"

/* A warp computes y of row and head `query` from `used` parts. Lane l owns columns 4 l .. 4 l + 3.
 * It also computes the weight of every 32nd split, so that maximum and sum of a part are read only
 * once. */
DEVICE void combine_query(const struct tile_job *j, size_t query, int used)
{
    size_t E = j->a.head_dim, step = part_at(1, 0, j->a.T, j->a.heads);
    int lane = lane_id(), column = lane * 4;
    bool owner = column < (int)E;
    const float *row = j->part + query * E + (owner ? column : 0);
    const float *sums = j->part + part_sums((size_t)j->splits, j->a.T, j->a.heads, E) + 2 * query;
    float2 of = make_float2(-INFINITY, 0);
    if (lane < used)
        of = __ldcg((const float2 *)(sums + 2 * step * (size_t)lane));
    float most = of.x, sum = 0;
    for (int i = lane + WARP; i < used; i += WARP)
        most = fmaxf(most, __ldcg(sums + 2 * step * (size_t)i));
    most = warp_max(most);
    float base = most == -INFINITY ? 0.0f : most;
    float4 y = make_float4(0, 0, 0, 0);
    for (int first = 0; first < used; first += WARP) {
        int n = min(used - first, WARP);
        if (first && lane < n)
            of = __ldcg((const float2 *)(sums + 2 * step * (size_t)(first + lane)));
        float mine = lane < n ? exp2_flush(of.x - base) : 0;
        sum += mine * (lane < n ? of.y : 0);
#pragma unroll 8
        for (int i = 0; i < n; i++) {
            float4 part = __ldcg((const float4 *)(row + step * E * (size_t)(first + i)));
            float weight = __shfl_sync(EVERY_LANE, mine, i);
            y.x += weight * part.x;
            y.y += weight * part.y;
            y.z += weight * part.z;
            y.w += weight * part.w;
        }
    }
    sum = warp_sum(sum);
    float inverse = sum == 0 ? 0.0f : 1.0f / sum;
    uint32_t low = bf16_pair(y.x * inverse, y.y * inverse);
    uint32_t high = bf16_pair(y.z * inverse, y.w * inverse);
    if (owner)
        *(uint2 *)((uint16_t *)j->a.y + query * E + (size_t)column) = make_uint2(low, high);
}
