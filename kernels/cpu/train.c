/* train.c - gradients on the CPU (kernels/train.h says of what). Where the gradient of a parameter
 * is a sum over rows, threads divide it by column: each sum has one owner and one order, and a
 * training run repeats bit for bit at any number of threads.
 */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/tile.h"

struct norm_back {
    float *dx, *dg, *scale, *pull; /* scale, pull: [T] */
    const float *dy, *x, *g;
    size_t T, D;
    double eps;
};

/* y_d = x_d s g_d, s = (mean x^2 + eps)^(-1/2):
 * dx_d = s g_d dy_d - x_d s^3 mean_j(g_j dy_j x_j). Here s and the factor of x_d. */
static void norm_factors(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct norm_back *a = ctx;
    for (size_t t = begin; t < end; t++) {
        const float *x = a->x + t * a->D, *dy = a->dy + t * a->D;
        double squares = 0, dot = 0;
        for (size_t d = 0; d < a->D; d++) {
            squares += (double)x[d] * x[d];
            dot += (double)a->g[d] * dy[d] * x[d];
        }
        double s = 1 / sqrt(squares / (double)a->D + a->eps);
        a->scale[t] = (float)s;
        a->pull[t] = (float)(s * s * s * dot / (double)a->D);
    }
}

static void norm_columns(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct norm_back *a = ctx;
    for (size_t t = 0; t < a->T; t++)
        for (size_t d = begin; d < end; d++)
            a->dg[d] += a->dy[t * a->D + d] * a->x[t * a->D + d] * a->scale[t];
}

static void norm_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct norm_back *a = ctx;
    for (size_t t = begin; t < end; t++)
        for (size_t d = t * a->D; d < (t + 1) * a->D; d++)
            a->dx[d] = a->scale[t] * a->g[d - t * a->D] * a->dy[d] - a->pull[t] * a->x[d];
}

void CPU(rmsnorm_back)(struct backend *b, float *dx, float *dg, const float *dy, const float *x,
                       const float *g, size_t T, size_t D, double eps, float *work)
{
    struct norm_back a = {dx, dg, work, work + T, dy, x, g, T, D, eps};
    pool_run(b->pool, T, 8, norm_factors, &a);
    pool_run(b->pool, D, 64, norm_columns, &a);
    pool_run(b->pool, T, 8, norm_rows, &a);
}

struct gate_back {
    float *dgate, *dup;
    const float *dy, *gate, *up;
};

/* y = g s(g) u, s the logistic: dy/dg = u s (1 + g (1 - s)), dy/du = g s. */
static void gate_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct gate_back *a = ctx;
    size_t i = begin;
    for (; i + LANES <= end; i += LANES) {
        vec g = load(a->gate + i), u = load(a->up + i), dy = load(a->dy + i);
        vec s = 1.0f / (1.0f + vexp(-g));
        put(a->dgate + i, dy * u * s * (1.0f + g * (1.0f - s)));
        put(a->dup + i, dy * g * s);
    }
    for (; i < end; i++) {
        float g = a->gate[i], u = a->up[i], dy = a->dy[i], s = 1 / (1 + expf(-g));
        a->dgate[i] = dy * u * s * (1 + g * (1 - s));
        a->dup[i] = dy * g * s;
    }
}

void CPU(swiglu_back)(struct backend *b, float *dgate, float *dup, const float *dy,
                      const float *gate, const float *up, size_t n)
{
    struct gate_back a = {dgate, dup, dy, gate, up};
    pool_run(b->pool, n, 4096, gate_part, &a);
}

static size_t padded(size_t n) { return (n + PANEL - 1) / PANEL * PANEL; }

/* Scratch of one worker: k^T and v^T [E, n'], k and q and dy copies [n, E'], P and dP [n, n']. */
static size_t back_floats(size_t n, size_t E)
{
    return 2 * E * padded(n) + 3 * n * padded(E) + 2 * n * padded(n) + 64;
}

size_t CPU(attention_back_work)(const struct backend *b, size_t len, size_t head_dim)
{
    return pool_threads(b->pool) * back_floats(len, head_dim);
}

struct back_scratch {
    float *kt, *vt, *k, *q, *dy, *p, *dp;
    size_t np, Ep;
};

static struct back_scratch cut(float *base, size_t n, size_t E)
{
    struct back_scratch w = {.np = padded(n), .Ep = padded(E)};
    w.kt = base;
    w.vt = w.kt + E * w.np;
    w.k = w.vt + E * w.np;
    w.q = w.k + n * w.Ep;
    w.dy = w.q + n * w.Ep;
    w.p = w.dy + n * w.Ep;
    w.dp = w.p + n * w.np;
    return w;
}

