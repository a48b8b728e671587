/* ref_mixing.c - the operations around time mixing, in double, line by line as in
 * kernels/mixing.h. All back ends are tested against this file. The CPU's gradients are tested
 * against finite differences of it. */
#include "kernels/ref/ref.h"

#include <math.h>
#include <string.h>

/* Row t of a sequence, and the row `before` it. The result may overwrite more. */
static void shift_row(const struct shift *a, size_t t, const float *before)
{
    const size_t at = t * a->D;
    for (size_t i = 0; i < a->n; i++)
        for (size_t d = 0; d < a->D; d++) {
            double x = a->x[at + d], old = before ? before[d] : 0;
            double m = (double)a->share[i][d] + (a->more[i] ? a->more[i][at + d] : 0);
            a->to[i][at + d] = (float)(x + (old - x) * m);
        }
}

void ref_shift(struct backend *b, const struct shift *a)
{
    (void)b;
    for (size_t s = 0; s < a->n_seqs; s++) {
        const size_t first = (size_t)a->seqs[s].row_begin, rows = (size_t)a->seqs[s].rows;
        float *last = a->last ? a->last + (size_t)a->at[s] * a->D : NULL;
        for (size_t t = first; t < first + rows; t++)
            shift_row(a, t, t > first ? a->x + (t - 1) * a->D : last);
        if (last && a->keep && rows)
            memcpy(last, a->x + (first + rows - 1) * a->D, a->D * sizeof *last);
    }
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

void ref_squash(struct backend *b, const struct squash *a)
{
    (void)b;
    for (size_t i = 0; i < a->T * a->n; i++) {
        double x = (double)a->x[i] + (a->base ? a->base[i % a->n] : 0), y = tanh(x);
        if (a->by == SQUASH_LOGISTIC)
            y = logistic(x);
        else if (a->by == SQUASH_DECAY6)
            y = -exp(x);
        else if (a->by == SQUASH_DECAY7)
            y = -exp(-0.5) * logistic(x);
        a->x[i] = (float)y;
    }
}

void ref_removal(struct backend *b, const struct removal *a)
{
    (void)b;
    const size_t E = a->head_dim, HE = a->heads * E;
    for (size_t at = 0; at < a->T * HE; at += E) {
        const float *scale = a->scale + at % HE, *key_rate = a->key_rate + at % HE;
        double squares = 0;
        for (size_t e = 0; e < E; e++)
            squares += pow((double)a->k[at + e] * scale[e], 2);
        for (size_t e = 0; e < E; e++) {
            double k = a->k[at + e], v = a->v[at + e], rate = a->rate[at + e];
            double kappa = k * scale[e] / fmax(sqrt(squares), (double)REMOVAL_LEAST);
            if (a->first)
                v += (a->first[at + e] - v) * a->share[at + e];
            a->a[at + e] = (float)-kappa;
            a->b[at + e] = (float)(kappa * rate);
            a->to_k[at + e] = (float)(k * (1 + (rate - 1) * key_rate[e]));
            a->to_v[at + e] = (float)v;
        }
    }
}

/* The factor of v in the bonus of the head at `at`. */
static double bonus(const struct heads_out *a, size_t at, size_t column)
{
    double sum = 0;
    for (size_t e = 0; a->weight && e < a->head_dim; e++)
        sum += (double)a->r[at + e] * a->k[at + e] * a->weight[column + e];
    return sum;
}

void ref_heads_out(struct backend *b, const struct heads_out *a)
{
    (void)b;
    const size_t E = a->head_dim, HE = a->heads * E;
    for (size_t at = 0; at < a->T * HE; at += E) {
        const size_t column = at % HE;
        const float *o = a->o + at;
        double sum = 0, squares = 0, c = bonus(a, at, column);
        for (size_t e = 0; e < E; e++)
            sum += o[e];
        for (size_t e = 0; e < E; e++)
            squares += pow(o[e] - sum / (double)E, 2);
        for (size_t e = 0; e < E; e++) {
            double g = a->gate[at + e];
            double y = (o[e] - sum / (double)E) / sqrt(squares / (double)E + HEADS_EPS);
            y = y * a->gain[column + e] + a->bias[column + e];
            y += a->weight ? c * a->v[at + e] : 0;
            a->y[at + e] = (float)(y * (a->weight ? g : g * logistic(g)));
        }
    }
}
