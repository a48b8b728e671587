/* contest.c - fronts and crossovers, measured and in every draw; see contest.h.
 *
 * The measured curves are treated as one more draw, number `draws`, by the same function build().
 * So a value and its interval are computed alike. A draw whose crossing lies outside the measured
 * steps counts as infinite, not as missing. */
#include "lib/stat/contest.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "lib/stat/bootstrap.h"
#include "lib/stat/front.h"


static const double *cost_of(const struct contest *contest, size_t draw)
{
    return draw < contest->draws ? contest->cost_draw + draw * contest->n : contest->cost;
}

static const double *good_of(const struct contest *contest, size_t draw)
{
    return draw < contest->draws ? contest->good_draw + draw * contest->n : contest->good;
}

void contest_front(const struct contest *contest, size_t *draws_on, unsigned char *on,
                   size_t *order)
{
    memset(draws_on, 0, contest->n * sizeof *draws_on);
    for (size_t draw = 0; draw < contest->draws; draw++) {
        front_mark(cost_of(contest, draw), good_of(contest, draw), contest->n, on, order);
        for (size_t i = 0; i < contest->n; i++)
            draws_on[i] += on[i];
    }
    front_mark(contest->cost, contest->good, contest->n, on, order);
}

/* Adds a point to a curve of n points. If it has the x of the last point, it is averaged into that
 * point, so that each x has one value; *same counts the averaged points. Returns the new n. */
static size_t add_point(double *x, double *y, size_t n, double at, double value, double *same)
{
    if (n && !(at > x[n - 1])) {
        y[n - 1] = (y[n - 1] * *same + value) / (*same + 1);
        ++*same;
        return n;
    }
    x[n] = at;
    y[n] = value;
    *same = 1;
    return n + 1;
}

static void build(const struct contest *contest, const struct contest_pair *pair, size_t draw,
                  struct parity_sweep *sweep)
{
    const double *cost = cost_of(contest, draw),
                 *good = contest->good ? good_of(contest, draw) : NULL;
    sweep->n_cost = sweep->n_quality = 0;
    sweep->rival_cost = cost[pair->rival];
    sweep->rival_quality = good ? pair->level[draw] : NAN;
    double costs = 0, goods = 0;
    for (size_t i = pair->from; i < pair->to; i++) {
        if (!isnan(cost[i]))
            sweep->n_cost = add_point(sweep->cost_steps, sweep->cost, sweep->n_cost,
                                      contest->steps[i], cost[i], &costs);
        if (good && !isnan(good[i]))
            sweep->n_quality = add_point(sweep->quality_steps, sweep->quality, sweep->n_quality,
                                         contest->steps[i], good[i], &goods);
    }
}

/* Sets the interval and the shares of draws of *verdict. Sorts draw. */
static void judge(struct contest_verdict *verdict, double *draw, size_t n, double confidence)
{
    size_t below = 0, above = 0, known = 0;
    for (size_t at = 0; at < n; at++) {
        known += isnan(draw[at]) ? 0 : 1;
        below += draw[at] <= -INFINITY;
        above += draw[at] >= INFINITY;
    }
    double all = known ? (double)known : NAN;
    verdict->p_below = (double)below / all;
    verdict->p_above = (double)above / all;
    verdict->inside = (double)(known - below - above) / all;
    struct interval i = bootstrap_interval(verdict->at, draw, n, confidence);
    verdict->lo = i.lo;
    verdict->hi = i.hi;
}

static void brackets(const struct parity_sweep *sweep, struct contest_result *result)
{
    double over[CROSSOVER_MAX];
    for (size_t i = 0; i < sweep->n_cost; i++)
        over[i] = sweep->cost[i] - sweep->rival_cost;
    crossover_bracket(sweep->cost_steps, over, sweep->n_cost, &result->lat.below,
                      &result->lat.above);
    for (size_t i = 0; i < sweep->n_quality; i++)
        over[i] = sweep->quality[i] - sweep->rival_quality;
    crossover_bracket(sweep->quality_steps, over, sweep->n_quality, &result->q.below,
                      &result->q.above);
}

void contest_solve(const struct contest *contest, const struct contest_pair *pair,
                   struct contest_result *result, double *work)
{
    struct parity_sweep sweep;
    struct parity parity;
    size_t n = contest->draws;
    double *lat = work, *quality = work + n;
    assert(contest->confidence > 0 && contest->confidence < 1);
    build(contest, pair, n, &sweep);
    parity_solve(&sweep, -1, &parity);
    *result = (struct contest_result){.lat.at = parity.lat, .q.at = parity.q,
                                      .residual = parity.residual, .line = parity.line};
    brackets(&sweep, result);
    for (size_t draw = 0; draw < n; draw++) {
        build(contest, pair, draw, &sweep);
        parity_solve(&sweep, result->line, &parity);
        lat[draw] = parity.lat;
        quality[draw] = parity.q;
    }
    judge(&result->lat, lat, n, contest->confidence);
    judge(&result->q, quality, n, contest->confidence);
}

/* Writes the step counts that narrow the bracket of the verdict to out[]. Returns how many. */
static size_t split_bracket(const struct contest_verdict *verdict, double length, double octaves,
                            double *out, size_t max)
{
    if (isnan(verdict->below) && isnan(verdict->above))
        return 0;
    if (isnan(verdict->below)) {
        out[0] = floor(verdict->above / 2);
        return out[0] >= 1;
    }
    if (isnan(verdict->above)) {
        out[0] = 2 * verdict->below;
        return !(out[0] > length);
    }
    return crossover_between(verdict->below, verdict->above, octaves, out, max);
}

void contest_advise(const struct contest_result *result, size_t prompts, double first, double last,
                    double length, double octaves, struct contest_advice *advice)
{
    double all[CONTEST_ADD], before = 0, lo = fmax(result->q.lo, first),
                             hi = fmin(result->q.hi, last);
    size_t n = split_bracket(&result->lat, length, octaves, all, CONTEST_ADD / 2);
    n += prompts ? split_bracket(&result->q, length, octaves, all + n, CONTEST_ADD / 2) : 0;
    advice->wanted = octaves;
    for (advice->n = 0;;) { /* ascending, each once */
        double next = INFINITY;
        for (size_t i = 0; i < n; i++)
            if (all[i] > before && all[i] < next)
                next = all[i];
        if (isinf(next))
            break;
        before = advice->steps[advice->n++] = next;
    }
    int known = prompts > 1 && !isnan(result->q.lo) && lo < hi;
    advice->octaves = known ? log2(hi / lo) : NAN;
    double wider = fmax(1, advice->octaves / octaves); /* the width falls as 1 / sqrt(n) */
    advice->prompts = known ? ceil((double)prompts * wider * wider) : NAN;
    advice->at_least = known && (isinf(result->q.lo) || isinf(result->q.hi));
}
