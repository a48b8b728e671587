/* solver.h - from noise to a sample along the flow of a Gaussian diffusion, by a model that says
 * what a noisy value was before the noise.
 *
 *     x = alpha x0 + s noise,  alpha^2 + s^2 = 1,  lambda = log(alpha / s),  sigma = s / alpha
 *
 * Each row of x is a sample of its own. A solver starts from x ~ N(0, 1) at sigma_max, goes to
 * sigma_min, and ends with what the model predicts there, so that an evaluation more or less is one
 * call of the model and nothing else.
 *
 *     ddim      the exact step for a constant prediction (eta 0), or one that draws fresh noise
 *               (eta 1: as the ancestral sampler). Song et al. 2021 (arXiv 2010.02502), eq. 12, 16
 *     dpmpp2m   DPM-Solver++(2M): a linear prediction in lambda. Lu et al. 2022 (arXiv 2211.01095),
 *               algorithm 2
 *     edm       Heun's method in sigma on the grid of rho. Karras et al. 2022 (arXiv 2206.00364),
 *               algorithm 1, eq. 5
 *     adaptive  steps of order 2 whose distance from order 1 sets their length, row by row. Lu et
 *               al. 2022 (arXiv 2206.00927), appendix C, in the predictions of dpmpp
 */
#ifndef LATENT_SOLVER_H
#define LATENT_SOLVER_H

#include <stddef.h>
#include <stdint.h>

#define SOLVERS "ddim|dpmpp2m|edm|adaptive" /* the names of: */
enum solver_kind { SOLVER_DDIM, SOLVER_DPMPP2M, SOLVER_EDM, SOLVER_ADAPTIVE };
struct solver {
    enum solver_kind kind;
    size_t evaluations;          /* of the model, a row; edm: the odd number at or below it;
                                  * adaptive: as many as it takes */
    double sigma_max, sigma_min; /* > 0 */
    double rho;                  /* edm */
    double eta;                  /* ddim, 0..1 */
    double rtol, atol;           /* adaptive */
    uint64_t seed;               /* of ddim's fresh noise: row r, step i, value j */
};
/* For samples of variance about 1: sigma_max matched to it wants fewer steps than the 80 of images.
 */
#define SOLVER_DEFAULTS                                                                         \
    {.kind = SOLVER_DPMPP2M, .evaluations = 20, .sigma_max = 10, .sigma_min = 0.01, .rho = 7,   \
     .rtol = 0.05, .atol = 0.0078}

struct denoiser {
    /* x0[rows, width] = what x[rows, width] was, at one lambda. The two do not overlap. */
    void (*predict)(void *ctx, const float *x, double lambda, size_t rows, size_t width, float *x0);
    void *ctx;
};

double solver_alpha(double lambda); /* of the equations above */
double solver_s(double lambda);

/* x[rows, width]: N(0, 1) on entry, samples at the end. Returns the calls of the model that a row
 * took, the most of any row; evaluations > 0. */
size_t solver_run(const struct solver *p, const struct denoiser *d, float *x, size_t rows,
                  size_t width);

/* Nats a row, an upper bound of -log p(x0[rows, width]) under the law that the denoiser's flow ends
 * in, walked in steps without number, in the mean over what is drawn:
 *     -log N(x0; 0, 1) + integral of alpha^2/s^2 E(|x0 - predicted|^2 - |x0 - alpha x|^2) d lambda
 * alpha x is what N(0, 1) predicts, whose bound is its own density: so what is drawn is how far the
 * law is from that alone, and few draws make it uncertain and not larger. The integral is between
 * the sigmas of p (beyond them alpha x counts as predicted), by one lambda in each of `draws` equal
 * parts and one draw of the noise a part and row, from p->seed. Source: Kingma et al. 2021
 * (variational diffusion models, arXiv 2107.00630), eq. 15-18. */
double solver_bound(const struct solver *p, const struct denoiser *d, const float *x0, size_t rows,
                    size_t width, size_t draws);

#endif
