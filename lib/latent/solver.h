/* solver.h - turns noise into samples along the flow of a Gaussian diffusion. A model (struct
 * denoiser) predicts x0, the sample without noise, from the noisy x.
 *
 *     x = alpha x0 + s noise,  alpha^2 + s^2 = 1,  lambda = log(alpha / s),  sigma = s / alpha
 *
 * Each row of x is one sample. A solver starts from x ~ N(0, 1) at sigma_max, steps to sigma_min,
 * and returns the prediction of x0 at sigma_min, so every evaluation is one call of the model.
 *
 *     ddim      eta 0: steps that are exact if the prediction is constant along the step. eta 1:
 *               steps with fresh noise, as in the ancestral sampler. Song et al. 2021 (arXiv
 *               2010.02502), eq. 12, 16
 *     dpmpp2m   DPM-Solver++(2M): steps for a prediction that is linear in lambda. Lu et al. 2022
 *               (arXiv 2211.01095), algorithm 2
 *     edm       Heun's method in sigma, on the grid that rho defines. Karras et al. 2022 (arXiv
 *               2206.00364), algorithm 1, eq. 5
 *     adaptive  steps of order 2. The difference from a step of order 1 sets the step size of each
 *               row. Lu et al. 2022 (arXiv 2206.00927), appendix C, with predictions of x0 as in
 *               dpmpp2m */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/setting/words.h"

struct solver {
    enum solver_kind kind;
    size_t evaluations;          /* of the model, per row; edm runs the largest odd number up to
                                  * this one; adaptive runs as many as it needs */
    double sigma_max, sigma_min; /* > 0 */
    double rho;                  /* edm: exponent of the grid of sigma */
    double eta;                  /* ddim, 0..1: share of fresh noise */
    double rtol, atol;           /* adaptive: relative and absolute tolerance of a step */
    uint64_t seed;               /* ddim: the fresh noise is drawn by (seed, row, step, value) */
};
/* For samples of variance about 1. With this sigma_max fewer steps are needed than with 80, the
 * value used for images. */
#define SOLVER_DEFAULTS                                                                         \
    {.kind = SOLVER_DPMPP2M, .evaluations = 20, .sigma_max = 10, .sigma_min = 0.01, .rho = 7,   \
     .rtol = 0.05, .atol = 0.0078}

struct denoiser {
    /* x0[rows, width] = the prediction of x0 for x[rows, width]. All rows have the same lambda. x
     * and x0 do not overlap. */
    void (*predict)(void *ctx, const float *x, double lambda, size_t rows, size_t width, float *x0);
    void *ctx;
};

double solver_alpha(double lambda); /* alpha and s of the equations above */
double solver_s(double lambda);

/* x[rows, width]: N(0, 1) on entry, samples on return. Returns the number of calls of the model for
 * a row, the maximum over rows. solver->evaluations must be > 0. */
size_t solver_run(const struct solver *solver, const struct denoiser *denoiser, float *x,
                  size_t rows, size_t width);

/* An estimate, in nats per row, of an upper bound of -log p(x0[rows, width]), where p is the
 * distribution at the end of the exact flow of the denoiser:
 *     -log N(x0; 0, 1) + integral of alpha^2/s^2 E(|x0 - predicted|^2 - |x0 - alpha x|^2) d lambda
 * The expectation of the estimate is the bound. alpha x is the exact prediction if p is N(0, 1), so
 * only the difference of p from N(0, 1) is estimated. Fewer draws make the result less certain but
 * not larger on average. The integral runs from sigma_max to sigma_min; outside, the prediction
 * counts as alpha x. The integral is a sum over `draws` equal parts, each with one random lambda,
 * and one draw of noise for each row, from solver->seed. Source: Kingma et al. 2021 (variational
 * diffusion models, arXiv 2107.00630), eq. 15-18. */
double solver_bound(const struct solver *solver, const struct denoiser *denoiser, const float *x0,
                    size_t rows, size_t width, size_t draws);
