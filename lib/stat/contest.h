/* contest.h - points that compete in cost and quality, as measured and in every bootstrap draw: who
 * is on the front, and where a sweep meets a rival, each with its uncertainty. `steps` is whatever
 * computation orders the points of a sweep: denoising steps, measured passes, rows.
 */
#ifndef STAT_CONTEST_H
#define STAT_CONTEST_H

#include <stddef.h>

#include "lib/stat/parity.h"

/* All borrowed. NaN: the point has none. */
struct contest {
    size_t n, draws;
    const double *steps;            /* [n] */
    const double *cost, *cost_draw; /* [n], [draws][n]; lower is better */
    const double *good, *good_draw; /* [n], [draws][n]; higher is better; NULL: cost alone */
};

/* draws_on[i] = draws in which point i is on the front; on[i] = it is on the measured one. order[n]
 * is work. */
void contest_front(const struct contest *c, size_t *draws_on, unsigned char *on, size_t *order);

/* The sweep from..to-1 (steps not descending; points of the same steps count as one, their mean)
 * against the point `rival`, whose quality counts as
 * level[draws] (as measured) and level[d] (in draw d). */
struct contest_pair { size_t from, to, rival; const double *level; };

/* A number of steps (or a ratio) with its percentile interval; +-INFINITY: censored. below, above:
 * the bracket of measured steps, NaN: open. Shares of draws: finite, -INFINITY, INFINITY. */
struct contest_verdict { double at, lo, hi, below, above, inside, p_below, p_above; };

struct contest_result {
    struct contest_verdict lat, q; /* parity.h */
    double residual;
    int line;
};

/* The points and prompts to run next. */
enum { CONTEST_ADD = 32 };
struct contest_advice {
    double steps[CONTEST_ADD]; /* ascending: they narrow a bracket that is open or too wide */
    size_t n;
    double octaves; /* width of the interval of q, held inside the measured steps; NaN: none */
    double prompts; /* that would narrow it as far as wished; NaN: no interval */
    double wanted;  /* width in octaves that is narrow enough */
    int at_least;   /* the interval is censored, so both are lower bounds */
};
/* prompts: measured ones, 0: no quality. first, last: measured steps. length (NaN: unknown): no
 * step count above it is useful. octaves: how narrow a bracket, and the interval of q, shall
 * become. */
void contest_advise(const struct contest_result *r, size_t prompts, double first, double last,
                    double length, double octaves, struct contest_advice *a);

/* work[2 * draws]. to - from <= CROSSOVER_MAX. */
void contest_solve(const struct contest *c, const struct contest_pair *x,
                   struct contest_result *r, double *work);

#endif
