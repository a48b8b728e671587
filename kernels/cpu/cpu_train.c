/* cpu_train.c - gradients (kernels/train.h) and the update of weights on the CPU. Where the
 * gradient of a parameter is a sum over rows, threads divide the columns. Each sum then has one
 * owner and one order, and training repeats bit for bit at any number of threads. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/softmax.h"

struct norm_back {
    float *dx, *dg, *scale, *pull; /* scale, pull: [T] */
    const float *dy, *x, *g;
    size_t T, D;
    double eps;
};

/* Rows that are summed side by side, so that the additions of one sum need not wait for
 * another's. */
enum { BESIDE = 8 };

/* y_d = x_d s g_d, s = (mean x^2 + eps)^(-1/2): dx_d = s g_d dy_d - x_d s^3 mean_j(g_j dy_j x_j).
 * This computes s and the factor of x_d. */
INLINE void factors_of(const struct norm_back *a, size_t t, const int rows)
{
    const float *x = a->x + t * a->D, *dy = a->dy + t * a->D;
    double squares[BESIDE] = {0}, dot[BESIDE] = {0};
    for (size_t d = 0; d < a->D; d++)
        for (int i = 0; i < rows; i++) {
            size_t at = (size_t)i * a->D + d;
            squares[i] += (double)x[at] * x[at];
            dot[i] += (double)a->g[d] * dy[at] * x[at];
        }
    for (size_t i = 0; i < (size_t)rows; i++) {
        double s = 1 / sqrt(squares[i] / (double)a->D + a->eps);
        a->scale[t + i] = (float)s;
        a->pull[t + i] = (float)(s * s * s * dot[i] / (double)a->D);
    }
}

static void norm_factors(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct norm_back *a = ctx;
    size_t t = begin * BESIDE, last = end * BESIDE < a->T ? end * BESIDE : a->T;
    for (; t + BESIDE <= last; t += BESIDE)
        factors_of(a, t, BESIDE);
    for (; t < last; t++)
        factors_of(a, t, 1);
}

static void norm_columns(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct norm_back *a = ctx;
    const size_t first = span_begin(begin, a->D), last = span_begin(end, a->D);
    for (size_t t = 0; t < a->T; t++)
        for (size_t d = first; d < last; d++)
            a->dg[d] += a->dy[t * a->D + d] * a->x[t * a->D + d] * a->scale[t];
}

static void norm_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct norm_back *a = ctx;
    for (size_t t = begin; t < end; t++)
        for (size_t d = t * a->D; d < (t + 1) * a->D; d++)
            a->dx[d] += a->scale[t] * a->g[d - t * a->D] * a->dy[d] - a->pull[t] * a->x[d];
}

void CPU(rmsnorm_back)(struct backend *b, float *dx, float *dg, const float *dy, const float *x,
                       const float *g, size_t T, size_t D, double eps, float *work)
{
    struct norm_back a = {dx, dg, work, work + T, dy, x, g, T, D, eps};
    pool_run(b->pool, (T + BESIDE - 1) / BESIDE, 1, norm_factors, &a);
    if (dg)
        pool_run(b->pool, spans(D), 1, norm_columns, &a);
    pool_run(b->pool, T, 8, norm_rows, &a);
}

struct gate_back {
    float *dgate, *dup;
    const float *dy, *gate, *up;
    size_t n;
};

/* y = g s(g) u, with s the logistic function: dy/dg = u s (1 + g (1 - s)), dy/du = g s. */
static void gate_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct gate_back *a = ctx;
    size_t i = span_begin(begin, a->n), last = span_begin(end, a->n);
    for (; i + LANES <= last; i += LANES) {
        vec g = load(a->gate + i), u = load(a->up + i), dy = load(a->dy + i);
        vec s = 1.0f / (1.0f + vexp(-g));
        put(a->dgate + i, dy * u * s * (1.0f + g * (1.0f - s)));
        put(a->dup + i, dy * g * s);
    }
    for (; i < last; i++) {
        float g = a->gate[i], u = a->up[i], dy = a->dy[i], s = 1 / (1 + expf(-g));
        a->dgate[i] = dy * u * s * (1 + g * (1 - s));
        a->dup[i] = dy * g * s;
    }
}

void CPU(swiglu_back)(struct backend *b, float *dgate, float *dup, const float *dy,
                      const float *gate, const float *up, size_t n)
{
    struct gate_back a = {dgate, dup, dy, gate, up, n};
    pool_run(b->pool, spans(n), 4096 / SPAN, gate_part, &a);
}

struct entropy {
    float *logits;
    const int32_t *target;
    const float *weight;
    size_t V;
    double *loss;
};

