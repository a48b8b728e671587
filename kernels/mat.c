/* mat.c - a source for back ends (struct mat_source in ops.h) from a matrix of row-major floats in
 * memory: rows are copied on demand, or read in place. */
#include <string.h>

#include "kernels/ops.h"

static void copy_rows(const struct mat_source *source, size_t first, size_t count, float *out)
{
    memcpy(out, (const float *)source->ctx + first * source->cols,
           count * source->cols * sizeof *out);
}

struct mat_source mat_floats(const float *w, size_t rows, size_t cols)
{
    return (struct mat_source){.rows = rows, .cols = cols, .floats = copy_rows, .ctx = w, .f32 = w};
}
