/* parity.h - where a sweep over steps meets one autoregressive point, between the measured steps:
 *
 *   X_lat   the step count at which the sweep costs as much as the point; fewer are cheaper
 *   q       the fewest steps at which the quality of the sweep reaches that of the point; this is
 *           an estimate, not a test (the test is asgood.h)
 *
 * -INFINITY, INFINITY: below or above all measured steps. */
#pragma once

#include <stddef.h>

#include "lib/stat/crossover.h"

struct parity_sweep {
    size_t n_cost, n_quality;   /* either may be 0 */
    double cost_steps[CROSSOVER_MAX], cost[CROSSOVER_MAX];       /* lower is better; steps ascend */
    double quality_steps[CROSSOVER_MAX], quality[CROSSOVER_MAX]; /* higher is better */
    double rival_cost, rival_quality; /* of the autoregressive point; NaN: none */
};
struct parity {
    double lat, q;      /* NaN: no data */
    double residual;    /* crossover_cost.residual */
    int line;           /* crossover_cost.line */
};

/* Cost: crossover_fit() with `line`, linear in steps. Quality: crossover_rise() in log2 steps. */
void parity_solve(const struct parity_sweep *sweep, int line, struct parity *parity);
