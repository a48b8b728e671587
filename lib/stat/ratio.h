/* ratio.h - the ratio of a cost of two systems a and b, each measured in several launches; the
 * verdict on this ratio; and how many launches a verdict needs.
 *
 * The ratio b / a is exp(mean log b - mean log a) over the launch values. Times, rates and bytes
 * are positive and their disturbances multiply, so Student's t is applied to the logarithms, and no
 * interval reaches zero. Launches that stand side by side in the schedule (A B B A ...) are
 * compared in pairs, which removes slow drift. Other launches are compared by Welch's test.
 *
 *     struct ratio r = ratio_of(a, n_a, b, n_b, 0.95, work);
 *     ratio_verdict(&r, RATIO_ZONE)             same, above, below or undecided
 *     ratio_more(&r, 0.02)                      launches still to run for +-2 %, 0: enough
 *     ratio_holm(p, n, adjusted, order)         p values of a whole grid
 *     ratio_level(0.95, ways)                   level of each of several intervals
 *
 * Source: Kalibera and Jones ISMM'13 (effect sizes with intervals, the launch as the unit); Welch
 * 1947; Schuirmann 1987 (equivalence by an interval inside a zone); Holm 1979; Dunn 1961
 * (Bonferroni's intervals, JASA 56:52). */
#pragma once

#include <math.h>
#include <stddef.h>

#include "lib/stat/launch.h"

#define RATIO_ZONE 0.02 /* two systems within a factor of 1 + RATIO_ZONE are called the same */
/* RATIO_SURE: from this number of launches on, ratio_more() trusts the measured spread. RATIO_MOST:
 * no function asks for more launches. */
enum { RATIO_SURE = 8, RATIO_MOST = 1000000 };

struct ratio {
    double value, lo, hi; /* b / a; lo, hi NaN with `reason` */
    double p;             /* two-sided, against a ratio of 1; NaN without an interval */
    double sd;            /* of the log ratios of launches; NaN below two launches of each */
    double half;          /* half-width of the log interval over launches alone (0.02: +-2 %); more
                           * launches narrow it; NaN without an interval */
    double level;         /* of the interval: 0.95 */
    size_t launches;      /* launches of the side that has fewer */
    int paired;           /* 1: launches are compared in pairs */
    const char *method, *reason; /* static; reason NULL when the interval is there */
};

#define RATIO_NOTHING {NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0, 0, NULL, NULL}

/* The ratio b / a. base[n_a]: launch values of system a; point[n_b]: of system b; both ascend by
 * launch. Launches are paired if n_a = n_b and the launch numbers of each pair are equal or differ
 * by one. There is no interval if one side has fewer than LAUNCH_LEAST launches, or if a value is
 * not above zero. work[n_a + n_b].
 *   paired:  log ratio = mean d_i, d_i = log b_i - log a_i, se = sd(d) / sqrt(n), df = n - 1
 *   else:    se^2 = sd_a^2 / n_a + sd_b^2 / n_b, df by Welch and Satterthwaite */
struct ratio ratio_of(const struct launch_value *base, size_t n_a,
                      const struct launch_value *point, size_t n_b, double level, double *work);

/* SAME: the interval lies within [1 / (1 + zone), 1 + zone]. ABOVE, BELOW: the interval lies above
 * or below 1. UNDECIDED: none of these, or no interval. (At 95 %, two systems that differ by
 * exactly the zone are called the same once in 40 times.) */
enum ratio_verdict { RATIO_SAME, RATIO_ABOVE, RATIO_BELOW, RATIO_UNDECIDED };
enum ratio_verdict ratio_verdict(const struct ratio *ratio, double zone);

/* The number of launches of each side at which an undecided interval would lie inside the zone or
 * exclude 1, whichever needs fewer, if the spread stays as measured. 0: not known. */
size_t ratio_deciding(const struct ratio *ratio, double zone);
/* The number of launches of each side still to run. 0: enough: half <= goal, or half <= goal / 2
 * with fewer than RATIO_SURE launches; or a value without a logarithm, where more launches do not
 * help. This stopping rule uses the half-width and never the significance. A few launches can look
 * alike by luck. A rule that stops on that luck has intervals that contain the truth only 92 times
 * in 100, so ratio_more() aims at 0.8 of the goal. It never asks for more launches than were
 * measured, because a spread from few launches is uncertain. */
size_t ratio_more(const struct ratio *ratio, double goal);

/* Sets adjusted[i] to p_value[i] adjusted by Holm's method over all values that are not NaN (NaN
 * stays NaN). order[n] is work. */
void ratio_holm(const double *p_value, size_t n, double *adjusted, size_t *order);

/* 1 - (1 - level) / n: the level of each of n intervals that together hold with `level`. Use it for
 * the fastest of n systems, because luck takes part in that choice. n 0 counts as 1. */
double ratio_level(double level, size_t n);
