/* pareto - metric and quality records in; the front, the crossovers and what to run next out.
 *
 * Points of one device, batch size and length compete with each other. Uncertain statements are a
 * share or a percentile of one set of draws, in which launches are resampled for the cost and
 * prompts for the quality: the same prompts for all points, so that models are compared in pairs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/opt.h"
#include "lib/base/rng.h"
#include "lib/analysis/crossing.h"
#include "lib/analysis/points.h"
#include "lib/record/rec.h"
#include "lib/record/take.h"
#include "lib/stat/bootstrap.h"
#include "lib/stat/contest.h"
#include "lib/stat/pooled.h"

static const double LEVEL = 0.95;
enum { MAX_QUALITIES = 16 };

struct quality {
    struct pooled_kind is;
    struct pooled_margin margin;
};

struct args {
    struct common common;
    const char *cost, *quality, *margin;
    int64_t draws, max_failed;
    int suggest;
};

/* One quality over the points of the group. */
struct board {
    const struct quality *quality;
    size_t n;                /* prompts that every point with this quality has */
    size_t left_out;         /* prompts that only some have */
    double *num, *den;       /* [points][n] */
    unsigned char *has;      /* [points] */
    double *value, *draw;    /* [points], [draws][points]; NaN where there is none */
    double *good, *good_draw; /* the same on the scale on which higher is better */
};

struct pareto {
    struct args a;
    struct log log;
    struct rec_writer out;
    struct take seen;
    struct points points;
    struct quality quality[MAX_QUALITIES];
    size_t n_qualities;
    /* the group at hand */
    size_t from, n;          /* its points */
    double *steps;           /* [n] */
    double *cost, *cost_draw; /* [n], [draws][n]: lower is better (1 / cost when more is better) */
    struct board board[MAX_QUALITIES];
    size_t draws;
    double *work;            /* [6 * draws + 1] */
};

static const struct point *point_at(const struct pareto *p, size_t i)
{
    return &p->points.v[p->from + i];
}

/* ---- the cost ---- */

/* One point's cost and its draws. Launches of one model move together: they share the stream. */
static void draw_cost(struct pareto *p, size_t i)
{
    const struct point *pt = point_at(p, i);
    size_t most = pt->n_launch > pt->n_sample ? pt->n_launch : pt->n_sample;
    uint32_t *work = mem_zero(2 * most, sizeof *work);
    char *stream = pt->n_launch > 1 ? mem_format("launch %s", pt->model)
                                    : mem_format("sample %s", pt->config);
    bootstrap_cost(pt->cost, pt->launch, pt->n_launch, pt->sample, pt->n_sample,
                   rng_derive((uint64_t)p->a.common.seed, stream), p->draws, p->cost_draw + i,
                   p->n, work);
    p->steps[i] = pt->steps;
    p->cost[i] = p->points.cost_higher ? 1 / pt->cost : pt->cost;
    for (size_t d = 0; p->points.cost_higher && d < p->draws; d++)
        p->cost_draw[d * p->n + i] = 1 / p->cost_draw[d * p->n + i];
    free(stream);
    free(work);
}

/* ---- the quality ---- */

/* Sums by prompt, over the prompts that all points with any have. */
static void fill_board(struct pareto *p, struct board *b)
{
    const struct pooled_kind *k = &b->quality->is;
    enum points_weight weight = k->weight == POOLED_BY_TOKEN  ? POINTS_BY_TOKEN
                                : k->weight == POOLED_BY_BYTE ? POINTS_BY_BYTE
                                                              : POINTS_BY_PROMPT;
    size_t ids = p->points.n_ids;
    unsigned char *there = mem_zero(p->n * ids, 1);
    b->num = mem_zero(p->n * ids, sizeof *b->num);
    b->den = mem_zero(p->n * ids, sizeof *b->den);
    b->has = mem_zero(p->n, 1);
    points_pool(&p->points, k->source, weight, p->from, p->n, b->num, b->den, there, b->has);
    b->n = pooled_common(b->num, b->den, there, b->has, p->n, ids, &b->left_out);
    free(there);
}