static void entropy_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct entropy *a = ctx;
    for (size_t t = begin; t < end; t++) {
        float *l = a->logits + t * a->V, weight = a->weight[t];
        a->loss[t] = 0;
        if (weight == 0) {
            memset(l, 0, a->V * sizeof *l);
            continue;
        }
        float max = max_of(l, a->V), at = l[a->target[t]];
        vecd sum = {0};
        size_t v = 0;
        for (; v + LANES <= a->V; v += LANES) {
            vec e = vexp(load(l + v) - max);
            put(l + v, e);
            sum += __builtin_convertvector(e, vecd);
        }
        double total = sum_lanes(sum);
        for (; v < a->V; v++)
            total += l[v] = expf(l[v] - max);
        a->loss[t] = weight * (log(total) + max - at);
        float scale = (float)(weight / total);
        for (v = 0; v < a->V; v++)
            l[v] *= scale;
        l[a->target[t]] -= weight;
    }
}

void CPU(cross_entropy)(struct backend *b, float *logits, const int32_t *target,
                        const float *weight, size_t T, size_t V, double *loss)
{
    struct entropy a = {logits, target, weight, V, loss};
    pool_run(b->pool, T, 4, entropy_rows, &a);
}

struct spreading {
    float *y;
    const float *x;
    const int32_t *place;
    size_t D;
};

static void spread_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct spreading *a = ctx;
    for (size_t t = begin; t < end; t++)
        if (a->place[t] < 0)
            memset(a->y + t * a->D, 0, a->D * sizeof *a->y);
        else
            memcpy(a->y + t * a->D, a->x + (size_t)a->place[t] * a->D, a->D * sizeof *a->y);
}

void CPU(spread)(struct backend *b, float *y, const float *x, const int32_t *place, size_t T,
                 size_t D)
{
    struct spreading a = {y, x, place, D};
    pool_run(b->pool, T, grain(D), spread_rows, &a);
}

struct embedding_back {
    float *dw;
    const float *dy;
    const int32_t *token;
    size_t T, D;
};

static void embed_columns(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct embedding_back *a = ctx;
    const size_t first = span_begin(begin, a->D), last = span_begin(end, a->D);
    for (size_t t = 0; t < a->T; t++)
        for (size_t d = first; d < last; d++)
            a->dw[(size_t)a->token[t] * a->D + d] += a->dy[t * a->D + d];
}

void CPU(embed_back)(struct backend *b, float *dw, const float *dy, const int32_t *token, size_t T,
                     size_t V, size_t D)
{
    struct embedding_back a = {dw, dy, token, T, D};
    (void)V;
    pool_run(b->pool, spans(D), grain(T * SPAN), embed_columns, &a);
}

struct addition {
    float *y;
    const float *x;
    size_t n;
};

static void add_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct addition *a = ctx;
    const size_t last = span_begin(end, a->n);
    for (size_t i = span_begin(begin, a->n); i < last; i++)
        a->y[i] += a->x[i];
}

void CPU(add)(struct backend *b, float *y, const float *x, size_t n)
{
    struct addition a = {y, x, n};
    pool_run(b->pool, spans(n), grain(SPAN), add_part, &a);
}

struct squares_sum {
    const float *x;
    size_t n;
    double *part;
};

static void square_parts(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct squares_sum *a = ctx;
    for (size_t part = begin; part < end; part++) {
        size_t first = a->n * part / SQUARES_PARTS, last = a->n * (part + 1) / SQUARES_PARTS;
        a->part[part] = sum_squares(a->x + first, last - first);
    }
}

double CPU(squares)(struct backend *b, const float *x, size_t n, double *work)
{
    struct squares_sum a = {x, n, work};
    pool_run(b->pool, SQUARES_PARTS, grain(n / SQUARES_PARTS), square_parts, &a);
    double all = 0;
    for (size_t i = 0; i < SQUARES_PARTS; i++)
        all += work[i];
    return all;
}

struct update {
    float *w, *m, *v;
    const float *g;
    size_t n;
    float beta1, beta2, scale, rate, eps, keep, fix2;
};

static void adamw_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct update *a = ctx;
    const size_t last = span_begin(end, a->n);
    for (size_t i = span_begin(begin, a->n); i < last; i++) {
        float g = a->g[i] * a->scale;
        float m = a->m[i] = a->beta1 * a->m[i] + (1 - a->beta1) * g;
        float v = a->v[i] = a->beta2 * a->v[i] + (1 - a->beta2) * g * g;
        a->w[i] = a->w[i] * a->keep - a->rate * m / (sqrtf(v) * a->fix2 + a->eps);
    }
}

void CPU(adamw)(struct backend *b, float *w, float *m, float *v, const float *g, size_t n,
                const struct adamw *o)
{
    double fix1 = 1 - pow(o->beta1, (double)o->step), fix2 = 1 - pow(o->beta2, (double)o->step);
    struct update a = {.w = w, .m = m, .v = v, .g = g, .n = n, .beta1 = (float)o->beta1,
                       .beta2 = (float)o->beta2, .scale = (float)o->grad_scale,
                       .rate = (float)(o->rate / fix1), .eps = (float)o->eps,
                       .keep = (float)(1 - o->rate * o->decay), .fix2 = (float)(1 / sqrt(fix2))};
    pool_run(b->pool, spans(n), 1024 / SPAN, adamw_part, &a);
}
