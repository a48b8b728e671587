/* prune-score.c - how much heads and hidden units matter; see prune.h. Every matrix is read once, a
 * row at a time, and its squares are added up in double, rows in order: the same scores on every
 * machine, whatever the number of threads. */
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

/* The sum of squares of each row of a matrix, or with `columns` of each column; the caller's. */
static double *squares(const struct checkpoint *c, enum role r, size_t layer, int columns)
{
    const struct weight w = {c, r, layer};
    struct mat_source s = checkpoint_source(&w);
    double *sum = mem_zero(columns ? s.cols : s.rows, sizeof *sum);
    float *v = mem_alloc(s.cols * sizeof *v);
    for (size_t i = 0; i < s.rows; i++) {
        s.floats(&s, i, 1, v);
        for (size_t k = 0; k < s.cols; k++)
            sum[columns ? k : i] += (double)v[k] * v[k];
    }
    free(v);
    checkpoint_advise(&w, 0);
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

static void score_heads(const struct checkpoint *c, enum prune_score how, size_t l,
                        const double *activity, double *out)
{
    const struct config *f = &c->config;
    size_t E = f->head_dim, group = f->heads / f->kv_heads;
    double *o = squares(c, ROLE_O, l, 1), *v = squares(c, ROLE_V, l, 0);
    for (size_t h = 0; h < f->heads; h++) {
        double into = how == PRUNE_ACTIVATION ? activity[h] : total(v + h / group * E, E);
        out[h] = sqrt(into * total(o + h * E, E));
    }
    free(o);
    free(v);
}

static void score_units(const struct checkpoint *c, enum prune_score how, size_t l,
                        const double *activity, double *out)
{
    size_t F = c->config.ffn;
    double *down = squares(c, ROLE_DOWN, l, 1);
    double *up = how == PRUNE_ACTIVATION ? NULL : squares(c, ROLE_UP, l, 0);
    double *gate = how == PRUNE_GATE ? squares(c, ROLE_GATE, l, 0) : NULL;
    for (size_t j = 0; j < F; j++)
        out[j] = sqrt((up ? up[j] : activity[j]) * (gate ? gate[j] : 1) * down[j]);
    free(down);
    free(up);
    free(gate);
}

static int check_finite(const struct checkpoint *c, const char *what, const double *v, size_t n,
                        struct err *e)
{
    for (size_t l = 0; l < c->config.layers; l++)
        for (size_t i = 0; i < n; i++)
            if (!isfinite(v[l * n + i]))
                return err_set(e, EXIT_BAD_DATA, "%s: layer %zu: expected finite weights and "
                               "activations, but the score of %s %zu is %f", c->config.name, l,
                               what, i, v[l * n + i]);
    return 0;
}

int prune_scores(const struct checkpoint *c, enum prune_score how,
                 const struct prune_values *activity, const struct prune_values *out,
                 struct err *e)
{
    size_t H = c->config.heads, F = c->config.ffn;
    for (size_t l = 0; l < c->config.layers; l++) {
        const double *head = activity ? activity->head + l * H : NULL;
        const double *unit = activity ? activity->unit + l * F : NULL;
        for (size_t h = 0; how == PRUNE_FIRST && h < H; h++)
            out->head[l * H + h] = (double)h;
        for (size_t j = 0; how == PRUNE_FIRST && j < F; j++)
            out->unit[l * F + j] = (double)j;
        if (how == PRUNE_FIRST)
            continue;
        score_heads(c, how, l, head, out->head + l * H);
        score_units(c, how, l, unit, out->unit + l * F);
    }
    return check_finite(c, "head", out->head, H, e) || check_finite(c, "unit", out->unit, F, e)
               ? -1
               : 0;
}
