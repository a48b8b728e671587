/* ref_mixing-back.c - gradients of the operations around time mixing, in double
 * (kernels/mixing.h). Intermediate values of the forward pass are computed again. */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"

/* *x += d, if x is not NULL. */
static void add(float *x, size_t i, double d)
{
    if (x)
        x[i] = (float)(x[i] + d);
}

void ref_shift_back(struct backend *b, const struct shift_back *a)
{
    (void)b;
    const struct shift *f = a->of;
    for (size_t s = 0; s < f->n_seqs; s++) {
        const size_t first = (size_t)f->seqs[s].row_begin * f->D;
        const size_t last = first + (size_t)f->seqs[s].rows * f->D;
        for (size_t at = first; at < last; at++)
            for (size_t i = 0; i < f->n; i++) {
                const int begins = at < first + f->D;
                const double old = begins ? 0 : f->x[at - f->D], g = a->d[i][at];
                const double m = (double)f->share[i][at % f->D] + (f->more[i] ? f->more[i][at] : 0);
                add(a->dx, at, g * (1 - m));
                if (!begins)
                    add(a->dx, at - f->D, g * m);
                add(a->dshare[i], at % f->D, g * (old - f->x[at]));
                if (f->more[i])
                    a->d[i][at] = (float)(g * (old - f->x[at]));
            }
    }
}

static double slope(double y, enum squash_by by)
{
    switch (by) {
    case SQUASH_TANH: return 1 - y * y;
    case SQUASH_LOGISTIC: return y * (1 - y);
    case SQUASH_DECAY6: return y;
    default: return y * (1 + y * exp(0.5));
    }
}

void ref_squash_back(struct backend *b, const struct squash_back *a)
{
    (void)b;
    for (size_t i = 0; i < a->T * a->n; i++) {
        a->d[i] = (float)(a->d[i] * slope(a->y[i], a->by));
        add(a->dbase, i % a->n, a->d[i]);
    }
}

/* y = n gate(g), n = gain x + bias + c v, x = (o - mean) scale: with dx = gain dn,
 * do = scale (dx - mean(dx) - x mean(dx x)). */
static void out_head(const struct heads_out_back *a, size_t at, size_t column)
{
    const struct heads_out *f = a->of;
    const size_t E = f->head_dim;
    const float *o = f->o + at;
    double mean = 0, squares = 0, c = 0, sum = 0, dot = 0;
    for (size_t e = 0; e < E; e++)
        mean += o[e] / (double)E;
    for (size_t e = 0; e < E; e++)
        squares += (o[e] - mean) * (o[e] - mean);
    const double scale = 1 / sqrt(squares / (double)E + HEADS_EPS);
    for (size_t e = 0; f->weight && e < E; e++)
        c += (double)f->r[at + e] * f->k[at + e] * f->weight[column + e];
    for (size_t e = 0; e < E; e++) {
        const double x = (o[e] - mean) * scale, g = f->gate[at + e], dy = a->dy[at + e];
        const double n = f->gain[column + e] * x + f->bias[column + e] +
                         (f->weight ? c * f->v[at + e] : 0);
        const double s = f->weight ? 1 : 1 / (1 + exp(-g)), dn = dy * (f->weight ? g : g * s);
        a->dgate[at + e] = (float)(dy * n * (f->weight ? 1 : s * (1 + g * (1 - s))));
        a->dy[at + e] = (float)dn;
        add(a->dgain, column + e, dn * x);
        add(a->dbias, column + e, dn);
        sum += dn * f->gain[column + e];
        dot += dn * f->gain[column + e] * x;
    }
    for (size_t e = 0; e < E; e++) {
        const double x = (o[e] - mean) * scale, dx = (double)a->dy[at + e] * f->gain[column + e];
        a->d_o[at + e] = (float)(scale * (dx - sum / (double)E - x * dot / (double)E));
    }
}

void ref_heads_out_back(struct backend *b, const struct heads_out_back *a)
{
    (void)b;
    const size_t E = a->of->head_dim, HE = a->of->heads * E;
    for (size_t at = 0; at < a->of->T * HE; at += E)
        out_head(a, at, at % HE);
}

/* The bonus c v, c = sum r k weight: with dc = sum dn v,
 * dr = dc k weight, dk = dc r weight, dv = dn c. */
static void bonus(const struct removal_back *a, size_t at, size_t column)
{
    const size_t E = a->of->head_dim;
    const float *r = a->r + at, *k = a->k + at, *weight = a->weight + column;
    double c = 0, dc = 0;
    for (size_t e = 0; e < E; e++) {
        c += (double)r[e] * k[e] * weight[e];
        dc += (double)a->dn[at + e] * a->v[at + e];
    }
    for (size_t e = 0; e < E; e++) {
        add(a->dr, at + e, dc * k[e] * weight[e]);
        add(a->dk, at + e, dc * r[e] * weight[e]);
        add(a->dv, at + e, a->dn[at + e] * c);
        add(a->dweight, column + e, dc * r[e] * k[e]);
    }
}

/* kappa = u / |u|, u = k scale: du = (dkappa - kappa (kappa dkappa)) / |u|. */
static void removed(const struct removal_back *a, size_t at, size_t column)
{
    const struct removal *f = a->of;
    const size_t E = f->head_dim;
    const float *k = f->k + at, *rate = f->rate + at, *scale = f->scale + column;
    double squares = 0, dot = 0;
    for (size_t e = 0; e < E; e++)
        squares += pow((double)k[e] * scale[e], 2);
    const double inverse = 1 / fmax(sqrt(squares), (double)REMOVAL_LEAST);
    for (size_t e = 0; e < E; e++)
        dot += k[e] * scale[e] * inverse * ((double)a->db[at + e] * rate[e] - a->da[at + e]);
    for (size_t e = 0; e < E; e++) {
        const double kappa = k[e] * scale[e] * inverse, by = f->key_rate[column + e];
        const double dk = a->dk[at + e], dkappa = (double)a->db[at + e] * rate[e] - a->da[at + e];
        const double du = (dkappa - kappa * dot) * inverse;
        a->drate[at + e] = (float)(a->db[at + e] * kappa + dk * k[e] * by);
        add(a->dscale, column + e, du * k[e]);
        add(a->dkey_rate, column + e, dk * k[e] * (rate[e] - 1));
        a->dk[at + e] = (float)(du * scale[e] + dk * (1 + (rate[e] - 1) * by));
    }
}

/* Gradient of v + (first - v) share; or in the first layer v itself, with the gradient of its other
 * readers. */
static void values(const struct removal_back *a, size_t at)
{
    const struct removal *f = a->of;
    const double dv = a->dv[at];
    if (!f->first) {
        a->dv[at] = (float)(dv + (a->dfirst ? a->dfirst[at] : 0));
        return;
    }
    a->dshare[at] = (float)(dv * (f->first[at] - f->v[at]));
    add(a->dfirst, at, dv * f->share[at]);
    a->dv[at] = (float)(dv * (1 - f->share[at]));
}

void ref_removal_back(struct backend *b, const struct removal_back *a)
{
    (void)b;
    const size_t E = a->of->head_dim, HE = a->of->heads * E;
    for (size_t at = 0; at < a->of->T * HE; at += E) {
        bonus(a, at, at % HE);
        removed(a, at, at % HE);
        for (size_t e = 0; e < E; e++)
            values(a, at + e);
    }
}
