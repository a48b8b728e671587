/* compare - compares records of points that differ in one setting, BY.
 *
 * From quality and metric records compare computes the effect of the setting: paired differences
 * with intervals, and ratios with a verdict. From records and claims about them compare judges
 * whether the claims hold (lib/analysis/verdict/judge.h).
 *
 * The base of a point has the point's settings except BY, which has its usual value in the base.
 * lib/analysis/points/couple.h compares costs, lib/analysis/points/difference.h qualities. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/points/answers.h"
#include "lib/analysis/points/baseline.h"
#include "lib/analysis/points/couple.h"
#include "lib/analysis/points/difference.h"
#include "lib/analysis/points/points.h"
#include "lib/analysis/records/source.h"
#include "lib/analysis/verdict/judge.h"
#include "lib/analysis/verdict/noninferior.h"
#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/record/rec.h"
#include "lib/analysis/records/take.h"
#include "lib/setting/methods.h"
#include "lib/stat/bootstrap.h"
#include "lib/stat/pooled.h"

static const double LEVEL = 0.95;

struct args {
    struct common common;
    const char *by, *base, *cost, *stopped, *methods, *margin;
    double precision; /* goal for the half-width of a ratio */
    int64_t draws, max_failed;
};

struct compare {
    struct args a;
    struct log log;
    struct rec_writer out;
    struct take seen;
    struct source source;
    struct points points;
    struct answers answers;
    struct pairs pairs;
    struct methods methods; /* methods of --methods; BY is then "method" */
    struct baseline baseline;
};

/* ---- records ---- */

/* The members that name both points and their settings. */
static json_t *start_record(const struct compare *compare, const struct couple *k,
                            const char *metric, const char *effect)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "config",
                          k->point->config, "base_config", k->base->config, "point", k->point->id,
                          "base_point", k->base->id, "model", k->point->model, "by", compare->a.by,
                          "setting", k->setting, "metric", metric, "effect", effect);
    const char *base = baseline_side(&compare->baseline, k->base)->setting;
    json_object_set_new(j, "base_setting", *base ? json_string(base) : json_null());
    json_object_set_new(j, "also", baseline_also(&compare->baseline, k->base, k->point));
    if (*k->point->stack) /* the reader of this record must know that more than BY differs */
        json_object_set_new(j, "stack", json_string(k->point->stack));
    const char *arch = rec_text(k->point->about, "arch");
    if (arch)
        json_object_set_new(j, "arch", json_string(arch));
    return j;
}

static int write_cost(struct compare *compare, const struct couple *k, struct err *e)
{
    const struct contrast_goal goal = {compare->a.precision, compare->a.stopped};
    for (int i = 0; i < COUPLE_COSTS; i++) {
        const struct couple_cost *cost = &k->cost[i];
        if (!cost->metric)
            continue;
        json_t *j = start_record(compare, k, cost->metric, "ratio");
        couple_put(j, cost, &goal);
        if (rec_write(&compare->out, "comparison", j, e))
            return -1;
    }
    return 0;
}

/* Writes the rate in bytes of text if the tokenizers differ, because tokens per second are then not
 * comparable. This rate does not count as a test or as a goal. */
static int write_text_rate(struct compare *compare, const struct couple *k, struct err *e)
{
    const struct contrast_goal goal = {compare->a.precision, compare->a.stopped};
    const struct couple_cost cost = couple_beside(k, &compare->points, LEVEL);
    if (!cost.metric || !about_other_tokens(k->point->about, k->base->about))
        return 0;
    json_t *j = start_record(compare, k, cost.metric, "ratio");
    couple_put(j, &cost, &goal);
    rec_set_number(j, "p_holm", NAN, "beside the cost");
    rec_set_int(j, "launches_more", 0);
    return rec_write(&compare->out, "comparison", j, e);
}

/* Writes the comparison of one quality, if both points have it for common prompts. */
static int compare_quality(struct compare *compare, const struct couple *k, const char *source,
                           struct err *e)
{
    const struct difference_how how = {LEVEL, (size_t)compare->a.draws,
                                       rng_derive((uint64_t)compare->a.common.seed, "prompts"),
                                       compare->a.margin};
    struct difference difference;
    if (!difference_find(&difference, &compare->points, k->base, k->point, source, &how))
        return 0;
    const int is_ratio = difference.kind.transform == POOLED_EXPONENTIAL;
    json_t *j = start_record(compare, k, difference.kind.name, is_ratio ? "ratio" : "difference");
    difference_put(j, &difference, LEVEL);
    return rec_write(&compare->out, "comparison", j, e);
}

