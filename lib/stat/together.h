/* together.h - paired ratios of several systems to one base, drawn together: how each may lie, and
 * how they move with each other, by what their launches and prompts have in common. A curve through
 * such points, and who lies before whom, is judged in each draw.
 *
 * The marginal of each ratio is that of its interval (paired.h): Student's on the scale of
 * logarithms with the standard error of launches and prompts. All draw with the least degrees of
 * freedom among them.
 *
 * Source: Owen 2007 (launches and prompts drawn each for themselves); Gelman et al., Bayesian Data
 * Analysis, 3rd ed., 3.6 (the distribution).
 */
#ifndef STAT_TOGETHER_H
#define STAT_TOGETHER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/stat/paired.h"

/* n systems over the same launches and prompts; NaN: no time. */
struct together { size_t n, launches, prompts; const double *cells; /* [n][launches][prompts] */ };

/* ratio[n]: of each system to system `base`, which is 1 to itself where it has an interval to any
 * other. draw[draws][n]: logarithms of the ratios; NaN where there is no interval.
 * work[together_work(t)]. */
void together_draw(const struct together *t, size_t base, double level, uint64_t seed,
                   size_t draws, struct paired *ratio, double *draw, double *work);
size_t together_work(const struct together *t);

#endif
