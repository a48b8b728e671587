/* finding.c - see finding.h. All numbers use one clock, so that wall time and processor time are
 * never mixed. If the plan leaves the clock open, wall time is tried first. On a CPU, processor
 * time is used instead if a goal has no ratio of wall times, or if the self-test of wall time
 * failed and there is one of processor time. Wall time stays if processor time gives fewer
 * ratios. */
#include "lib/analysis/claim/finding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/records/pairs.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/fastest.h"

static const double ALPHA = 0.025;
static const struct versus nothing = {{NAN, NAN, NAN}, RATIO_UNDECIDED, "not measured", NULL, NULL,
                                      NULL, {{NAN, NAN, NAN}, {NAN, NAN, NAN}}, 0, 0, 0};

/* ---- times ---- */

static int is_timed(const struct pairs_point *point, const char *task)
{
    for (size_t i = 0; i < point->prompts && task; i++)
        if (point->task[i] && !strcmp(point->task[i], task))
            return 1;
    return !task;
}

struct versus finding_ratio(const struct findings *findings, const struct contender *llada,
                            const struct contender *llama, const char *task, size_t of)
{
    struct versus versus = nothing;
    const struct pairs_of cells = {findings->clock, task};
    versus.llada = llada;
    versus.llama = llama;
    versus.task = task;
    versus.comparisons = of;
    const struct pairs_point *text_times = llama ? pairs_find(&findings->evidence->times,
                                                              llama->point)
                                                 : NULL;
    const struct pairs_point *canvas_times = llada ? pairs_find(&findings->evidence->times,
                                                                llada->point)
                                                   : NULL;
    if (!text_times || !canvas_times) {
        versus.reason = !llama ? "no LLaMA was measured" : !llada ? "no plain LLaDA was measured"
                                                                  : "not timed";
        return versus;
    }
    if (!is_timed(text_times, task)) {
        versus.reason = "no prompt of the task was timed";
        return versus;
    }
    struct paired paired = pairs_ratio(text_times, canvas_times, &cells,
                                       ratio_level(1 - 2 * ALPHA, of));
    versus.x = (struct interval){paired.ratio.value, paired.ratio.lo, paired.ratio.hi};
    versus.reason = isnan(paired.ratio.value)
                        ? (paired.ratio.reason ? paired.ratio.reason : "not measured")
                        : NULL;
    versus.verdict = ratio_verdict(&paired.ratio, RATIO_ZONE);
    versus.launches = paired.ratio.launches;
    versus.prompts = paired.prompts;
    const char *failed = finding_selftest(findings->evidence, findings->clock);
    if (failed && !versus.reason) { /* times that fail the self-test are not compared */
        versus.x = nothing.x;
        versus.verdict = RATIO_UNDECIDED;
        versus.reason = failed;
    }
    versus.ns[0] = pairs_time(canvas_times, &cells);
    versus.ns[1] = pairs_time(text_times, &cells);
    return versus;
}

int finding_is_decided(const struct versus *versus)
{
    return !versus->reason && versus->verdict != RATIO_UNDECIDED;
}

/* Sets rival: `timed` against the fastest LLaMA method (fastest.h), if that method is faster than
 * plain LLaMA; else `nothing`. Sets among. The method has the model, the number formats and the
 * template of plain LLaMA, because sentences name both alike. */
static void compare_with_fastest(struct finding *finding, const struct findings *findings)
{
    const struct contenders *contenders = &findings->contenders;
    const struct contender *plain = contender_plain(contenders, 0);
    double *ratio = mem_zero(contenders->n + 1, sizeof *ratio);
    size_t n = 0;
    finding->among = mem_zero(contenders->n + 1, sizeof *finding->among);
    finding->rival = nothing;
    for (size_t i = 0; i < contenders->n && plain; i++) {
        const struct contender *other = &contenders->v[i];
        if (other->is_diffusion || other == plain ||
            !about_same_system(other->about, plain->about) ||
            !about_same_template(other->about, plain->about))
            continue;
        ratio[n] = finding_ratio(findings, other, plain, finding->goal->task, 1).x.value;
        if (!isnan(ratio[n]))
            finding->among[n++] = other;
    }
    const struct fastest fastest = fastest_choose(ratio, n);
    if (fastest.at < n)
        finding->rival = finding_ratio(findings, finding->timed, finding->among[fastest.at],
                                       finding->goal->task, fastest.of);
    if (n)
        finding->among[n++] = plain;
    finding->n_among = n;
    free(ratio);
}

