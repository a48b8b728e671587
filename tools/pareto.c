/* pareto - computes the front, the crossovers and the next points to run from metric and quality
 * records.
 *
 * Points of one device, batch size, length and contract compete with each other (field.h). Every
 * uncertain number is a share or a percentile of one set of draws. A sweep is the series along the
 * axis of its records, or along --axis. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/points/field.h"
#include "lib/analysis/points/meeting.h"
#include "lib/analysis/points/points.h"
#include "lib/analysis/points/scaling.h"
#include "lib/analysis/records/scale.h"
#include "lib/analysis/records/source.h"
#include "lib/analysis/verdict/noninferior.h"
#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/record/rec.h"
#include "lib/analysis/records/take.h"
#include "lib/stat/ratio.h"

static const double LEVEL = 0.95;
static const char default_qualities[] = "judge_ppl,accuracy,chrf,bertscore_f1";

struct args {
    struct common common;
    const char *cost, *quality, *margin, *axis, *octaves, *task, *rival;
    int64_t draws, max_failed;
    int suggest;
};

struct pareto {
    struct args a;
    struct log log;
    struct rec_writer out;
    struct take seen;
    struct points points;
    struct field_quality quality[FIELD_QUALITIES];
    size_t n_qualities;
    struct field field; /* the points that compete with each other in the current step */
    struct pairs times;
    struct source source;
    struct costs costs;
    enum points_rivals rivals;
    json_t *x_q;        /* the X_q records of the input */
    json_t *told;       /* reason why a crossover does not exist -> number of such crossovers */
    double *work;       /* [3 * draws + 1] */
};

/* ---- the front ---- */

static json_t *front_of(struct pareto *run, const struct field_board *board, size_t i, double share,
                        int on)
{
    const struct field *field = &run->field;
    const struct point *pt = field_point(field, i);
    struct interval interval = field_quality_interval(field, board, i, run->work);
    struct standing standing = {
        .cost_metric = run->points.cost_metric, .quality_metric = board->quality->is.name,
        .cost_higher = run->points.cost_higher, .quality_higher = board->quality->higher,
        .cost_lo = pt->cost_lo, .cost_hi = pt->cost_hi, .quality = board->value[i],
        .quality_lo = board->n < 2 ? (double)NAN : interval.lo,
        .quality_hi = board->n < 2 ? (double)NAN : interval.hi, .share = share, .on = on,
        .draws = field->draws, .prompts = board->n, .ratio = &field->ratio[i].ratio,
        .task = run->a.task,
        .base = field->base < field->n ? field_point(field, field->base)->id : NULL,
        .excluded_prompts = board->left_out};
    for (size_t k = 0; k < field->n; k++)
        standing.excluded_points += isnan(field->cost[k]) || isnan(board->value[k]) ? 1 : 0;
    return crossing_front(pt, &standing, LEVEL);
}

static int write_front(struct pareto *run, const struct field_board *board, struct err *e)
{
    const struct field *field = &run->field;
    size_t *draws_on = mem_zero(field->n, sizeof *draws_on);
    unsigned char *on = mem_zero(field->n, 1);
    int bad = 0;
    size_t *order = mem_zero(field->n, sizeof *order);
    struct contest contest = field_contest(field, board);
    contest_front(&contest, draws_on, on, order);
    for (size_t i = 0; !bad && i < field->n; i++) {
        if (isnan(field_point(field, i)->cost) || isnan(board->value[i]))
            continue;
        json_t *j = front_of(run, board, i, (double)draws_on[i] / (double)field->draws, on[i]);
        bad = rec_write(&run->out, "front", j, e);
    }
    free(order);
    free(draws_on);
    free(on);
    return bad;
}

/* ---- the crossovers ---- */

