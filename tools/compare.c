/* compare - quality and metric records of configurations that differ in one setting in, what the
 * setting costs out: paired differences with intervals, ratios with a verdict. Or records and
 * claims about them in, and whether the claims hold out (lib/analysis/verdict/judge.h).
 *
 * Points whose settings agree in all but BY belong together, and the one at which BY is as usual is
 * the base of the others. Qualities are pooled over the prompts that both have, and an interval
 * resamples these prompts, the same draw for both sides: what prompts have in common cancels.
 * Costs are compared by lib/analysis/points/couple.h.
 * One file because each number it writes is of the same couple of points.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/points/answers.h"
#include "lib/analysis/points/couple.h"
#include "lib/analysis/points/points.h"
#include "lib/analysis/verdict/judge.h"
#include "lib/analysis/verdict/noninferior.h"
#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/record/rec.h"
#include "lib/setting/settings.h"
#include "lib/record/take.h"
#include "lib/setting/methods.h"
#include "lib/stat/bootstrap.h"
#include "lib/stat/pooled.h"
#include "lib/stat/proportion.h"

static const double LEVEL = 0.95;

struct args {
    struct common common;
    const char *by, *base, *cost, *stopped, *methods, *margin;
    double precision; /* goal for the half-width of a ratio */
    int64_t draws, max_failed;
};

/* Settings that an engine chooses by itself: a quantization brings formats. */
static const char *const follows[] = {"dtype", "kv_dtype", "library"};
enum { FOLLOWS = sizeof follows / sizeof *follows };

/* Answers about a point that are needed again and again. */
struct side {
    const struct method *method; /* NULL: none, or nobody asks for methods */
    char *setting; /* value of BY as text; "" when it has none */
    int is_base;   /* BY is as usual here */
    char rest[2][SETTINGS_ID]; /* identity of all but BY; and but what may follow from it */
};

struct compare {
    struct args a;
    struct log log;
    struct rec_writer out;
    struct take seen;
    struct points points;
    struct answers answers;
    struct pairs pairs;
    struct methods methods; /* of --methods; BY is then "method" */
    struct side *side; /* [points.n], after learn_sides */
    char *usual; /* value of BY at a base; NULL: only where there is none */
};

/* ---- couples ---- */

static const struct side *side_of(const struct compare *c, const struct point *p)
{
    return &c->side[p - c->points.v];
}

/* The value of BY at a point as text; the caller's. */
static char *setting_of(const struct compare *c, const struct point *p, const struct method *m)
{
    struct buf b = {0};
    if (c->methods.n)
        return mem_text(m ? m->name : "");
    about_value(&b, json_object_get(p->about, c->a.by));
    return b.data ? b.data : mem_text("");
}

static void learn_sides(struct compare *c)
{
    c->side = mem_zero(c->points.n, sizeof *c->side);
    for (size_t i = 0; i < c->points.n; i++) {
        const struct point *p = &c->points.v[i];
        struct side *s = &c->side[i];
        s->method = c->methods.n ? methods_of(&c->methods, p->about) : NULL;
        s->setting = setting_of(c, p, s->method);
        s->is_base = c->methods.n ? methods_is_base(&c->methods, s->method)
                                  : !*s->setting || (c->usual && !strcmp(s->setting, c->usual));
        json_t *settings = about_of(p->about);
        settings_id(settings, c->a.by, s->rest[0]);
        for (size_t k = 0; k < FOLLOWS; k++)
            json_object_del(settings, follows[k]);
        settings_id(settings, c->a.by, s->rest[1]);
        json_decref(settings);
    }
}

/* Another paradigm or method has other settings: its base is the point of best rank that does the
 * same work; that of a method is of the same model. */
static const struct point *find_rival(const struct compare *c, const struct point *of)
{
    const struct point *best = NULL;
    for (size_t i = 0; i < c->points.n; i++) {
        const struct point *p = &c->points.v[i];
        if (side_of(c, p)->is_base && points_same_group(p, of) &&
            !strcmp(p->workload, of->workload) &&
            (!c->methods.n || !strcmp(p->model, of->model)) &&
            (!best || points_rank(of, p) < points_rank(of, best)))
            best = p;
    }
    return best;
}

