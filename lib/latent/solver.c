/* solver.c - solvers of the flow; see solver.h. All solvers except edm step in lambda, where the
 * linear part of the flow has an exact solution. A step from lambda_a to lambda_b is
 *
 *     x_b = s_b / s_a x_a + alpha_b (1 - e^(lambda_a - lambda_b)) D
 *
 * where D is the prediction of x0, constant along the step. The last step goes from sigma_min to
 * s = 0, where x is D. Source: Lu et al. 2022 (arXiv 2211.01095), section 4. */
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

/* A solver at work: x[n] and three scratch arrays [n], n = rows * width. calls: calls of the
 * model. */
struct flow {
    const struct solver *p;
    const struct denoiser *d;
    float *x, *now, *before, *trial;
    size_t rows, width, n, calls;
};

static void predict(struct flow *flow, const float *x, double lambda, float *x0)
{
    flow->d->predict(flow->d->ctx, x, lambda, flow->rows, flow->width, x0);
    flow->calls++;
}

/* to = x after the exact step from lambda a to lambda b with the prediction D. `to` may be x. */
static void step(const struct flow *flow, float *to, const float *x, const float *D, double a,
                 double b)
{
    double keep = solver_s(b) / solver_s(a), add = -solver_alpha(b) * expm1(a - b);
    for (size_t i = 0; i < flow->n; i++)
        to[i] = (float)(keep * x[i] + add * D[i]);
}

/* Value i of a grid of n values of lambda, uniform in lambda from sigma_max to sigma_min. */
static double place(const struct solver *solver, size_t i, size_t n)
{
    double a = -log(solver->sigma_max), b = -log(solver->sigma_min);
    return n > 1 ? a + (b - a) * (double)i / (double)(n - 1) : a;
}

/* Value i of a grid of n values of lambda, uniform in the time t of the cosine schedule, where
 * sigma = tan(pi t / 2). This grid is denser at both ends, where the error of a constant prediction
 * is largest. */
static double place_in_time(const struct solver *solver, size_t i, size_t n)
{
    double a = atan(solver->sigma_max), b = atan(solver->sigma_min);
    return -log(tan(n > 1 ? a + (b - a) * (double)i / (double)(n - 1) : a));
}

/* A step of ddim from lambda a to lambda b. Fresh noise of standard deviation `fresh` replaces a
 * part of the predicted noise; the variance of the sum stays s_b^2. i: number of the step. */
static void step_fresh(const struct flow *flow, double a, double b, size_t i)
{
    double alpha_a = solver_alpha(a), s_a = solver_s(a), alpha_b = solver_alpha(b);
    double s_b = solver_s(b), ratio = alpha_a / alpha_b;
    double fresh = flow->p->eta * s_b / s_a * sqrt(fmax(0, 1 - ratio * ratio));
    double rest = sqrt(fmax(0, s_b * s_b - fresh * fresh));
    for (size_t r = 0; r < flow->rows; r++) {
        struct rng noise = {rng_at(flow->p->seed, r, i), 0, 0};
        for (size_t j = r * flow->width; j < (r + 1) * flow->width; j++) {
            double D = flow->now[j], was = (flow->x[j] - alpha_a * D) / s_a;
            flow->x[j] = (float)(alpha_b * D + rest * was + fresh * rng_normal(&noise));
        }
    }
}

static void ddim(struct flow *flow)
{
    size_t n = flow->p->evaluations;
    for (size_t i = 0; i < n; i++) {
        double a = place_in_time(flow->p, i, n);
        predict(flow, flow->x, a, flow->now);
        if (i + 1 < n)
            step_fresh(flow, a, place_in_time(flow->p, i + 1, n), i);
    }
    memcpy(flow->x, flow->now, flow->n * sizeof *flow->x);
}

static void dpmpp2m(struct flow *flow)
{
    size_t n = flow->p->evaluations;
    for (size_t i = 0; i < n; i++) {
        double a = place(flow->p, i, n);
        predict(flow, flow->x, a, flow->now);
        if (i + 1 == n)
            break;
        for (size_t j = 0; j < flow->n; j++) /* all steps have one size: r of the paper is 1 */
            flow->trial[j] = i ? 1.5f * flow->now[j] - 0.5f * flow->before[j] : flow->now[j];
        step(flow, flow->x, flow->x, flow->trial, a, place(flow->p, i + 1, n));
        memcpy(flow->before, flow->now, flow->n * sizeof *flow->x);
    }
    memcpy(flow->x, flow->now, flow->n * sizeof *flow->x);
}

/* to = dx/dsigma = (x - D) / sigma, for x = x0 + sigma noise. D is the prediction of x0. */
static void slope(struct flow *flow, const float *x, double sigma, float *to)
{
    double lambda = -log(sigma), alpha = solver_alpha(lambda);
    for (size_t j = 0; j < flow->n; j++)
        flow->trial[j] = (float)(alpha * x[j]);
    predict(flow, flow->trial, lambda, to);
    for (size_t j = 0; j < flow->n; j++)
        to[j] = (float)((x[j] - to[j]) / sigma);
}