/* ---- answers that differ ---- */

/* Writes a number about the difference between the answers of both points. */
static int write_disagreement(struct compare *compare, const struct couple *k, const char *metric,
                              struct interval interval, size_t n, const char *method, struct err *e)
{
    static const char why[] = "a number of both together";
    json_t *j = start_record(compare, k, metric, "disagreement");
    rec_set_number(j, "value", interval.value, "no answer differs, or no passes are told");
    rec_set_number(j, "lo", interval.lo, "too few answers");
    rec_set_number(j, "hi", interval.hi, "too few answers");
    json_object_set_new(j, "level", json_real(LEVEL));
    rec_set_number(j, "base_value", (double)NAN, why);
    rec_set_number(j, "config_value", (double)NAN, why);
    rec_set_int(j, "n", (int64_t)n);
    json_object_set_new(j, "method", json_string(method));
    return rec_write(&compare->out, "comparison", j, e);
}

/* The share of ids that differ: differing ids / ids, both summed over prompts, with prompts
 * resampled. If no id differs there is no interval, because every draw would be 0. */
static struct interval differing_ids(const struct compare *compare, const double *num,
                                     const double *den, size_t n)
{
    const unsigned char has = 1;
    size_t draws = (size_t)compare->a.draws;
    double value, *draw = mem_zero(draws, sizeof *draw);
    uint32_t *index = mem_zero(n, sizeof *index);
    double *work = mem_zero(2 * (n + 1), sizeof *work);
    pooled_draws(num, den, &has, 1, n, POOLED_PLAIN,
                 rng_derive((uint64_t)compare->a.common.seed, "prompts"), draws, &value, draw,
                 index, work);
    free(work);
    struct interval interval = bootstrap_interval(value, draw, draws, LEVEL);
    free(draw);
    free(index);
    return n > 1 && value > 0 ? interval : (struct interval){value, NAN, NAN};
}

static struct interval find_median(double *x, size_t n)
{
    return n ? stat_quantile(x, n, 0.5, LEVEL) : (struct interval){NAN, NAN, NAN};
}

static int compare_answers(struct compare *compare, const struct couple *k, struct err *e)
{
    static const char median[] = "median of answers that differ, binomial ranks";
    size_t n, differ = 0, told = 0;
    struct answers_pair *pair = answers_pairs(&compare->answers, k->base, k->point, &n);
    double *num = mem_zero(n, sizeof *num), *den = mem_zero(n, sizeof *den);
    double *first = mem_zero(n, sizeof *first), *step = mem_zero(n, sizeof *step);
    for (size_t i = 0; i < n; i++) {
        num[i] = pair[i].differing;
        den[i] = pair[i].ids;
        if (!isnan(pair[i].step))
            step[told++] = pair[i].step;
        if (!isnan(pair[i].first))
            first[differ++] = pair[i].first;
    }
    int bad = n && (write_disagreement(compare, k, "differing_answers_ratio",
                                       bootstrap_wilson((double)differ, (double)n, LEVEL), n,
                                       "Wilson interval", e) ||
                    write_disagreement(compare, k, "differing_ids_ratio",
                                       differing_ids(compare, num, den, n), n,
                                       "pooled, prompts resampled", e) ||
                    write_disagreement(compare, k, "first_difference_tokens",
                                       find_median(first, differ), differ, median, e) ||
                    write_disagreement(compare, k, "first_difference_steps",
                                       find_median(step, told), told, median, e));
    free(pair);
    free(step);
    free(num);
    free(den);
    free(first);
    return bad;
}

static const char *usual_text(const struct compare *compare, const char *none)
{
    return compare->baseline.usual ? compare->baseline.usual : none;
}

/* Finds the couples of a point and its base, with their costs. A point without a base gets a
 * warning. Returns the number of couples. */