/* Counts the reason why a crossover does not exist. */
static void count_reason(struct pareto *run, const char *name, const json_t *record)
{
    const char *reason = rec_text(record, "reason");
    if (!reason)
        return;
    char *key = mem_format("%s: %s", name, reason);
    json_object_set_new(run->told, key,
                        json_integer(json_integer_value(json_object_get(run->told, key)) + 1));
    free(key);
}

/* Writes a crossover record; takes over the reference to j. */
static int write_crossing(struct pareto *run, json_t *j, struct err *e)
{
    if (!json_is_false(json_object_get(j, "exists")))
        count_reason(run, rec_text(j, "name"), j);
    return rec_write(&run->out, "crossover", j, e);
}

static int write_suggest(struct pareto *run, const struct meeting *meeting, struct err *e)
{
    const struct crossing_series series = meeting_series(meeting);
    const struct field_board *board = meeting->board;
    struct contest_advice advice;
    contest_advise(&meeting->found, board ? board->n : 0, series.v[0].at, series.v[series.n - 1].at,
                   series.v->length, strtod(run->a.octaves, NULL), &advice);
    json_t *j = crossing_suggest(&series, field_point(&run->field, meeting->pair.rival),
                                 board ? board->quality->is.name : NULL, &meeting->found, &advice);
    return rec_write(&run->out, "suggest", j, e);
}

/* Writes the crossovers of one sweep against one rival. Points to add are suggested once: of two
 * rivals, for the plain one. */
static int write_pair(struct pareto *run, struct meeting *meeting, struct err *e)
{
    const struct field *field = &run->field;
    const int suggest = run->a.suggest && !(run->rivals == POINTS_BOTH && meeting->candidates);
    field_against(&run->field, meeting->pair.rival);
    meeting->board = NULL;
    meeting_solve(meeting, run->work);
    if (write_crossing(run, meeting_latency(meeting), e) ||
        (suggest && !field->n_boards && write_suggest(run, meeting, e)))
        return -1;
    for (size_t k = 0; k < field->n_boards; k++) {
        meeting->board = &field->board[k];
        meeting_solve(meeting, run->work);
        if (write_crossing(run, meeting_quality(meeting), e) ||
            write_crossing(run, meeting_parity(meeting), e) ||
            (suggest && write_suggest(run, meeting, e)))
            return -1;
    }
    return 0;
}

static int write_none(struct pareto *run, const struct meeting *meeting, const char *reason,
                      struct err *e)
{
    int bad = rec_write(&run->out, "crossover", meeting_none(meeting, "X_lat", NULL, reason), e);
    for (size_t k = 0; !bad && k < 2 * run->n_qualities; k++)
        bad = rec_write(&run->out, "crossover", meeting_none(meeting, k % 2 ? "X_par" : "X_q",
                                                             &run->quality[k / 2], reason), e);
    return bad;
}

/* Returns 1 if an earlier rival has the same rank, model and formats as this rival. */
static int is_met(const struct field *field, size_t of, size_t rival)
{
    const int rank = field_rank(field, of, rival);
    for (size_t i = 0; i < rival; i++)
        if (field_rank(field, of, i) == rank && points_same_system(field_point(field, i),
                                                                   field_point(field, rival)))
            return 1;
    return 0;
}

/* Writes the crossovers of a sweep against one rival. `among`: it is the fastest of these points,
 * so that intervals of costs are wider; empty: it was not chosen by its cost. */
static int write_rival(struct pareto *run, struct meeting *meeting, size_t rival, const char *word,
                       const json_t *among, struct err *e)
{
    const struct crossing_series series = meeting_series(meeting);
    const char *obstacle = crossing_obstacle(&series);
    meeting->pair.rival = rival;
    meeting->rival = word;
    meeting->candidates = json_array_size(among);
    meeting->among = meeting->candidates ? among : NULL;
    run->costs.level = ratio_level(LEVEL, meeting->candidates);
    int bad = obstacle ? write_none(run, meeting, obstacle, e) : write_pair(run, meeting, e);
    run->costs.level = LEVEL;
    return bad;
}

