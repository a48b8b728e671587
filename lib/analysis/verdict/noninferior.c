/* noninferior.c - see noninferior.h. One question, asked from two sides: by how many standard
 * errors is the effect better than the loss of the margin? That number grows as the root of the
 * prompts, so it also tells how many of them would answer. */
#include "lib/analysis/verdict/noninferior.h"

#include <math.h>

#include "lib/record/rec.h"

static const double LEVEL = 0.95, MOST = 1e7; /* prompts */

/* Standard errors that the interval reaches on either side. */
static double reach(void)
{
    return stat_t_quantile(1 - (1 - LEVEL) / 2, INFINITY);
}

/* On the scale on which errors are alike. */
static double scaled(const struct pooled_kind *k, double effect)
{
    return k->transform == POOLED_EXPONENTIAL ? log(effect) : effect;
}

/* Prompts at which z is as far as an interval reaches. */
static double needed(double z, size_t n)
{
    return ceil((double)n * pow(reach() / z, 2) - 1e-9);
}

static double above(const struct pooled_kind *k, double limit, struct interval v,
                    const struct proportion_pairs *pairs)
{
    if (pairs)
        return proportion_above(pairs, limit);
    double error = (scaled(k, v.hi) - scaled(k, v.lo)) / 2 / reach();
    double better = scaled(k, v.value) - scaled(k, limit);
    return error > 0 ? (k->higher ? better : -better) / error : NAN;
}

void noninferior_put(json_t *r, const struct pooled_kind *k, const struct pooled_margin *margin,
                     double base, struct interval v, size_t n, const struct proportion_pairs *pairs)
{
    double worst = pooled_worsened(base, margin, k->higher);
    double limit = k->transform == POOLED_EXPONENTIAL ? worst / base : worst - base;
    double z = above(k, limit, v, pairs);
    int shown = isnan(z) ? -1 : (k->higher ? v.lo > limit : v.hi < limit);
    int worse = isnan(z) ? 0 : (k->higher ? v.hi < limit : v.lo > limit);
    double tail = stat_t_outside(z, INFINITY) / 2, prompts = needed(z, n);
    int open = shown == 0 && !worse;
    json_object_set_new(r, "margin", json_real(margin->by));
    json_object_set_new(r, "margin_relative", json_boolean(margin->relative));
    rec_set_flag(r, "noninferior", open ? -1 : shown, open ? "undecided" : "no spread is known");
    rec_set_number(r, "p_noninferior", z > 0 ? tail : 1 - tail, "no spread is known");
    int told = open && prompts > 0 && prompts < MOST;
    rec_set_number(r, "prompts_to_decide", told ? prompts : (double)NAN,
                   open ? "more than can be told" : isnan(z) ? "no spread is known" : "decided");
}