/* ---- goals ---- */

static void take_steps(struct finding *finding, const struct findings *findings)
{
    const struct contenders *contenders = &findings->contenders;
    const struct contender *llama = contender_plain(contenders, 0);
    finding->step = mem_zero(contenders->n + 1, sizeof *finding->step);
    for (size_t i = 0; i < contenders->n; i++)
        if (contenders->v[i].is_diffusion && contenders->v[i].is_plain)
            finding->step[finding->n_steps++] = (struct tried){
                &contenders->v[i], goal_test(finding->goal, findings->evidence,
                                             llama ? llama->point : NULL, contenders->v[i].point,
                                             ALPHA)};
}

static void judge_steps(struct finding *finding, const struct findings *findings)
{
    finding->at = finding->below = (double)NAN;
    finding->timed = finding->n_steps ? finding->step[0].c : NULL;
    finding->state = FINDING_UNTESTED;
    finding->reason = !contender_plain(&findings->contenders, 0) ? "no LLaMA was measured"
                      : !finding->n_steps                        ? "no plain LLaDA was measured"
                                                                 : finding->step[0].good.reason;
    if (finding->reason)
        return;
    size_t n = 0;
    while (n < finding->n_steps && finding->step[n].good.shown > 0)
        n++;
    finding->below = n < finding->n_steps ? finding->step[n].c->steps : (double)NAN;
    finding->state = n                                ? FINDING_FROM
                     : finding->step[0].good.is_worse ? FINDING_WORSE
                                                      : FINDING_NOT_SHOWN;
    for (size_t i = n + 1; i < finding->n_steps; i++) { /* not reached by the sequence */
        finding->step[i].good.shown = -1;
        finding->step[i].good.reason = "a larger step count is not shown to match LLaMA";
    }
    if (!n)
        return;
    finding->timed = finding->step[n - 1].c;
    finding->at = finding->timed->steps;
}

static void take_ways(struct finding *finding, const struct findings *findings)
{
    const struct contenders *contenders = &findings->contenders;
    const struct contender *llama = contender_plain(contenders, 0);
    size_t n = 0;
    for (size_t i = 0; i < contenders->n; i++)
        n += contenders->v[i].is_diffusion && !contenders->v[i].is_plain;
    finding->way = mem_zero(n + 1, sizeof *finding->way);
    finding->best_of = -1;
    finding->best = nothing;
    finding->best.reason = n ? "no other method is shown to match LLaMA"
                             : "no other method was measured";
    for (size_t i = 0; i < contenders->n && llama; i++) {
        if (!contenders->v[i].is_diffusion || contenders->v[i].is_plain)
            continue;
        struct tried tried = {&contenders->v[i], goal_test(finding->goal, findings->evidence,
                                                           llama->point, contenders->v[i].point,
                                                           ALPHA / (double)n)};
        finding->way[finding->n_ways++] = tried;
        if (tried.good.shown <= 0)
            continue;
        struct versus versus = finding_ratio(findings, tried.c, llama, finding->goal->task, n);
        if (!finding->n_shown++ || versus.x.value < finding->best.x.value ||
            isnan(finding->best.x.value)) {
            finding->best = versus;
            finding->best_of = (int)finding->n_ways - 1;
        }
    }
}

static void finding_of(struct finding *finding, const struct findings *findings,
                       const struct goal *goal)
{
    *finding = (struct finding){.goal = goal};
    take_steps(finding, findings);
    judge_steps(finding, findings);
    finding->equal = finding_ratio(findings, finding->timed,
                                   contender_plain(&findings->contenders, 0), goal->task, 1);
    compare_with_fastest(finding, findings);
    take_ways(finding, findings);
}

/* ---- findings without a goal ---- */