/* An option of make ablation may bring any settings: its base is what the same system did without
 * any, on the same prompts. */
static const struct point *find_without(const struct compare *c, const struct point *of)
{
    static const char *const same[] = {"arch", "mode", "target"};
    for (size_t i = 0; i < c->points.n; i++) {
        const struct point *p = &c->points.v[i];
        int fits = side_of(c, p)->is_base && !strcmp(p->workload, of->workload);
        for (size_t k = 0; k < sizeof same / sizeof *same && fits; k++) {
            const char *a = rec_text(p->about, same[k]), *b = rec_text(of->about, same[k]);
            fits = a && b ? !strcmp(a, b) : a == b;
        }
        if (fits)
            return p;
    }
    return NULL;
}

static const struct point *find_base(const struct compare *c, const struct point *of)
{
    if (!strcmp(c->a.by, "paradigm") || c->methods.n)
        return find_rival(c, of);
    if (!strcmp(c->a.by, "option"))
        return find_without(c, of);
    for (int lenient = 0; lenient < 2; lenient++)
        for (size_t i = 0; i < c->points.n; i++)
            if (c->side[i].is_base &&
                !strcmp(c->side[i].rest[lenient], side_of(c, of)->rest[lenient]))
                return &c->points.v[i];
    return NULL;
}

/* Names of what followed. */
static json_t *also_of(const struct compare *c, const struct couple *k)
{
    json_t *list = json_array();
    for (size_t i = 0; i < FOLLOWS; i++) {
        json_t *a = json_object_get(k->point->about, follows[i]);
        json_t *b = json_object_get(k->base->about, follows[i]);
        int same = (!a || json_is_null(a)) ? !b || json_is_null(b) : json_equal(a, b);
        if (!same && strcmp(follows[i], c->a.by))
            json_array_append_new(list, json_string(follows[i]));
    }
    return list;
}

/* What BY usually is: --base, or its default. The caller's; NULL: nobody knows. */
static char *usual_of(const struct args *a)
{
    struct buf b = {0};
    json_t *standard = about_default(a->by);
    if (a->base || !strcmp(a->by, "paradigm"))
        buf_text(&b, a->base ? a->base : "autoregressive");
    else
        about_value(&b, standard);
    json_decref(standard);
    return b.data;
}

/* ---- records ---- */

/* Who is compared with whom. */
static json_t *about(const struct compare *c, const struct couple *k, const char *metric,
                     const char *effect)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "config",
                          k->point->config, "base_config", k->base->config, "point", k->point->id,
                          "base_point", k->base->id, "model", k->point->model, "by", c->a.by,
                          "setting", k->setting, "metric", metric, "effect", effect);
    const char *base = side_of(c, k->base)->setting;
    json_object_set_new(j, "base_setting", *base ? json_string(base) : json_null());
    json_object_set_new(j, "also", also_of(c, k));
    const char *arch = rec_text(k->point->about, "arch");
    if (arch)
        json_object_set_new(j, "arch", json_string(arch));
    return j;
}

static int write_cost(struct compare *c, const struct couple *k, struct err *e)
{
    const struct contrast_goal goal = {c->a.precision, c->a.stopped};
    for (int i = 0; i < COUPLE_COSTS; i++) {
        const struct couple_cost *x = &k->cost[i];
        if (!x->metric)
            continue;
        json_t *j = about(c, k, x->metric, "ratio");
        couple_put(j, x, &goal);
        if (rec_write(&c->out, "comparison", j, e))
            return -1;
    }
    return 0;
}

/* Where a token of one side is no token of the other, the text that they deliver a second: neither
 * a test nor a goal of its own. */
static int write_text_rate(struct compare *c, const struct couple *k, struct err *e)
{
    const struct contrast_goal goal = {c->a.precision, c->a.stopped};
    const struct couple_cost x = couple_beside(k, &c->points, LEVEL);
    if (!x.metric || !about_other_tokens(k->point->about, k->base->about))
        return 0;
    json_t *j = about(c, k, x.metric, "ratio");
    couple_put(j, &x, &goal);
    rec_set_number(j, "p_holm", NAN, "beside the cost");
    rec_set_int(j, "launches_more", 0);
    return rec_write(&c->out, "comparison", j, e);
}

