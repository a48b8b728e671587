/* attention_few.cu - attention of few queries: a row, or a block of rows, against a long list of
 * slots. The speed at which keys and values arrive decides. So the list is split over blocks until
 * the device is full, and each warp of a block has its own copies in flight (attention_tile.cuh). A
 * second small kernel combines the parts of the splits in order. Nothing is counted in memory, so
 * `work` needs no initial value and may be reused at once.
 */
#include <assert.h>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_tile.cuh"

enum { COMBINE_WARPS = 4 };

/* Warp w of block (i, sequence) owns y of one row and head of the sequence, lane l columns 4 l. A
 * lane also weighs every 32nd split, so that parts are read only once. */
static __global__ void __launch_bounds__(COMBINE_WARPS *WARP)
combine_parts(struct tile_job j, int queries)
{
    let_next_start();
    wait_for_inputs();
    size_t query = (size_t)blockIdx.x * COMBINE_WARPS + threadIdx.x / WARP, E = j.a.head_dim;
    int lane = (int)(threadIdx.x % WARP), column = lane * 4;
    struct attn_seq s = j.a.seqs[blockIdx.y];
    int used = split_count(s.n_slots, j.splits, queries);
    if (used == 1 || query >= (size_t)s.rows * j.a.heads)
        return;
    query += (size_t)s.row_begin * j.a.heads;
    bool owner = column < (int)E;
    const float *row = j.part + query * E + (owner ? column : 0);
    const float *sums = j.part + part_sums((size_t)j.splits, j.a.T, j.a.heads, E) + 2 * query;
    size_t step = part_at(1, 0, j.a.T, j.a.heads);
    float most = -INFINITY, sum = 0;
    for (int i = lane; i < used; i += WARP)
        most = fmaxf(most, sums[2 * step * (size_t)i]);
    most = warp_max(most);
    float base = most == -INFINITY ? 0.0f : most;
    float4 y = make_float4(0, 0, 0, 0);
    for (int first = 0; first < used; first += WARP) {
        int n = min(used - first, WARP);
        float mine = 0;
        if (lane < n) {
            float2 of = *(const float2 *)(sums + 2 * step * (size_t)(first + lane));
            mine = exp2_near(of.x - base);
            sum += mine * of.y;
        }
#pragma unroll 8
        for (int i = 0; i < n; i++) {
            float4 part = *(const float4 *)(row + step * E * (size_t)(first + i));
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
        *(uint2 *)((uint16_t *)j.a.y + query * E + (size_t)column) = make_uint2(low, high);
}

void attention_few_combine(struct backend *b, const struct tile_job *j,
                           const struct attention_plan *p)
{
    dim3 grid((unsigned)ceil_div(j->a.max_rows * j->a.heads, COMBINE_WARPS),
              (unsigned)j->a.n_seqs);
    launch(b, combine_parts, grid, dim3(COMBINE_WARPS * WARP), 0, *j, p->queries);
}

void attention_few(struct backend *b, const struct tile_job *j, const struct attention_plan *p)
{
    assert(p->stages == 2 && p->queries <= 32);
    if (p->padded == 64)
        p->queries == 16 ? tile_launch<tile_shape<64, 1, 1, 2>>(b, j, p)
                         : tile_launch<tile_shape<64, 2, 1, 2>>(b, j, p);
    else
        p->queries == 16 ? tile_launch<tile_shape<128, 1, 1, 2>>(b, j, p)
                         : tile_launch<tile_shape<128, 2, 1, 2>>(b, j, p);
}
