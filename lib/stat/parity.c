/* parity.c - see parity.h.
 *
 * Between two points quality is taken as linear in log2 steps, and cost as linear in steps, because
 * quality grows with each doubling of the computation and cost with each pass. */
#include "lib/stat/parity.h"

#include <math.h>

/* The step count where quality - level reaches zero. */
static double quality_meets(const struct parity_sweep *sweep)
{
    double x[CROSSOVER_MAX], y[CROSSOVER_MAX];
    if (!sweep->n_quality || isnan(sweep->rival_quality))
        return NAN;
    for (size_t i = 0; i < sweep->n_quality; i++) {
        x[i] = log2(sweep->quality_steps[i]);
        y[i] = sweep->quality[i] - sweep->rival_quality;
    }
    double at = crossover_rise(x, y, sweep->n_quality);
    return isinf(at) ? at : exp2(at);
}

void parity_solve(const struct parity_sweep *sweep, int line, struct parity *parity)
{
    struct crossover_cost fit;
    crossover_fit(&fit, sweep->cost_steps, sweep->cost, sweep->n_cost, line);
    *parity = (struct parity){.lat = crossover_cost_meets(&fit, sweep->rival_cost),
                              .q = quality_meets(sweep),
                              .residual = fit.residual,
                              .line = fit.line};
}
