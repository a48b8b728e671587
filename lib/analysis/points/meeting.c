/* meeting.c - see meeting.h. Tests are made at measured points; between these there is only an
 * estimate. A point without paired times is left out. If the rival has none, every place that needs
 * costs is null. */
#include "lib/analysis/points/meeting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

#define NO_SPREAD "no spread is known"
#define NO_COST "no cost on one side"

struct crossing_series meeting_series(const struct meeting *m)
{
    return (struct crossing_series){field_point(m->field, m->pair.from),
                                    m->pair.to - m->pair.from};
}

static const struct point *rival_of(const struct meeting *m)
{
    return m->pair.rival < m->field->n ? field_point(m->field, m->pair.rival) : NULL;
}

/* ---- tests ---- */

static struct asgood_side side_of(const struct field_board *b, size_t i)
{
    return (struct asgood_side){b->num + i * b->n, b->den + i * b->n};
}

/* Points of equal work share one test: the worse of their p values. */
static void add_test(struct meeting *m, double at, struct asgood t)
{
    if (m->n_tests && !(at > m->at[m->n_tests - 1])) {
        struct asgood *had = &m->test[m->n_tests - 1];
        had->good = isnan(t.good) ? t.good : fmax(had->good, t.good);
        had->worse = isnan(t.worse) ? t.worse : fmax(had->worse, t.worse);
        return;
    }
    m->at[m->n_tests] = at;
    m->test[m->n_tests++] = t;
}

static void run_tests(struct meeting *m)
{
    const struct field *f = m->field;
    const struct field_board *b = m->board;
    const struct asgood_kind kind = {b->quality->is.transform, b->quality->is.higher,
                                     b->binary && b->quality->is.transform == POOLED_PLAIN};
    double *work = mem_zero(2 * b->n + 1, sizeof *work);
    m->n_tests = 0;
    for (size_t i = m->pair.from; i < m->pair.to; i++)
        if (b->has[i] && b->has[m->pair.rival] && b->n && !isnan(f->at[i]))
            add_test(m, f->at[i], asgood_test(side_of(b, i), side_of(b, m->pair.rival), b->n,
                                              &kind, &b->quality->margin, work));
    m->place = asgood_sequence(m->test, m->n_tests);
    free(work);
}

void meeting_solve(struct meeting *m, double *work)
{
    const struct field *f = m->field;
    struct contest c = field_contest(f, m->board);
    double *level = work + 2 * f->draws;
    m->pair.level = NULL;
    if (m->board) {
        field_level(f, m->board, m->pair.rival, level);
        m->pair.level = level;
        run_tests(m);
    }
    contest_solve(&c, &m->pair, &m->found, work);
}

/* ---- records ---- */

/* `steps` if the series is ordered by steps, else `points`. Both are static. */
static const char *choose_words(const struct meeting *m, const char *steps, const char *points)
{
    return meeting_series(m).v->work == POINTS_STEPS ? steps : points;
}

static json_t *record_of(const struct meeting *m, const struct crossing *c,
                         const struct field_quality *q)
{
    const struct field *f = m->field;
    const struct crossing_series s = meeting_series(m);
    json_t *j = crossing_record(c, &s, rival_of(m), f->costs->level);
    json_object_set_new(j, "cost_metric", json_string(f->points->cost_metric));
    rec_set_text(j, "task", f->costs->task);
    if (q) {
        json_object_set_new(j, "quality_metric", json_string(q->is.name));
        json_object_set_new(j, "margin", json_real(q->margin.by));
        json_object_set_new(j, "margin_relative", json_boolean(q->margin.relative));
    }
    if (m->board)
        rec_set_int(j, "prompts", (int64_t)m->board->n);
    rec_set_int(j, "draws", (int64_t)f->draws);
    return j;
}

static void set_estimate(json_t *j, double at, double lo, double hi, const char *reason)
{
    crossing_set(j, "estimate", at, reason);
    crossing_set(j, "est_lo", lo, reason);
    crossing_set(j, "est_hi", hi, reason);
}

json_t *meeting_none(const struct meeting *m, const char *name, const struct field_quality *q,
                     const char *reason)
{
    const double no = NAN;
    struct crossing c = {.name = name, .at = no, .lo = no, .hi = no, .below = no, .above = no,
                         .probability = no, .p_below = no, .p_above = no,
                         .interval_reason = "none", .reason = reason, .method = "none"};
    return record_of(m, &c, q);
}