/* Perplexities are compared by their ratio, everything else by its difference. */
static double effect(const double pair[2], enum pooled_transform transform)
{
    return transform == POOLED_EXPONENTIAL ? pair[1] / pair[0] : pair[1] - pair[0];
}

/* Values of base and point over n common prompts: as measured, and, where there are draws, how far
 * the effect may be. */
static struct interval resample(const struct compare *c, const double *num, const double *den,
                                const unsigned char has[2], size_t n, enum pooled_transform t,
                                size_t draws, double value[2])
{
    double *draw = mem_zero(2 * draws, sizeof *draw);
    uint32_t *index = mem_zero(n, sizeof *index);
    double *work = mem_zero(4 * (n + 1), sizeof *work);
    pooled_draws(num, den, has, 2, n, t, rng_derive((uint64_t)c->a.common.seed, "prompts"), draws,
                 value, draw, index, work);
    free(work);
    for (size_t d = 0; d < draws; d++)
        draw[d] = effect(draw + 2 * d, t);
    struct interval v = bootstrap_interval(effect(value, t), draw, draws, LEVEL);
    free(draw);
    free(index);
    return v;
}

/* Prompts that one side alone gets right, and how probable that is between equals. */
static void set_test(json_t *j, const struct proportion_pairs *p)
{
    rec_set_int(j, "only_base", (int64_t)p->at_first);
    rec_set_int(j, "only_config", (int64_t)p->at_second);
    rec_set_number(j, "p_value", proportion_mcnemar(p), "undefined");
    json_object_set_new(j, "method", json_string("Tango's score interval, exact McNemar test"));
}

/* The quality of base and point over n prompts; pairs NULL: it is not one of right and wrong. */
static int write_effect(struct compare *c, const struct couple *k, const struct pooled_kind *kind,
                        const double value[2], struct interval v, size_t n, size_t left_out,
                        const struct proportion_pairs *pairs, const struct asgood *test,
                        struct err *e)
{
    int ratio = kind->transform == POOLED_EXPONENTIAL;
    json_t *j = about(c, k, kind->name, ratio ? "ratio" : "difference");
    rec_set_number(j, "value", v.value, "undefined");
    rec_set_number(j, "lo", n > 1 || pairs ? v.lo : (double)NAN, "n<2");
    rec_set_number(j, "hi", n > 1 || pairs ? v.hi : (double)NAN, "n<2");
    json_object_set_new(j, "level", json_real(LEVEL));
    rec_set_number(j, "base_value", value[0], "undefined");
    rec_set_number(j, "config_value", value[1], "undefined");
    rec_set_int(j, "n", (int64_t)n);
    rec_set_int(j, "left_out", (int64_t)left_out);
    json_object_set_new(j, "method", json_string("prompts resampled in pairs"));
    if (pairs)
        set_test(j, pairs);
    struct pooled_margin margin;
    pooled_margin_parse(c->a.margin, kind->name, &margin); /* main has tried it */
    if (kind->higher >= 0)
        noninferior_put(j, &margin, *test, n);
    return rec_write(&c->out, "comparison", j, e);
}

/* Is the point (num, den [1][n]) as good as the base ([0][n])? */
static struct asgood test_quality(const struct compare *c, const struct pooled_kind *kind,
                                  int is_binary, const double *num, const double *den, size_t n)
{
    const struct asgood_kind as = {kind->transform, kind->higher, is_binary};
    struct pooled_margin margin;
    double *work = mem_zero(2 * n, sizeof *work);
    pooled_margin_parse(c->a.margin, kind->name, &margin); /* main has tried it */
    struct asgood test = asgood_test((struct asgood_side){num + n, den + n},
                                     (struct asgood_side){num, den}, n, &as, &margin, work);
    free(work);
    return test;
}

