/* meeting.c - see meeting.h. Tests are made at measured points; between measured points there is
 * only an estimate. A point without paired times is left out. If the rival has no paired times,
 * every place that needs costs is null. */
#include "lib/analysis/points/meeting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const double LEVEL = 0.95;

#define NO_SPREAD "no spread is known"
#define NO_COST "no cost on one side"

struct crossing_series meeting_series(const struct meeting *meeting)
{
    return (struct crossing_series){field_point(meeting->field, meeting->pair.from),
                                    meeting->pair.to - meeting->pair.from};
}

static const struct point *rival_of(const struct meeting *meeting)
{
    return meeting->pair.rival < meeting->field->n
               ? field_point(meeting->field, meeting->pair.rival)
               : NULL;
}

/* ---- tests ---- */

static struct asgood_side side_of(const struct field_board *board, size_t i)
{
    return (struct asgood_side){board->num + i * board->n, board->den + i * board->n};
}

/* Adds a test. Points of equal work share one test, with the largest of their p values. */
static void add_test(struct meeting *meeting, double at, struct asgood asgood)
{
    if (meeting->n_tests && !(at > meeting->at[meeting->n_tests - 1])) {
        struct asgood *had = &meeting->test[meeting->n_tests - 1];
        had->good = isnan(asgood.good) ? asgood.good : fmax(had->good, asgood.good);
        had->worse = isnan(asgood.worse) ? asgood.worse : fmax(had->worse, asgood.worse);
        return;
    }
    meeting->at[meeting->n_tests] = at;
    meeting->test[meeting->n_tests++] = asgood;
}

static void run_tests(struct meeting *meeting)
{
    const struct field *field = meeting->field;
    const struct field_board *board = meeting->board;
    const struct asgood_kind kind = {board->quality->is.transform, board->quality->higher,
                                     board->binary && board->quality->is.transform == POOLED_PLAIN};
    double *work = mem_zero(2 * board->n + 1, sizeof *work);
    meeting->n_tests = 0;
    for (size_t i = meeting->pair.from; i < meeting->pair.to; i++)
        if (board->has[i] && board->has[meeting->pair.rival] && board->n && !isnan(field->at[i]))
            add_test(meeting, field->at[i], asgood_test(side_of(board, i),
                                                        side_of(board, meeting->pair.rival),
                                                        board->n, &kind, &board->quality->margin,
                                                        work));
    meeting->place = asgood_sequence(meeting->test, meeting->n_tests);
    free(work);
}

void meeting_solve(struct meeting *meeting, double *work)
{
    const struct field *field = meeting->field;
    struct contest contest = field_contest(field, meeting->board);
    double *level = work + 2 * field->draws;
    meeting->pair.level = NULL;
    if (meeting->board) {
        field_level(field, meeting->board, meeting->pair.rival, level);
        meeting->pair.level = level;
        run_tests(meeting);
    }
    contest_solve(&contest, &meeting->pair, &meeting->found, work);
}

/* ---- records ---- */

/* `steps` if the series is ordered by steps, else `points`. Both are static. */
static const char *choose_words(const struct meeting *meeting, const char *steps,
                                const char *points)
{
    return meeting_series(meeting).v->work == POINTS_STEPS ? steps : points;
}

static json_t *record_of(const struct meeting *meeting, const struct crossing *crossing,
                         const struct field_quality *quality)
{
    const struct field *field = meeting->field;
    const struct crossing_series series = meeting_series(meeting);
    json_t *j = crossing_record(crossing, &series, rival_of(meeting), LEVEL);
    if (meeting->rival)
        json_object_set_new(j, "rival", json_string(meeting->rival));
    if (meeting->candidates)
        rec_set_int(j, "comparisons", (int64_t)meeting->candidates);
    if (meeting->among)
        json_object_set_new(j, "candidates", json_deep_copy(meeting->among));
    json_object_set_new(j, "cost_metric", json_string(field->points->cost_metric));
    rec_set_text(j, "task", field->costs->task);
    if (quality) {
        json_object_set_new(j, "quality_metric", json_string(quality->is.name));
        json_object_set_new(j, "margin", json_real(quality->margin.by));
        json_object_set_new(j, "margin_relative", json_boolean(quality->margin.relative));
    }
    if (meeting->board)
        rec_set_int(j, "prompts", (int64_t)meeting->board->n);
    rec_set_int(j, "draws", (int64_t)field->draws);
    return j;
}

static void set_estimate(json_t *j, double at, double lo, double hi, const char *reason)
{
    crossing_set(j, "estimate", at, reason);
    crossing_set(j, "est_lo", lo, reason);
    crossing_set(j, "est_hi", hi, reason);
}

