/* solver.c - see solver.h. All solvers except edm step in lambda, where the linear part of the flow
 * has an exact solution: from lambda_s to lambda_t
 *
 *     x_t = s_t / s_s x_s + alpha_t (1 - e^(lambda_s - lambda_t)) D
 *
 * where D is the prediction, constant along the step. At the end of the grid s is 0 and x is D. */
#include "lib/latent/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"

double solver_alpha(double lambda)
{
    return sqrt(1 / (1 + exp(-2 * lambda)));
}

double solver_s(double lambda)
{
    return sqrt(1 / (1 + exp(2 * lambda)));
}

/* A solver at work: x[n] and three arrays of the same size. */
struct flow {
    const struct solver *p;
    const struct denoiser *d;
    float *x, *now, *before, *trial;
    size_t rows, width, n, calls;
};

static void predict(struct flow *f, const float *x, double lambda, float *x0)
{
    f->d->predict(f->d->ctx, x, lambda, f->rows, f->width, x0);
    f->calls++;
}

/* to = x after the exact step from lambda a to lambda b with the prediction D. to may be x. */
static void step(const struct flow *f, float *to, const float *x, const float *D, double a,
                 double b)
{
    double keep = solver_s(b) / solver_s(a), add = -solver_alpha(b) * expm1(a - b);
    for (size_t i = 0; i < f->n; i++)
        to[i] = (float)(keep * x[i] + add * D[i]);
}

/* lambda i of n, uniform from sigma_max to sigma_min. */
static double place(const struct solver *p, size_t i, size_t n)
{
    double a = -log(p->sigma_max), b = -log(p->sigma_min);
    return n > 1 ? a + (b - a) * (double)i / (double)(n - 1) : a;
}

/* lambda i of n, uniform in the time of the cosine schedule, where tan(pi t / 2) is sigma. The
 * error of a constant prediction is largest at both ends, where this grid is denser. */
static double place_in_time(const struct solver *p, size_t i, size_t n)
{
    double a = atan(p->sigma_max), b = atan(p->sigma_min);
    return -log(tan(n > 1 ? a + (b - a) * (double)i / (double)(n - 1) : a));
}

/* A step of ddim in which fresh noise of standard deviation `fresh` replaces as much of the
 * predicted noise. */
static void step_fresh(const struct flow *f, double a, double b, size_t i)
{
    double alpha_a = solver_alpha(a), s_a = solver_s(a), alpha_b = solver_alpha(b);
    double s_b = solver_s(b), ratio = alpha_a / alpha_b;
    double fresh = f->p->eta * s_b / s_a * sqrt(fmax(0, 1 - ratio * ratio));
    double rest = sqrt(fmax(0, s_b * s_b - fresh * fresh));
    for (size_t r = 0; r < f->rows; r++) {
        struct rng noise = {rng_at(f->p->seed, r, i), 0, 0};
        for (size_t j = r * f->width; j < (r + 1) * f->width; j++) {
            double D = f->now[j], was = (f->x[j] - alpha_a * D) / s_a;
            f->x[j] = (float)(alpha_b * D + rest * was + fresh * rng_normal(&noise));
        }
    }
}

static void ddim(struct flow *f)
{
    size_t n = f->p->evaluations;
    for (size_t i = 0; i < n; i++) {
        double a = place_in_time(f->p, i, n);
        predict(f, f->x, a, f->now);
        if (i + 1 < n)
            step_fresh(f, a, place_in_time(f->p, i + 1, n), i);
    }
    memcpy(f->x, f->now, f->n * sizeof *f->x);
}

static void dpmpp2m(struct flow *f)
{
    size_t n = f->p->evaluations;
    for (size_t i = 0; i < n; i++) {
        double a = place(f->p, i, n);
        predict(f, f->x, a, f->now);
        if (i + 1 == n)
            break;
        for (size_t j = 0; j < f->n; j++) /* the grid is uniform: h_before / h is 1 */
            f->trial[j] = i ? 1.5f * f->now[j] - 0.5f * f->before[j] : f->now[j];
        step(f, f->x, f->x, f->trial, a, place(f->p, i + 1, n));
        memcpy(f->before, f->now, f->n * sizeof *f->x);
    }
    memcpy(f->x, f->now, f->n * sizeof *f->x);
}

/* f->now = dx/dsigma = (x - D) / sigma, for x = x0 + sigma noise. */
static void slope(struct flow *f, const float *x, double sigma, float *to)
{
    double lambda = -log(sigma), alpha = solver_alpha(lambda);
    for (size_t j = 0; j < f->n; j++)
        f->trial[j] = (float)(alpha * x[j]);
    predict(f, f->trial, lambda, to);
    for (size_t j = 0; j < f->n; j++)
        to[j] = (float)((x[j] - to[j]) / sigma);
}

