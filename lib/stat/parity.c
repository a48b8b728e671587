/* parity.c - see parity.h.
 *
 * Between two points quality is linear in log2 steps, and cost is linear in steps: quality
 * grows with each doubling of the computation, cost with each pass. */
#include "lib/stat/parity.h"

#include <math.h>

/* The step count where quality - level reaches zero. */
static double quality_meets(const struct parity_sweep *s)
{
    double x[CROSSOVER_MAX], y[CROSSOVER_MAX];
    if (!s->n_quality || isnan(s->rival_quality))
        return NAN;
    for (size_t i = 0; i < s->n_quality; i++) {
        x[i] = log2(s->quality_steps[i]);
        y[i] = s->quality[i] - s->rival_quality;
    }
    double at = crossover_rise(x, y, s->n_quality);
    return isinf(at) ? at : exp2(at);
}

void parity_solve(const struct parity_sweep *s, int line, struct parity *p)
{
    struct crossover_cost fit;
    crossover_fit(&fit, s->cost_steps, s->cost, s->n_cost, line);
    *p = (struct parity){.lat = crossover_cost_meets(&fit, s->rival_cost), .q = quality_meets(s),
                         .residual = fit.residual, .line = fit.line};
}
