/* noninferior.c - see noninferior.h. z is the number of standard errors by which the effect is
 * better than the margin; the two p values of the test give z. It grows as the square root of the
 * number of prompts, so it also tells how many prompts would decide. */
#include "lib/analysis/verdict/noninferior.h"

#include <math.h>

#include "lib/record/rec.h"

static const double LEVEL = 0.025, MOST = 1e7; /* one-sided; prompts */

static double find_quantile(double p)
{
    return stat_t_quantile(p, INFINITY);
}

/* The number of prompts that would decide. asgood.c moves z by one prompt towards the margin on
 * both sides, so test.good is the p of z - correction, and test.worse the p of z + correction. With
 * s = sqrt(prompts / n), z grows as s and the correction shrinks as 1 / s. A verdict needs
 * |z| s - correction / s = 1.96 (`want`). This equation is solved for s. */
static double count_prompts(struct asgood test, size_t n)
{
    double good = find_quantile(1 - test.good), worse = find_quantile(1 - test.worse);
    double want = find_quantile(1 - LEVEL);
    double z = fabs(good - worse) / 2, correction = fmax(0, -(good + worse) / 2);
    double s = (want + sqrt(want * want + 4 * z * correction)) / (2 * z);
    return ceil((double)n * s * s - 1e-9);
}

void noninferior_put(json_t *record, const struct pooled_margin *margin, struct asgood test,
                     size_t n)
{
    const char *why = n < ASGOOD_LEAST   ? ASGOOD_FEW
                      : isnan(test.good) ? "no spread is known"
                                         : NULL;
    int shown = asgood_is_shown(test.good) ? 1 : asgood_is_shown(test.worse) ? 0 : -1;
    double prompts = why ? (double)NAN : count_prompts(test, n);
    int is_open = !why && shown < 0;
    json_object_set_new(record, "margin", json_real(margin->by));
    json_object_set_new(record, "margin_relative", json_boolean(margin->relative));
    rec_set_flag(record, "noninferior", why ? -1 : shown, why ? why : "undecided");
    rec_set_number(record, "p_noninferior", test.good, why);
    rec_set_number(record, "prompts_to_decide", is_open && prompts < MOST ? prompts : (double)NAN,
                   why ? why : is_open ? "more than 10 million prompts" : "decided");
}