/* One quality of both, when both have prompts with it in common. */
static int compare_quality(struct compare *c, const struct couple *k, const char *source,
                           struct err *e)
{
    const struct points *p = &c->points;
    struct pooled_kind kind = pooled_of(source);
    if (kind.higher < 0)
        kind.higher = p->higher[points_metric(p, source)];
    const struct point *side[2] = {k->base, k->point};
    size_t ids = p->ids.n, left_out = 0, n = 0;
    double *num = mem_zero(2 * ids, sizeof *num), *den = mem_zero(2 * ids, sizeof *den);
    unsigned char *there = mem_zero(2 * ids, 1), has[2] = {0, 0};
    for (size_t s = 0; s < 2; s++)
        points_pool(p, source, kind.weight, (size_t)(side[s] - p->v), 1, num + s * ids,
                    den + s * ids, there + s * ids, has + s);
    if (has[0] && has[1])
        n = pooled_common(num, den, there, has, 2, ids, &left_out);
    int bad = 0;
    if (n) {
        double value[2];
        int is = kind.transform == POOLED_PLAIN && points_is_binary(p, source);
        struct interval v = resample(c, num, den, has, n, kind.transform,
                                     is ? 0 : (size_t)c->a.draws, value);
        struct proportion_pairs pairs = proportion_count(num, num + n, n);
        if (is)
            v = proportion_difference(&pairs, LEVEL);
        const struct asgood test = test_quality(c, &kind, is, num, den, n);
        bad = write_effect(c, k, &kind, value, v, n, left_out, is ? &pairs : NULL, &test, e);
    }
    free(num);
    free(den);
    free(there);
    return bad;
}

/* ---- what is written otherwise ---- */

/* A number of the pair: how far the answers of both sides differ. */
static int write_disagreement(struct compare *c, const struct couple *k, const char *metric,
                              struct interval v, size_t n, const char *method, struct err *e)
{
    static const char why[] = "a number of both together";
    json_t *j = about(c, k, metric, "disagreement");
    rec_set_number(j, "value", v.value, "no answer differs, or no passes are told");
    rec_set_number(j, "lo", v.lo, "too few answers");
    rec_set_number(j, "hi", v.hi, "too few answers");
    json_object_set_new(j, "level", json_real(LEVEL));
    rec_set_number(j, "base_value", (double)NAN, why);
    rec_set_number(j, "config_value", (double)NAN, why);
    rec_set_int(j, "n", (int64_t)n);
    json_object_set_new(j, "method", json_string(method));
    return rec_write(&c->out, "comparison", j, e);
}

/* Share of ids that differ: sum over sum, prompts resampled. No interval where none does: resampled
 * agreement is agreement. */
static struct interval differing_ids(const struct compare *c, const double *num, const double *den,
                                     size_t n)
{
    const unsigned char has = 1;
    size_t draws = (size_t)c->a.draws;
    double value, *draw = mem_zero(draws, sizeof *draw);
    uint32_t *index = mem_zero(n, sizeof *index);
    double *work = mem_zero(2 * (n + 1), sizeof *work);
    pooled_draws(num, den, &has, 1, n, POOLED_PLAIN,
                 rng_derive((uint64_t)c->a.common.seed, "prompts"), draws, &value, draw, index,
                 work);
    free(work);
    struct interval v = bootstrap_interval(value, draw, draws, LEVEL);
    free(draw);
    free(index);
    return n > 1 && value > 0 ? v : (struct interval){value, NAN, NAN};
}

static struct interval middle(double *x, size_t n)
{
    return n ? stat_quantile(x, n, 0.5, LEVEL) : (struct interval){NAN, NAN, NAN};
}

static int compare_answers(struct compare *c, const struct couple *k, struct err *e)
{
    static const char median[] = "median of answers that differ, binomial ranks";
    size_t n, differ = 0, told = 0;
    struct answers_pair *p = answers_pairs(&c->answers, k->base, k->point, &n);
    double *num = mem_zero(n, sizeof *num), *den = mem_zero(n, sizeof *den);
    double *first = mem_zero(n, sizeof *first), *step = mem_zero(n, sizeof *step);
    for (size_t i = 0; i < n; i++) {
        num[i] = p[i].differing;
        den[i] = p[i].ids;
        if (!isnan(p[i].step))
            step[told++] = p[i].step;
        if (!isnan(p[i].first))
            first[differ++] = p[i].first;
    }
    int bad = n && (write_disagreement(c, k, "differing_answers_ratio",
                                       bootstrap_wilson((double)differ, (double)n, LEVEL), n,
                                       "Wilson interval", e) ||
                    write_disagreement(c, k, "differing_ids_ratio", differing_ids(c, num, den, n),
                                       n, "pooled, prompts resampled", e) ||
                    write_disagreement(c, k, "first_difference_tokens", middle(first, differ),
                                       differ, median, e) ||
                    write_disagreement(c, k, "first_difference_steps", middle(step, told), told,
                                       median, e));
    free(p);
    free(step);
    free(num);
    free(den);
    free(first);
    return bad;
}