json_t *meeting_none(const struct meeting *meeting, const char *name,
                     const struct field_quality *quality, const char *reason)
{
    const double no = NAN;
    struct crossing crossing = {.name = name, .at = no, .lo = no, .hi = no, .below = no,
                                .above = no, .probability = no, .p_below = no, .p_above = no,
                                .interval_reason = "none", .reason = reason, .method = "none"};
    return record_of(meeting, &crossing, quality);
}

/* Why no point of the sweep has a ratio to the rival; NULL: a point has one. */
static const char *no_ratio(const struct meeting *meeting)
{
    const struct field *field = meeting->field;
    const char *why = NO_COST;
    for (size_t i = meeting->pair.from; i < meeting->pair.to; i++) {
        if (!isnan(field->cost[i]))
            return isnan(field->cost[meeting->pair.rival]) ? NO_COST : NULL;
        if (!isnan(field_point(field, i)->cost))
            why = field->ratio[i].ratio.reason;
    }
    return why;
}

static const char *explain_costs_more(const struct meeting *meeting)
{
    return choose_words(meeting, "costs more than LLaMA at every step count measured",
                        "costs more than LLaMA at every point measured");
}

static const char *latency_method(const struct meeting *meeting)
{
    int prompts = costs_by_prompt(meeting->field->costs);
    if (meeting->found.line)
        return prompts ? "least-absolute-deviations line through paired ratios, t draws over "
                         "launches and prompts"
                       : "least-absolute-deviations line through paired ratios, t draws over "
                         "launches";
    return prompts ? "isotonic through paired ratios, t draws over launches and prompts"
                   : "isotonic through paired ratios, t draws over launches";
}

json_t *meeting_latency(const struct meeting *meeting)
{
    const struct contest_verdict *verdict = &meeting->found.lat;
    const char *none = no_ratio(meeting);
    struct crossing crossing = {"X_lat", verdict->at, verdict->lo, verdict->hi, verdict->below,
                                verdict->above, verdict->inside, verdict->p_below, verdict->p_above,
                                none ? none : "not enough draws", 1, NULL, latency_method(meeting)};
    if (isnan(crossing.at)) {
        crossing.exists = none && strcmp(none, NO_COST) ? -1 : 0;
        crossing.reason = none ? none : NO_COST;
    } else if (isinf(crossing.at)) {
        int sure = crossing.at < 0 ? verdict->hi <= -INFINITY : verdict->lo >= INFINITY;
        crossing.exists = sure ? 0 : -1;
        crossing.reason = crossing.at < 0
                              ? explain_costs_more(meeting)
                              : choose_words(meeting,
                                             "cheaper than LLaMA at every step count measured",
                                             "cheaper than LLaMA at every point measured");
        crossing.reason = sure ? crossing.reason
                               : "undecided: the interval reaches into the measured range";
    }
    json_t *j = record_of(meeting, &crossing, NULL);
    set_estimate(j, crossing.at, crossing.lo, crossing.hi, crossing.interval_reason);
    rec_set_number(j, "residual_ratio", meeting->found.residual, "fewer than 3 points");
    return j;
}

/* Why there is no test of the quality; NULL: there is one. */
static const char *no_test(const struct meeting *meeting)
{
    const struct point *first = meeting_series(meeting).v;
    const int random = first->random || rival_of(meeting)->random;
    return !meeting->n_tests && random                       ? "random weights"
           : !meeting->n_tests                               ? "no quality on one side"
           : meeting->board->n < ASGOOD_LEAST                ? ASGOOD_FEW
           : isnan(meeting->test[meeting->n_tests - 1].good) ? NO_SPREAD
                                                             : NULL;
}

static json_t *tests_of(const struct meeting *meeting)
{
    json_t *list = json_array();
    for (size_t i = 0; i < meeting->n_tests; i++) {
        int shown = i >= meeting->place.first, worse = i < meeting->place.worse;
        json_t *object = json_pack("{s:f}", "at", meeting->at[i]);
        rec_set_number(object, "p_noninferior", meeting->test[i].good,
                       meeting->board->n < ASGOOD_LEAST ? ASGOOD_FEW : NO_SPREAD);
        json_object_set_new(object, "noninferior", shown   ? json_true()
                                                   : worse ? json_false()
                                                           : json_null());
        json_array_append_new(list, object);
    }
    return list;
}