/* Why no point of the sweep has a ratio to the rival; NULL: one has. */
static const char *no_ratio(const struct meeting *m)
{
    const struct field *f = m->field;
    const char *why = NO_COST;
    for (size_t i = m->pair.from; i < m->pair.to; i++) {
        if (!isnan(f->cost[i]))
            return isnan(f->cost[m->pair.rival]) ? NO_COST : NULL;
        if (!isnan(field_point(f, i)->cost))
            why = f->ratio[i].ratio.reason;
    }
    return why;
}

static const char *explain_costs_more(const struct meeting *m)
{
    return choose_words(m, "costs more than LLaMA at every step count measured",
                        "costs more than LLaMA at every point measured");
}

static const char *latency_method(const struct meeting *m)
{
    int prompts = costs_by_prompt(m->field->costs);
    if (m->found.line)
        return prompts ? "least-absolute-deviations line through paired ratios, t draws over "
                         "launches and prompts"
                       : "least-absolute-deviations line through paired ratios, t draws over "
                         "launches";
    return prompts ? "isotonic through paired ratios, t draws over launches and prompts"
                   : "isotonic through paired ratios, t draws over launches";
}

json_t *meeting_latency(const struct meeting *m)
{
    const struct contest_verdict *v = &m->found.lat;
    const char *none = no_ratio(m);
    struct crossing c = {"X_lat", v->at, v->lo, v->hi, v->below, v->above, v->inside, v->p_below,
                         v->p_above, none ? none : "not enough draws", 1, NULL, latency_method(m)};
    if (isnan(c.at)) {
        c.exists = none && strcmp(none, NO_COST) ? -1 : 0;
        c.reason = none ? none : NO_COST;
    } else if (isinf(c.at)) {
        int sure = c.at < 0 ? v->hi <= -INFINITY : v->lo >= INFINITY;
        c.exists = sure ? 0 : -1;
        c.reason = c.at < 0 ? explain_costs_more(m)
                            : choose_words(m, "cheaper than LLaMA at every step count measured",
                                           "cheaper than LLaMA at every point measured");
        c.reason = sure ? c.reason : "undecided: the interval reaches into what was measured";
    }
    json_t *j = record_of(m, &c, NULL);
    set_estimate(j, c.at, c.lo, c.hi, c.interval_reason);
    rec_set_number(j, "residual_ratio", m->found.residual, "fewer than 3 points");
    return j;
}

/* Why there is no test of the quality; NULL: there is one. */
static const char *no_test(const struct meeting *m)
{
    const struct point *first = meeting_series(m).v;
    return !m->n_tests && (first->random || rival_of(m)->random) ? "random weights"
           : !m->n_tests                                          ? "no quality on one side"
           : m->board->n < ASGOOD_LEAST                           ? ASGOOD_FEW
           : isnan(m->test[m->n_tests - 1].good)                  ? NO_SPREAD
                                                                  : NULL;
}

static json_t *tests_of(const struct meeting *m)
{
    json_t *list = json_array();
    for (size_t i = 0; i < m->n_tests; i++) {
        int shown = i >= m->place.first, worse = i < m->place.worse;
        json_t *o = json_pack("{s:f}", "at", m->at[i]);
        rec_set_number(o, "p_noninferior", m->test[i].good,
                       m->board->n < ASGOOD_LEAST ? ASGOOD_FEW : NO_SPREAD);
        json_object_set_new(o, "noninferior", shown   ? json_true()
                                              : worse ? json_false()
                                                      : json_null());
        json_array_append_new(list, o);
    }
    return list;
}