/* out[n, wide] = one head of x (row stride `stride`), zero-padded; trans: out[E, wide]. */
static void copy_head(float *out, size_t wide, const float *x, size_t stride, size_t n, size_t E,
                      int trans)
{
    memset(out, 0, (trans ? E : n) * wide * sizeof *out);
    for (size_t t = 0; t < n; t++)
        for (size_t e = 0; e < E; e++)
            out[trans ? e * wide + t : t * wide + e] = x[t * stride + e];
}

/* dS = P * (dP - rowsum(P * dP)) / sqrt(E), written over dP. */
static void softmax_back(const struct attn_back *a, const struct back_scratch *w)
{
    float scale = (float)(1 / sqrt((double)a->head_dim));
    for (size_t i = 0; i < a->len; i++) {
        const float *p = w->p + i * w->np;
        float *dp = w->dp + i * w->np;
        double dot = 0;
        for (size_t j = 0; j < a->len; j++)
            dot += (double)p[j] * dp[j];
        for (size_t j = 0; j < a->len; j++)
            dp[j] = p[j] * (dp[j] - (float)dot) * scale;
    }
}

/* Probabilities of query head h of the sequence whose first row is `row`. */
static void probabilities(const struct attn_back *a, size_t row, size_t h,
                          const struct back_scratch *w)
{
    size_t n = a->len, E = a->head_dim, HE = a->heads * E;
    CPU(product)(n, w->np, E, a->q + row * HE + h * E, HE, 1, w->kt, w->np, w->p, w->np, 0);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; a->causal && j < n; j++)
            w->p[i * w->np + j] = -INFINITY;
        softmax_row(w->p + i * w->np, n, (float)(1 / sqrt((double)E)));
    }
}

static void one_head(const struct attn_back *a, size_t row, size_t h, int first,
                     const struct back_scratch *w)
{
    size_t n = a->len, E = a->head_dim, HE = a->heads * E, KE = a->kv_heads * E;
    size_t kh = h / (a->heads / a->kv_heads), at = row * HE + h * E, kat = row * KE + kh * E;
    probabilities(a, row, h, w);
    copy_head(w->dy, w->Ep, a->dy + at, HE, n, E, 0);
    copy_head(w->q, w->Ep, a->q + at, HE, n, E, 0);
    CPU(product)(n, E, n, w->p, 1, w->np, w->dy, w->Ep, a->dv + kat, KE, !first);
    CPU(product)(n, w->np, E, w->dy, w->Ep, 1, w->vt, w->np, w->dp, w->np, 0);
    softmax_back(a, w);
    CPU(product)(n, E, n, w->dp, w->np, 1, w->k, w->Ep, a->dq + at, HE, 0);
    CPU(product)(n, E, n, w->dp, 1, w->np, w->q, w->Ep, a->dk + kat, KE, !first);
}

struct back_job {
    const struct attn_back *a;
    float *work;
};

static void back_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct back_job *job = ctx;
    const struct attn_back *a = job->a;
    size_t n = a->len, E = a->head_dim, KE = a->kv_heads * E, group = a->heads / a->kv_heads;
    struct back_scratch w = cut(job->work + worker * back_floats(n, E), n, E);
    for (size_t i = begin; i < end; i++) {
        size_t row = i / a->kv_heads * n, kh = i % a->kv_heads, at = row * KE + kh * E;
        copy_head(w.kt, w.np, a->k + at, KE, n, E, 1);
        copy_head(w.vt, w.np, a->v + at, KE, n, E, 1);
        copy_head(w.k, w.Ep, a->k + at, KE, n, E, 0);
        for (size_t h = 0; h < group; h++)
            one_head(a, row, kh * group + h, h == 0, &w);
    }
}

void CPU(attention_back)(struct backend *b, const struct attn_back *a, float *work)
{
    struct back_job job = {a, work};
    pool_run(b->pool, a->seqs * a->kv_heads, 1, back_part, &job);
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

double CPU(cross_entropy)(struct backend *b, float *logits, const int32_t *target,
                          const float *weight, size_t T, size_t V, double *work)
{
    struct entropy a = {logits, target, weight, V, work};
    pool_run(b->pool, T, 4, entropy_rows, &a);
    double loss = 0;
    for (size_t t = 0; t < T; t++)
        loss += work[t];
    return loss;
}

struct update {
    float *w, *m, *v;
    const float *g;
    float beta1, beta2, scale, rate, eps, keep, fix2;
};

static void adamw_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct update *a = ctx;
    for (size_t i = begin; i < end; i++) {
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
    struct update a = {.w = w,
                       .m = m,
                       .v = v,
                       .g = g,
                       .beta1 = (float)o->beta1,
                       .beta2 = (float)o->beta2,
                       .scale = (float)o->grad_scale,
                       .rate = (float)(o->rate / fix1),
                       .eps = (float)o->eps,
                       .keep = (float)(1 - o->rate * o->decay),
                       .fix2 = (float)(1 / sqrt(fix2))};
    pool_run(b->pool, n, 1024, adamw_part, &a);
}