static size_t find_couples(struct compare *compare, struct couple *couple)
{
    struct points *points = &compare->points;
    size_t n = 0;
    for (size_t i = 0; i < points->n; i++) {
        const struct baseline_side *side = &compare->baseline.side[i];
        if (side->is_base || (compare->methods.n && !side->method))
            continue;
        struct couple k = {.point = &points->v[i],
                           .base = baseline_find(&compare->baseline, &points->v[i]),
                           .setting = side->setting};
        const struct point *other = k.base ? NULL : baseline_elsewhere(&compare->baseline, k.point);
        if (other)
            log_warn(&compare->log, "W301",
                     "'%s' has no base: its prompts have the workload %s, those of '%s' have %s; "
                     "score and measure both on the same prompts", k.point->config,
                     k.point->workload, other->config, other->workload);
        else if (!k.base)
            log_warn(&compare->log, "W301",
                     "'%s' has no base: expected a point with the same settings "
                     "and %s %s", k.point->config, compare->a.by, usual_text(compare, "not set"));
        if (k.base)
            couple[n++] = k;
    }
    couple_find_costs(couple, n, points, &compare->pairs, LEVEL);
    return n;
}

static int write_couples(struct compare *compare, const struct couple *couple, size_t n,
                         struct err *e)
{
    int bad = 0;
    for (size_t i = 0; i < n && !bad; i++) {
        bad = write_cost(compare, &couple[i], e) || write_text_rate(compare, &couple[i], e) ||
              compare_answers(compare, &couple[i], e);
        for (size_t m = 0; !bad && m < compare->points.n_metrics; m++)
            bad = compare_quality(compare, &couple[i], compare->points.metrics[m], e);
    }
    return bad;
}

static int write_all(struct compare *compare, struct err *e)
{
    struct couple *couple = mem_zero(compare->points.n, sizeof *couple);
    size_t n = find_couples(compare, couple);
    int bad = n ? write_couples(compare, couple, n, e)
                : err_set(e, EXIT_BAD_DATA, "expected two points that differ in '%s' alone, one "
                          "of them with %s; got none", compare->a.by, usual_text(compare, "none"));
    free(couple);
    return bad;
}

/* ---- the tool ---- */

/* 1: the record has times, and the cost depends on the machine; or the record has such a cost. */
static int is_time(const struct compare *compare, const json_t *record)
{
    const char *cost = compare->a.cost;
    return source_is_of_machine(cost) && source_is_measured(record) &&
           (!strcmp(rec_kind(record), "times") || rec_is(record, "metric", cost));
}

static int take(void *ctx, const json_t *record, struct err *e)
{
    struct compare *compare = ctx;
    if (source_single(&compare->source, record, is_time(compare, record), e) &&
        (compare->seen.unsound = 1))
        return -1;
    int got = pairs_take(&compare->pairs, record, e);
    if (got)
        return got;
    got = answers_take(&compare->answers, record, e);
    if (got > 0)
        points_meet(&compare->points, record);
    return got ? got : points_take(&compare->points, record, e);
}

