/* cpu_train.c - gradients (kernels/train.h) and the update of weights on the CPU. If the gradient
 * of a parameter is a sum over rows, threads divide the columns. Each sum is then computed by one
 * thread, in one order. Training therefore repeats bit for bit at any number of threads. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/softmax.h"

struct norm_back {
    float *dx, *dg, *scale, *pull; /* scale, pull: [T] */
    const float *dy, *x, *g;
    size_t T, D;
    double eps;
};

/* BESIDE rows are summed side by side, because each addition to a sum waits for the one before. */
enum { BESIDE = 8 };

/* y_d = x_d s g_d, s = (mean x^2 + eps)^(-1/2): dx_d = s g_d dy_d - x_d s^3 mean_j(g_j dy_j x_j).
 * Computes scale = s and pull = the factor of x_d. */
INLINE void factors_of(const struct norm_back *back, size_t row, const int rows)
{
    const float *x = back->x + row * back->D, *dy = back->dy + row * back->D;
    double squares[BESIDE] = {0}, dot[BESIDE] = {0};
    for (size_t column = 0; column < back->D; column++)
        for (int i = 0; i < rows; i++) {
            size_t at = (size_t)i * back->D + column;
            squares[i] += (double)x[at] * x[at];
            dot[i] += (double)back->g[column] * dy[at] * x[at];
        }
    for (size_t i = 0; i < (size_t)rows; i++) {
        double scale = 1 / sqrt(squares[i] / (double)back->D + back->eps);
        back->scale[row + i] = (float)scale;
        back->pull[row + i] = (float)(scale * scale * scale * dot[i] / (double)back->D);
    }
}

static void norm_factors(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct norm_back *back = ctx;
    size_t row = begin * BESIDE, last = end * BESIDE < back->T ? end * BESIDE : back->T;
    for (; row + BESIDE <= last; row += BESIDE)
        factors_of(back, row, BESIDE);
    for (; row < last; row++)
        factors_of(back, row, 1);
}

static void norm_columns(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct norm_back *back = ctx;
    const size_t first = span_begin(begin, back->D), last = span_begin(end, back->D);
    for (size_t row = 0; row < back->T; row++)
        for (size_t column = first; column < last; column++)
            back->dg[column] += back->dy[row * back->D + column] * back->x[row * back->D + column] *
                                back->scale[row];
}

static void norm_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct norm_back *back = ctx;
    for (size_t row = begin; row < end; row++)
        for (size_t column = row * back->D; column < (row + 1) * back->D; column++)
            back->dx[column] += back->scale[row] * back->g[column - row * back->D] *
                                    back->dy[column] -
                                back->pull[row] * back->x[column];
}

void CPU(rmsnorm_back)(struct backend *backend, float *dx, float *dg, const float *dy,
                       const float *x, const float *grad, size_t T, size_t D, double eps,
                       float *work)
{
    struct norm_back back = {dx, dg, work, work + T, dy, x, grad, T, D, eps};
    pool_run(backend->pool, (T + BESIDE - 1) / BESIDE, 1, norm_factors, &back);
    if (dg)
        pool_run(backend->pool, spans(D), 1, norm_columns, &back);
    pool_run(backend->pool, T, 8, norm_rows, &back);
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
    const struct gate_back *back = ctx;
    size_t i = span_begin(begin, back->n), last = span_begin(end, back->n);
    for (; i + LANES <= last; i += LANES) {
        vec gate = load(back->gate + i), up = load(back->up + i), dy = load(back->dy + i);
        vec share = 1.0f / (1.0f + vexp(-gate));
        put(back->dgate + i, dy * up * share * (1.0f + gate * (1.0f - share)));
        put(back->dup + i, dy * gate * share);
    }
    for (; i < last; i++) {
        float gate = back->gate[i], up = back->up[i], dy = back->dy[i],
              share = 1 / (1 + expf(-gate));
        back->dgate[i] = dy * up * share * (1 + gate * (1 - share));
        back->dup[i] = dy * gate * share;
    }
}

void CPU(swiglu_back)(struct backend *backend, float *dgate, float *dup, const float *dy,
                      const float *gate, const float *up, size_t n)
{
    struct gate_back back = {dgate, dup, dy, gate, up, n};
    pool_run(backend->pool, spans(n), 4096 / SPAN, gate_part, &back);
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
    const struct entropy *entropy = ctx;
    for (size_t row = begin; row < end; row++) {
        float *logits = entropy->logits + row * entropy->V, weight = entropy->weight[row];
        entropy->loss[row] = 0;
        if (weight == 0) {
            memset(logits, 0, entropy->V * sizeof *logits);
            continue;
        }
        float max = max_of(logits, entropy->V), at = logits[entropy->target[row]];
        vecd sum = {0};
        size_t id = 0;
        for (; id + LANES <= entropy->V; id += LANES) {
            vec e = vexp(load(logits + id) - max);
            put(logits + id, e);
            sum += __builtin_convertvector(e, vecd);
        }
        double total = sum_lanes(sum);
        for (; id < entropy->V; id++)
            total += logits[id] = expf(logits[id] - max);
        entropy->loss[row] = weight * (log(total) + max - at);
        float scale = (float)(weight / total);
        for (id = 0; id < entropy->V; id++)
            logits[id] *= scale;
        logits[entropy->target[row]] -= weight;
    }
}

