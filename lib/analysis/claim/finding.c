/* finding.c - see finding.h. All numbers are by one clock, so that no two of them mix kinds of
 * time. If the plan leaves the clock open, wall time is computed first, and processor time only if
 * a goal has no wall time or its self-test failed. */
#include "lib/analysis/claim/finding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/records/pairs.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const double ALPHA = 0.025;
static const struct versus nothing = {{NAN, NAN, NAN}, RATIO_UNDECIDED, "not measured", NULL, NULL,
                                      NULL, {NAN, NAN}, 0, 0, 0};

/* ---- times ---- */

static int is_timed(const struct pairs_point *p, const char *task)
{
    for (size_t i = 0; i < p->prompts && task; i++)
        if (p->task[i] && !strcmp(p->task[i], task))
            return 1;
    return !task;
}

struct versus finding_ratio(const struct findings *f, const struct contender *llada,
                            const struct contender *llama, const char *task, size_t of)
{
    struct versus x = nothing;
    const struct pairs_of cells = {f->clock, task};
    x.llada = llada;
    x.llama = llama;
    x.task = task;
    x.comparisons = of;
    const struct pairs_point *a = llama ? pairs_find(&f->evidence->times, llama->point) : NULL;
    const struct pairs_point *b = llada ? pairs_find(&f->evidence->times, llada->point) : NULL;
    if (!a || !b) {
        x.reason = !llama ? "no LLaMA was measured" : !llada ? "no such LLaDA was measured"
                                                             : "not timed";
        return x;
    }
    if (!is_timed(a, task)) {
        x.reason = "no prompt of the task was timed";
        return x;
    }
    struct paired p = pairs_ratio(a, b, &cells, ratio_level(1 - 2 * ALPHA, of));
    x.x = (struct interval){p.ratio.value, p.ratio.lo, p.ratio.hi};
    x.reason = isnan(p.ratio.value) ? (p.ratio.reason ? p.ratio.reason : "not measured") : NULL;
    x.verdict = ratio_verdict(&p.ratio, RATIO_ZONE);
    x.launches = p.ratio.launches;
    x.prompts = p.prompts;
    if (!x.reason) {
        x.ns[0] = pairs_mean(b, &cells);
        x.ns[1] = pairs_mean(a, &cells);
    }
    return x;
}

int finding_is_decided(const struct versus *x)
{
    return !x->reason && x->verdict != RATIO_UNDECIDED;
}

/* llada against the fastest LLaMA method, if that is faster than plain LLaMA; else `nothing`. */
static struct versus compare_with_fastest(const struct findings *f, const struct contender *llada,
                                     const char *task)
{
    const struct contenders *c = &f->contenders;
    const struct contender *plain = contender_plain(c, 0), *fastest = NULL;
    double least = 1;
    size_t others = 0;
    for (size_t i = 0; i < c->n; i++)
        others += !c->v[i].is_diffusion && &c->v[i] != plain &&
                  pairs_find(&f->evidence->times, c->v[i].point);
    for (size_t i = 0; i < c->n && plain; i++) {
        if (c->v[i].is_diffusion || &c->v[i] == plain)
            continue;
        struct versus x = finding_ratio(f, &c->v[i], plain, task, 1);
        if (x.x.value < least) {
            least = x.x.value;
            fastest = &c->v[i];
        }
    }
    return fastest ? finding_ratio(f, llada, fastest, task, others) : nothing;
}

/* ---- goals ---- */

static void take_steps(struct finding *g, const struct findings *f)
{
    const struct contenders *c = &f->contenders;
    const struct contender *llama = contender_plain(c, 0);
    g->step = mem_zero(c->n + 1, sizeof *g->step);
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].is_diffusion && c->v[i].is_plain)
            g->step[g->n_steps++] = (struct tried){
                &c->v[i], goal_test(g->goal, f->evidence, llama ? llama->point : NULL,
                                    c->v[i].point, ALPHA)};
}

static void judge_steps(struct finding *g, const struct findings *f)
{
    g->at = g->below = (double)NAN;
    g->timed = g->n_steps ? g->step[0].c : NULL;
    g->state = FINDING_UNTESTED;
    g->reason = !contender_plain(&f->contenders, 0) ? "no LLaMA was measured"
                : !g->n_steps                       ? "no plain LLaDA was measured"
                                                    : g->step[0].good.reason;
    if (g->reason)
        return;
    size_t n = 0;
    while (n < g->n_steps && g->step[n].good.shown > 0)
        n++;
    g->below = n < g->n_steps ? g->step[n].c->steps : (double)NAN;
    g->state = n ? FINDING_FROM : g->step[0].good.is_worse ? FINDING_WORSE : FINDING_NOT_SHOWN;
    for (size_t i = n + 1; i < g->n_steps; i++) { /* not reached by the sequence */
        g->step[i].good.shown = -1;
        g->step[i].good.reason = "a larger step count is not shown to match LLaMA";
    }
    if (!n)
        return;
    g->timed = g->step[n - 1].c;
    g->at = g->timed->steps;
}