static void make_board(struct pareto *p, struct board *b, const struct quality *q)
{
    *b = (struct board){.quality = q};
    fill_board(p, b);
    b->value = mem_zero(p->n, sizeof *b->value);
    b->draw = mem_zero(p->draws * p->n, sizeof *b->draw);
    uint32_t *index = mem_zero(b->n, sizeof *index);
    pooled_draws(b->num, b->den, b->has, p->n, b->n, q->is.transform,
                 rng_derive((uint64_t)p->a.common.seed, "prompts"), p->draws, b->value, b->draw,
                 index);
    free(index);
    b->good = mem_zero(p->n, sizeof *b->good);
    b->good_draw = mem_zero(p->draws * p->n, sizeof *b->good_draw);
    for (size_t i = 0; i < p->n; i++)
        b->good[i] = pooled_scale(b->value[i], q->is.transform, q->is.higher);
    for (size_t i = 0; i < p->n * p->draws; i++)
        b->good_draw[i] = pooled_scale(b->draw[i], q->is.transform, q->is.higher);
    if (b->left_out > b->n)
        log_warn(&p->log, "W031", "%s: %zu prompts lack this quality somewhere and are left out, "
                 "%zu remain; score every configuration", q->is.name, b->left_out, b->n);
}

static void free_board(struct board *b)
{
    free(b->num);
    free(b->den);
    free(b->has);
    free(b->value);
    free(b->draw);
    free(b->good);
    free(b->good_draw);
}

/* ---- the front ---- */

static struct interval interval_of(struct pareto *p, double value, const double *draw, size_t i)
{
    for (size_t d = 0; d < p->draws; d++)
        p->work[d] = draw[d * p->n + i];
    return bootstrap_interval(value, p->work, p->draws, LEVEL);
}

static struct contest contest_of(const struct pareto *p, const struct board *b)
{
    return (struct contest){p->n, p->draws, p->steps, p->cost, p->cost_draw, b ? b->good : NULL,
                            b ? b->good_draw : NULL};
}

static json_t *front_of(struct pareto *p, const struct board *b, size_t i, double share, int on)
{
    const struct point *pt = point_at(p, i);
    struct interval q = interval_of(p, b->value[i], b->draw, i);
    struct standing s = {
        .cost_metric = p->points.cost_metric, .quality_metric = b->quality->is.name,
        .cost_higher = p->points.cost_higher, .quality_higher = b->quality->is.higher,
        .cost_lo = pt->cost_lo, .cost_hi = pt->cost_hi, .quality = b->value[i],
        .quality_lo = b->n < 2 ? (double)NAN : q.lo, .quality_hi = b->n < 2 ? (double)NAN : q.hi,
        .share = share, .on = on, .draws = p->draws, .prompts = b->n,
        .excluded_prompts = b->left_out};
    if ((isnan(s.cost_lo) || isnan(s.cost_hi)) && point_is_resampled(pt)) {
        struct interval c = interval_of(p, p->cost[i], p->cost_draw, i);
        s.cost_lo = p->points.cost_higher ? 1 / c.hi : c.lo;
        s.cost_hi = p->points.cost_higher ? 1 / c.lo : c.hi;
    }
    for (size_t k = 0; k < p->n; k++)
        s.excluded_points += isnan(p->cost[k]) || isnan(b->value[k]) ? 1 : 0;
    return crossing_front(pt, &s, LEVEL);
}