void CPU(cross_entropy)(struct backend *backend, float *logits, const int32_t *target,
                        const float *weight, size_t T, size_t V, double *loss)
{
    struct entropy entropy = {logits, target, weight, V, loss};
    pool_run(backend->pool, T, 4, entropy_rows, &entropy);
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
    const struct spreading *spreading = ctx;
    for (size_t row = begin; row < end; row++)
        if (spreading->place[row] < 0)
            memset(spreading->y + row * spreading->D, 0, spreading->D * sizeof *spreading->y);
        else
            memcpy(spreading->y + row * spreading->D,
                   spreading->x + (size_t)spreading->place[row] * spreading->D,
                   spreading->D * sizeof *spreading->y);
}

void CPU(spread)(struct backend *backend, float *y, const float *x, const int32_t *place, size_t T,
                 size_t D)
{
    struct spreading spreading = {y, x, place, D};
    pool_run(backend->pool, T, grain(D), spread_rows, &spreading);
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
    const struct embedding_back *back = ctx;
    const size_t first = span_begin(begin, back->D), last = span_begin(end, back->D);
    for (size_t row = 0; row < back->T; row++)
        for (size_t column = first; column < last; column++)
            back->dw[(size_t)back->token[row] * back->D + column] +=
                back->dy[row * back->D + column];
}

void CPU(embed_back)(struct backend *backend, float *dw, const float *dy, const int32_t *token,
                     size_t T, size_t V, size_t D)
{
    struct embedding_back back = {dw, dy, token, T, D};
    (void)V;
    pool_run(backend->pool, spans(D), grain(T * SPAN), embed_columns, &back);
}

struct addition {
    float *y;
    const float *x;
    size_t n;
};

static void add_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct addition *addition = ctx;
    const size_t last = span_begin(end, addition->n);
    for (size_t i = span_begin(begin, addition->n); i < last; i++)
        addition->y[i] += addition->x[i];
}

void CPU(add)(struct backend *backend, float *y, const float *x, size_t n)
{
    struct addition addition = {y, x, n};
    pool_run(backend->pool, spans(n), grain(SPAN), add_part, &addition);
}

struct squares_sum {
    const float *x;
    size_t n;
    double *part;
};

static void square_parts(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct squares_sum *sum = ctx;
    for (size_t part = begin; part < end; part++) {
        size_t first = sum->n * part / SQUARES_PARTS, last = sum->n * (part + 1) / SQUARES_PARTS;
        sum->part[part] = sum_squares(sum->x + first, last - first);
    }
}

double CPU(squares)(struct backend *backend, const float *x, size_t n, double *work)
{
    struct squares_sum sum = {x, n, work};
    pool_run(backend->pool, SQUARES_PARTS, grain(n / SQUARES_PARTS), square_parts, &sum);
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
    const struct update *update = ctx;
    const size_t last = span_begin(end, update->n);
    for (size_t i = span_begin(begin, update->n); i < last; i++) {
        float g = update->g[i] * update->scale;
        float m = update->m[i] = update->beta1 * update->m[i] + (1 - update->beta1) * g;
        float v = update->v[i] = update->beta2 * update->v[i] + (1 - update->beta2) * g * g;
        update->w[i] = update->w[i] * update->keep -
                       update->rate * m / (sqrtf(v) * update->fix2 + update->eps);
    }
}

void CPU(adamw)(struct backend *backend, float *w, float *m, float *value, const float *grad,
                size_t n, const struct adamw *o)
{
    double fix1 = 1 - pow(o->beta1, (double)o->step), fix2 = 1 - pow(o->beta2, (double)o->step);
    struct update update = {.w = w, .m = m, .v = value, .g = grad, .n = n, .beta1 = (float)o->beta1,
                            .beta2 = (float)o->beta2, .scale = (float)o->grad_scale,
                            .rate = (float)(o->rate / fix1), .eps = (float)o->eps,
                            .keep = (float)(1 - o->rate * o->decay),
                            .fix2 = (float)(1 / sqrt(fix2))};
    pool_run(backend->pool, spans(n), 1024 / SPAN, adamw_part, &update);
}
