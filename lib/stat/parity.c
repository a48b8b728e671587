/* parity.c - X_lat, X_q and X_par of one sweep; see parity.h.
 *
 * Quality is read linear in log2 steps, cost linear in steps: the first grows by octaves of
 * computation, the second by passes.
 */
#include "lib/stat/parity.h"

#include <math.h>

/* X_q: where quality minus level reaches zero. */
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
                         .par = NAN, .par_end = NAN, .speedup = NAN, .residual = fit.residual,
                         .line = fit.line};
    if (isnan(p->lat) || isnan(p->q))
        return;
    double from = fmax(p->q, s->quality_steps[0]);
    double to = fmin(p->lat, s->cost_steps[s->n_cost - 1]);
    int both = p->q < INFINITY && p->lat > -INFINITY && from <= to;
    p->par = both ? from : INFINITY;
    p->par_end = both ? to : NAN;
    p->speedup = p->q < INFINITY ? s->rival_cost / crossover_cost_at(&fit, from) : -INFINITY;
}
