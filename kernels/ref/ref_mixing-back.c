/* ref_mixing-back.c - gradients of the operations around time mixing, in double
 * (kernels/mixing.h). Intermediate values of the forward pass are computed again. */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"

/* x[i] += d, if x is not NULL. */
static void add(float *x, size_t i, double d)
{
    if (x)
        x[i] = (float)(x[i] + d);
}

void ref_shift_back(struct backend *backend, const struct shift_back *back)
{
    (void)backend;
    const struct shift *shift = back->of;
    for (size_t sequence = 0; sequence < shift->n_seqs; sequence++) {
        const size_t first = (size_t)shift->seqs[sequence].row_begin * shift->D;
        const size_t last = first + (size_t)shift->seqs[sequence].rows * shift->D;
        for (size_t at = first; at < last; at++)
            for (size_t i = 0; i < shift->n; i++) {
                const int begins = at < first + shift->D;
                const double old = begins ? 0 : shift->x[at - shift->D], grad = back->d[i][at];
                const double mix = (double)shift->share[i][at % shift->D] +
                                   (shift->more[i] ? shift->more[i][at] : 0);
                add(back->dx, at, grad * (1 - mix));
                if (!begins)
                    add(back->dx, at - shift->D, grad * mix);
                add(back->dshare[i], at % shift->D, grad * (old - shift->x[at]));
                if (shift->more[i])
                    back->d[i][at] = (float)(grad * (old - shift->x[at]));
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

void ref_squash_back(struct backend *backend, const struct squash_back *back)
{
    (void)backend;
    for (size_t i = 0; i < back->T * back->n; i++) {
        back->d[i] = (float)(back->d[i] * slope(back->y[i], back->by));
        add(back->dbase, i % back->n, back->d[i]);
    }
}

/* The gradients of one head of y = n f(g), where n = gain x + bias + c v, x = (o - mean) scale, c v
 * is the bonus, and f(g) is g with a bonus, else silu(g). With dn = dy f(g) and dx = gain dn: do =
 * scale (dx - mean(dx) - x mean(dx x)). */
static void out_head(const struct heads_out_back *back, size_t at, size_t column)
{
    const struct heads_out *heads = back->of;
    const size_t E = heads->head_dim;
    const float *out = heads->o + at;
    double mean = 0, squares = 0, bonus_sum = 0, sum = 0, dot = 0;
    for (size_t e = 0; e < E; e++)
        mean += out[e] / (double)E;
    for (size_t e = 0; e < E; e++)
        squares += (out[e] - mean) * (out[e] - mean);
    const double scale = 1 / sqrt(squares / (double)E + HEADS_EPS);
    for (size_t e = 0; heads->weight && e < E; e++)
        bonus_sum += (double)heads->r[at + e] * heads->k[at + e] * heads->weight[column + e];
    for (size_t e = 0; e < E; e++) {
        const double x = (out[e] - mean) * scale, gate = heads->gate[at + e], dy = back->dy[at + e];
        const double n = heads->gain[column + e] * x + heads->bias[column + e] +
                         (heads->weight ? bonus_sum * heads->v[at + e] : 0);
        const double slope = heads->weight ? 1 : 1 / (1 + exp(-gate)),
                     dn = dy * (heads->weight ? gate : gate * slope);
        back->dgate[at + e] = (float)(dy * n *
                                      (heads->weight ? 1 : slope * (1 + gate * (1 - slope))));
        back->dy[at + e] = (float)dn;
        add(back->dgain, column + e, dn * x);
        add(back->dbias, column + e, dn);
        sum += dn * heads->gain[column + e];
        dot += dn * heads->gain[column + e] * x;
    }
    for (size_t e = 0; e < E; e++) {
        const double x = (out[e] - mean) * scale,
                     dx = (double)back->dy[at + e] * heads->gain[column + e];
        back->d_o[at + e] = (float)(scale * (dx - sum / (double)E - x * dot / (double)E));
    }
}

void ref_heads_out_back(struct backend *backend, const struct heads_out_back *back)
{
    (void)backend;
    const size_t E = back->of->head_dim, HE = back->of->heads * E;
    for (size_t at = 0; at < back->of->T * HE; at += E)
        out_head(back, at, at % HE);
}

/* The gradients of the bonus c v with c = sum r k weight. With dc = sum dn v: dr = dc k weight, dk
 * = dc r weight, dv = dn c. */
static void bonus(const struct removal_back *back, size_t at, size_t column)
{
    const size_t E = back->of->head_dim;
    const float *receptance = back->r + at, *k = back->k + at, *weight = back->weight + column;
    double sum = 0, dc = 0;
    for (size_t e = 0; e < E; e++) {
        sum += (double)receptance[e] * k[e] * weight[e];
        dc += (double)back->dn[at + e] * back->v[at + e];
    }
    for (size_t e = 0; e < E; e++) {
        add(back->dr, at + e, dc * k[e] * weight[e]);
        add(back->dk, at + e, dc * receptance[e] * weight[e]);
        add(back->dv, at + e, back->dn[at + e] * sum);
        add(back->dweight, column + e, dc * receptance[e] * k[e]);
    }
}

/* The gradients of a, b and to_k. kappa = u / |u| with u = k scale, a = -kappa, b = kappa rate.
 * With dkappa = db rate - da: du = (dkappa - kappa (kappa dkappa)) / |u|. */
static void removed(const struct removal_back *back, size_t at, size_t column)
{
    const struct removal *removal = back->of;
    const size_t E = removal->head_dim;
    const float *k = removal->k + at, *rate = removal->rate + at, *scale = removal->scale + column;
    double squares = 0, dot = 0;
    for (size_t e = 0; e < E; e++)
        squares += pow((double)k[e] * scale[e], 2);
    const double inverse = 1 / fmax(sqrt(squares), (double)REMOVAL_LEAST);
    for (size_t e = 0; e < E; e++)
        dot += k[e] * scale[e] * inverse * ((double)back->db[at + e] * rate[e] - back->da[at + e]);
    for (size_t e = 0; e < E; e++) {
        const double kappa = k[e] * scale[e] * inverse, by = removal->key_rate[column + e];
        const double dk = back->dk[at + e],
                     dkappa = (double)back->db[at + e] * rate[e] - back->da[at + e];
        const double du = (dkappa - kappa * dot) * inverse;
        back->drate[at + e] = (float)(back->db[at + e] * kappa + dk * k[e] * by);
        add(back->dscale, column + e, du * k[e]);
        add(back->dkey_rate, column + e, dk * k[e] * (rate[e] - 1));
        back->dk[at + e] = (float)(du * scale[e] + dk * (1 + (rate[e] - 1) * by));
    }
}

/* The gradients of to_v = v + (first - v) share. In the first layer to_v is v, and dfirst is the
 * gradient from the layers above that read this v. */
static void values(const struct removal_back *back, size_t at)
{
    const struct removal *removal = back->of;
    const double dv = back->dv[at];
    if (!removal->first) {
        back->dv[at] = (float)(dv + (back->dfirst ? back->dfirst[at] : 0));
        return;
    }
    back->dshare[at] = (float)(dv * (removal->first[at] - removal->v[at]));
    add(back->dfirst, at, dv * removal->share[at]);
    back->dv[at] = (float)(dv * (1 - removal->share[at]));
}

void ref_removal_back(struct backend *backend, const struct removal_back *back)
{
    (void)backend;
    const size_t E = back->of->head_dim, HE = back->of->heads * E;
    for (size_t at = 0; at < back->of->T * HE; at += E) {
        bonus(back, at, at % HE);
        removed(back, at, at % HE);
        for (size_t e = 0; e < E; e++)
            values(back, at + e);
    }
}