static int write_front(struct pareto *p, const struct board *b, struct err *e)
{
    size_t *draws_on = mem_zero(p->n, sizeof *draws_on);
    unsigned char *on = mem_zero(p->n, 1);
    int bad = 0;
    size_t *order = mem_zero(p->n, sizeof *order);
    struct contest c = contest_of(p, b);
    contest_front(&c, draws_on, on, order);
    for (size_t i = 0; !bad && i < p->n; i++) {
        if (isnan(p->cost[i]) || isnan(b->value[i]))
            continue;
        json_t *j = front_of(p, b, i, (double)draws_on[i] / (double)p->draws, on[i]);
        bad = rec_write(&p->out, "front", j, e);
    }
    free(order);
    free(draws_on);
    free(on);
    return bad;
}

/* ---- the crossovers ---- */

static struct crossing crossing_from(const char *name, const struct contest_verdict *v,
                                     const char *missing)
{
    return (struct crossing){
        .name = name, .at = v->at, .lo = missing ? (double)NAN : v->lo,
        .hi = missing ? (double)NAN : v->hi, .below = v->below, .above = v->above,
        .probability = v->inside, .p_below = v->p_below, .p_above = v->p_above,
        .interval_reason = missing ? missing : "not enough draws"};
}

/* Picks the reason by where the crossing lies. */
static const char *reason_of(double at, const char *none, const char *below, const char *above)
{
    return isnan(at) ? none : at <= -INFINITY ? below : at >= INFINITY ? above : NULL;
}

/* Steals `more`. */
static int write_crossing(struct pareto *p, const struct contest_pair *x, const struct quality *q,
                          const struct crossing *c, json_t *more, struct err *e)
{
    json_t *j = crossing_record(c, point_at(p, x->from),
                                x->rival < p->n ? point_at(p, x->rival) : NULL, LEVEL);
    json_object_update(j, more);
    json_decref(more);
    json_object_set_new(j, "cost_metric", json_string(p->points.cost_metric));
    if (q) {
        json_object_set_new(j, "quality_metric", json_string(q->is.name));
        json_object_set_new(j, "margin", json_real(q->margin.by));
        json_object_set_new(j, "margin_relative", json_boolean(q->margin.relative));
    }
    rec_set_int(j, "draws", (int64_t)p->draws);
    return rec_write(&p->out, "crossover", j, e);
}

static int write_lat(struct pareto *p, const struct contest_pair *x,
                     const struct contest_result *r, struct err *e)
{
    int moves = point_is_resampled(point_at(p, x->rival));
    for (size_t i = x->from; i < x->to; i++)
        moves |= point_is_resampled(point_at(p, i));
    struct crossing c = crossing_from("X_lat", &r->lat,
                                      moves ? NULL : "the cost was measured once");
    c.method = r->line ? "least-absolute-deviations line, launches resampled"
                       : "isotonic, linear in steps, launches resampled";
    c.reason = reason_of(c.at, "no cost on one side",
                         "dearer than LLaMA at every step count measured",
                         "cheaper than LLaMA at every step count measured");
    json_t *more = json_object();
    rec_set_number(more, "residual_ratio", r->residual, "fewer than 3 points");
    return write_crossing(p, x, NULL, &c, more, e);
}