static void take_ways(struct finding *g, const struct findings *f)
{
    const struct contenders *c = &f->contenders;
    const struct contender *llama = contender_plain(c, 0);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->v[i].is_diffusion && !c->v[i].is_plain;
    g->way = mem_zero(n + 1, sizeof *g->way);
    g->best_of = -1;
    g->best = nothing;
    g->best.reason = n ? "no other method is shown to match LLaMA" : "no other method was measured";
    for (size_t i = 0; i < c->n && llama; i++) {
        if (!c->v[i].is_diffusion || c->v[i].is_plain)
            continue;
        struct tried t = {&c->v[i], goal_test(g->goal, f->evidence, llama->point, c->v[i].point,
                                              ALPHA / (double)n)};
        g->way[g->n_ways++] = t;
        if (t.good.shown <= 0)
            continue;
        struct versus x = finding_ratio(f, t.c, llama, g->goal->task, n);
        if (!g->n_shown++ || x.x.value < g->best.x.value || isnan(g->best.x.value)) {
            g->best = x;
            g->best_of = (int)g->n_ways - 1;
        }
    }
}

static void finding_of(struct finding *g, const struct findings *f, const struct goal *goal)
{
    *g = (struct finding){.goal = goal};
    take_steps(g, f);
    judge_steps(g, f);
    g->equal = finding_ratio(f, g->timed, contender_plain(&f->contenders, 0), goal->task, 1);
    g->rival = compare_with_fastest(f, g->timed, goal->task);
    take_ways(g, f);
}

/* ---- beside the goals ---- */

static void take_vanilla(struct findings *f)
{
    const struct contenders *c = &f->contenders;
    const struct contender *llama = contender_plain(c, 0), *llada = contender_plain(c, 1);
    const struct contender *grown = NULL;
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].is_diffusion && rec_is(c->v[i].about, "suffix", "grow") &&
            rec_is(c->v[i].about, "cache", "none") && !(c->v[i].steps < c->v[i].length))
            grown = &c->v[i];
    if (llada && llada->steps < llada->length)
        llada = NULL;
    f->vanilla = finding_ratio(f, llada, llama, NULL, 1);
    if (!llada && llama)
        f->vanilla.reason = "one token a step was not measured";
    f->grown = grown ? finding_ratio(f, grown, llama, NULL, 1) : nothing;
}

/* The plain LLaDA point with the most tokens a step up to per_step; if none, with most steps. */
static const struct contender *find_pace(const struct contenders *c, double per_step)
{
    const struct contender *best = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const struct contender *x = &c->v[i];
        if (!x->is_diffusion || !x->is_plain)
            continue;
        if (!best || x->length / x->steps <= per_step * (1 + 1e-9))
            best = x; /* points are sorted from the most steps down */
    }
    return best;
}

static double pace_of(const struct findings *f)
{
    for (int i = 0; i < f->n; i++)
        if (f->v[i].state == FINDING_FROM)
            return f->v[i].timed->length / f->v[i].at;
    return 1;
}

/* The largest batch size of any point below `limit` and above 1; NaN: none. */
static double next_batch(const struct evidence *v, double limit)
{
    const char *point;
    json_t *about;
    double best = NAN;
    json_object_foreach(v->points, point, about) {
        double b = rec_number(about, "batch");
        if (b > 1 && b < limit && !(b <= best))
            best = b;
    }
    return best;
}

/* The ratio of rates is the inverse ratio of times, because both write equally many tokens
 * (contract `fixed`). */
static struct versus invert(struct versus x)
{
    x.x = (struct interval){1 / x.x.value, 1 / x.x.hi, 1 / x.x.lo};
    return x;
}

static void take_rate(struct findings *f)
{
    f->rate = nothing;
    f->rate.reason = "no batch above 1 was measured of both";
    f->batch = (double)NAN;
    for (double b = next_batch(f->evidence, INFINITY); b > 1; b = next_batch(f->evidence, b)) {
        contender_find(&f->batched, f->evidence, "fixed", b);
        const struct contender *llama = contender_plain(&f->batched, 0);
        const struct contender *llada = find_pace(&f->batched, pace_of(f));
        if (llama && llada && pairs_find(&f->evidence->times, llama->point) &&
            pairs_find(&f->evidence->times, llada->point)) {
            f->rate = invert(finding_ratio(f, llada, llama, NULL, 1));
            f->batch = b;
            return;
        }
        contender_free(&f->batched);
    }
}

