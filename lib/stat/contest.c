/* contest.c - fronts and crossovers, measured and in every draw; see contest.h.
 *
 * One function reads the measured curves (draw number `draws`) and those of a draw, so an interval
 * is about the same number as the value beside it. A draw whose crossing lies outside the measured
 * steps counts as infinite, not as missing. */
#include "lib/stat/contest.h"

#include <math.h>
#include <string.h>

#include "lib/stat/bootstrap.h"
#include "lib/stat/front.h"

static const double LEVEL = 0.95;

static const double *cost_of(const struct contest *c, size_t d)
{
    return d < c->draws ? c->cost_draw + d * c->n : c->cost;
}

static const double *good_of(const struct contest *c, size_t d)
{
    return d < c->draws ? c->good_draw + d * c->n : c->good;
}

void contest_front(const struct contest *c, size_t *draws_on, unsigned char *on, size_t *order)
{
    memset(draws_on, 0, c->n * sizeof *draws_on);
    for (size_t d = 0; d < c->draws; d++) {
        front_mark(cost_of(c, d), good_of(c, d), c->n, on, order);
        for (size_t i = 0; i < c->n; i++)
            draws_on[i] += on[i];
    }
    front_mark(c->cost, c->good, c->n, on, order);
}

/* Adds a point to a curve of n points. A point with the x of the last one is averaged into it, so
 * that each x has one value; *same counts the points averaged there. Returns the new n. */
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

static void build(const struct contest *c, const struct contest_pair *x, size_t d,
                  struct parity_sweep *s)
{
    const double *cost = cost_of(c, d), *good = c->good ? good_of(c, d) : NULL;
    s->n_cost = s->n_quality = 0;
    s->rival_cost = cost[x->rival];
    s->rival_quality = good ? x->level[d] : NAN;
    double costs = 0, goods = 0;
    for (size_t i = x->from; i < x->to; i++) {
        if (!isnan(cost[i]))
            s->n_cost = add_point(s->cost_steps, s->cost, s->n_cost, c->steps[i], cost[i], &costs);
        if (good && !isnan(good[i]))
            s->n_quality = add_point(s->quality_steps, s->quality, s->n_quality, c->steps[i],
                                     good[i], &goods);
    }
}

/* Sets the interval and the shares of draws; sorts draw. */
static void judge(struct contest_verdict *v, double *draw, size_t n)
{
    size_t below = 0, above = 0, known = 0;
    for (size_t d = 0; d < n; d++) {
        known += isnan(draw[d]) ? 0 : 1;
        below += draw[d] <= -INFINITY;
        above += draw[d] >= INFINITY;
    }
    double all = known ? (double)known : NAN;
    v->p_below = (double)below / all;
    v->p_above = (double)above / all;
    v->inside = (double)(known - below - above) / all;
    struct interval i = bootstrap_interval(v->at, draw, n, LEVEL);
    v->lo = i.lo;
    v->hi = i.hi;
}

static void brackets(const struct parity_sweep *s, struct contest_result *r)
{
    double over[CROSSOVER_MAX];
    for (size_t i = 0; i < s->n_cost; i++)
        over[i] = s->cost[i] - s->rival_cost;
    crossover_bracket(s->cost_steps, over, s->n_cost, &r->lat.below, &r->lat.above);
    for (size_t i = 0; i < s->n_quality; i++)
        over[i] = s->quality[i] - s->rival_quality;
    crossover_bracket(s->quality_steps, over, s->n_quality, &r->q.below, &r->q.above);
}

void contest_solve(const struct contest *c, const struct contest_pair *x,
                   struct contest_result *r, double *work)
{
    struct parity_sweep s;
    struct parity p;
    size_t n = c->draws;
    double *lat = work, *q = work + n;
    build(c, x, n, &s);
    parity_solve(&s, -1, &p);
    *r = (struct contest_result){.lat.at = p.lat, .q.at = p.q,
                                 .residual = p.residual, .line = p.line};
    brackets(&s, r);
    for (size_t d = 0; d < n; d++) {
        build(c, x, d, &s);
        parity_solve(&s, r->line, &p);
        lat[d] = p.lat;
        q[d] = p.q;
    }
    judge(&r->lat, lat, n);
    judge(&r->q, q, n);
}

/* Step counts that narrow the bracket of v, into out[]. Returns how many. */
static size_t split_bracket(const struct contest_verdict *v, double length, double octaves,
                            double *out, size_t max)
{
    if (isnan(v->below) && isnan(v->above))
        return 0;
    if (isnan(v->below)) {
        out[0] = floor(v->above / 2);
        return out[0] >= 1;
    }
    if (isnan(v->above)) {
        out[0] = 2 * v->below;
        return !(out[0] > length);
    }
    return crossover_between(v->below, v->above, octaves, out, max);
}

void contest_advise(const struct contest_result *r, size_t prompts, double first, double last,
                    double length, double octaves, struct contest_advice *a)
{
    double all[CONTEST_ADD], before = 0, lo = fmax(r->q.lo, first), hi = fmin(r->q.hi, last);
    size_t n = split_bracket(&r->lat, length, octaves, all, CONTEST_ADD / 2);
    n += prompts ? split_bracket(&r->q, length, octaves, all + n, CONTEST_ADD / 2) : 0;
    a->wanted = octaves;
    for (a->n = 0;;) { /* ascending, each once */
        double next = INFINITY;
        for (size_t i = 0; i < n; i++)
            if (all[i] > before && all[i] < next)
                next = all[i];
        if (isinf(next))
            break;
        before = a->steps[a->n++] = next;
    }
    int known = prompts > 1 && !isnan(r->q.lo) && lo < hi;
    a->octaves = known ? log2(hi / lo) : NAN;
    double wider = fmax(1, a->octaves / octaves); /* the width falls as 1 / sqrt(n) */
    a->prompts = known ? ceil((double)prompts * wider * wider) : NAN;
    a->at_least = known && (isinf(r->q.lo) || isinf(r->q.hi));
}
