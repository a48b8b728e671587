/* checkpoint-values.c - reads all values of a checkpoint, and refuses values that no training
 * produces: NaN, infinity, and a tensor of zeros that is not a bias. */
#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/safetensors.h"

/* Checks n values of a tensor; v[0] is its value number `at`. *zero = 0 if a value is not 0. */
static int check_chunk(const struct checkpoint *model, const struct tensor *tensor, const float *v,
                       size_t n, size_t at, int *zero, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            return err_set(e, EXIT_BAD_DATA, "%s: tensor %s: value %zu expected finite, got %f",
                           model->folder, tensor->name, at + i, (double)v[i]);
        *zero &= v[i] == 0;
    }
    return 0;
}

int checkpoint_check_tensor(const struct checkpoint *model, enum role role, size_t layer,
                            struct err *e)
{
    const struct tensor *tensor = checkpoint_tensor(model, role, layer);
    const struct weight of = {model, role, layer};
    const struct mat_source source = checkpoint_source(&of);
    const size_t rows = source.rows, cols = source.cols;
    size_t n;
    size_t most = cols < 4096 ? 4096 / cols : 1; /* rows at a time */
    float *values = mem_alloc(most * cols * sizeof *values);
    int zero = 1, bad = 0;
    for (size_t i = 0; i < rows && !bad; i += n) {
        n = rows - i < most ? rows - i : most;
        source.floats(&source, i, n, values);
        bad = check_chunk(model, tensor, values, n * cols, i * cols, &zero, e);
    }
    free(values);
    if (!bad && zero && (role_is_norm(role) || !role_is_vector(role))) /* a bias may be all zeros */
        bad = err_set(e, EXIT_BAD_DATA, "%s: tensor %s: every value is zero", model->folder,
                      tensor->name);
    return bad;
}

int checkpoint_check_values(const struct checkpoint *model, struct err *e)
{
    for (int at = 0; model->role && at < ROLE_COUNT; at++)
        for (size_t layer = 0; layer < role_tensors(&model->config, (enum role)at); layer++) {
            const struct weight of = {model, (enum role)at, layer};
            int bad = checkpoint_check_tensor(model, of.role, layer, e);
            checkpoint_drop(&of);
            if (bad)
                return -1;
        }
    return model->tensors ? safetensors_unchanged(model->tensors, e) : 0;
}