/* Writes the crossovers against the plain point i and the fastest point of its model and formats,
 * or one of them, as --rival says. */
static int write_rivals(struct pareto *run, struct meeting *meeting, size_t i, struct err *e)
{
    const int is_plain = field_point(&run->field, i)->is_plain;
    const int seek = !is_met(&run->field, meeting->pair.from, i) &&
                     (run->rivals == POINTS_FASTEST || (run->rivals == POINTS_BOTH && is_plain));
    json_t *among = json_array();
    const size_t best = seek ? field_fastest(&run->field, i, among) : i;
    const int is_alone = !json_array_size(among);
    if (seek && is_alone && run->rivals == POINTS_FASTEST)
        log_note(&run->log, "%s: no other LLaMA point of this model and these formats is paired "
                 "with it, so this plain point is the rival", field_point(&run->field, i)->config);
    const char *word = !is_plain ? "other" : !is_alone && best == i ? "both" : "plain";
    int bad = run->rivals != POINTS_FASTEST && write_rival(run, meeting, i, word, NULL, e);
    if (!bad && seek && (run->rivals == POINTS_FASTEST || best != i))
        bad = write_rival(run, meeting, best, "fastest", among, e);
    json_decref(among);
    return bad ? -1 : 0;
}

/* Compares a sweep with its rivals: the plain points of the best rank, and the fastest points of
 * their models and formats. Points with the number format of the sweep have a better rank. */
static int write_sweep(struct pareto *run, struct meeting *meeting, struct err *e)
{
    const struct field *field = &run->field;
    const struct crossing_series series = meeting_series(meeting);
    const char *obstacle = crossing_obstacle(&series);
    int any = 0;
    for (int rank = 0; rank < POINTS_RANKS && !any; rank++)
        for (size_t i = 0; i < field->n; i++) {
            if (field_rank(field, meeting->pair.from, i) != rank)
                continue;
            any = 1;
            if (write_rivals(run, meeting, i, e))
                return -1;
        }
    meeting->pair.rival = field->n;
    if (any && obstacle)
        log_warn(&run->log, "W034", "%s: no crossover: %s", series.v->config, obstacle);
    if (any)
        return 0;
    char *why = crossing_no_rival(&run->points, series.v);
    log_warn(&run->log, "W034", "%s: no crossover: %s", series.v->config, why);
    free(why);
    return write_none(run, meeting,
                      "no LLaMA configuration of this device, batch, length, contract and "
                      "prompts", e);
}

static int write_field(struct pareto *run, struct err *e)
{
    const struct field *field = &run->field;
    int bad = 0;
    for (size_t k = 0; k < field->n_boards; k++)
        if (field->board[k].left_out > field->board[k].n)
            log_warn(&run->log, "W031", "%s: %zu prompts lack this quality somewhere and are left "
                     "out, %zu remain; score every configuration", field->board[k].quality->is.name,
                     field->board[k].left_out, field->board[k].n);
    for (size_t k = 0; !bad && k < field->n_boards; k++)
        bad = write_front(run, &field->board[k], e);
    for (size_t i = 0, end; !bad && i < field->n; i = end) {
        const struct point *first = field_point(field, i);
        end = field_series_end(field, i);
        if (end - i > CROSSOVER_MAX)
            return err_set(e, EXIT_BAD_DATA, "%s: expected at most %d points in a series, got %zu",
                           first->config, CROSSOVER_MAX, end - i);
        if (first->is_diffusion && (end - i > 1 || !field_has_sweep(field)))
            bad = write_sweep(run, &(struct meeting){.field = &run->field,
                                                     .pair = {.from = i, .to = end}}, e);
    }
    return bad;
}

static int write_all(struct pareto *run, struct err *e)
{
    int bad = 0;
    for (size_t from = 0; !bad && from < run->points.n; from += run->field.n) {
        field_open(&run->field, &run->points, from, &run->costs, run->quality, run->n_qualities);
        bad = write_field(run, e);
        field_free(&run->field);
    }
    return bad;
}

