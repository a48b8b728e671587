/* solver.h - turns noise into samples along the flow of a Gaussian diffusion. The model predicts a
 * noisy value without its noise.
 *
 *     x = alpha x0 + s noise,  alpha^2 + s^2 = 1,  lambda = log(alpha / s),  sigma = s / alpha
 *
 * Each row of x is one sample. A solver starts from x ~ N(0, 1) at sigma_max, steps to sigma_min,
 * and returns the prediction there, so every evaluation is one call of the model.
 *
 *     ddim      the exact step for a constant prediction (eta 0), or one that draws fresh noise
 *               (eta 1: as the ancestral sampler). Song et al. 2021 (arXiv 2010.02502), eq. 12, 16
 *     dpmpp2m   DPM-Solver++(2M): a linear prediction in lambda. Lu et al. 2022 (arXiv 2211.01095),
 *               algorithm 2
 *     edm       Heun's method in sigma on the grid of rho. Karras et al. 2022 (arXiv 2206.00364),
 *               algorithm 1, eq. 5
 *     adaptive  steps of order 2; their difference from order 1 sets the step size of each row. Lu
 *               et al. 2022 (arXiv 2206.00927), appendix C, in the predictions of dpmpp */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/setting/words.h"

struct solver {
    enum solver_kind kind;
    size_t evaluations;          /* of the model, per row; edm: the odd number at or below
                                  * it; adaptive: as many as needed */
    double sigma_max, sigma_min; /* > 0 */
    double rho;                  /* edm */
    double eta;                  /* ddim, 0..1 */
    double rtol, atol;           /* adaptive */
    uint64_t seed;               /* for ddim's fresh noise, by row, step and value */
};
/* For samples of variance about 1: this sigma_max needs fewer steps than the 80 used for images. */
#define SOLVER_DEFAULTS                                                                         \
    {.kind = SOLVER_DPMPP2M, .evaluations = 20, .sigma_max = 10, .sigma_min = 0.01, .rho = 7,   \
     .rtol = 0.05, .atol = 0.0078}

struct denoiser {
    /* x0[rows, width] = x[rows, width] without its noise, at one lambda. They do not overlap. */
    void (*predict)(void *ctx, const float *x, double lambda, size_t rows, size_t width, float *x0);
    void *ctx;
};

double solver_alpha(double lambda); /* alpha and s of the equations above */
double solver_s(double lambda);

/* x[rows, width]: N(0, 1) on entry, samples on return. Returns the calls of the model per row, the
 * maximum over rows. evaluations > 0. */
size_t solver_run(const struct solver *solver, const struct denoiser *denoiser, float *x,
                  size_t rows, size_t width);

/* An estimate, in nats per row, of an upper bound of -log p(x0[rows, width]), where p is the law
 * that the exact flow of the denoiser ends in:
 *     -log N(x0; 0, 1) + integral of alpha^2/s^2 E(|x0 - predicted|^2 - |x0 - alpha x|^2) d lambda
 * The mean over draws is the bound. alpha x is the prediction of N(0, 1), whose bound is its own
 * density. So only the difference of the law from N(0, 1) is estimated: fewer draws make the result
 * less certain but not larger. The integral runs between the sigmas of solver (beyond them the
 * prediction counts as alpha x), with one lambda in each of `draws` equal parts and one draw of
 * noise per part and row, from solver->seed. Source: Kingma et al. 2021 (variational diffusion
 * models, arXiv 2107.00630), eq. 15-18. */
double solver_bound(const struct solver *solver, const struct denoiser *denoiser, const float *x0,
                    size_t rows, size_t width, size_t draws);