static int write_quality(struct pareto *p, const struct contest_pair *x, const struct board *b,
                         const struct contest_result *r, struct err *e)
{
    struct crossing c = crossing_from("X_q", &r->q, b->n < 2 ? "n<2" : NULL);
    c.method = "isotonic, linear in log2 steps, prompts resampled in pairs";
    c.reason = reason_of(c.at, "no quality on one side",
                         "as good as LLaMA at every step count measured",
                         "as good as LLaMA at no step count measured");
    if (isnan(c.at) && (point_at(p, x->from)->random || point_at(p, x->rival)->random))
        c.reason = "random weights";
    json_t *more = json_object();
    rec_set_number(more, "noninferior_steps", r->decided, "no step count is so beyond doubt");
    rec_set_int(more, "prompts", (int64_t)b->n);
    if (write_crossing(p, x, b->quality, &c, more, e))
        return -1;
    struct crossing both = crossing_from("X_par", &r->par, c.interval_reason && b->n < 2 ? "n<2"
                                                                                         : NULL);
    both.method = "X_q where it is at most X_lat; bracket of X_q";
    both.reason = isfinite(both.at)         ? NULL
                  : isnan(both.at)          ? (isnan(c.at) ? c.reason : "no cost on one side")
                  : r->q.at >= INFINITY     ? c.reason
                  : r->lat.at <= -INFINITY  ? "dearer than LLaMA at every step count measured"
                                            : "as good only at more steps than are as cheap";
    const char *why = isnan(r->speedup.at) ? "cost or quality is missing" : "never as good";
    more = json_object();
    rec_set_number(more, "steps_end", r->par_end, "does not exist");
    rec_set_number(more, "speedup", r->speedup.at, why);
    crossing_set(more, "speedup_lo", b->n < 2 ? (double)NAN : r->speedup.lo, why);
    crossing_set(more, "speedup_hi", b->n < 2 ? (double)NAN : r->speedup.hi, why);
    rec_set_int(more, "prompts", (int64_t)b->n);
    return write_crossing(p, x, b->quality, &both, more, e);
}

static int write_suggest(struct pareto *p, const struct contest_pair *x, const struct board *b,
                         const struct contest_result *r, struct err *e)
{
    const struct point *first = point_at(p, x->from), *last = point_at(p, x->to - 1);
    struct contest_advice a;
    contest_advise(r, b ? b->n : 0, first->steps, last->steps, first->length, &a);
    json_t *j = crossing_suggest(first, point_at(p, x->rival), b ? b->quality->is.name : NULL,
                                 a.steps, a.n, a.prompts, a.octaves, a.at_least);
    return rec_write(&p->out, "suggest", j, e);
}

/* One sweep against one rival. */
static int write_pair(struct pareto *p, struct contest_pair *x, struct err *e)
{
    struct contest_result r;
    struct contest c = contest_of(p, NULL);
    contest_solve(&c, x, &r, p->work);
    if (write_lat(p, x, &r, e))
        return -1;
    if (p->a.suggest && !p->n_qualities && write_suggest(p, x, NULL, &r, e))
        return -1;
    for (size_t k = 0; k < p->n_qualities; k++) {
        const struct board *b = &p->board[k];
        const struct quality *q = b->quality;
        double *level = p->work + 5 * p->draws;
        for (size_t d = 0; d <= p->draws; d++) {
            const double *value = d < p->draws ? b->draw + d * p->n : b->value;
            level[d] = pooled_scale(pooled_worsened(value[x->rival], &q->margin, q->is.higher),
                                    q->is.transform, q->is.higher);
        }
        x->level = level;
        c = contest_of(p, b);
        contest_solve(&c, x, &r, p->work);
        if (write_quality(p, x, b, &r, e) || (p->a.suggest && write_suggest(p, x, b, &r, e)))
            return -1;
    }
    return 0;
}

/* A sweep without a rival is a result too. */
static int write_alone(struct pareto *p, struct contest_pair *x, struct err *e)
{
    const double no = NAN;
    struct crossing c = {"X_lat", no, no, no, no, no, no, no, no, "no rival",
                         "no LLaMA configuration of this device, batch and length", "none"};
    int bad = write_crossing(p, x, NULL, &c, json_object(), e);
    for (size_t k = 0; !bad && k < 2 * p->n_qualities; k++) {
        c.name = k % 2 ? "X_par" : "X_q";
        bad = write_crossing(p, x, &p->quality[k / 2], &c, json_object(), e);
    }
    return bad;
}

/* A rival has the sweep's number format, unless none has. */
static int is_rival(const struct pareto *p, size_t sweep, size_t i, int strict)
{
    const struct point *a = point_at(p, sweep), *b = point_at(p, i);
    int alike = !strcmp(a->dtype, b->dtype) && !strcmp(a->quant, b->quant);
    return !b->is_llada && (!strict || alike);
}

