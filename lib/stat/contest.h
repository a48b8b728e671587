/* contest.h - points that compete in cost and quality, as measured and in every bootstrap draw:
 * which points are on the Pareto front, and where a sweep meets a rival, each with its uncertainty.
 * `steps` is the number that orders the points of a sweep: denoising steps, measured passes or
 * rows. */
#pragma once

#include <stddef.h>

#include "lib/stat/parity.h"

/* All arrays are borrowed. NaN: the point lacks the number. */
struct contest {
    size_t n, draws;
    const double *steps;            /* [n] */
    const double *cost, *cost_draw; /* [n], [draws][n]; lower is better */
    const double *good, *good_draw; /* [n], [draws][n]; higher is better; NULL: cost alone */
    double confidence;              /* of the intervals of crossings, 0.95 */
};

/* Sets on[i] = 1 if point i is on the measured front (front.h), else 0. draws_on[i]: the number of
 * draws in which point i is on the front of the draw. order[n] is work. */
void contest_front(const struct contest *contest, size_t *draws_on, unsigned char *on,
                   size_t *order);

/* A sweep, points from..to-1 (steps do not descend; points with equal steps are averaged), against
 * point `rival`. The quality to reach is level[d] in draw d and level[draws] as measured. */
struct contest_pair { size_t from, to, rival; const double *level; };

/* A crossing as a number of steps, with its percentile interval; +-INFINITY: outside the measured
 * range (censored). below, above: the measured steps on either side of the crossing; NaN: none.
 * inside, p_below, p_above: shares of draws that are finite, -INFINITY, INFINITY. */
struct contest_verdict { double at, lo, hi, below, above, inside, p_below, p_above; };

struct contest_result {
    struct contest_verdict lat, q; /* as in parity.h */
    double residual; /* residual and line of struct crossover_cost, as measured */
    int line;        /* 1: the cost is a line in steps */
};

/* Advice which points and prompts to run next. */
enum { CONTEST_ADD = 32 };
struct contest_advice {
    double steps[CONTEST_ADD]; /* ascending: step counts that narrow an open or wide bracket */
    size_t n;
    double octaves; /* width of the interval of q within the measured steps, log2(hi / lo); NaN */
    double prompts; /* measured prompts * max(1, octaves / wanted)^2; NaN: q has no interval */
    double wanted;  /* the width in octaves that is narrow enough */
    int at_least;   /* 1: the interval is censored, so octaves and prompts are lower bounds */
};
/* Fills *advice. prompts: the number of measured prompts; 0: no quality. first, last: the least and
 * the most measured steps. length: the most useful step count; NaN: not known. octaves: the wanted
 * width of brackets and of the interval of q. */
void contest_advise(const struct contest_result *result, size_t prompts, double first, double last,
                    double length, double octaves, struct contest_advice *advice);

/* Solves parity.h for the measured values and for every draw. work[2 * draws]. to - from <=
 * CROSSOVER_MAX. */
void contest_solve(const struct contest *contest, const struct contest_pair *pair,
                   struct contest_result *result, double *work);