/* Every point that is no base, with its base if it has one, and their costs; how many. */
static size_t find_couples(struct compare *c, struct couple *v)
{
    struct points *p = &c->points;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (c->side[i].is_base || (c->methods.n && !c->side[i].method))
            continue;
        struct couple k = {.point = &p->v[i], .base = find_base(c, &p->v[i]),
                           .setting = c->side[i].setting};
        if (!k.base) {
            log_warn(&c->log, "W301", "'%s' has no base: expected records of the same with %s %s",
                     k.point->config, c->a.by, c->usual ? c->usual : "not set");
            continue;
        }
        v[n++] = k;
    }
    couple_find_costs(v, n, p, &c->pairs, LEVEL);
    return n;
}

static int write_couples(struct compare *c, const struct couple *v, size_t n, struct err *e)
{
    int bad = 0;
    for (size_t i = 0; i < n && !bad; i++) {
        bad = write_cost(c, &v[i], e) || write_text_rate(c, &v[i], e) ||
              compare_answers(c, &v[i], e);
        for (size_t m = 0; !bad && m < c->points.n_metrics; m++)
            bad = compare_quality(c, &v[i], c->points.metrics[m], e);
    }
    return bad;
}

static int write_all(struct compare *c, struct err *e)
{
    struct couple *v = mem_zero(c->points.n, sizeof *v);
    size_t n = find_couples(c, v);
    int bad = n ? write_couples(c, v, n, e)
                : err_set(e, EXIT_BAD_DATA, "no two points differ in '%s' alone, one of them "
                          "with %s", c->a.by, c->usual ? c->usual : "none");
    free(v);
    return bad;
}

/* ---- the tool ---- */

static int take(void *ctx, const json_t *r, struct err *e)
{
    struct compare *c = ctx;
    int got = pairs_take(&c->pairs, r, e);
    if (got)
        return got;
    got = answers_take(&c->answers, r, e);
    if (got > 0)
        points_meet(&c->points, r);
    return got ? got : points_take(&c->points, r, e);
}

static const char examples[] =
    "compare --by quant metrics.ndjson quality.ndjson > comparison.ndjson\n"
    "cat quality-*.ndjson | compare --by dtype --base f32\n"
    "compare --by paradigm --cost e2e_ns metrics.ndjson > ratios.ndjson\n"
    "cat generations-*.ndjson | compare --by batch\n"
    "compare --methods data/methods.ndjson --cost e2e_ns m.ndjson q.ndjson\n"
    "compare --claims data/ablation.ndjson metrics.ndjson comparison.ndjson\n"
    "compare --stored data/demo/stored.ndjson claims.ndjson\n";