static int write_sweep(struct pareto *p, struct contest_pair *x, struct err *e)
{
    int any = 0;
    for (int strict = 1; strict >= 0 && !any; strict--)
        for (x->rival = 0; x->rival < p->n; x->rival++) {
            if (!is_rival(p, x->from, x->rival, strict))
                continue;
            any = 1;
            if (write_pair(p, x, e))
                return -1;
        }
    x->rival = p->n;
    return any ? 0 : write_alone(p, x, e);
}

/* The points from .. from + n - 1 share device, batch and length. */
static int write_group(struct pareto *p, struct err *e)
{
    int bad = 0;
    p->steps = mem_zero(p->n, sizeof *p->steps);
    p->cost = mem_zero(p->n, sizeof *p->cost);
    p->cost_draw = mem_zero(p->draws * p->n, sizeof *p->cost_draw);
    for (size_t i = 0; i < p->n; i++)
        draw_cost(p, i);
    for (size_t k = 0; k < p->n_qualities; k++)
        make_board(p, &p->board[k], &p->quality[k]);
    for (size_t k = 0; !bad && k < p->n_qualities; k++)
        bad = write_front(p, &p->board[k], e);
    for (size_t i = 0, j; !bad && i < p->n; i = j) {
        const struct point *pt = point_at(p, i);
        for (j = i + 1; j < p->n && !strcmp(point_at(p, j)->series, pt->series); j++)
            if (pt->is_llada && !(point_at(p, j)->steps > point_at(p, j - 1)->steps))
                return err_set(e, EXIT_BAD_DATA, "%s: steps must be known, each once in a sweep",
                               point_at(p, j)->config);
        if (j - i > CROSSOVER_MAX)
            return err_set(e, EXIT_BAD_DATA, "%s: expected at most %d step counts, got %zu",
                           pt->series, CROSSOVER_MAX, j - i);
        if (pt->is_llada && !isnan(pt->steps))
            bad = write_sweep(p, &(struct contest_pair){.from = i, .to = j}, e);
    }
    for (size_t k = 0; k < p->n_qualities; k++)
        free_board(&p->board[k]);
    free(p->steps);
    free(p->cost);
    free(p->cost_draw);
    return bad;
}

static int write_all(struct pareto *p, struct err *e)
{
    for (p->from = 0; p->from < p->points.n; p->from += p->n) {
        for (p->n = 1; p->from + p->n < p->points.n; p->n++)
            if (!point_same_group(&p->points.v[p->from], &p->points.v[p->from + p->n]))
                break;
        if (write_group(p, e))
            return -1;
    }
    return 0;
}

/* The qualities asked for, or of judge_ppl and accuracy those that the records have. */
static int choose_qualities(struct pareto *p, char *list, struct err *e)
{
    char *rest = NULL;
    for (char *s = strtok_r(list, ",", &rest); s; s = strtok_r(NULL, ",", &rest)) {
        struct quality q = {.is = pooled_find(s)};
        size_t at = points_metric(&p->points, q.is.source);
        int is_met = at < p->points.n_metrics;
        if (!is_met && !p->a.quality)
            continue;
        if (!is_met)
            log_warn(&p->log, "W032", "no quality records of '%s' for '%s'", q.is.source, s);
        else if (q.is.higher < 0 && (q.is.higher = p->points.higher[at]) < 0)
            return err_set(e, EXIT_BAD_DATA, "%s: its records do not say their direction", s);
        if (p->n_qualities == MAX_QUALITIES || pooled_margin_parse(p->a.margin, s, &q.margin))
            return err_set(e, EXIT_BAD_USAGE, p->n_qualities == MAX_QUALITIES
                ? "--quality: too many" : "--margin: expected a number, a percentage, or a list "
                "NAME=NUMBER,... not below 0");
        p->quality[p->n_qualities++] = q;
    }
    return 0;
}