/* Writes the crossovers along batch sizes and along lengths. */
static int write_scaling(struct pareto *run, struct err *e)
{
    json_t *list = scaling_records(&run->points, &run->costs,
                                   &(struct scaling_how){run->rivals, run->x_q}),
           *record;
    size_t i;
    int bad = 0;
    json_array_foreach(list, i, record)
        bad = bad || rec_write(&run->out, "crossover", json_incref(record), e);
    json_decref(list);
    return bad ? -1 : 0;
}

/* Returns -1 if --axis is a batch size or a length, or if no point has this axis. Points compete
 * only at one batch size and length, so these cannot be an axis. */
static int check_axis(const struct pareto *run, struct err *e)
{
    static const char *const sizes[] = {"batch", "gen_length", "max_new"};
    const char *axis = run->a.axis;
    for (size_t i = 0; axis && i < sizeof sizes / sizeof *sizes; i++)
        if (!strcmp(axis, sizes[i]))
            return err_set(e, EXIT_BAD_USAGE, "--axis %s: points compete at one batch size and "
                           "length; expected another setting", axis);
    for (size_t i = 0; axis && i < run->points.n; i++)
        if (run->points.v[i].is_diffusion && points_value(&run->points.v[i]))
            return 0;
    return axis ? err_set(e, EXIT_BAD_DATA, "--axis %s: no record of a diffusion model has this "
                          "setting", axis)
                : 0;
}

/* Sets the qualities from --quality, or else the usual qualities that the records have. */
static int choose_qualities(struct pareto *run, char *list, struct err *e)
{
    char *rest = NULL;
    for (char *text = strtok_r(list, ",", &rest); text; text = strtok_r(NULL, ",", &rest)) {
        struct field_quality quality = {.is = pooled_find(text)};
        size_t at = points_metric(&run->points, quality.is.source);
        int is_met = at < run->points.n_metrics;
        if (!is_met && !run->a.quality)
            continue;
        quality.higher = is_met ? run->points.higher[at] : scale_higher(quality.is.source, NULL);
        if (!is_met)
            log_warn(&run->log, "W032", "no quality records of '%s' for '%s'", quality.is.source,
                     text);
        else if (quality.higher < 0)
            return err_set(e, EXIT_BAD_DATA, "%s: its records have no direction (lower or higher "
                                             "is better)", text);
        if (run->n_qualities == FIELD_QUALITIES)
            return err_set(e, EXIT_BAD_USAGE, "--quality: expected at most %d names, got '%s' too",
                           FIELD_QUALITIES, text);
        if (pooled_margin_parse(run->a.margin, text, &quality.margin))
            return err_set(e, EXIT_BAD_USAGE, "--margin: expected a number, a percentage, or a "
                           "list NAME=NUMBER,... not below 0, got '%s'", run->a.margin);
        run->quality[run->n_qualities++] = quality;
    }
    return 0;
}

static int take(void *ctx, const json_t *record, struct err *e)
{
    struct pareto *run = ctx;
    if (!strcmp(rec_kind(record), "crossover") && rec_is(record, "name", "X_q")) {
        json_array_append(run->x_q, (json_t *)(uintptr_t)record);
        return 0;
    }
    int is_cost = rec_is(record, "kind", "metric") && rec_is(record, "metric", run->a.cost);
    if (source_single(&run->source, record, is_cost, e) && (run->seen.unsound = 1))
        return -1;
    int times = pairs_take(&run->times, record, e);
    return times ? times : points_take(&run->points, record, e);
}

static const char examples[] =
    "pareto metrics.ndjson quality.ndjson > front.ndjson\n"
    "cat *.ndjson | pareto --quality=accuracy --margin=0.01 --suggest\n";
