/* drawn.h - drawn values in the memory of a back end, for measuring: normal with standard deviation
 * 1, the same for a seed. (A few millions, again and again: zeros would flatter a device, which
 * then takes less power.) */
#ifndef MODEL_DRAWN_H
#define MODEL_DRAWN_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"

struct drawn {
    struct backend *backend; /* borrowed */
    const float *normal;     /* synth_table; borrowed */
    uint64_t seed;
};
/* n values as F32 or BF16, the caller's; NULL: no memory. */
void *drawn_values(const struct drawn *d, size_t n, enum dtype dtype, enum memory_kind kind);
/* Overwrites n values. */
void drawn_fill(const struct drawn *d, void *to, size_t n, enum dtype dtype);
/* Matrix `number` of a shape. -1: no memory. */
int drawn_mat(const struct drawn *d, struct mat *m, size_t rows, size_t cols, enum dtype dtype,
              size_t number);

#endif