static int take(void *ctx, const json_t *r, struct err *e)
{
    return points_take(&((struct pareto *)ctx)->points, r, e);
}

static const char examples[] =
    "pareto metrics.ndjson quality.ndjson > front.ndjson\n"
    "cat *.ndjson | pareto --quality=accuracy --margin=0.01 --suggest\n";
static const char notes[] =
    "front      p_front is the share of draws in which the point is on the front: on from 0.95,\n"
    "           off to 0.05, else possible. No tolerance; equal points stay.\n"
    "X_lat      steps at which LLaDA costs as much as LLaMA (fewer: cheaper).\n"
    "X_q        fewest steps at which its quality is worse by no more than --margin.\n"
    "X_par      fewest steps at which both hold, with the speedup there.\n"
    "Nothing is extrapolated: outside the measured steps exists is false and `censored` tells the\n"
    "side. `bracket` needs no model: the last step count below, the first above. `probability`\n"
    "is the share of draws in which the crossover exists. Fewer than 300 prompts seldom place X_q\n"
    "better than a factor of three; --suggest tells how many would.\n";

static void check(struct pareto *p, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&p->out);
    err_die("pareto", e);
}

int main(int argc, char **argv)
{
    struct pareto p = {.a = {.common = COMMON_DEFAULTS, .cost = "e2e_ns", .draws = 2000}};
    const struct opt options[] = {
        {"cost", 0, OPT_TEXT, &p.a.cost, .arg = "METRIC", .help = "what is paid (e2e_ns)"},
        {"quality", 0, OPT_TEXT, &p.a.quality, .arg = "LIST",
         .help = "what is bought (judge_ppl,accuracy, as far as present)"},
        {"margin", 0, OPT_TEXT, &p.a.margin, .arg = "M",
         .help = "loss that counts as equal: 0.02, 1%, or judge_ppl=1%,accuracy=0.02 (0)"},
        {"draws", 0, OPT_INT, &p.a.draws, 100, 100000, .arg = "N", .help = "resamples (2000)"},
        {"suggest", 0, OPT_FLAG, &p.a.suggest, .help = "also say which steps and prompts to add"},
        {"max-failed", 0, OPT_INT, &p.a.max_failed, 0, 1e15, .arg = "N",
         .help = "exit 0 with up to N failed records (0)"},
        OPT_COMMON(p.a.common),
        {0}};
    const struct tool tool = {"pareto", "metric and quality records in, front and crossovers out",
                              examples, notes, options};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    p.log = (struct log){"pareto", p.a.common.quiet ? 0 : 1 + p.a.common.verbose};
    p.points.cost_metric = p.a.cost;
    p.draws = (size_t)p.a.draws;
    p.work = mem_zero(6 * p.draws + 1, sizeof *p.work);
    struct rec_reader *in = rec_read_open((const char *const *)argv + first,
                                          (size_t)(argc - first), &e);
    check(&p, !in || rec_open(&p.out, &p.a.common, "pareto", argc, argv, NULL, &e), &e);
    check(&p, take_all(&p.seen, in, &p.out, &p.log, p.a.common.limit, take, &p, &e), &e);
    rec_read_close(in);
    if (!p.seen.taken && !p.seen.bad)
        check(&p, err_set(&e, EXIT_BAD_DATA, "no metric records of '%s' and no quality "
                          "records in the input", p.a.cost), &e);
    points_finish(&p.points);
    char *list = mem_text(p.a.quality ? p.a.quality : "judge_ppl,accuracy");
    check(&p, choose_qualities(&p, list, &e) || write_all(&p, &e), &e);
    if (p.points.dropped)
        log_note(&p.log, "%lld records without a value left out", (long long)p.points.dropped);
    int code = take_verdict(&p.seen, &p.log, p.a.max_failed);
    check(&p, rec_close(&p.out, code ? "failed" : "ok", &e), &e);
    points_free(&p.points);
    free(list);
    free(p.work);
    return code;
}