/* Decides X_q. */
static struct crossing quality_of(const struct meeting *meeting)
{
    const double no = NAN;
    const size_t first = meeting->place.first, worse = meeting->place.worse, n = meeting->n_tests;
    struct crossing crossing = {
        .name = "X_q",
        .at = no,
        .lo = no,
        .hi = no,
        .below = no,
        .above = no,
        .probability = no,
        .p_below = no,
        .p_above = no,
        .interval_reason = no_test(meeting),
        .reason = no_test(meeting),
        .exists = -1,
        .method = "fixed sequence of tests from the most work down, each at "
                  "one-sided 2.5 %"};
    if (crossing.reason) {
        crossing.exists = n ? -1 : 0;
        return crossing;
    }
    crossing.exists = first < n ? 1 : worse == n ? 0 : -1;
    crossing.reason =
        first < n ? NULL
        : worse == n
            ? choose_words(meeting,
                           "worse than LLaMA by more than the margin at every step count measured",
                           "worse than LLaMA by more than the margin at every point measured")
            : choose_words(meeting, "shown to be as good as LLaMA at no step count measured",
                           "shown to be as good as LLaMA at no point measured");
    crossing.at = first < n ? meeting->at[first] : INFINITY;
    crossing.lo = worse < n ? meeting->at[worse] : INFINITY;
    crossing.hi = crossing.at;
    crossing.below = first > 0 ? meeting->at[first - 1] : no;
    crossing.above = first < n ? meeting->at[first] : no;
    return crossing;
}

json_t *meeting_quality(const struct meeting *meeting)
{
    const size_t first = meeting->place.first, worse = meeting->place.worse;
    struct crossing crossing = quality_of(meeting);
    json_t *j = record_of(meeting, &crossing, meeting->board->quality);
    const char *why = no_test(meeting);
    set_estimate(j, why ? (double)NAN : meeting->found.q.at,
                 why         ? (double)NAN
                 : worse > 0 ? meeting->at[worse - 1]
                             : -INFINITY,
                 why                        ? (double)NAN
                 : first < meeting->n_tests ? meeting->at[first]
                                            : INFINITY,
                 why ? why : "no quality on one side");
    json_object_set_new(j, "tests", tests_of(meeting));
    return j;
}

/* The ratio of the sweep's cost to the rival's cost at the work `at`. If several points have this
 * work, the largest ratio; a ratio without an interval counts as largest. */
static const struct ratio *ratio_at(const struct meeting *meeting, double at)
{
    const struct field *field = meeting->field;
    const struct ratio *found = NULL;
    for (size_t i = meeting->pair.from; i < meeting->pair.to; i++) {
        const struct ratio *ratio = &field->ratio[i].ratio;
        if (field->at[i] >= at && field->at[i] <= at &&
            (!found || isnan(ratio->lo) || ratio->value > found->value))
            found = ratio;
    }
    return found;
}

/* The most measured work of the points that, from X_q on without a gap, are shown to cost no more
 * than the rival; NaN: none. */
static double end_of(const struct meeting *meeting)
{
    double end = NAN;
    for (size_t i = meeting->place.first; i < meeting->n_tests; i++) {
        if (!(ratio_at(meeting, meeting->at[i])->hi <= 1))
            break;
        end = meeting->at[i];
    }
    return end;
}

static void decide_parity(const struct meeting *meeting, struct crossing *crossing,
                          const struct ratio *ratio)
{
    crossing->exists = ratio->hi <= 1 ? 1 : ratio->lo > 1 ? 0 : -1;
    crossing->reason = crossing->exists > 0 ? NULL
                       : isnan(ratio->lo)   ? ratio->reason
                       : crossing->exists < 0
                           ? "undecided: where LLaDA is as good as LLaMA, LLaDA may cost more or "
                             "less"
                           : choose_words(meeting,
                                          "as good as LLaMA only at step counts that cost more",
                                          "as good as LLaMA only with work that costs more");
    if (crossing->exists <= 0) {
        crossing->lo = crossing->hi = NAN;
        crossing->interval_reason = crossing->reason;
        crossing->at = crossing->exists ? (double)NAN : INFINITY;
    }
}

/* Sets at_end and, if the series is ordered by steps, steps_end. */
static void set_end(json_t *j, const struct meeting *meeting)
{
    double end = meeting->board ? end_of(meeting) : (double)NAN;
    rec_set_number(j, "at_end", end, "does not exist");
    if (meeting_series(meeting).v->work == POINTS_STEPS)
        rec_set_number(j, "steps_end", end, "does not exist");
}

json_t *meeting_parity(const struct meeting *meeting)
{
    struct crossing crossing = quality_of(meeting);
    const struct ratio none = {.value = NAN, .lo = NAN, .hi = NAN, .reason = crossing.reason};
    const struct ratio *ratio = crossing.exists > 0 ? ratio_at(meeting, crossing.at) : &none;
    crossing.name = "X_par";
    crossing.method = "X_q where the paired ratio of the cost is shown to be at most 1";
    if (crossing.exists > 0)
        decide_parity(meeting, &crossing, ratio);
    json_t *j = record_of(meeting, &crossing, meeting->board->quality);
    set_end(j, meeting);
    rec_set_number(j, "speedup", 1 / ratio->value, ratio->reason);
    rec_set_number(j, "speedup_lo", 1 / ratio->hi, ratio->reason);
    rec_set_number(j, "speedup_hi", 1 / ratio->lo, ratio->reason);
    return j;
}