static const char notes[] =
    "A sweep is the points of a model that differ in one setting, its axis. Its\n"
    "points are ordered by steps if steps are the axis, else by the measured passes\n"
    "(or rows). Then at, lo, hi and bracket of a record count passes (or rows), as\n"
    "`over` says. If a point has several sets of prompts, the largest counts.\n"
    "  front        p_front is the share of draws in which the point is on the front:\n"
    "               `on` from 0.95, `off` to 0.05, else `possible`. Equal points\n"
    "               stay. Qualities have Wilson's interval if answers are right or\n"
    "               wrong, else that of the draws.\n"
    "  X_lat        the work at which LLaDA costs as much as LLaMA; with less work\n"
    "               LLaDA is cheaper\n"
    "  X_q          the least work from which on LLaDA is shown to lose less quality\n"
    "               than --margin. Tests run from the most work down, each at\n"
    "               one-sided 2.5 %, until one fails; at least 30 prompts.\n"
    "               `estimate`, [est_lo, est_hi]: between points.\n"
    "  X_par        X_q if that point is shown to cost no more, with the speedup\n"
    "               there\n"
    "\n"
    "Crossovers compare with two points of LLaMA, which `rival` tells apart. plain:\n"
    "every setting that only changes speed, as --lookup, has its default. fastest:\n"
    "the point of the same model and number formats that costs least, LLaMA at its\n"
    "best, for example with --lookup. both: the plain point is the fastest of\n"
    "several. other: there is no plain point. Each batch size and length has its own\n"
    "fastest point, and the costs of a point must be paired with those of the plain\n"
    "point. Chance takes part in the choice of the fastest of n points, the plain\n"
    "one included, so intervals against it have 1 - 0.05 / n. `comparisons` is n;\n"
    "along batch sizes, lengths and rates it is the sum over all cells (Bonferroni).\n"
    "The front is found among all points.\n"
    "Costs are ratios to LLaMA over the same undisturbed prompts and launches.\n"
    "Ratios of latency come from times records, ratios of other costs from launch\n"
    "values. A ratio of fewer than five launches is null with the reason.\n"
    "  X_batch, X_length, X_rate\n"
    "    the batch size, the length, and the rate of arrivals (--arrival-rate) at\n"
    "    which a LLaDA setting costs as much as LLaMA: along batch sizes and rates\n"
    "    with all else equal, along lengths with the same number of tokens a step.\n"
    "    direction: LLaDA is cheaper_up_to this size, or cheaper_from it on.\n"
    "    as_good of X_rate: whether X_q records in the input show that the step count\n"
    "    is as good as LLaMA.\n"
    "Nothing is extrapolated. A crossover outside of the measured range is null, and\n"
    "`censored` names the side. exists is false if it is shown that there is none,\n"
    "null if that is undecided. `bracket` needs no model: the last point below and\n"
    "the first above. `probability` is the share of draws in which the crossover\n"
    "exists. With fewer than 300 prompts X_q is seldom known better than within a\n"
    "factor of three; --suggest writes the number of prompts that would suffice.\n";

static void check(struct pareto *run, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&run->out);
    err_die("pareto", e);
}

