/* parity.h - the three crossovers of a sweep over steps against one autoregressive point:
 *
 *   X_lat   the steps at which the sweep costs as much            (below it the sweep is cheaper)
 *   X_q     the fewest steps at which its quality reaches the level (above it the sweep is as good)
 *   X_par   the fewest steps at which both hold; there are none when X_q > X_lat
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
    double par;         /* INFINITY: both never hold; NaN: lat or q unknown */
    double par_end;     /* most steps at which both hold, within the measured ones */
    double speedup;     /* rival cost / cost at X_q; -INFINITY when X_q is never reached */
    double residual;    /* of the cost line, largest relative */
    int line;           /* form of the cost fit */
};

/* line: as in crossover_fit. */
void parity_solve(const struct parity_sweep *s, int line, struct parity *p);

#endif