static void take_memory(struct findings *f)
{
    static const char *const names[] = {"memory_device_peak_bytes", "memory_allocated_peak_bytes",
                                        "memory_process_peak_bytes"};
    const struct contender *llama = contender_plain(&f->contenders, 0);
    const struct contender *llada = f->n && f->v[0].timed ? f->v[0].timed
                                                          : contender_plain(&f->contenders, 1);
    f->memory = (struct memory_found){NULL, NAN, NAN, "not measured of both"};
    for (size_t i = 0; i < sizeof names / sizeof *names && llama && llada; i++) {
        double a = evidence_metric(f->evidence, llama->point, names[i]);
        double b = evidence_metric(f->evidence, llada->point, names[i]);
        if (a > 0 && b > 0) {
            f->memory = (struct memory_found){names[i], b, a, NULL};
            return;
        }
    }
}

/* ---- all ---- */

static void take_all(struct findings *f, const struct finding_plan *plan, enum pairs_clock clock)
{
    f->clock = clock;
    f->n = plan->goals;
    for (int i = 0; i < plan->goals; i++)
        finding_of(&f->v[i], f, &plan->goal[i]);
    take_vanilla(f);
    take_rate(f);
    take_memory(f);
}

static void free_goals(struct findings *f)
{
    for (int i = 0; i < f->n; i++) {
        free(f->v[i].step);
        free(f->v[i].way);
    }
    contender_free(&f->batched);
    f->n = 0;
}

/* The number of primary ratios that have a value. */
static int count_ratios(const struct findings *f)
{
    int n = !f->vanilla.reason;
    for (int i = 0; i < f->n; i++)
        n += !f->v[i].equal.reason;
    return n;
}

static int is_on_cpu(const struct findings *f)
{
    const struct contender *llama = contender_plain(&f->contenders, 0);
    return llama && rec_is(llama->about, "device", "cpu");
}

void finding_all(struct findings *f, const struct evidence *v, const struct finding_plan *plan)
{
    *f = (struct findings){.evidence = v};
    contender_find(&f->contenders, v, plan->contract, plan->batch);
    take_all(f, plan, plan->clock < 0 ? PAIRS_WALL : (enum pairs_clock)plan->clock);
    if (plan->clock >= 0 || !is_on_cpu(f))
        return;
    const int ratios = count_ratios(f);
    int is_enough = ratios && finding_selftest(v, PAIRS_WALL) <= SELFTEST_PASSED;
    for (int i = 0; i < f->n; i++)
        is_enough &= !f->v[i].equal.reason;
    if (is_enough)
        return;
    free_goals(f);
    take_all(f, plan, PAIRS_CPU);
    if (count_ratios(f) < ratios || !count_ratios(f)) { /* it does not know more: wall time again */
        free_goals(f);
        take_all(f, plan, PAIRS_WALL);
    }
}

void finding_free(struct findings *f)
{
    free_goals(f);
    contender_free(&f->contenders);
}

/* ---- the self-test ---- */

static enum selftest selftest_of(const json_t *check)
{
    const char *verdict = rec_text(check, "verdict"), *handicap = rec_text(check, "handicap");
    if (verdict && !strcmp(verdict, "UNDECIDED"))
        return SELFTEST_WIDE;
    if (verdict && strcmp(verdict, "SAME"))
        return SELFTEST_DIFFERS;
    return handicap && strcmp(handicap, "FOUND") ? SELFTEST_MISSED : SELFTEST_PASSED;
}

int finding_selftest_is(const json_t *check, enum pairs_clock clock)
{
    const char *metric = rec_text(check, "metric");
    return rec_is(check, "check", "same") &&
           !strcmp(metric ? metric : pairs_clocks[PAIRS_WALL], pairs_clocks[clock]);
}

enum selftest finding_selftest(const struct evidence *v, enum pairs_clock clock)
{
    enum selftest worst = SELFTEST_NONE;
    const json_t *check;
    size_t i;
    json_array_foreach(evidence_list(v, "check"), i, check) {
        if (!finding_selftest_is(check, clock))
            continue;
        enum selftest is = selftest_of(check);
        worst = worst == SELFTEST_NONE || is > SELFTEST_PASSED ? is : worst;
    }
    return worst;
}
