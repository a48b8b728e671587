/* mixture.h - a mixture of four Gaussians on a line, whose flow is known. unit/test-solver.c and
 * bench/solvers.c use it to test the solvers of lib/latent/solver.h.
 *
 * The denoised value is the exact posterior mean. The point where a flow ends is also known: the
 * flow takes the distribution at one noise level to the distribution at another level, and paths on
 * a line do not cross, so a point keeps its quantile. */
#pragma once

#include <math.h>
#include <stddef.h>

#include "lib/base/rng.h"
#include "lib/latent/solver.h"

enum { MIXTURE_MODES = 4 };
static const double mixture_mode[MIXTURE_MODES] = {-1.35, -0.45, 0.45, 1.35}, mixture_width = 0.12;

/* The variance of a mode at noise level lambda. */
static inline double mixture_spread(double lambda)
{
    double alpha = solver_alpha(lambda), s = solver_s(lambda);
    return alpha * alpha * mixture_width * mixture_width + s * s;
}

/* Is the `predict` function of a struct denoiser. ctx points to a size_t that counts the calls. */
static inline void mixture_predict(void *ctx, const float *x, double lambda, size_t rows, size_t n,
                                   float *x0)
{
    double alpha = solver_alpha(lambda), v = mixture_spread(lambda);
    double pull = alpha * mixture_width * mixture_width / v;
    ++*(size_t *)ctx;
    for (size_t i = 0; i < rows * n; i++) {
        double p[MIXTURE_MODES], top = -INFINITY, sum = 0, mean = 0;
        for (int k = 0; k < MIXTURE_MODES; k++) {
            double off = x[i] - alpha * mixture_mode[k];
            p[k] = -off * off / (2 * v);
            top = fmax(top, p[k]);
        }
        for (int k = 0; k < MIXTURE_MODES; k++) {
            p[k] = exp(p[k] - top);
            sum += p[k];
            mean += p[k] * (mixture_mode[k] + pull * (x[i] - alpha * mixture_mode[k]));
        }
        x0[i] = (float)(mean / sum);
    }
}

/* The share of the distribution below x at noise level lambda. x must be <= 0: for a large x the
 * share is near 1, and a double then loses the digits of the tail above x. */
static inline double mixture_below(double x, double lambda)
{
    double alpha = solver_alpha(lambda), unit = sqrt(2 * mixture_spread(lambda)), sum = 0;
    for (int k = 0; k < MIXTURE_MODES; k++)
        sum += 0.5 * erfc((alpha * mixture_mode[k] - x) / unit);
    return sum / MIXTURE_MODES;
}

/* The point to which the flow takes x between two noise levels. The distribution is symmetric. */
static inline double mixture_flow(double x, double from, double to)
{
    double want = mixture_below(-fabs(x), from), lo = -40, hi = 0;
    for (int i = 0; i < 80; i++) {
        double mid = (lo + hi) / 2;
        *(mixture_below(mid, to) < want ? &lo : &hi) = mid;
    }
    return x < 0 ? lo : -lo;
}

/* Fills x[n] with draws from N(0, 1). */
static inline void mixture_noise(uint64_t seed, float *x, size_t n)
{
    struct rng rng = {.seed = seed, .stream = 1};
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&rng);
}

/* Fills end[n] with the result that a solver without error returns for x[n]. */
static inline void mixture_end(const struct solver *p, const float *x, size_t n, float *end)
{
    size_t calls = 0;
    for (size_t i = 0; i < n; i++)
        end[i] = (float)mixture_flow(x[i], -log(p->sigma_max), -log(p->sigma_min));
    for (size_t i = 0; i < n; i++) {
        float at = end[i];
        mixture_predict(&calls, &at, -log(p->sigma_min), 1, 1, &end[i]);
    }
}

/* Takes x[n] from noise to samples in `steps` predictions. Each step but the last adds fresh noise
 * in place of the predicted noise; a public fork samples in this way. room[n] is work space. */
static inline void mixture_fresh(uint64_t seed, size_t steps, float *x, float *room, size_t n)
{
    struct rng rng = {.seed = seed, .stream = 2};
    const double from = -log(10), to = log(100);
    size_t calls = 0;
    for (size_t i = 0; i < steps; i++) {
        double at = from + (to - from) * (double)i / (double)steps;
        double next = from + (to - from) * (double)(i + 1) / (double)steps;
        mixture_predict(&calls, x, at, n, 1, room);
        for (size_t j = 0; j < n; j++)
            x[j] = (float)(i + 1 == steps ? room[j]
                                          : solver_alpha(next) * room[j] +
                                                solver_s(next) * rng_normal(&rng));
    }
}

/* The root mean square of the distances of x[n] from the centres of their nearest modes. */
static inline double mixture_deviation(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double near = INFINITY;
        for (int k = 0; k < MIXTURE_MODES; k++)
            near = fmin(near, fabs(x[i] - mixture_mode[k]));
        sum += near * near;
    }
    return sqrt(sum / (double)n);
}

/* The distance of x[n] from end[n]: root mean square, with its standard error over the n values. */
struct mixture_distance {
    double value, error;
};
static inline struct mixture_distance mixture_distance(const float *x, const float *end, size_t n)
{
    double sum = 0, fourth = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - end[i];
        sum += d * d / (double)n;
        fourth += d * d * d * d / (double)n;
    }
    double value = sqrt(sum), of_square = sqrt(fmax(0, fourth - sum * sum) / (double)n);
    return (struct mixture_distance){value, value > 0 ? of_square / (2 * value) : 0};
}
