/* ref_mixing.c - the operations around time mixing, in double, line by line as in kernels/mixing.h.
 * The other back ends are tested against this file, and the gradients of the CPU against its finite
 * differences. */
#include "kernels/ref/ref.h"

#include <math.h>
#include <string.h>

/* Shifts one row of a sequence. before: the row before it; NULL: zeros. The result may overwrite
 * shift->more. */
static void shift_row(const struct shift *shift, size_t row, const float *before)
{
    const size_t at = row * shift->D;
    for (size_t i = 0; i < shift->n; i++)
        for (size_t column = 0; column < shift->D; column++) {
            double x = shift->x[at + column], old = before ? before[column] : 0;
            double m = (double)shift->share[i][column] +
                       (shift->more[i] ? shift->more[i][at + column] : 0);
            shift->to[i][at + column] = (float)(x + (old - x) * m);
        }
}

void ref_shift(struct backend *backend, const struct shift *shift)
{
    (void)backend;
    for (size_t sequence = 0; sequence < shift->n_seqs; sequence++) {
        const size_t first = (size_t)shift->seqs[sequence].row_begin,
                     rows = (size_t)shift->seqs[sequence].rows;
        float *last = shift->last ? shift->last + (size_t)shift->at[sequence] * shift->D : NULL;
        for (size_t row = first; row < first + rows; row++)
            shift_row(shift, row, row > first ? shift->x + (row - 1) * shift->D : last);
        if (last && shift->keep && rows)
            memcpy(last, shift->x + (first + rows - 1) * shift->D, shift->D * sizeof *last);
    }
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

void ref_squash(struct backend *backend, const struct squash *squash)
{
    (void)backend;
    for (size_t i = 0; i < squash->T * squash->n; i++) {
        double x = (double)squash->x[i] + (squash->base ? squash->base[i % squash->n] : 0),
               y = tanh(x);
        if (squash->by == SQUASH_LOGISTIC)
            y = logistic(x);
        else if (squash->by == SQUASH_DECAY6)
            y = -exp(x);
        else if (squash->by == SQUASH_DECAY7)
            y = -exp(-0.5) * logistic(x);
        squash->x[i] = (float)y;
    }
}

void ref_removal(struct backend *backend, const struct removal *removal)
{
    (void)backend;
    const size_t E = removal->head_dim, HE = removal->heads * E;
    for (size_t at = 0; at < removal->T * HE; at += E) {
        const float *scale = removal->scale + at % HE, *key_rate = removal->key_rate + at % HE;
        double squares = 0;
        for (size_t e = 0; e < E; e++)
            squares += pow((double)removal->k[at + e] * scale[e], 2);
        for (size_t e = 0; e < E; e++) {
            double k = removal->k[at + e], value = removal->v[at + e], rate = removal->rate[at + e];
            double kappa = k * scale[e] / fmax(sqrt(squares), (double)REMOVAL_LEAST);
            if (removal->first)
                value += (removal->first[at + e] - value) * removal->share[at + e];
            removal->a[at + e] = (float)-kappa;
            removal->b[at + e] = (float)(kappa * rate);
            removal->to_k[at + e] = (float)(k * (1 + (rate - 1) * key_rate[e]));
            removal->to_v[at + e] = (float)value;
        }
    }
}

/* The factor of v in the bonus of the head at index `at`; 0 without a bonus. column: its first
 * column. */
static double bonus(const struct heads_out *heads, size_t at, size_t column)
{
    double sum = 0;
    for (size_t e = 0; heads->weight && e < heads->head_dim; e++)
        sum += (double)heads->r[at + e] * heads->k[at + e] * heads->weight[column + e];
    return sum;
}

void ref_heads_out(struct backend *backend, const struct heads_out *heads)
{
    (void)backend;
    const size_t E = heads->head_dim, HE = heads->heads * E;
    for (size_t at = 0; at < heads->T * HE; at += E) {
        const size_t column = at % HE;
        const float *out = heads->o + at;
        double sum = 0, squares = 0, bonus_sum = bonus(heads, at, column);
        for (size_t e = 0; e < E; e++)
            sum += out[e];
        for (size_t e = 0; e < E; e++)
            squares += pow(out[e] - sum / (double)E, 2);
        for (size_t e = 0; e < E; e++) {
            double gate = heads->gate[at + e];
            double y = (out[e] - sum / (double)E) / sqrt(squares / (double)E + HEADS_EPS);
            y = y * heads->gain[column + e] + heads->bias[column + e];
            y += heads->weight ? bonus_sum * heads->v[at + e] : 0;
            heads->y[at + e] = (float)(y * (heads->weight ? gate : gate * logistic(gate)));
        }
    }
}
