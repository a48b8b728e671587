/* pareto - metric and quality records in; the front, the crossovers and the next points to run out.
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
#include "lib/analysis/verdict/noninferior.h"
#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/record/rec.h"
#include "lib/record/take.h"

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
    struct field field; /* the points at hand */
    struct pairs times;
    struct costs costs;
    json_t *told;       /* reason why a crossover does not exist -> how many */
    double *work;       /* [3 * draws + 1] */
};

/* ---- the front ---- */

static json_t *front_of(struct pareto *p, const struct field_board *b, size_t i, double share,
                        int on)
{
    const struct field *f = &p->field;
    const struct point *pt = field_point(f, i);
    struct interval q = field_quality_interval(f, b, i, p->work);
    struct standing s = {
        .cost_metric = p->points.cost_metric, .quality_metric = b->quality->is.name,
        .cost_higher = p->points.cost_higher, .quality_higher = b->quality->is.higher,
        .cost_lo = pt->cost_lo, .cost_hi = pt->cost_hi, .quality = b->value[i],
        .quality_lo = b->n < 2 ? (double)NAN : q.lo, .quality_hi = b->n < 2 ? (double)NAN : q.hi,
        .share = share, .on = on, .draws = f->draws, .prompts = b->n,
        .ratio = &f->ratio[i].ratio, .task = p->a.task,
        .base = f->base < f->n ? field_point(f, f->base)->id : NULL,
        .excluded_prompts = b->left_out};
    for (size_t k = 0; k < f->n; k++)
        s.excluded_points += isnan(f->cost[k]) || isnan(b->value[k]) ? 1 : 0;
    return crossing_front(pt, &s, LEVEL);
}

static int write_front(struct pareto *p, const struct field_board *b, struct err *e)
{
    const struct field *f = &p->field;
    size_t *draws_on = mem_zero(f->n, sizeof *draws_on);
    unsigned char *on = mem_zero(f->n, 1);
    int bad = 0;
    size_t *order = mem_zero(f->n, sizeof *order);
    struct contest c = field_contest(f, b);
    contest_front(&c, draws_on, on, order);
    for (size_t i = 0; !bad && i < f->n; i++) {
        if (isnan(field_point(f, i)->cost) || isnan(b->value[i]))
            continue;
        json_t *j = front_of(p, b, i, (double)draws_on[i] / (double)f->draws, on[i]);
        bad = rec_write(&p->out, "front", j, e);
    }
    free(order);
    free(draws_on);
    free(on);
    return bad;
}

/* ---- the crossovers ---- */

/* Counts the reason why a crossover does not exist. */
static void count_reason(struct pareto *p, const char *name, const json_t *record)
{
    const char *reason = rec_text(record, "reason");
    if (!reason)
        return;
    char *key = mem_format("%s: %s", name, reason);
    json_object_set_new(p->told, key,
                        json_integer(json_integer_value(json_object_get(p->told, key)) + 1));
    free(key);
}

/* Steals the record. */
static int write_crossing(struct pareto *p, json_t *j, struct err *e)
{
    if (!json_is_false(json_object_get(j, "exists")))
        count_reason(p, rec_text(j, "name"), j);
    return rec_write(&p->out, "crossover", j, e);
}

static int write_suggest(struct pareto *p, const struct meeting *m, struct err *e)
{
    const struct crossing_series s = meeting_series(m);
    const struct field_board *b = m->board;
    struct contest_advice a;
    contest_advise(&m->found, b ? b->n : 0, s.v[0].at, s.v[s.n - 1].at, s.v->length,
                   strtod(p->a.octaves, NULL), &a);
    json_t *j = crossing_suggest(&s, field_point(&p->field, m->pair.rival),
                                 b ? b->quality->is.name : NULL, &m->found, &a);
    return rec_write(&p->out, "suggest", j, e);
}

