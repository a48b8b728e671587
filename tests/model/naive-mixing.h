/* naive-mixing.h - RWKV 6 and 7 as mixers of a network, by the definitions of their papers. They
 * are computed token by token in double, for networks of two layers with random weights. Latents
 * are zeros, so layers read nothing from them. */
#pragma once

#include <math.h>

#include "tests/model/planted.h"

enum { L = 2, D = 64, H = 4, E = 16, R = 32, V = 512, LEN = 45, ROOM = 1 << 15 };

/* Sets larger weights than networks begin with, so that every part affects the result. */
static void plant(const struct config *c, enum role r, size_t layer, float *v)
{
    size_t rows, cols;
    role_shape(c, r, &rows, &cols);
    for (size_t i = 0; i < rows * cols; i++) {
        if (r == ROLE_DECAY)
            v[i] = (float)(c->mixer == MIXER_RWKV6 ? 20 * v[i] - 1.5 : 20 * v[i] - 1);
        else if (role_is_norm(r))
            v[i] = 1 + 0.1f * (float)((i + layer) % 5);
        else
            v[i] = cols == 1 ? 0.4f + 6 * v[i] : r == ROLE_EMBED ? 4 * v[i] : 3 * v[i];
    }
}

/* ---- the definition ---- */

struct naive {
    double *w[ROLE_COUNT][L];
    double S[L][H][E][E], before[L][D], first[D], room[ROOM];
    size_t used, layers;
    enum mixer mixer;
    double eps;
};

static double *take(struct naive *m, size_t n)
{
    double *p = m->room + m->used;
    m->used += n;
    if (m->used > ROOM)
        exit(1);
    return p;
}