static void take_vanilla(struct findings *findings)
{
    const struct contenders *contenders = &findings->contenders;
    const struct contender *llama = contender_plain(contenders, 0),
                           *llada = contender_plain(contenders, 1);
    const struct contender *grown = NULL;
    for (size_t i = 0; i < contenders->n; i++)
        if (contenders->v[i].is_diffusion && rec_is(contenders->v[i].about, "suffix", "grow") &&
            rec_is(contenders->v[i].about, "cache", "none") &&
            !(contenders->v[i].steps < contenders->v[i].length))
            grown = &contenders->v[i];
    if (llada && llada->steps < llada->length)
        llada = NULL;
    findings->vanilla = finding_ratio(findings, llada, llama, NULL, 1);
    if (!llada && llama)
        findings->vanilla.reason = "one token a step was not measured";
    findings->grown = grown ? finding_ratio(findings, grown, llama, NULL, 1) : nothing;
}

/* The plain LLaDA point with the most tokens a step, but at most per_step. If there is none: the
 * plain point with the most steps. */
static const struct contender *find_pace(const struct contenders *contenders, double per_step)
{
    const struct contender *best = NULL;
    for (size_t i = 0; i < contenders->n; i++) {
        const struct contender *contender = &contenders->v[i];
        if (!contender->is_diffusion || !contender->is_plain)
            continue;
        if (!best || contender->length / contender->steps <= per_step * (1 + 1e-9))
            best = contender; /* points are sorted from the most steps down */
    }
    return best;
}

static double pace_of(const struct findings *findings)
{
    for (int i = 0; i < findings->n; i++)
        if (findings->v[i].state == FINDING_FROM)
            return findings->v[i].timed->length / findings->v[i].at;
    return 1;
}

/* The largest batch size of any point that is below `limit` and above 1; NaN: none. */
static double next_batch(const struct evidence *evidence, double limit)
{
    const char *point;
    json_t *about;
    double best = NAN;
    json_object_foreach(evidence->points, point, about) {
        double b = rec_number(about, "batch");
        if (b > 1 && b < limit && !(b <= best))
            best = b;
    }
    return best;
}

/* The ratio of rates is the inverse ratio of times, because both write equally many tokens
 * (contract `fixed`). */
static struct versus invert(struct versus versus)
{
    versus.x = (struct interval){1 / versus.x.value, 1 / versus.x.hi, 1 / versus.x.lo};
    return versus;
}

static void take_rate(struct findings *findings)
{
    findings->rate = nothing;
    findings->rate.reason = "no batch above 1 was measured of both";
    findings->batch = (double)NAN;
    for (double batch = next_batch(findings->evidence, INFINITY); batch > 1;
         batch = next_batch(findings->evidence, batch)) {
        contender_find(&findings->batched, findings->evidence, "fixed", batch);
        const struct contender *llama = contender_plain(&findings->batched, 0);
        const struct contender *llada = find_pace(&findings->batched, pace_of(findings));
        if (llama && llada && pairs_find(&findings->evidence->times, llama->point) &&
            pairs_find(&findings->evidence->times, llada->point)) {
            findings->rate = invert(finding_ratio(findings, llada, llama, NULL, 1));
            findings->batch = batch;
            return;
        }
        contender_free(&findings->batched);
    }
}

static void take_memory(struct findings *findings)
{
    static const char *const names[] = {"memory_device_peak_bytes", "memory_allocated_peak_bytes",
                                        "memory_process_peak_bytes"};
    const struct contender *llama = contender_plain(&findings->contenders, 0);
    const struct contender *llada = findings->n && findings->v[0].timed
                                        ? findings->v[0].timed
                                        : contender_plain(&findings->contenders, 1);
    findings->memory = (struct memory_found){NULL, NAN, NAN, "not measured of both"};
    for (size_t i = 0; i < sizeof names / sizeof *names && llama && llada; i++) {
        double llama_bytes = evidence_metric(findings->evidence, llama->point, names[i]);
        double llada_bytes = evidence_metric(findings->evidence, llada->point, names[i]);
        if (llama_bytes > 0 && llada_bytes > 0) {
            findings->memory = (struct memory_found){names[i], llada_bytes, llama_bytes, NULL};
            return;
        }
    }
}