static const char examples[] =
    "compare --by quant metrics.ndjson quality.ndjson > comparison.ndjson\n"
    "cat quality-*.ndjson | compare --by dtype --base f32\n"
    "compare --by paradigm --cost e2e_ns metrics.ndjson > ratios.ndjson\n"
    "cat generations-*.ndjson | compare --by batch\n"
    "compare --methods data/methods.ndjson --cost e2e_ns m.ndjson q.ndjson\n"
    "compare --claims data/ablation.ndjson metrics.ndjson comparison.ndjson\n"
    "compare --stored data/demo/stored.ndjson claims.ndjson\n"
    "cat quality-*.ndjson | compare --ranking > ranking.ndjson\n";
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
    "the exact McNemar test over the prompts that only one side gets right. Several\n"
    "answers to a prompt count as the share of right ones.\n"
    "noninferior is true if the whole interval is better than a loss of --margin,\n"
    "false if it is worse, else null with prompts_to_decide. p_noninferior is\n"
    "one-sided. Declare the margin before the data are seen.\n"
    "Generation records give the disagreement of answers, whatever their quality:\n"
    "  differing_answers_ratio  share of answers that differ in any id\n"
    "  differing_ids_ratio      share of differing ids, relative to the longer answer\n"
    "  first_difference_tokens  place of the first differing id, from 1; the median\n"
    "                           over differing answers\n"
    "  first_difference_steps   pass by which that id is written; the median\n"
    "--by paradigm compares every denoised point with the autoregressive one of the\n"
    "same device, batch size, length, contract and prompts. A plain base is preferred\n"
    "(every setting that only changes speed, as --lookup, has its default), then a\n"
    "base of the same number format. --methods FILE, --by method: every point of a\n"
    "method of FILE is compared with the first method of its system in FILE.\n"
    "--by option (make ablation): the base is the system's point of --base, whatever\n"
    "settings the option changes. If the tokenizers differ, output_bytes_per_s stands\n"
    "beside the cost, because tokens per second are then not comparable.\n"
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
    "log ratio, is under --precision.\n"
    "\n"
    "Modes that judge existing records:\n"
    "  --claims FILE       metric and comparison records by option. A claim of FILE\n"
    "                      about an option is held if the whole interval keeps its\n"
    "                      bound, not held if no part does, else undecided; not\n"
    "                      applicable if nothing was measured.\n"
    "  --exact FILE        generation records of make exact. A case of FILE is held\n"
    "                      if all answers have the ids of the base.\n"
    "  --stored FILE       claim records to agree with: sentences in equal words,\n"
    "                      ratios with overlapping intervals or within a factor of\n"
    "                      1.1 (2 on another kind of machine). Exit 0: agrees;\n"
    "                      1: differs; 69: no time could be compared.\n"
    "  --self-test FACTOR  comparison records of a twin, and of a twin slowed by\n"
    "                      FACTOR: pass if they are SAME and SLOWER\n"
    "  --gate P            judges time ratios of comparison records. SLOWER: the\n"
    "                      ratio is above 1 + P/2, p below 0.001. UNDECIDED: half\n"
    "                      the interval is above P/2. Exit 1: slower; 69: undecided.\n"
    "  --ranking           quality records of runs that differ in --chat, --shots or\n"
    "                      --seed. HOLDS: all runs are shown to have one order;\n"
    "                      FLIPS: two orders; SAME: less than --margin apart\n";

static void check(struct compare *compare, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&compare->out);
    err_die("compare", e);
}

/* Writes verdicts about existing records. Returns an exit code. */
static int judge_all(struct compare *compare, const struct judge *j, int argc, char **argv,
                     int first)
{
    struct err e = {0};
    check(compare, rec_open(&compare->out, &compare->a.common, "compare", argc, argv, NULL, &e),
          &e);
    int code = judge_run(j, (const char *const *)argv + first, (size_t)(argc - first),
                         &compare->out, &compare->log, &e);
    check(compare, code < 0, &e);
    check(compare, rec_close(&compare->out, "ok", &e), &e);
    return code;
}

/* Compares each point with its base and writes the effects. Returns an exit code. */
static int compare_all(struct compare *compare, int argc, char **argv, int first)
{
    struct err e = {0};
    compare->points.cost_metric = compare->a.cost;
    compare->points.beside = "output_bytes_per_s";
    struct rec_reader *in = rec_read_open((const char *const *)argv + first,
                                          (size_t)(argc - first), &e);
    check(compare,
          !in || rec_open(&compare->out, &compare->a.common, "compare", argc, argv, NULL, &e), &e);
    check(compare,
          take_all(&compare->seen, in, &compare->out, &compare->log, compare->a.common.limit, take,
                   compare, &e),
          &e);
    rec_read_close(in);
    points_finish(&compare->points);
    baseline_open(&compare->baseline, &compare->points, &compare->methods, compare->a.by,
                  compare->a.base);
    check(compare, write_all(compare, &e), &e);
    int code = take_verdict(&compare->seen, &compare->log, compare->a.max_failed);
    check(compare, rec_close(&compare->out, code ? "failed" : "ok", &e), &e);
    baseline_free(&compare->baseline);
    points_free(&compare->points);
    answers_free(&compare->answers);
    pairs_free(&compare->pairs);
    source_free(&compare->source);
    methods_free(&compare->methods);
    return code;
}