/* n - 1 steps of Heun, then one step of Euler to sigma 0: 2 n - 1 calls of the model. */
static void edm(struct flow *flow)
{
    const struct solver *solver = flow->p;
    size_t n = (solver->evaluations + 1) / 2;
    double top = pow(solver->sigma_max, 1 / solver->rho),
           bottom = pow(solver->sigma_min, 1 / solver->rho);
    float *at = flow->before; /* the second slope of Heun, at the end of the step */
    for (size_t j = 0; j < flow->n; j++)
        flow->x[j] = (float)(flow->x[j] / solver_alpha(-log(solver->sigma_max)));
    for (size_t i = 0; i < n; i++) {
        double of = n > 1 ? (double)i / (double)(n - 1) : 0;
        double next = n > 1 ? (double)(i + 1) / (double)(n - 1) : 0;
        double sigma = pow(top + of * (bottom - top), solver->rho);
        double to = i + 1 < n ? pow(top + next * (bottom - top), solver->rho) : 0;
        slope(flow, flow->x, sigma, flow->now);
        for (size_t j = 0; j < flow->n; j++)
            flow->x[j] += (float)((to - sigma) * flow->now[j]);
        if (to == 0)
            break;
        slope(flow, flow->x, to, at);
        for (size_t j = 0; j < flow->n; j++)
            flow->x[j] += (float)((to - sigma) / 2 * (at[j] - flow->now[j]));
    }
}

/* The root mean square of (high - low), the difference of the steps of order 2 and 1, in units of
 * the tolerance. prev: `low` of the last accepted step (x_prev of the paper). */
static double distance(const struct solver *solver, const float *low, const float *high,
                       const float *prev, size_t n)
{
    double sum = 0;
    for (size_t j = 0; j < n; j++) {
        double size = fmax(fabs((double)low[j]), fabs((double)prev[j]));
        double d = (high[j] - low[j]) / fmax(solver->atol, solver->rtol * size);
        sum += d * d;
    }
    return sqrt(sum / (double)n);
}

/* Solves one row. low[n], prev[n]: scratch. A step is accepted if the distance E is at most 1; the
 * next step has 0.9 / sqrt(E) times the size. */
static void adaptive_row(struct flow *flow, float *low, float *prev)
{
    const struct solver *solver = flow->p;
    double begin = place(solver, 0, 2), end = place(solver, 1, 2), next = 0.05;
    memcpy(prev, flow->x, flow->n * sizeof *prev);
    predict(flow, flow->x, begin, flow->now);
    while (end - begin > 1e-5) {
        double stride = fmin(next, end - begin), stop = begin + stride, mid = begin + stride / 2;
        step(flow, low, flow->x, flow->now, begin, stop);
        step(flow, flow->trial, flow->x, flow->now, begin, mid);
        predict(flow, flow->trial, mid, flow->before);
        step(flow, flow->trial, flow->x, flow->before, begin, stop);
        double E = distance(solver, low, flow->trial, prev, flow->n);
        if (E <= 1) {
            memcpy(flow->x, flow->trial, flow->n * sizeof *flow->x);
            memcpy(prev, low, flow->n * sizeof *prev);
            begin = stop;
            predict(flow, flow->x, begin, flow->now);
        }
        next = 0.9 * stride / sqrt(fmax(E, 1e-8));
    }
    memcpy(flow->x, flow->now, flow->n * sizeof *flow->x);
}

static void adaptive(struct flow *flow)
{
    size_t rows = flow->rows, most = 0;
    float *all = flow->x, *room = mem_alloc(2 * flow->width * sizeof *room);
    flow->rows = 1;
    flow->n = flow->width;
    for (size_t r = 0; r < rows; r++) {
        flow->x = all + r * flow->width;
        flow->calls = 0;
        adaptive_row(flow, room, room + flow->width);
        most = flow->calls > most ? flow->calls : most;
    }
    flow->calls = most;
    free(room);
}

size_t solver_run(const struct solver *solver, const struct denoiser *denoiser, float *x,
                  size_t rows, size_t width)
{
    static void (*const ways[])(struct flow *flow) = {ddim, dpmpp2m, edm, adaptive};
    size_t n = rows * width;
    float *room = mem_alloc(3 * n * sizeof *room);
    struct flow flow = {solver, denoiser, x, room, room + n, room + 2 * n, rows, width, n, 0};
    ways[solver->kind](&flow);
    free(room);
    return flow.calls;
}

double solver_bound(const struct solver *solver, const struct denoiser *denoiser, const float *x0,
                    size_t rows, size_t width, size_t draws)
{
    static const double pi = 3.14159265358979323846;
    size_t n = rows * width;
    float *x = mem_alloc(2 * n * sizeof *x), *found = x + n;
    double sum = 0;
    for (size_t j = 0; j < n; j++)
        sum += 0.5 * ((double)x0[j] * x0[j] + log(2 * pi));
    for (size_t i = 0; i < draws; i++) {
        double begin = place(solver, i, draws + 1), part = place(solver, i + 1, draws + 1) - begin,
               more = 0;
        struct rng noise = {solver->seed, i, 0};
        double at = begin + part * rng_uniform(&noise), alpha = solver_alpha(at),
               sigma = solver_s(at);
        for (size_t j = 0; j < n; j++)
            x[j] = (float)(alpha * x0[j] + sigma * rng_normal(&noise));
        denoiser->predict(denoiser->ctx, x, at, rows, width, found);
        for (size_t j = 0; j < n; j++) {
            double off = (double)x0[j] - found[j], plain = x0[j] - alpha * x[j];
            more += off * off - plain * plain;
        }
        sum += part * exp(2 * at) * more;
    }
    free(x);
    return sum / (double)rows;
}
