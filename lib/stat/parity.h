/* parity.h - where a sweep over steps meets one autoregressive point, between measured steps:
 *
 *   X_lat   the steps at which the sweep costs as much (below it the sweep is cheaper)
 *   q       the fewest steps at which its quality reaches the level: no test (asgood.h)
 *
 * -INFINITY and INFINITY: outside the measured steps, on that side.
 */
#ifndef STAT_PARITY_H
#define STAT_PARITY_H

#include <stddef.h>

#include "lib/stat/crossover.h"

struct parity_sweep {
    size_t n_cost, n_quality;   /* either may be 0 */
    double cost_steps[CROSSOVER_MAX], cost[CROSSOVER_MAX];       /* lower is better; steps ascend */
    double quality_steps[CROSSOVER_MAX], quality[CROSSOVER_MAX]; /* higher is better */
    double rival_cost, rival_quality; /* NaN: none */
};
struct parity {
    double lat, q;      /* NaN: nothing to read it from */
    double residual;    /* of the cost line, largest relative */
    int line;           /* form of the cost fit */
};

/* line: as in crossover_fit. */
void parity_solve(const struct parity_sweep *s, int line, struct parity *p);

#endif
