/* ratio.h - how many times as long (or as much) one thing takes as another, each measured in
 * several launches; whether that is a finding; and how many launches would make it one.
 *
 * There is one ratio in this project: exp(difference of the mean logarithms of the launch values).
 * Times, rates and bytes are positive and their disturbances multiply, so their logarithms are
 * what Student's distribution is applied to, and no interval reaches below nought. Launches that
 * stand beside each other in the schedule (A B B A ...) are compared in pairs, which takes out what
 * drifts slowly; others by Welch's test.
 *
 *     struct ratio r = ratio_of(a, n_a, b, n_b, 0.95, work);
 *     ratio_verdict(&r, RATIO_ZONE)             same, above, below or undecided
 *     ratio_more(&r, 0.02)                      launches still to run for +-2 %, 0: enough
 *     ratio_holm(p, n, adjusted, order)         p values of a whole grid
 *     ratio_level(0.95, ways)                   level of each of several intervals
 *
 * Source: Kalibera and Jones ISMM'13 (effect sizes with intervals, the launch as the unit); Welch
 * 1947; Schuirmann 1987 (equivalence by an interval inside a zone); Holm 1979; Dunn 1961
 * (Bonferroni's intervals, JASA 56:52).
 */
#ifndef STAT_RATIO_H
#define STAT_RATIO_H

#include <math.h>
#include <stddef.h>

#include "lib/stat/launch.h"

#define RATIO_ZONE 0.02 /* what lies within a factor of 1 + RATIO_ZONE is the same to a reader */
enum { RATIO_SURE = 8, RATIO_MOST = 1000000 /* launches; more are never asked for */ };

struct ratio {
    double value, lo, hi; /* of b to a; lo, hi NaN with `reason` */
    double p;             /* two-sided, against a ratio of 1; NaN with the interval */
    double sd;            /* of log ratios of launches; NaN below two launches of each */
    double half;          /* half-width of the interval over launches alone, on the scale of logs
                           * (0.02: +-2 %): what more launches narrow; NaN with the interval */
    double level;
    size_t launches;      /* of the side that has fewer */
    int paired;
    const char *method, *reason; /* static; reason NULL when the interval is there */
};

#define RATIO_NOTHING {NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0, 0, NULL, NULL}

/* a[n_a], b[n_b] ascend by launch. They are pairs when both have the same number and the i-th
 * launches stand beside each other in the schedule (numbers equal or one apart). Below
 * LAUNCH_LEAST launches of one side, or where a value is not above nought, there is no interval.
 * work[n_a + n_b]. */
struct ratio ratio_of(const struct launch_value *a, size_t n_a, const struct launch_value *b,
                      size_t n_b, double level, double *work);

/* SAME: the whole interval lies within 1 / (1 + zone) and 1 + zone; else ABOVE or BELOW: it
 * excludes 1; else UNDECIDED, which is also what no interval says. The interval that is printed
 * decides: at 95 % two systems that differ by the zone are called the same once in 40 times. */
enum ratio_verdict { RATIO_SAME, RATIO_ABOVE, RATIO_BELOW, RATIO_UNDECIDED };
enum ratio_verdict ratio_verdict(const struct ratio *r, double zone);

/* Launches of each side that would decide what is undecided: to lie inside the zone, or to exclude
 * 1, whichever is nearer. 0: not known. */
size_t ratio_deciding(const struct ratio *r, double zone);
/* The rule of sequential sampling, which looks at the half-width and never at significance: how
 * many more launches of each side; 0: the half-width is under the goal, below RATIO_SURE launches
 * under half of it. Few launches may look alike by luck, and whoever stops on that luck has
 * intervals that hold the truth 92 times in 100; so additions also aim beyond the goal. Never more
 * than there are, because a spread seen in few launches is known badly. */
size_t ratio_more(const struct ratio *r, double goal);

/* adjusted[i] = p[i] after Holm's correction for all n that are not NaN. order[n] is work. */
void ratio_holm(const double *p, size_t n, double *adjusted, size_t *order);

/* The level of each of n intervals that all hold with `level`. The fastest of n systems was chosen
 * by its luck too: its own 95 % interval misses the truth more than once in 20 times. One of this
 * level does not. n 0 counts as 1. */
double ratio_level(double level, size_t n);

#endif
