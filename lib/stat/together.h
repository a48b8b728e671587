/* together.h - joint draws of the ratios of several systems to one base. Ratios from the same
 * launches and prompts are correlated, so one draw gives all of them. Callers judge the order of
 * the systems, and curves through them, in each draw.
 *
 * Each single ratio has the distribution of its interval (paired.h): Student's t on the logarithm,
 * with the standard error over launches and prompts. All draws use the least degrees of freedom of
 * the systems.
 *
 * Source: Owen 2007 (launches and prompts drawn independently); Gelman et al., Bayesian Data
 * Analysis, 3rd ed., 3.6 (the distribution). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/stat/paired.h"

/* Times (ns) of n systems over the same launches and prompts; NaN: no time. */
struct together { size_t n, launches, prompts; const double *cells; /* [n][launches][prompts] */ };

/* Sets ratio[n]: the ratio of each system to system `base`. The ratio of the base to itself is 1 if
 * any other system has an interval. draw[draws][n]: logarithms of the ratios in each draw; NaN
 * without an interval. work[together_work(together)]. */
void together_draw(const struct together *together, size_t base, double level, uint64_t seed,
                   size_t draws, struct paired *ratio, double *draw, double *work);
size_t together_work(const struct together *together);
