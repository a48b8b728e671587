/* noninferior.c - see noninferior.h. The standard errors z between effect and margin grow as the
 * root of the prompts: so z tells how many prompts would decide. */
#include "lib/analysis/verdict/noninferior.h"

#include <math.h>

#include "lib/record/rec.h"

static const double LEVEL = 0.025, MOST = 1e7; /* one-sided; prompts */

static double count_prompts(double p, size_t n)
{
    double z = stat_t_quantile(1 - fmin(p, 1 - p), INFINITY);
    return ceil((double)n * pow(stat_t_quantile(1 - LEVEL, INFINITY) / z, 2) - 1e-9);
}

void noninferior_put(json_t *r, const struct pooled_margin *margin, struct asgood test, size_t n)
{
    const char *why = n < ASGOOD_LEAST   ? ASGOOD_FEW
                      : isnan(test.good) ? "no spread is known"
                                         : NULL;
    int shown = asgood_is_shown(test.good) ? 1 : asgood_is_shown(test.worse) ? 0 : -1;
    double prompts = why ? (double)NAN : count_prompts(test.good, n);
    int is_open = !why && shown < 0;
    json_object_set_new(r, "margin", json_real(margin->by));
    json_object_set_new(r, "margin_relative", json_boolean(margin->relative));
    rec_set_flag(r, "noninferior", why ? -1 : shown, why ? why : "undecided");
    rec_set_number(r, "p_noninferior", test.good, why);
    rec_set_number(r, "prompts_to_decide", is_open && prompts < MOST ? prompts : (double)NAN,
                   why ? why : is_open ? "more than can be told" : "decided");
}