/* One sweep against one rival. */
static int write_pair(struct pareto *p, struct meeting *m, struct err *e)
{
    const struct field *f = &p->field;
    field_against(&p->field, m->pair.rival);
    m->board = NULL;
    meeting_solve(m, p->work);
    if (write_crossing(p, meeting_latency(m), e) ||
        (p->a.suggest && !f->n_boards && write_suggest(p, m, e)))
        return -1;
    for (size_t k = 0; k < f->n_boards; k++) {
        m->board = &f->board[k];
        meeting_solve(m, p->work);
        if (write_crossing(p, meeting_quality(m), e) || write_crossing(p, meeting_parity(m), e) ||
            (p->a.suggest && write_suggest(p, m, e)))
            return -1;
    }
    return 0;
}

static int write_none(struct pareto *p, const struct meeting *m, const char *reason,
                      struct err *e)
{
    int bad = rec_write(&p->out, "crossover", meeting_none(m, "X_lat", NULL, reason), e);
    for (size_t k = 0; !bad && k < 2 * p->n_qualities; k++)
        bad = rec_write(&p->out, "crossover", meeting_none(m, k % 2 ? "X_par" : "X_q",
                                                           &p->quality[k / 2], reason), e);
    return bad;
}

/* The rival of this plain LLaMA's model and formats that costs least in pairs with it. The choice
 * makes its cost look lower than it is, and nothing corrects this. */
static size_t find_fastest(struct pareto *p, size_t of, size_t plain)
{
    struct field *f = &p->field;
    size_t best = plain, paired = 0;
    field_against(f, plain);
    for (size_t i = 0; i < f->n; i++) {
        if (i == plain || field_rank(f, of, i) < 0 || isnan(f->cost[i]) ||
            !points_same_system(field_point(f, i), field_point(f, plain)))
            continue;
        paired++;
        best = isnan(f->cost[best]) || f->cost[i] < f->cost[best] ? i : best;
    }
    if (!paired)
        log_note(&p->log, "%s: no other LLaMA of its model and formats has pairs with it, so the "
                 "plain one is the rival", field_point(f, plain)->config);
    return best;
}

/* 1: an earlier rival of this rank stands for the same model and formats. */
static int is_met(const struct field *f, size_t of, size_t rival)
{
    const int rank = field_rank(f, of, rival);
    for (size_t i = 0; i < rival; i++)
        if (field_rank(f, of, i) == rank && points_same_system(field_point(f, i),
                                                               field_point(f, rival)))
            return 1;
    return 0;
}

/* Compares a sweep with the rivals of the best rank: plain points, if possible of the same number
 * format. Or with the fastest of each one's model and formats. */
static int write_sweep(struct pareto *p, struct meeting *m, struct err *e)
{
    const struct field *f = &p->field;
    const struct crossing_series s = meeting_series(m);
    const char *obstacle = crossing_obstacle(&s);
    const int is_fastest = !strcmp(p->a.rival, "fastest");
    int any = 0;
    for (int rank = 0; rank < POINTS_RANKS && !any; rank++)
        for (size_t i = 0; i < f->n; i++) {
            if (field_rank(f, m->pair.from, i) != rank ||
                (is_fastest && is_met(f, m->pair.from, i)))
                continue;
            any = 1;
            m->pair.rival = is_fastest ? find_fastest(p, m->pair.from, i) : i;
            if (obstacle ? write_none(p, m, obstacle, e) : write_pair(p, m, e))
                return -1;
        }
    m->pair.rival = f->n;
    if (any && obstacle)
        log_warn(&p->log, "W034", "%s: no crossover: %s", s.v->config, obstacle);
    if (any)
        return 0;
    char *why = crossing_no_rival(&p->points, s.v);
    log_warn(&p->log, "W034", "%s: no crossover: %s", s.v->config, why);
    free(why);
    return write_none(p, m, "no LLaMA configuration of this device, batch, length and contract", e);
}