int main(int argc, char **argv)
{
    struct judge judge = {0};
    struct compare compare = {.a = {.common = COMMON_DEFAULTS, .by = "quant", .draws = 2000,
                                    .cost = "memory_weights_bytes", .precision = 0.02,
                                    .margin = NONINFERIOR_MARGIN}};
    const struct opt options[] = {
        {"by", 0, OPT_TEXT, &compare.a.by, .arg = "SETTING",
         .help = "setting whose effect is measured (quant); stack: other engines against our "
                 "plain LLaMA with a batch of their concurrency, a ratio of two programs"},
        {"base", 0, OPT_TEXT, &compare.a.base, .arg = "VALUE",
         .help = "value of --by at the base (its default)"},
        {"methods", 0, OPT_TEXT, &compare.a.methods, .arg = "FILE",
         .help = "compare the decoding methods of FILE (data/methods.ndjson) instead of --by"},
        {"cost", 0, OPT_TEXT, &compare.a.cost, .arg = "METRIC",
         .help = "cost to compare beside quality (memory_weights_bytes)"},
        {"precision", 0, OPT_REAL, &compare.a.precision, 1e-6, 10, .arg = "P",
         .help = "goal: half the width of the interval of a log ratio (0.02)"},
        {"stopped", 0, OPT_TEXT, &compare.a.stopped, .arg = "WHY",
         .help = "stop_reason to record if the goal is not reached: budget, launches, ..."},
        {"margin", 0, OPT_TEXT, &compare.a.margin, .arg = "M",
         .help = "loss of quality that counts as none (5%,accuracy=0.05)"},
        {"draws", 0, OPT_INT, &compare.a.draws, 100, 100000, .arg = "N",
         .help = "bootstrap resamples (2000)"},
        {"claims", 0, OPT_TEXT, &judge.claims, .arg = "FILE",
         .help = "judge the claims in FILE about an ablation (such as data/ablation.ndjson)"},
        {"exact", 0, OPT_TEXT, &judge.exact, .arg = "FILE",
         .help = "judge which flags change a token, by the cases in FILE (such as "
                 "data/exact.ndjson)"},
        {"stored", 0, OPT_TEXT, &judge.stored, .arg = "FILE",
         .help = "compare the claims of a run with those of a stored run"},
        {"self-test", 0, OPT_REAL, &judge.self_test, 1, 10, .arg = "FACTOR",
         .help = "judge the self-test: a twin, and a twin slowed by this factor"},
        {"gate", 0, OPT_SHARE, &judge.gate, 1e-4, 1, .arg = "P",
         .help = "exit with 1 if a time grew by more than P/2 (P: 0.02 or 2%); see --help-all"},
        {"same-ids", 0, OPT_REAL, &judge.same_ids, 1e-6, 1, .arg = "SHARE", .rare = 1,
         .help = "check that at least this share of answers has the ids of the answers in the "
                 "first file; exit 1: a smaller share"},
        {"samples", 0, OPT_FLAG, &judge.samples,
         .help = "only write means of samples records, with intervals"},
        {"ranking", 0, OPT_FLAG, &judge.ranking,
         .help = "judge whether the order of points holds over templates and seeds"},
        {"aup", 0, OPT_FLAG, &judge.aup,
         .help = "write tokens per forward pass, and the accuracy under parallelism of a sweep"},
        {"split", 0, OPT_FLAG, &judge.split,
         .help = "split the time of a step: the least time of needed rows (architecture) and of "
                 "other rows (algorithm), and the rest (system)"},
        TAKE_OPTION(compare.a.max_failed),
        OPT_COMMON(compare.a.common),
        {0}};
    const struct tool tool = {"compare", "compares records that differ in one setting",
                              examples, notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    struct pooled_margin margin;
    if (pooled_margin_parse(compare.a.margin, "", &margin))
        opt_usage(&tool, "--margin: expected a number, a percentage, or a list NAME=NUMBER,... not "
                  "below 0, got '%s'", compare.a.margin);
    if (compare.a.methods &&
        (compare.a.by = "method", methods_read(&compare.methods, compare.a.methods, &e)))
        err_die(tool.name, &e);
    judge.seed = rng_derive((uint64_t)compare.a.common.seed, "prompts");
    judge.draws = (size_t)compare.a.draws;
    judge.margin = compare.a.margin;
    compare.log = (struct log){tool.name,
                               compare.a.common.quiet ? 0 : 1 + compare.a.common.verbose};
    if (judge_count(&judge) > 1)
        opt_usage(&tool, "--claims, --exact, --stored, --self-test, --gate, --same-ids, "
                  "--samples, --ranking, --aup, --split: expected one of them, "
                  "got %d", judge_count(&judge));
    return judge_count(&judge) ? judge_all(&compare, &judge, argc, argv, first)
                               : compare_all(&compare, argc, argv, first);
}