/* Decides X_q. */
static struct crossing quality_of(const struct meeting *m)
{
    const double no = NAN;
    const size_t first = m->place.first, worse = m->place.worse, n = m->n_tests;
    struct crossing c = {.name = "X_q", .at = no, .lo = no, .hi = no, .below = no, .above = no,
                         .probability = no, .p_below = no, .p_above = no,
                         .interval_reason = no_test(m), .reason = no_test(m), .exists = -1,
                         .method = "fixed sequence of tests from the most work down, each at "
                                   "one-sided 2.5 %"};
    if (c.reason) {
        c.exists = n ? -1 : 0;
        return c;
    }
    c.exists = first < n ? 1 : worse == n ? 0 : -1;
    c.reason = first < n ? NULL
               : worse == n
                   ? choose_words(
                         m, "worse than LLaMA by more than the margin at every step count measured",
                         "worse than LLaMA by more than the margin at every point measured")
                   : choose_words(m, "shown to be as good as LLaMA at no step count measured",
                                  "shown to be as good as LLaMA at no point measured");
    c.at = first < n ? m->at[first] : INFINITY;
    c.lo = worse < n ? m->at[worse] : INFINITY;
    c.hi = c.at;
    c.below = first > 0 ? m->at[first - 1] : no;
    c.above = first < n ? m->at[first] : no;
    return c;
}

json_t *meeting_quality(const struct meeting *m)
{
    const size_t first = m->place.first, worse = m->place.worse;
    struct crossing c = quality_of(m);
    json_t *j = record_of(m, &c, m->board->quality);
    const char *why = no_test(m);
    set_estimate(j, why ? (double)NAN : m->found.q.at,
                 why         ? (double)NAN
                 : worse > 0 ? m->at[worse - 1]
                             : -INFINITY,
                 why                    ? (double)NAN
                 : first < m->n_tests ? m->at[first]
                                      : INFINITY,
                 why ? why : "no quality on one side");
    json_object_set_new(j, "tests", tests_of(m));
    return j;
}

/* The ratio of the cost to that of the rival at `at`; of points of equal work the largest. */
static const struct ratio *ratio_at(const struct meeting *m, double at)
{
    const struct field *f = m->field;
    const struct ratio *found = NULL;
    for (size_t i = m->pair.from; i < m->pair.to; i++) {
        const struct ratio *r = &f->ratio[i].ratio;
        if (f->at[i] >= at && f->at[i] <= at && (!found || isnan(r->lo) || r->value > found->value))
            found = r;
    }
    return found;
}

/* The most measured work up to which, from X_q on, every point is shown to cost no more. */
static double end_of(const struct meeting *m)
{
    double end = NAN;
    for (size_t i = m->place.first; i < m->n_tests; i++) {
        if (!(ratio_at(m, m->at[i])->hi <= 1))
            break;
        end = m->at[i];
    }
    return end;
}

static void decide_parity(const struct meeting *m, struct crossing *c, const struct ratio *r)
{
    c->exists = r->hi <= 1 ? 1 : r->lo > 1 ? 0 : -1;
    c->reason = c->exists > 0 ? NULL
                : isnan(r->lo) ? r->reason
                : c->exists < 0 ? "undecided: where it is as good its cost may be more or less "
                                  "than LLaMA's"
                : choose_words(m, "as good only at more steps than are as cheap",
                               "as good only with more work than is as cheap");
    if (c->exists <= 0) {
        c->lo = c->hi = NAN;
        c->interval_reason = c->reason;
        c->at = c->exists ? (double)NAN : INFINITY;
    }
}

/* Sets at_end and, if the series is ordered by steps, steps_end. */
static void set_end(json_t *j, const struct meeting *m)
{
    double end = m->board ? end_of(m) : (double)NAN;
    rec_set_number(j, "at_end", end, "does not exist");
    if (meeting_series(m).v->work == POINTS_STEPS)
        rec_set_number(j, "steps_end", end, "does not exist");
}

json_t *meeting_parity(const struct meeting *m)
{
    struct crossing c = quality_of(m);
    const struct ratio none = {.value = NAN, .lo = NAN, .hi = NAN, .reason = c.reason};
    const struct ratio *r = c.exists > 0 ? ratio_at(m, c.at) : &none;
    c.name = "X_par";
    c.method = "X_q where the paired ratio of the cost is shown to be at most 1";
    if (c.exists > 0)
        decide_parity(m, &c, r);
    json_t *j = record_of(m, &c, m->board->quality);
    set_end(j, m);
    rec_set_number(j, "speedup", 1 / r->value, r->reason);
    rec_set_number(j, "speedup_lo", 1 / r->hi, r->reason);
    rec_set_number(j, "speedup_hi", 1 / r->lo, r->reason);
    return j;
}
