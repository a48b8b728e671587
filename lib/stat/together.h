/* together.h - joint draws of the ratios of several systems to one base. Ratios from the same
 * launches and prompts move together; a curve through them, and their order, is judged in each
 * draw.
 *
 * The distribution of each single ratio is that of its interval (paired.h): Student's t on the
 * logarithm, with the standard error over launches and prompts. All draws use the least degrees of
 * freedom of the systems.
 *
 * Source: Owen 2007 (launches and prompts drawn independently); Gelman et al., Bayesian Data
 * Analysis, 3rd ed., 3.6 (the distribution). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/stat/paired.h"

/* Times (ns) of n systems over the same launches and prompts; NaN: no time. */
struct together { size_t n, launches, prompts; const double *cells; /* [n][launches][prompts] */ };

/* ratio[n]: of each system to system `base`; that of the base itself is 1 if any other has an
 * interval. draw[draws][n]: logarithms of the ratios; NaN without an interval.
 * work[together_work(together)]. */
void together_draw(const struct together *together, size_t base, double level, uint64_t seed,
                   size_t draws, struct paired *ratio, double *draw, double *work);
size_t together_work(const struct together *together);
