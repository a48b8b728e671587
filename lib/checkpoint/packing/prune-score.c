/* prune-score.c - computes the scores of heads and hidden units; see prune.h. Every matrix is read
 * once, a row at a time, and its squares are added up in double in the order of the rows. So the
 * scores are the same on every machine and for any number of threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/packing/prune.h"

enum prune_score prune_score_named(const char *name)
{
    static const char *const names[] = {"first", "l2", "gate", "activation"};
    int i = PRUNE_ACTIVATION;
    while (i > 0 && strcmp(name, names[i]))
        i--;
    return (enum prune_score)i;
}

/* The sum of squares of each row of a matrix, or of each column if `columns`; the caller's. */
static double *squares(const struct checkpoint *model, enum role role, size_t layer, int columns)
{
    const struct weight weight = {model, role, layer};
    struct mat_source source = checkpoint_source(&weight);
    double *sum = mem_zero(columns ? source.cols : source.rows, sizeof *sum);
    float *v = mem_alloc(source.cols * sizeof *v);
    for (size_t i = 0; i < source.rows; i++) {
        source.floats(&source, i, 1, v);
        for (size_t k = 0; k < source.cols; k++)
            sum[columns ? k : i] += (double)v[k] * v[k];
    }
    free(v);
    checkpoint_drop(&weight);
    return sum;
}

/* The sum of x[0..n-1]. */
static double total(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static void score_heads(const struct checkpoint *model, enum prune_score how, size_t layer,
                        const double *activity, double *out)
{
    const struct config *config = &model->config;
    size_t E = config->head_dim, group = config->heads / config->kv_heads;
    double *o = squares(model, ROLE_O, layer, 1), *v = squares(model, ROLE_V, layer, 0);
    for (size_t index = 0; index < config->heads; index++) {
        double into = how == PRUNE_ACTIVATION ? activity[index] : total(v + index / group * E, E);
        out[index] = sqrt(into * total(o + index * E, E));
    }
    free(o);
    free(v);
}

static void score_units(const struct checkpoint *model, enum prune_score how, size_t layer,
                        const double *activity, double *out)
{
    size_t F = model->config.ffn;
    double *down = squares(model, ROLE_DOWN, layer, 1);
    double *up = how == PRUNE_ACTIVATION ? NULL : squares(model, ROLE_UP, layer, 0);
    double *gate = how == PRUNE_GATE ? squares(model, ROLE_GATE, layer, 0) : NULL;
    for (size_t j = 0; j < F; j++)
        out[j] = sqrt((up ? up[j] : activity[j]) * (gate ? gate[j] : 1) * down[j]);
    free(down);
    free(up);
    free(gate);
}

static int check_finite(const struct checkpoint *model, const char *what, const double *v, size_t n,
                        struct err *e)
{
    for (size_t layer = 0; layer < model->config.layers; layer++)
        for (size_t i = 0; i < n; i++)
            if (!isfinite(v[layer * n + i]))
                return err_set(e, EXIT_BAD_DATA, "%s: layer %zu: expected finite weights and "
                               "activations, but the score of %s %zu is %f", model->config.name,
                               layer, what, i, v[layer * n + i]);
    return 0;
}

int prune_scores(const struct checkpoint *model, enum prune_score how,
                 const struct prune_values *activity, const struct prune_values *out,
                 struct err *e)
{
    size_t H = model->config.heads, F = model->config.ffn;
    for (size_t layer = 0; layer < model->config.layers; layer++) {
        const double *head = activity ? activity->head + layer * H : NULL;
        const double *unit = activity ? activity->unit + layer * F : NULL;
        for (size_t index = 0; how == PRUNE_FIRST && index < H; index++)
            out->head[layer * H + index] = (double)index;
        for (size_t j = 0; how == PRUNE_FIRST && j < F; j++)
            out->unit[layer * F + j] = (double)j;
        if (how == PRUNE_FIRST)
            continue;
        score_heads(model, how, layer, head, out->head + layer * H);
        score_units(model, how, layer, unit, out->unit + layer * F);
    }
    return check_finite(model, "head", out->head, H, e) ||
                   check_finite(model, "unit", out->unit, F, e)
               ? -1
               : 0;
}
