/* attention_few.cu - attention of few queries: a row, or a block of rows, against a long list of
 * slots. Its time depends on how fast keys and values arrive. So the list is split over blocks
 * until the device is full, and each warp of a block has its own copies in flight
 * (attention_tile.cuh). With up to 16 queries the block that ends last combines the parts of a list
 * (attention_join.cuh); with more queries a second small kernel does. `work` needs no initial value
 * and may be reused at once. */
#include <assert.h>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_tile.cuh"

enum { COMBINE_WARPS = 4 };

/* Warp w of block (i, sequence) owns y of one row and head of the sequence. */
static __global__ void __launch_bounds__(COMBINE_WARPS *WARP)
combine_parts(struct tile_job j, int queries)
{
    let_next_start();
    wait_for_inputs();
    size_t query = (size_t)blockIdx.x * COMBINE_WARPS + threadIdx.x / WARP;
    struct attn_seq sequence = j.a.seqs[blockIdx.y];
    int used = split_count(sequence.n_slots, j.splits, queries);
    if (used > 1 && query < (size_t)sequence.rows * j.a.heads)
        combine_query(&j, (size_t)sequence.row_begin * j.a.heads + query, used);
}

void attention_few_combine(struct backend *backend, const struct tile_job *j,
                           const struct attention_plan *plan)
{
    dim3 grid((unsigned)ceil_div(j->a.max_rows * j->a.heads, COMBINE_WARPS),
              (unsigned)j->a.n_seqs);
    launch(backend, combine_parts, grid, dim3(COMBINE_WARPS * WARP), 0, *j, plan->queries);
}

void attention_few(struct backend *backend, const struct tile_job *j,
                   const struct attention_plan *plan)
{
    assert(plan->stages == 2 && plan->queries <= 32);
    if (plan->padded == 64)
        plan->queries == 16 ? tile_launch<tile_shape<64, 1, 1, 2>>(backend, j, plan)
                            : tile_launch<tile_shape<64, 2, 1, 2>>(backend, j, plan);
    else
        plan->queries == 16 ? tile_launch<tile_shape<128, 1, 1, 2>>(backend, j, plan)
                            : tile_launch<tile_shape<128, 2, 1, 2>>(backend, j, plan);
}
