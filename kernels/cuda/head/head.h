/* head.h - how the work of the head is cut. The vocabulary is cut into chunks; the logits of one
 * chunk at a time are in scratch memory. A chunk is cut into pieces of 32 * `each` ids; a warp
 * reads a piece and reduces it to a struct state. A chunk has whole pieces, so piece i begins at id
 * i * 32 * each, whatever the size of chunks. */
#pragma once

#include "kernels/cuda/weights/layout.h"
#include "lib/base/linkage.h"

enum { HEAD_LANES = 32, HEAD_FEW = 4, HEAD_MANY = 16 }; /* lanes of a warp; ids of a lane */
/* Most bytes for the logits of a chunk (including the logits of xu), unless one piece needs
 * more. */
enum { HEAD_SCRATCH = 32 << 20 };

struct head_plan {
    size_t chunk; /* ids, a multiple of 32 * each */
    size_t each;  /* ids of a lane: HEAD_FEW or HEAD_MANY */
};

/* The number of pieces of n ids. */
HOST_DEVICE size_t head_pieces(const struct head_plan *plan, size_t n)
{
    return (n + HEAD_LANES * plan->each - 1) / (HEAD_LANES * plan->each);
}

/* sms: number of multiprocessors. With few rows pieces are small, so that every multiprocessor has
 * warps to run. With many rows pieces are large, because ending a piece has a fixed cost. dense:
 * one chunk with all logits. */
HOST_DEVICE struct head_plan head_plan_of(size_t rows, size_t V, int guided, size_t dense, int sms)
{
    struct head_plan plan = {0, HEAD_MANY};
    if (rows * head_pieces(&plan, V) < 8 * (size_t)sms)
        plan.each = HEAD_FEW;
    size_t piece = HEAD_LANES * plan.each;
    size_t most = HEAD_SCRATCH / (sizeof(float) * (guided ? 2 : 1) * rows) / piece * piece;
    size_t chunks = dense ? 1 : (V + (most ? most : piece) - 1) / (most ? most : piece);
    plan.chunk = layout_up((V + chunks - 1) / chunks, piece);
    return plan;
}

/* Offsets in the scratch memory, in bytes: logits [R, chunk] at 0, logits of xu at `twin`, states
 * [R, pieces of V] at `states`, the work of a product at `product`. */
struct head_scratch {
    size_t twin, states, product;
};
HOST_DEVICE struct head_scratch head_scratch_of(const struct head_plan *plan, size_t rows, size_t V,
                                                int guided, size_t state)
{
    size_t logits = layout_up(rows * plan->chunk * sizeof(float), 256);
    struct head_scratch scratch;
    scratch.twin = logits;
    scratch.states = guided ? 2 * logits : logits;
    scratch.product = scratch.states + layout_up(rows * head_pieces(plan, V) * state, 256);
    return scratch;
}

C_BEGIN

/* cuda_head() and cuda_head_work() with a given plan. Every plan gives the same answers except for
 * the rounding of sums. */
void cuda_head_by(struct backend *backend, const struct head_plan *plan, const struct mat *weight,
                  const act *x, const act *xu, size_t rows, const struct head_query *query,
                  struct head_row *out, float *logits, void *work);
size_t cuda_head_by_work(const struct backend *backend, const struct head_plan *plan, size_t rows,
                         size_t D, size_t V, int guided);
/* draw.cu: sample_row() of kernels/sample.h for `rows` rows. */
void cuda_head_draw(struct backend *backend, const float *logits, size_t rows, size_t V,
                    const struct head_query *query, struct head_row *out);
/* draw.cu: sample_tops() for the rows that are not bad. */
void cuda_head_tops(struct backend *backend, const float *logits, size_t rows, size_t V,
                    const struct head_row *out, struct head_top *tops);

C_END