/* ---- all findings ---- */

static void take_all(struct findings *findings, const struct finding_plan *plan,
                     enum pairs_clock clock)
{
    findings->clock = clock;
    findings->n = plan->goals;
    for (int i = 0; i < plan->goals; i++)
        finding_of(&findings->v[i], findings, &plan->goal[i]);
    take_vanilla(findings);
    take_rate(findings);
    take_memory(findings);
}

static void free_goals(struct findings *findings)
{
    for (int i = 0; i < findings->n; i++) {
        free(findings->v[i].step);
        free(findings->v[i].way);
        free(findings->v[i].among);
    }
    contender_free(&findings->batched);
    findings->n = 0;
}

/* The number of primary ratios that have a value. */
static int count_ratios(const struct findings *findings)
{
    int n = !findings->vanilla.reason;
    for (int i = 0; i < findings->n; i++)
        n += !findings->v[i].equal.reason;
    return n;
}

static int is_on_cpu(const struct findings *findings)
{
    const struct contender *llama = contender_plain(&findings->contenders, 0);
    return llama && rec_is(llama->about, "device", "cpu");
}

/* 1: there is a self-test by this clock, passed or not. */
static int has_selftest(const struct evidence *evidence, enum pairs_clock clock)
{
    const json_t *check;
    size_t i;
    json_array_foreach(evidence_list(evidence, "check"), i, check)
        if (finding_selftest_is(check, clock))
            return 1;
    return 0;
}

void finding_all(struct findings *findings, const struct evidence *evidence,
                 const struct finding_plan *plan)
{
    *findings = (struct findings){.evidence = evidence};
    contender_find(&findings->contenders, evidence, plan->contract, plan->batch);
    take_all(findings, plan, plan->clock < 0 ? PAIRS_WALL : (enum pairs_clock)plan->clock);
    if (plan->clock >= 0 || !is_on_cpu(findings))
        return;
    const int ratios = count_ratios(findings),
              has_failed = finding_selftest(evidence, PAIRS_WALL) != NULL;
    int is_enough = ratios && !has_failed;
    if (has_failed && !has_selftest(evidence, PAIRS_CPU))
        return; /* processor time was not checked at all */
    for (int i = 0; i < findings->n; i++)
        is_enough &= !findings->v[i].equal.reason;
    if (is_enough)
        return;
    free_goals(findings);
    take_all(findings, plan, PAIRS_CPU);
    /* Processor time gives fewer ratios, or none: use wall time again. */
    if (count_ratios(findings) < ratios || !count_ratios(findings)) {
        free_goals(findings);
        take_all(findings, plan, PAIRS_WALL);
    }
}

void finding_free(struct findings *findings)
{
    free_goals(findings);
    contender_free(&findings->contenders);
}

/* ---- the self-test ---- */

/* Why this self-test did not pass; NULL: it passed. */
static const char *failure_of(const json_t *check)
{
    const char *verdict = rec_text(check, "verdict"), *handicap = rec_text(check, "handicap");
    if (verdict && !strcmp(verdict, "UNDECIDED"))
        return "the self-test interval is too wide";
    if (verdict && strcmp(verdict, "SAME"))
        return "the self-test found a false difference";
    return handicap && strcmp(handicap, "FOUND") ? "the self-test missed a known slowdown" : NULL;
}

int finding_selftest_is(const json_t *check, enum pairs_clock clock)
{
    const char *metric = rec_text(check, "metric");
    return rec_is(check, "check", "same") &&
           !strcmp(metric ? metric : pairs_clocks[PAIRS_WALL], pairs_clocks[clock]);
}

const char *finding_selftest(const struct evidence *evidence, enum pairs_clock clock)
{
    const char *last = NULL;
    const json_t *check;
    size_t i;
    json_array_foreach(evidence_list(evidence, "check"), i, check) {
        const char *failure = finding_selftest_is(check, clock) ? failure_of(check) : NULL;
        last = failure ? failure : last;
    }
    return last;
}