static int write_field(struct pareto *p, struct err *e)
{
    const struct field *f = &p->field;
    int bad = 0;
    for (size_t k = 0; k < f->n_boards; k++)
        if (f->board[k].left_out > f->board[k].n)
            log_warn(&p->log, "W031", "%s: %zu prompts lack this quality somewhere and are left "
                     "out, %zu remain; score every configuration", f->board[k].quality->is.name,
                     f->board[k].left_out, f->board[k].n);
    for (size_t k = 0; !bad && k < f->n_boards; k++)
        bad = write_front(p, &f->board[k], e);
    for (size_t i = 0, end; !bad && i < f->n; i = end) {
        const struct point *first = field_point(f, i);
        end = field_series_end(f, i);
        if (end - i > CROSSOVER_MAX)
            return err_set(e, EXIT_BAD_DATA, "%s: expected at most %d points in a series, got %zu",
                           first->config, CROSSOVER_MAX, end - i);
        if (first->is_diffusion && (end - i > 1 || !field_has_sweep(f)))
            bad = write_sweep(p, &(struct meeting){.field = &p->field,
                                                   .pair = {.from = i, .to = end}}, e);
    }
    return bad;
}

static int write_all(struct pareto *p, struct err *e)
{
    int bad = 0;
    for (size_t from = 0; !bad && from < p->points.n; from += p->field.n) {
        field_open(&p->field, &p->points, from, &p->costs, p->quality, p->n_qualities);
        bad = write_field(p, e);
        field_free(&p->field);
    }
    return bad;
}

/* Crossovers along batch sizes and along lengths. */
static int write_scaling(struct pareto *p, struct err *e)
{
    json_t *list = scaling_records(&p->points, &p->costs, !strcmp(p->a.rival, "fastest")), *r;
    size_t i;
    int bad = 0;
    json_array_foreach(list, i, r)
        bad = bad || rec_write(&p->out, "crossover", json_incref(r), e);
    json_decref(list);
    return bad ? -1 : 0;
}

/* -1: --axis is a batch size or length, at which points compete, or no point has it. */
static int check_axis(const struct pareto *p, struct err *e)
{
    static const char *const sizes[] = {"batch", "gen_length", "max_new"};
    const char *axis = p->a.axis;
    for (size_t i = 0; axis && i < sizeof sizes / sizeof *sizes; i++)
        if (!strcmp(axis, sizes[i]))
            return err_set(e, EXIT_BAD_USAGE, "--axis %s: points compete at one batch size and "
                           "length; expected another setting", axis);
    for (size_t i = 0; axis && i < p->points.n; i++)
        if (p->points.v[i].is_diffusion && points_value(&p->points.v[i]))
            return 0;
    return axis ? err_set(e, EXIT_BAD_DATA, "--axis %s: no record of a diffusion model has this "
                          "setting", axis)
                : 0;
}

/* Sets the qualities: those of --quality, by default the usual ones that the records have. */
static int choose_qualities(struct pareto *p, char *list, struct err *e)
{
    char *rest = NULL;
    for (char *s = strtok_r(list, ",", &rest); s; s = strtok_r(NULL, ",", &rest)) {
        struct field_quality q = {.is = pooled_find(s)};
        size_t at = points_metric(&p->points, q.is.source);
        int is_met = at < p->points.n_metrics;
        if (!is_met && !p->a.quality)
            continue;
        if (!is_met)
            log_warn(&p->log, "W032", "no quality records of '%s' for '%s'", q.is.source, s);
        else if (q.is.higher < 0 && (q.is.higher = p->points.higher[at]) < 0)
            return err_set(e, EXIT_BAD_DATA, "%s: its records have no direction (lower or higher "
                                             "is better)", s);
        if (p->n_qualities == FIELD_QUALITIES)
            return err_set(e, EXIT_BAD_USAGE, "--quality: expected at most %d names, got '%s' too",
                           FIELD_QUALITIES, s);
        if (pooled_margin_parse(p->a.margin, s, &q.margin))
            return err_set(e, EXIT_BAD_USAGE, "--margin: expected a number, a percentage, or a "
                           "list NAME=NUMBER,... not below 0, got '%s'", p->a.margin);
        p->quality[p->n_qualities++] = q;
    }
    return 0;
}