static const char notes[] =
    "Each point is compared with its base: the point with the same settings except\n"
    "BY, which has the value of --base, or its default, or is absent. If no base has\n"
    "the same number formats, a base with other formats is taken, and `also` names\n"
    "the differences. `effect` is ratio (value / base) for perplexities and the cost,\n"
    "difference (value - base) for everything else. Only prompts that both sides have\n"
    "count.\n"
    "\n"
    "The interval of a quality resamples prompts, with the same draw for both sides.\n"
    "For right or wrong answers it is Tango's score interval, and p_value is that of\n"
    "the exact McNemar test over the prompts that only one side gets right. The\n"
    "prompt is the unit: several answers to it count as the share of right ones.\n"
    "noninferior is true if the whole interval is better than a loss of --margin,\n"
    "false if it is worse, else null with prompts_to_decide. p_noninferior is\n"
    "one-sided. Declare the margin before the data are seen; the default is 5 points\n"
    "of accuracy and 5 % of the base's value for other metrics.\n"
    "Generation records give the disagreement of answers, whatever their quality:\n"
    "  differing_answers_ratio  share of answers that differ in any id\n"
    "  differing_ids_ratio      share of differing ids, relative to the longer answer\n"
    "  first_difference_tokens  place of the first differing id, from 1; the median\n"
    "                           over differing answers\n"
    "  first_difference_steps   pass by which a reader of either answer has that id;\n"
    "                           median\n"
    "--by paradigm compares every denoised point with the autoregressive one of the\n"
    "same device, batch size, length, contract and prompts. It prefers a plain one\n"
    "(every setting that only changes speed, as --lookup, has its default), then\n"
    "one of the same number format. --methods FILE, --by method: every point of a\n"
    "method of FILE is compared with the first method that its system has there;\n"
    "base_setting is its name. --by option (make ablation) compares with the point of\n"
    "--base of the same system, whatever settings the option changes. If the\n"
    "tokenizers differ, output_bytes_per_s stands beside the cost, because tokens per\n"
    "second are then not comparable.\n"
    "--cost e2e_ns uses `times` records: the geometric mean over prompts of the\n"
    "ratios of the same prompt in the same launch, with an interval over launches and\n"
    "prompts. A pair with a disturbed side does not count. The ratio is null below 5\n"
    "launches, or if over a tenth of the prompts has no pair. A second record has\n"
    "processor time (cpu_ns). Other costs: exp(difference of the mean logs of\n"
    "launches), null if a launch was disturbed.\n"
    "verdict is SAME if the whole interval lies within a factor of 1.02, else SLOWER\n"
    "or FASTER (MORE, LESS) if it excludes 1, else UNDECIDED with launches_to_decide.\n"
    "p is two-sided against 1; p_holm is adjusted for all ratios of the call.\n"
    "launches_more: launches still to run until half_width, half the interval of the\n"
    "log ratio, is under --precision; stop_reason is then \"precision\".\n"
    "\n"
    "Modes that judge existing records:\n"
    "  --claims FILE       metric and comparison records by option. A claim of FILE\n"
    "                      about an option is held if the whole interval keeps its\n"
    "                      bound, not held if no part does, else undecided; not\n"
    "                      applicable if nothing was measured.\n"
    "  --exact FILE        generation records of make exact. A case of FILE is held\n"
    "                      if all answers have the ids of the base.\n"
    "  --stored FILE       claim records. Sentences agree word by word, ratios if\n"
    "                      their intervals overlap or they are within a factor of 1.1\n"
    "                      (2 on another kind of machine). Exit 0: agrees; 1:\n"
    "                      differs; 69: no time could be compared.\n"
    "  --self-test FACTOR  comparison records of a twin, and of a twin slowed by\n"
    "                      FACTOR: pass if they are SAME and SLOWER\n"
    "  --samples           samples records: the mean of their values with Student's\n"
    "                      interval\n";

static void check(struct compare *c, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&c->out);
    err_die("compare", e);
}

/* Writes verdicts about the records that are there. Returns an exit code. */
static int judge_all(struct compare *c, const struct judge *j, int argc, char **argv, int first)
{
    struct err e = {0};
    check(c, rec_open(&c->out, &c->a.common, "compare", argc, argv, NULL, &e), &e);
    int code = judge_run(j, (const char *const *)argv + first, (size_t)(argc - first), &c->out,
                         &c->log, &e);
    check(c, code < 0, &e);
    check(c, rec_close(&c->out, "ok", &e), &e);
    return code;
}

