/* parity.h - where a sweep over steps meets one autoregressive point (the rival), interpolated
 * between the measured steps:
 *
 *   lat (X_lat)   the step count at which the sweep costs as much as the rival; fewer steps cost
 *                 less
 *   q             the fewest steps at which the sweep reaches the quality of the rival. This is an
 *                 estimate, not a test; the test is asgood.h
 *
 * -INFINITY, INFINITY: below or above all measured steps. */
#pragma once

#include <stddef.h>

#include "lib/stat/crossover.h"

struct parity_sweep {
    size_t n_cost, n_quality;   /* either may be 0 */
    double cost_steps[CROSSOVER_MAX], cost[CROSSOVER_MAX];       /* lower is better; steps ascend */
    double quality_steps[CROSSOVER_MAX], quality[CROSSOVER_MAX]; /* higher is better */
    double rival_cost, rival_quality; /* rival_quality: the level to reach; NaN: none */
};
struct parity {
    double lat, q;      /* NaN: no data */
    double residual;    /* crossover_cost.residual */
    int line;           /* crossover_cost.line */
};

/* Fills *parity. lat comes from crossover_fit() with `line`, in steps; q from crossover_rise(), in
 * log2 steps. */
void parity_solve(const struct parity_sweep *sweep, int line, struct parity *parity);