static int take(void *ctx, const json_t *r, struct err *e)
{
    struct pareto *p = ctx;
    int times = pairs_take(&p->times, r, e);
    return times ? times : points_take(&p->points, r, e);
}

static const char examples[] =
    "pareto metrics.ndjson quality.ndjson > front.ndjson\n"
    "cat *.ndjson | pareto --quality=accuracy --margin=0.01 --suggest\n";
static const char notes[] =
    "A sweep is the points of a model that differ in one setting, its axis. Its\n"
    "points are ordered by steps if these are the axis, else by the passes (or rows)\n"
    "measured; over, at, lo, hi and bracket of a record then count these. If a point\n"
    "has several sets of prompts, the largest counts.\n"
    "  front        p_front is the share of draws in which the point is on the front:\n"
    "               `on` from 0.95, `off` to 0.05, else `possible`. Equal points\n"
    "               stay. Qualities have Wilson's interval if answers are right or\n"
    "               wrong, else that of the draws.\n"
    "  X_lat        where LLaDA costs as much as LLaMA; it is cheaper with less work\n"
    "  X_q          the least work from which on LLaDA is shown to lose less quality\n"
    "               than --margin. Tests run from the most work down, each at\n"
    "               one-sided 2.5 %, until one fails; at least 30 prompts.\n"
    "               `estimate`, [est_lo, est_hi]: between points.\n"
    "  X_par        X_q if that point is shown to cost no more, with the speedup\n"
    "               there\n"
    "\n"
    "Crossovers compare with the plain point of LLaMA: every setting that only\n"
    "changes speed, as --lookup, has its default. Without a plain point another one\n"
    "is used. --rival fastest compares with the LLaMA point of the same model and\n"
    "number formats that costs least (LLaMA at its best, as with --lookup or\n"
    "--draft), at each batch size and length by itself. It needs costs of pairs with\n"
    "the plain point. The choice is not corrected for: chance makes the chosen point\n"
    "look faster than it is.\n"
    "The front is found among all points.\n"
    "Costs are ratios to LLaMA over the same undisturbed prompts and launches: of\n"
    "latency from times records, of other costs from launch values. They need five\n"
    "launches and are else null with the reason.\n"
    "  X_batch, X_length\n"
    "    the batch size and the length at which a LLaDA setting costs as much as\n"
    "    LLaMA: along batch sizes with all else equal, along lengths with the same\n"
    "    number of tokens a step. direction: cheaper_up_to it, or cheaper_from it on.\n"
    "Nothing is extrapolated. A crossover outside of the measured range is null, and\n"
    "`censored` names the side. exists is false if it is shown that there is none,\n"
    "null if that is undecided. `bracket` needs no model: the last point below and\n"
    "the first above. `probability` is the share of draws in which the crossover\n"
    "exists. With fewer than 300 prompts X_q is seldom known better than within a\n"
    "factor of three; --suggest writes the number of prompts that would suffice.\n";

static void check(struct pareto *p, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&p->out);
    err_die("pareto", e);
}