/* n - 1 steps of Heun and a last one of Euler, to sigma 0: 2 n - 1 calls. */
static void edm(struct flow *f)
{
    const struct solver *p = f->p;
    size_t n = (p->evaluations + 1) / 2;
    double top = pow(p->sigma_max, 1 / p->rho), bottom = pow(p->sigma_min, 1 / p->rho);
    float *at = f->before; /* the second slope, at x moved by the first */
    for (size_t j = 0; j < f->n; j++)
        f->x[j] = (float)(f->x[j] / solver_alpha(-log(p->sigma_max)));
    for (size_t i = 0; i < n; i++) {
        double of = n > 1 ? (double)i / (double)(n - 1) : 0;
        double next = n > 1 ? (double)(i + 1) / (double)(n - 1) : 0;
        double sigma = pow(top + of * (bottom - top), p->rho);
        double to = i + 1 < n ? pow(top + next * (bottom - top), p->rho) : 0;
        slope(f, f->x, sigma, f->now);
        for (size_t j = 0; j < f->n; j++)
            f->x[j] += (float)((to - sigma) * f->now[j]);
        if (to == 0)
            break;
        slope(f, f->x, to, at);
        for (size_t j = 0; j < f->n; j++)
            f->x[j] += (float)((to - sigma) / 2 * (at[j] - f->now[j]));
    }
}

/* Root mean square of the difference of the two orders in units of the tolerance; x_prev of the
 * rule is `low` of the previous step. */
static double distance(const struct solver *p, const float *low, const float *high,
                       const float *prev, size_t n)
{
    double sum = 0;
    for (size_t j = 0; j < n; j++) {
        double size = fmax(fabs((double)low[j]), fabs((double)prev[j]));
        double d = (high[j] - low[j]) / fmax(p->atol, p->rtol * size);
        sum += d * d;
    }
    return sqrt(sum / (double)n);
}

/* Solves one row. low[n], prev[n]: scratch. */
static void adaptive_row(struct flow *f, float *low, float *prev)
{
    const struct solver *p = f->p;
    double a = place(p, 0, 2), end = place(p, 1, 2), next = 0.05;
    memcpy(prev, f->x, f->n * sizeof *prev);
    predict(f, f->x, a, f->now);
    while (end - a > 1e-5) {
        double h = fmin(next, end - a), b = a + h, mid = a + h / 2;
        step(f, low, f->x, f->now, a, b);
        step(f, f->trial, f->x, f->now, a, mid);
        predict(f, f->trial, mid, f->before);
        step(f, f->trial, f->x, f->before, a, b);
        double E = distance(p, low, f->trial, prev, f->n);
        if (E <= 1) {
            memcpy(f->x, f->trial, f->n * sizeof *f->x);
            memcpy(prev, low, f->n * sizeof *prev);
            a = b;
            predict(f, f->x, a, f->now);
        }
        next = 0.9 * h / sqrt(fmax(E, 1e-8));
    }
    memcpy(f->x, f->now, f->n * sizeof *f->x);
}

static void adaptive(struct flow *f)
{
    size_t rows = f->rows, most = 0;
    float *all = f->x, *room = mem_alloc(2 * f->width * sizeof *room);
    f->rows = 1;
    f->n = f->width;
    for (size_t r = 0; r < rows; r++) {
        f->x = all + r * f->width;
        f->calls = 0;
        adaptive_row(f, room, room + f->width);
        most = f->calls > most ? f->calls : most;
    }
    f->calls = most;
    free(room);
}

size_t solver_run(const struct solver *p, const struct denoiser *d, float *x, size_t rows,
                  size_t width)
{
    static void (*const ways[])(struct flow *f) = {ddim, dpmpp2m, edm, adaptive};
    size_t n = rows * width;
    float *room = mem_alloc(3 * n * sizeof *room);
    struct flow f = {p, d, x, room, room + n, room + 2 * n, rows, width, n, 0};
    ways[p->kind](&f);
    free(room);
    return f.calls;
}

double solver_bound(const struct solver *p, const struct denoiser *d, const float *x0, size_t rows,
                    size_t width, size_t draws)
{
    static const double pi = 3.14159265358979323846;
    size_t n = rows * width;
    float *x = mem_alloc(2 * n * sizeof *x), *found = x + n;
    double sum = 0;
    for (size_t j = 0; j < n; j++)
        sum += 0.5 * ((double)x0[j] * x0[j] + log(2 * pi));
    for (size_t i = 0; i < draws; i++) {
        double a = place(p, i, draws + 1), part = place(p, i + 1, draws + 1) - a, more = 0;
        struct rng noise = {p->seed, i, 0};
        double at = a + part * rng_uniform(&noise), alpha = solver_alpha(at), s = solver_s(at);
        for (size_t j = 0; j < n; j++)
            x[j] = (float)(alpha * x0[j] + s * rng_normal(&noise));
        d->predict(d->ctx, x, at, rows, width, found);
        for (size_t j = 0; j < n; j++) {
            double off = (double)x0[j] - found[j], plain = x0[j] - alpha * x[j];
            more += off * off - plain * plain;
        }
        sum += part * exp(2 * at) * more;
    }
    free(x);
    return sum / (double)rows;
}