int main(int argc, char **argv)
{
    struct pareto run = {.a = {.common = COMMON_DEFAULTS, .cost = "e2e_ns", .octaves = "1",
                               .rival = "both",
                               .margin = NONINFERIOR_MARGIN, .draws = 2000}};
    const struct opt options[] = {
        {"cost", 0, OPT_TEXT, &run.a.cost, .arg = "METRIC", .help = "metric of the cost (e2e_ns)"},
        {"quality", 0, OPT_TEXT, &run.a.quality, .arg = "LIST",
         .help = "metrics of quality (those present of judge_ppl,accuracy,chrf,bertscore_f1)"},
        {"margin", 0, OPT_TEXT, &run.a.margin, .arg = "M",
         .help = "loss of quality that counts as none: 0.02, 1%, or judge_ppl=1%,accuracy=0.02 ("
                 NONINFERIOR_MARGIN ")"},
        {"task", 0, OPT_TEXT, &run.a.task, .arg = "NAME",
         .help = "use only prompts of this task"},
        {"draws", 0, OPT_INT, &run.a.draws, 100, 100000, .arg = "N",
         .help = "bootstrap resamples (2000)"},
        {"axis", 0, OPT_TEXT, &run.a.axis, .arg = "SETTING",
         .help = "axis of all sweeps (the axis in each record)"},
        {"rival", 0, OPT_CHOICE, &run.a.rival, .choices = "both|plain|fastest",
         .help = "LLaMA point that sweeps are compared with: of plain decoding, the fastest, or "
                 "each of them (both)"},
        {"suggest", 0, OPT_FLAG, &run.a.suggest,
         .help = "also write which points and prompts to add"},
        {"octaves", 0, OPT_CHOICE, &run.a.octaves, .choices = "2|1|0.5|0.25", .arg = "N",
         .help = "--suggest: bracket width, in factors of two, that needs no more points (1)"},
        TAKE_OPTION(run.a.max_failed),
        OPT_COMMON(run.a.common),
        {0}};
    const struct tool tool = {"pareto", "metric and quality records in, front and crossovers out",
                              examples, notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    run.log = (struct log){"pareto", run.a.common.quiet ? 0 : 1 + run.a.common.verbose};
    run.rivals = !strcmp(run.a.rival, "plain")     ? POINTS_PLAIN
                 : !strcmp(run.a.rival, "fastest") ? POINTS_FASTEST
                                                   : POINTS_BOTH;
    run.points.cost_metric = run.a.cost;
    run.points.axis = run.a.axis;
    run.points.task = run.a.task;
    run.told = json_object();
    run.x_q = json_array();
    run.work = mem_zero(3 * (size_t)run.a.draws + 1, sizeof *run.work);
    struct rec_reader *in = rec_read_open((const char *const *)argv + first,
                                          (size_t)(argc - first), &e);
    check(&run, !in || rec_open(&run.out, &run.a.common, "pareto", argc, argv, NULL, &e), &e);
    check(&run, take_all(&run.seen, in, &run.out, &run.log, run.a.common.limit, take, &run, &e),
          &e);
    rec_read_close(in);
    if (!run.seen.taken && !run.seen.bad)
        check(&run, err_set(&e, EXIT_BAD_DATA, "no metric records of '%s' and no quality "
                            "records in the input", run.a.cost), &e);
    points_finish(&run.points);
    run.costs = (struct costs){&run.times, run.a.cost, run.a.task, run.points.cost_higher, LEVEL,
                               rng_derive((uint64_t)run.a.common.seed, "launches and prompts"),
                               (size_t)run.a.draws};
    char *list = mem_text(run.a.quality ? run.a.quality : default_qualities);
    check(&run, check_axis(&run, &e) || choose_qualities(&run, list, &e) || write_all(&run, &e) ||
                  write_scaling(&run, &e), &e);
    if (run.points.set_aside)
        log_note(&run.log, "%zu measurements left out, because their points were also measured on "
                           "more prompts",
                 run.points.set_aside);
    const char *why;
    json_t *times;
    json_object_foreach(run.told, why, times)
        log_note(&run.log, "%s (%lld times)", why, (long long)json_integer_value(times));
    if (run.points.dropped)
        log_note(&run.log, "%lld records without a value left out", (long long)run.points.dropped);
    int code = take_verdict(&run.seen, &run.log, run.a.max_failed);
    check(&run, rec_close(&run.out, code ? "failed" : "ok", &e), &e);
    points_free(&run.points);
    pairs_free(&run.times);
    source_free(&run.source);
    json_decref(run.told);
    json_decref(run.x_q);
    free(list);
    free(run.work);
    return code;
}