int main(int argc, char **argv)
{
    struct pareto p = {.a = {.common = COMMON_DEFAULTS, .cost = "e2e_ns", .octaves = "1",
                             .rival = "plain",
                             .margin = NONINFERIOR_MARGIN, .draws = 2000}};
    const struct opt options[] = {
        {"cost", 0, OPT_TEXT, &p.a.cost, .arg = "METRIC", .help = "metric of the cost (e2e_ns)"},
        {"quality", 0, OPT_TEXT, &p.a.quality, .arg = "LIST",
         .help = "metrics of quality (those present of judge_ppl,accuracy,chrf,bertscore_f1)"},
        {"margin", 0, OPT_TEXT, &p.a.margin, .arg = "M",
         .help = "loss of quality that counts as none: 0.02, 1%, or judge_ppl=1%,accuracy=0.02 ("
                 NONINFERIOR_MARGIN ")"},
        {"task", 0, OPT_TEXT, &p.a.task, .arg = "NAME",
         .help = "use only prompts of this task"},
        {"draws", 0, OPT_INT, &p.a.draws, 100, 100000, .arg = "N",
         .help = "bootstrap resamples (2000)"},
        {"axis", 0, OPT_TEXT, &p.a.axis, .arg = "SETTING",
         .help = "axis of all sweeps (the axis in each record)"},
        {"rival", 0, OPT_CHOICE, &p.a.rival, .choices = "plain|fastest",
         .help = "LLaMA point that sweeps are compared with: of plain decoding, or the fastest "
                 "(plain)"},
        {"suggest", 0, OPT_FLAG, &p.a.suggest,
         .help = "also write which points and prompts to add"},
        {"octaves", 0, OPT_CHOICE, &p.a.octaves, .choices = "2|1|0.5|0.25", .arg = "N",
         .help = "--suggest: bracket width, in factors of two, that needs no more points (1)"},
        TAKE_OPTION(p.a.max_failed),
        OPT_COMMON(p.a.common),
        {0}};
    const struct tool tool = {"pareto", "metric and quality records in, front and crossovers out",
                              examples, notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    p.log = (struct log){"pareto", p.a.common.quiet ? 0 : 1 + p.a.common.verbose};
    p.points.cost_metric = p.a.cost;
    p.points.axis = p.a.axis;
    p.points.task = p.a.task;
    p.told = json_object();
    p.work = mem_zero(3 * (size_t)p.a.draws + 1, sizeof *p.work);
    struct rec_reader *in = rec_read_open((const char *const *)argv + first,
                                          (size_t)(argc - first), &e);
    check(&p, !in || rec_open(&p.out, &p.a.common, "pareto", argc, argv, NULL, &e), &e);
    check(&p, take_all(&p.seen, in, &p.out, &p.log, p.a.common.limit, take, &p, &e), &e);
    rec_read_close(in);
    if (!p.seen.taken && !p.seen.bad)
        check(&p, err_set(&e, EXIT_BAD_DATA, "no metric records of '%s' and no quality "
                          "records in the input", p.a.cost), &e);
    points_finish(&p.points);
    p.costs = (struct costs){&p.times, p.a.cost, p.a.task, p.points.cost_higher, LEVEL,
                             rng_derive((uint64_t)p.a.common.seed, "launches and prompts"),
                             (size_t)p.a.draws};
    char *list = mem_text(p.a.quality ? p.a.quality : default_qualities);
    check(&p, check_axis(&p, &e) || choose_qualities(&p, list, &e) || write_all(&p, &e) ||
                  write_scaling(&p, &e), &e);
    if (p.points.set_aside)
        log_note(&p.log, "%zu measurements left out, because their points were also measured on "
                         "more prompts",
                 p.points.set_aside);
    const char *why;
    json_t *times;
    json_object_foreach(p.told, why, times)
        log_note(&p.log, "%s (%lld times)", why, (long long)json_integer_value(times));
    if (p.points.dropped)
        log_note(&p.log, "%lld records without a value left out", (long long)p.points.dropped);
    int code = take_verdict(&p.seen, &p.log, p.a.max_failed);
    check(&p, rec_close(&p.out, code ? "failed" : "ok", &e), &e);
    points_free(&p.points);
    pairs_free(&p.times);
    json_decref(p.told);
    free(list);
    free(p.work);
    return code;
}
