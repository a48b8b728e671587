/* cuda_ops.c - the table of the CUDA back end. Two passes may be in flight (depth), so that the
 * device never waits for the host between two passes. */
#include "kernels/cuda/cuda.h"

#define ROW(slot) .slot = cuda_##slot,

static const struct mixing_ops mixing = {MIXING_SLOTS(ROW)};
static const struct train_ops train = {CUDA_TRAIN_SLOTS(ROW)};
const struct ops cuda_ops = {
    CUDA_SLOTS(ROW)
    .name = "cuda", .level = "cuda", .depth = 2, .mixing = &mixing, .train = &train,
};