/* Writes what the setting costs. Returns an exit code. */
static int compare_all(struct compare *c, int argc, char **argv, int first)
{
    struct err e = {0};
    c->points.cost_metric = c->a.cost;
    c->points.beside = "output_bytes_per_s";
    struct rec_reader *in = rec_read_open((const char *const *)argv + first,
                                          (size_t)(argc - first), &e);
    check(c, !in || rec_open(&c->out, &c->a.common, "compare", argc, argv, NULL, &e), &e);
    check(c, take_all(&c->seen, in, &c->out, &c->log, c->a.common.limit, take, c, &e), &e);
    rec_read_close(in);
    points_finish(&c->points);
    c->usual = usual_of(&c->a);
    learn_sides(c);
    check(c, write_all(c, &e), &e);
    int code = take_verdict(&c->seen, &c->log, c->a.max_failed);
    check(c, rec_close(&c->out, code ? "failed" : "ok", &e), &e);
    for (size_t i = 0; i < c->points.n; i++)
        free(c->side[i].setting);
    free(c->side);
    points_free(&c->points);
    answers_free(&c->answers);
    pairs_free(&c->pairs);
    methods_free(&c->methods);
    free(c->usual);
    return code;
}

int main(int argc, char **argv)
{
    struct judge judge = {0};
    struct compare c = {.a = {.common = COMMON_DEFAULTS, .by = "quant", .draws = 2000,
                              .cost = "memory_weights_bytes", .precision = 0.02,
                              .margin = NONINFERIOR_MARGIN}};
    const struct opt options[] = {
        {"by", 0, OPT_TEXT, &c.a.by, .arg = "SETTING",
         .help = "setting whose effect is measured (quant)"},
        {"base", 0, OPT_TEXT, &c.a.base, .arg = "VALUE",
         .help = "value of --by at the base (its default)"},
        {"methods", 0, OPT_TEXT, &c.a.methods, .arg = "FILE",
         .help = "compare the decoding methods of FILE (data/methods.ndjson) instead of --by"},
        {"cost", 0, OPT_TEXT, &c.a.cost, .arg = "METRIC",
         .help = "cost to compare beside quality (memory_weights_bytes)"},
        {"precision", 0, OPT_REAL, &c.a.precision, 1e-6, 10, .arg = "P",
         .help = "goal for half the width of the log ratio's interval (0.02)"},
        {"stopped", 0, OPT_TEXT, &c.a.stopped, .arg = "WHY",
         .help = "stop_reason to record if the goal is not reached: budget, launches, ..."},
        {"margin", 0, OPT_TEXT, &c.a.margin, .arg = "M",
         .help = "loss of quality that counts as none (5%,accuracy=0.05)"},
        {"draws", 0, OPT_INT, &c.a.draws, 100, 100000, .arg = "N",
         .help = "bootstrap resamples (2000)"},
        {"claims", 0, OPT_TEXT, &judge.claims, .arg = "FILE",
         .help = "judge the claims of an ablation (data/ablation.ndjson)"},
        {"exact", 0, OPT_TEXT, &judge.exact, .arg = "FILE",
         .help = "judge which flags change a token (data/exact.ndjson)"},
        {"stored", 0, OPT_TEXT, &judge.stored, .arg = "FILE",
         .help = "compare the claims of a run with those of a stored run"},
        {"self-test", 0, OPT_REAL, &judge.self_test, 1, 10, .arg = "FACTOR",
         .help = "judge the A/A test with this handicap"},
        {"samples", 0, OPT_FLAG, &judge.samples,
         .help = "only write means of samples records, with intervals"},
        TAKE_OPTION(c.a.max_failed),
        OPT_COMMON(c.a.common),
        {0}};
    const struct tool tool = {"compare", "records that differ in one setting in, its cost out",
                              examples, notes, options};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    struct pooled_margin margin;
    if (pooled_margin_parse(c.a.margin, "", &margin))
        opt_usage(&tool, "--margin: expected a number, a percentage, or a list NAME=NUMBER,... not "
                  "below 0, got '%s'", c.a.margin);
    if (c.a.methods && (c.a.by = "method", methods_read(&c.methods, c.a.methods, &e)))
        err_die(tool.name, &e);
    c.log = (struct log){tool.name, c.a.common.quiet ? 0 : 1 + c.a.common.verbose};
    if (judge_count(&judge) > 1)
        opt_usage(&tool, "--claims, --exact, --stored, --self-test, --samples: expected one of "
                  "them, got %d", judge_count(&judge));
    return judge_count(&judge) ? judge_all(&c, &judge, argc, argv, first)
                               : compare_all(&c, argc, argv, first);
}