/* W x; W has `rows` outputs and `cols` inputs. */
static double *times(struct naive *m, enum role r, size_t l, const double *x, size_t rows,
                     size_t cols)
{
    double *y = take(m, rows);
    for (size_t i = 0; i < rows; i++) {
        y[i] = 0;
        for (size_t k = 0; k < cols; k++)
            y[i] += m->w[r][l][i * cols + k] * x[k];
    }
    return y;
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static double *norm(struct naive *m, enum role r, size_t l, const double *x)
{
    double sum = 0, *y = take(m, D);
    for (size_t d = 0; d < D; d++)
        sum += x[d] * x[d];
    for (size_t d = 0; d < D; d++)
        y[d] = x[d] / sqrt(sum / D + m->eps) * m->w[r][l][d];
    return y;
}

/* The low-rank product UP f(DOWN x). f: 0 identity, 1 tanh, 2 logistic. */
static double *lora(struct naive *m, enum role down, enum role up, size_t l, const double *x,
                    size_t rows, int f)
{
    double *low = times(m, down, l, x, R, D);
    for (size_t i = 0; i < R; i++)
        low[i] = f == 1 ? tanh(low[i]) : f == 2 ? logistic(low[i]) : low[i];
    return times(m, up, l, low, rows, R);
}

/* x + (before - x) * (the layer's share + add). */
static double *lerp(struct naive *m, enum role share, size_t l, const double *x, const double *add)
{
    double *y = take(m, D);
    for (size_t d = 0; d < D; d++)
        y[d] = x[d] + (m->before[l][d] - x[d]) * (m->w[share][l][d] + (add ? add[d] : 0));
    return y;
}

/* GroupNorm of the heads of o, in place. */
static void group_norm(struct naive *m, size_t l, double *o)
{
    for (size_t h = 0; h < H; h++) {
        double mean = 0, var = 0;
        for (size_t e = 0; e < E; e++)
            mean += o[h * E + e] / E;
        for (size_t e = 0; e < E; e++)
            var += pow(o[h * E + e] - mean, 2) / E;
        for (size_t e = 0; e < E; e++)
            o[h * E + e] = (o[h * E + e] - mean) / sqrt(var + 64e-5) *
                               m->w[ROLE_HEADS_GAIN][l][h * E + e] +
                           m->w[ROLE_HEADS_BIAS][l][h * E + e];
    }
}

static double *mix6(struct naive *m, size_t l, const double *x)
{
    double *p = lerp(m, ROLE_SHIFT_X, l, x, NULL), *in[5], *o = take(m, D);
    for (int i = 0; i < 5; i++)
        in[i] = lerp(m, (enum role)(ROLE_SHIFT_R + i), l, x,
                     lora(m, (enum role)(ROLE_LERP_DOWN_R + i), (enum role)(ROLE_LERP_UP_R + i), l,
                          p, D, 1));
    double *r = times(m, ROLE_Q, l, in[0], D, D), *k = times(m, ROLE_K, l, in[2], D, D);
    double *v = times(m, ROLE_V, l, in[3], D, D), *g = times(m, ROLE_MIX_GATE, l, in[4], D, D);
    double *w = lora(m, ROLE_DECAY_DOWN, ROLE_DECAY_UP, l, in[1], D, 1);
    for (size_t h = 0; h < H; h++)
        for (size_t j = 0; j < E; j++) {
            double sum = 0;
            for (size_t i = 0; i < E; i++) {
                size_t c = h * E + i;
                double *s = &m->S[l][h][i][j], kv = k[c] * v[h * E + j];
                sum += r[c] * (*s + m->w[ROLE_BONUS][l][c] * kv);
                *s = exp(-exp(m->w[ROLE_DECAY][l][c] + w[c])) * *s + kv;
            }
            o[h * E + j] = sum;
        }
    group_norm(m, l, o);
    for (size_t d = 0; d < D; d++)
        o[d] *= g[d] * logistic(g[d]);
    return times(m, ROLE_O, l, o, D, D);
}

static double softplus(double x)
{
    return log(1 + exp(x));
}

static double *mix7(struct naive *m, size_t l, const double *x)
{
    double *in[6], *o = take(m, D), *kappa = take(m, D);
    for (int i = 0; i < 6; i++)
        in[i] = lerp(m, (enum role)(ROLE_SHIFT_R + i), l, x, NULL);
    double *r = times(m, ROLE_Q, l, in[0], D, D), *k = times(m, ROLE_K, l, in[2], D, D);
    double *v = times(m, ROLE_V, l, in[3], D, D);
    double *w = lora(m, ROLE_DECAY_DOWN, ROLE_DECAY_UP, l, in[1], D, 1);
    double *share = lora(m, ROLE_FIRST_DOWN, ROLE_FIRST_UP, l, in[3], D, 0);
    double *a = lora(m, ROLE_RATE_DOWN, ROLE_RATE_UP, l, in[5], D, 0);
    double *g = lora(m, ROLE_GATE_DOWN, ROLE_GATE_UP, l, in[4], D, 2);
    for (size_t d = 0; d < D; d++) {
        w[d] = exp(-exp(-softplus(-(m->w[ROLE_DECAY][l][d] + w[d])) - 0.5));
        a[d] = logistic(m->w[ROLE_RATE][l][d] + a[d]);
        if (l)
            v[d] += (m->first[d] - v[d]) * logistic(m->w[ROLE_FIRST][l][d] + share[d]);
        else
            m->first[d] = v[d];
        kappa[d] = k[d] * m->w[ROLE_KEY_SCALE][l][d];
        k[d] *= 1 + (a[d] - 1) * m->w[ROLE_KEY_RATE][l][d];
    }
    for (size_t h = 0; h < H; h++) {
        double length = 0;
        for (size_t c = h * E; c < (h + 1) * E; c++)
            length += kappa[c] * kappa[c];
        for (size_t j = 0; j < E; j++) {
            double removed = 0, sum = 0;
            for (size_t i = 0; i < E; i++)
                removed -= kappa[h * E + i] / sqrt(length) * m->S[l][h][i][j];
            for (size_t i = 0; i < E; i++) {
                size_t c = h * E + i;
                double *s = &m->S[l][h][i][j];
                *s = w[c] * *s + kappa[c] / sqrt(length) * a[c] * removed + k[c] * v[h * E + j];
                sum += r[c] * *s;
            }
            o[h * E + j] = sum;
        }
    }
    group_norm(m, l, o);
    for (size_t d = 0; d < D; d++) {
        double bonus = 0;
        for (size_t c = d / E * E; c < (d / E + 1) * E; c++)
            bonus += r[c] * k[c] * m->w[ROLE_BONUS][l][c];
        o[d] = (o[d] + bonus * v[d]) * g[d];
    }
    return times(m, ROLE_O, l, o, D, D);
}

static void add(double *x, const double *y)
{
    for (size_t d = 0; d < D; d++)
        x[d] += y[d];
}

static void feed(struct naive *m, size_t l, double *x, size_t ffn)
{
    double *n = norm(m, ROLE_FFN_NORM, l, x);
    double *gate = times(m, ROLE_GATE, l, n, ffn, D), *up = times(m, ROLE_UP, l, n, ffn, D);
    for (size_t f = 0; f < ffn; f++)
        gate[f] *= logistic(gate[f]) * up[f];
    add(x, times(m, ROLE_DOWN, l, gate, D, ffn));
}

/* Fills out[i] = log p(ids[i + 1] | ids[0..i]) for a text of `len` ids. */
static void by_definition(struct naive *m, size_t ffn, const int32_t *ids, size_t len, double *out)
{
    memset(m->S, 0, sizeof m->S);
    memset(m->before, 0, sizeof m->before);
    for (size_t t = 0; t + 1 < len; t++) {
        m->used = 0;
        double *x = take(m, D), sum = 0;
        for (size_t d = 0; d < D; d++)
            x[d] = m->w[ROLE_EMBED][0][(size_t)ids[t] * D + d];
        for (size_t l = 0; l < L; l++) {
            double *n = norm(m, ROLE_ATTN_NORM, l, x);
            add(x, m->mixer == MIXER_RWKV6 ? mix6(m, l, n) : mix7(m, l, n));
            memcpy(m->before[l], n, sizeof m->before[l]);
            feed(m, l, x, ffn);
        }
        double *logit = times(m, ROLE_HEAD, 0, norm(m, ROLE_NORM, 0, x), V, D);
        for (size_t v = 0; v < V; v++)
            sum += exp(logit[v]);
        out[t] = logit[ids[t + 1]] - log(sum);
    }
}

static struct naive *read_naive(const struct checkpoint *c)
{
    struct naive *m = mem_zero(1, sizeof *m);
    m->mixer = c->config.mixer;
    m->eps = c->config.norm_eps;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_layers(&c->config, (enum role)r); l++) {
            size_t rows, cols;
            role_shape(&c->config, (enum role)r, &rows, &cols);
            float *w = mem_alloc(rows * cols * sizeof *w);
            checkpoint_floats(c, (enum role)r, l, w);
            m->w[r][l] = mem_alloc(rows * cols * sizeof(double));
            for (size_t i = 0; i < rows * cols; i++)
                m->w[r][l][i] = w[i];
            free(w);
        }
    if (c->config.tied) {
        free(m->w[ROLE_HEAD][0]);
        m->w[ROLE_HEAD][0] = m->w[ROLE_EMBED][0];
    }
    return m;
}

static void free_naive(struct naive *m)
{
    if (m->w[ROLE_HEAD][0] == m->w[ROLE_EMBED][0])
        m->w[ROLE_HEAD][0] = NULL;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < L; l++)
            free(m->w[r][l]);
    free(m);
}

/* Makes a network of this shape with random weights, saves it in the folder and opens it from
 * there. Fills ids[] with a text. Ends the program on an error. */
static void open_mixer(struct checkpoint *c, const char *shape, const char *folder,
                       int32_t ids[LEN])
{
    struct err e = {0};
    for (size_t t = 0; t < LEN; t++)
        ids[t] = (int32_t)(t * t * 37 % 500);
    planted_save((struct planted){.shape = shape, .plant = plant}, folder);
    if (checkpoint_open(c, folder, 0, &e)) {
        printf("Bail out! %s\n", e.text);
        exit(1);
    }
}
