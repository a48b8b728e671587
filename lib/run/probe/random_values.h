/* random_values.h - fills memory of a back end with random values for measurements: normal with
 * standard deviation 1, the same for the same seed. A few million values are repeated. (With zeros
 * a device takes less power and looks faster.) */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"

struct random_values {
    struct backend *backend; /* borrowed */
    const float *normal;     /* synth_table; borrowed */
    uint64_t seed;
};
/* Returns n values as F32 or BF16; the caller's. NULL: no memory. */
void *random_values_make(const struct random_values *values, size_t n, enum dtype dtype,
                         enum memory_kind kind);
/* Overwrites n values. */
void random_values_fill(const struct random_values *values, void *to, size_t n, enum dtype dtype);
/* Makes a matrix. Another `number` gives other values. Returns -1 if there is no memory. */
int random_values_mat(const struct random_values *values, struct mat *weight, size_t rows,
                      size_t cols, enum dtype dtype, size_t number);
