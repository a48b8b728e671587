/* wording.c - see wording.h. The answer is composed in full. If it has more than WORDING_MOST
 * words, it is composed again with the next row of `shorter`, which leaves out more parts:
 * first parts that the page repeats, then details, never the step count, the metric or the
 * verdict. */
#include "lib/analysis/claim/wording.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/asgood.h"

/* The number of words, separated by spaces. */
static size_t count_words(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += *s != ' ' && (s[1] == ' ' || !s[1]);
    return n;
}

/* ---- parts ---- */

static int decimals(double x)
{
    return x < 0.0995 ? 3 : x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
}

static void put_interval(struct buf *b, const struct versus *x)
{
    const int n = decimals(x->x.value);
    buf_format(b, " [%.*f, %.*f]", n, x->x.lo, n, x->x.hi);
}

void wording_times(struct buf *b, const struct versus *x)
{
    buf_format(b, "%.*f times", decimals(x->x.value), x->x.value);
    put_interval(b, x);
}

/* Appends "takes 1.40 times as long [1.31, 1.50]"; verb: "take" or "takes". */
static void put_takes(struct buf *b, const char *verb, const struct versus *x,
                      enum pairs_clock clock, int has_interval)
{
    const int is_cpu = clock == PAIRS_CPU;
    if (x->verdict == RATIO_SAME)
        buf_format(b, "%s the same %s (%.*f times", verb, is_cpu ? "processor time" : "time",
                   decimals(x->x.value), x->x.value);
    else
        buf_format(b, "%s %.*f times %s", verb, decimals(x->x.value), x->x.value,
                   is_cpu ? "the processor time" : "as long");
    if (has_interval)
        put_interval(b, x);
    buf_text(b, x->verdict == RATIO_SAME        ? ")"
                : x->verdict == RATIO_UNDECIDED ? ", faster or slower undecided"
                                                : "");
}

void wording_takes(struct buf *b, const struct versus *x, enum pairs_clock clock)
{
    put_takes(b, "takes", x, clock, 1);
}

void wording_pace(struct buf *b, const struct contender *c)
{
    const double pace = c->length / c->steps;
    if (pace > 1)
        buf_format(b, "%.3g tokens a step", pace);
    else
        buf_text(b, "one token a step");
}

const char *wording_task(const struct goal *g)
{
    static const char *const plurals[][2] = {{"sum", "sums"}, {"story", "stories"}};
    for (size_t i = 0; i < sizeof plurals / sizeof *plurals && g->task; i++)
        if (!strcmp(plurals[i][0], g->task))
            return plurals[i][1];
    return g->task ? g->task : "";
}

char *wording_metric(const struct goal *g)
{
    char *s = mem_text(!strcmp(g->metric, "judge_ppl") ? "judge perplexity"
                       : !strcmp(g->metric, "ppl")     ? "perplexity"
                                                       : g->metric);
    for (char *c = s; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return s;
}

static void put_margin(struct buf *b, const struct goal *g)
{
    if (g->margin.relative)
        buf_format(b, "%.4g %%", 100 * g->margin.by);
    else if (g->kind.transform == POOLED_PLAIN)
        buf_format(b, "%.4g points", 100 * g->margin.by);
    else
        buf_format(b, "%.4g", g->margin.by);
}

void wording_margin(struct buf *b, const struct goal *g)
{
    char *metric = wording_metric(g);
    buf_format(b, "%s within ", metric);
    put_margin(b, g);
    free(metric);
}

/* Appends "(accuracy within 5 points)", without a margin "(accuracy)". */
static void put_quality(struct buf *b, const struct goal *g, int has_margin)
{
    char *metric = wording_metric(g);
    buf_text(b, "(");
    if (has_margin)
        wording_margin(b, g);
    else
        buf_text(b, metric);
    buf_text(b, ")");
    free(metric);
}

static void put_llama(struct buf *b, const struct goal *g, int has_margin)
{
    const char *task = wording_task(g);
    buf_format(b, "LLaMA%s%s ", *task ? " on " : "", task);
    put_quality(b, g, has_margin);
}

void wording_llama(struct buf *b, const struct goal *g)
{
    put_llama(b, g, 1);
}

const char *wording_reason(const char *reason)
{
    static const char *const says[][2] = {
        {PAIRED_DISTURBED, "other work disturbed the timed launches"},
        {LAUNCH_FEW, "fewer than 5 launches were timed"},
        {ASGOOD_FEW, "too few prompts were scored"},
        {"not scored", "quality was not scored"},
        {"not timed", "not both models were timed"},
        {PAIRED_NONE, "the two models were not timed together"},
        {"random weights", "the weights are random"},
    };
    for (size_t i = 0; i < sizeof says / sizeof *says && reason; i++)
        if (!strcmp(reason, says[i][0]))
            return says[i][1];
    return reason ? reason : "";
}

const char *wording_selftest(enum selftest is)
{
    return is == SELFTEST_DIFFERS  ? "the self-test found a false difference"
           : is == SELFTEST_WIDE   ? "the self-test interval is too wide"
           : is == SELFTEST_MISSED ? "the self-test missed a known slowdown"
                                   : NULL;
}

/* ---- decided or not ---- */

static int goal_is_decided(const struct finding *g)
{
    return (g->state == FINDING_FROM || g->state == FINDING_WORSE) && finding_is_decided(&g->equal);
}

static int is_random(const struct finding *g)
{
    return g->state == FINDING_UNTESTED && g->reason && !strcmp(g->reason, "random weights");
}

const json_t *wording_ranking(const struct evidence *v, const struct goal *g)
{
    const json_t *r, *of_all = NULL;
    size_t i;
    json_array_foreach(evidence_list(v, "ranking"), i, r) {
        const char *task = rec_text(r, "task");
        if (!rec_is(r, "metric", g->kind.name))
            continue;
        if (task && g->task && !strcmp(task, g->task))
            return r;
        of_all = of_all || task ? of_all : r;
    }
    return of_all;
}

int wording_is_decided(const struct findings *f)
{
    int all = !wording_selftest(finding_selftest(f->evidence, f->clock));
    for (int i = 0; i < f->n; i++) {
        const json_t *ranking = wording_ranking(f->evidence, f->v[i].goal);
        all &= (goal_is_decided(&f->v[i]) ||
                (is_random(&f->v[i]) && finding_is_decided(&f->v[i].equal))) &&
               (!ranking || rec_is(ranking, "verdict", "HOLDS"));
    }
    return f->n ? all : all && finding_is_decided(&f->vanilla);
}

/* ---- the answer ---- */

/* The parts of an answer; 0 leaves a part out. goals: how many; intervals: of how many goals. */
struct brevity { int way, machine, goals, intervals, margin, rival; };
static const struct brevity shorter[] = {
    {1, 1, 8, 8, 1, 1}, {0, 1, 8, 8, 1, 1}, {0, 0, 8, 8, 1, 1}, {0, 0, 8, 1, 1, 1},
    {0, 0, 2, 2, 1, 1}, {0, 0, 2, 1, 1, 1}, {0, 0, 2, 0, 1, 1}, {0, 0, 1, 1, 1, 1},
    {0, 0, 1, 0, 0, 1}, {0, 0, 1, 0, 0, 0},
};

/* Appends "LLaDA with 64 steps takes 21.0 times as long as LLaMA [19.1, 23.2]". */
static void put_time_alone(struct buf *b, const struct versus *x, enum pairs_clock clock)
{
    const int n = decimals(x->x.value);
    buf_text(b, "LLaDA");
    if (x->llada->steps > 0)
        buf_format(b, " with %.0f steps", x->llada->steps);
    buf_format(b, " takes %.*f times %s", n, x->x.value,
               clock == PAIRS_CPU ? "LLaMA's processor time" : "as long as LLaMA");
    put_interval(b, x);
    if (x->verdict == RATIO_UNDECIDED)
        buf_text(b, ", faster or slower undecided");
}

/* Appends the ratio to the fastest LLaMA, if its verdict is another than that to plain LLaMA. */
static void put_rival(struct buf *b, const struct finding *g, int has_interval)
{
    const struct versus *x = &g->rival;
    const int wins = g->equal.verdict == RATIO_BELOW || g->equal.verdict == RATIO_SAME;
    if (g->equal.reason || !wins || !x->comparisons || x->reason ||
        x->verdict == g->equal.verdict)
        return;
    buf_format(b, ", but %.*f times", decimals(x->x.value), x->x.value);
    if (has_interval)
        put_interval(b, x);
    buf_format(b, " against LLaMA %s", x->llama->name);
}

/* 1: the answer may say how the times of this goal compare. A self-test that fails leaves only the
 * result of the quality test. */
static int is_timed(const struct finding *g, const struct findings *f)
{
    return !g->equal.reason && !wording_selftest(finding_selftest(f->evidence, f->clock));
}

/* Appends the time of a goal that is met; has_interval: with its interval. */
static void put_cost(struct buf *b, const struct finding *g, const struct findings *f,
                     const struct brevity *full, int has_interval)
{
    if (!is_timed(g, f))
        return;
    put_takes(b, " and takes", &g->equal, f->clock, has_interval);
    if (full->rival)
        put_rival(b, g, has_interval);
}

/* Appends the first goal of an answer. */
static void put_goal(struct buf *b, const struct finding *g, const struct findings *f,
                     const struct brevity *full)
{
    const int has_interval = full->intervals > 0;
    if (g->state == FINDING_UNTESTED) {
        if (!g->equal.reason)
            put_time_alone(b, &g->equal, f->clock);
        return;
    }
    buf_text(b, "LLaDA ");
    if (g->state == FINDING_FROM)
        buf_format(b, "needs %s%.0f steps to match ", isnan(g->below) ? "at most " : "", g->at);
    else
        buf_text(b, g->state == FINDING_WORSE ? "does not match " : "is not shown to match ");
    put_llama(b, g->goal, full->margin);
    if (g->state == FINDING_FROM) {
        put_cost(b, g, f, full, has_interval);
        return;
    }
    buf_format(b, ", even with %.0f steps", g->timed->steps);
    if (is_timed(g, f))
        put_takes(b, ", which take", &g->equal, f->clock, has_interval);
}

/* Appends a further goal as a sentence of its own. */
static void put_next(struct buf *b, const struct finding *g, const struct findings *f,
                     const struct brevity *full, int has_interval)
{
    const char *task = wording_task(g->goal);
    buf_format(b, "%sOn %s ", b->len ? ". " : "", *task ? task : "all prompts");
    put_quality(b, g->goal, full->margin && g->state != FINDING_UNTESTED);
    if (g->state == FINDING_UNTESTED)
        buf_format(b, " %s", wording_reason(g->reason));
    else if (g->state == FINDING_FROM) {
        buf_format(b, " LLaDA needs %s%.0f steps", isnan(g->below) ? "at most " : "", g->at);
        put_cost(b, g, f, full, has_interval);
    } else
        buf_format(b, " %.0f steps are not %s", g->timed->steps,
                   g->state == FINDING_WORSE ? "enough" : "shown to be enough");
}

/* The reason why nothing is decided, without a full stop; NULL: the answer itself has it. The
 * caller frees. */
static char *find_obstacle(const struct findings *f)
{
    const struct finding *g = f->n ? &f->v[0] : NULL;
    const struct versus *x = g ? &g->equal : &f->vanilla;
    const char *selftest = wording_selftest(finding_selftest(f->evidence, f->clock));
    const int has_llama = contender_plain(&f->contenders, 0) != NULL;
    const int has_llada = contender_plain(&f->contenders, 1) != NULL;
    if (!has_llama || !has_llada)
        return mem_text(has_llada   ? "no LLaMA was measured beside LLaDA"
                        : has_llama ? "no plain LLaDA was measured beside LLaMA"
                                    : "neither LLaDA nor LLaMA was measured");
    if (selftest)
        return mem_text(selftest);
    if (x->reason)
        return mem_format("%s, so times are not compared", wording_reason(x->reason));
    for (int i = 0; i < f->n; i++)
        if (f->v[i].state == FINDING_UNTESTED && !is_random(&f->v[i]))
            return mem_text(wording_reason(f->v[i].reason));
    for (int i = 0; i < f->n; i++) {
        const json_t *r = wording_ranking(f->evidence, f->v[i].goal);
        if (r && !rec_is(r, "verdict", "HOLDS"))
            return mem_text(rec_is(r, "verdict", "FLIPS")
                                ? "the order of points flips over templates and seeds"
                                : "the order of points is not shown to hold over templates and "
                                  "seeds");
    }
    return NULL;
}

/* The goals in the order of the answer: tested ones first. Returns how many. */
static int order_goals(const struct findings *f, const struct finding *list[GOALS_MAX])
{
    int n = 0;
    for (int untested = 0; untested < 2; untested++)
        for (int i = 0; i < f->n; i++)
            if ((f->v[i].state == FINDING_UNTESTED) == untested)
                list[n++] = &f->v[i];
    return n;
}

static void put_way(struct buf *b, const struct findings *f)
{
    const struct finding *g = &f->v[0];
    if (f->n != 1 || g->best_of < 0 || g->best.reason || !wording_is_decided(f))
        return;
    buf_format(b, "; with %s ", g->best.llada->name);
    wording_times(b, &g->best);
}

static void put_clauses(struct buf *b, const struct findings *f, const struct brevity *full)
{
    const struct finding *list[GOALS_MAX];
    int n = order_goals(f, list), said = 0, left = 0;
    for (int i = 0; i < n; i++) {
        if (i && list[i]->reason && list[0]->reason && !strcmp(list[i]->reason, list[0]->reason))
            continue;
        if (i >= full->goals)
            left++;
        else if (!said++)
            put_goal(b, list[i], f, full);
        else
            put_next(b, list[i], f, full, full->intervals > i);
    }
    if (!n && !f->vanilla.reason)
        put_time_alone(b, &f->vanilla, f->clock);
    if (full->way && n)
        put_way(b, f);
    if (left)
        buf_format(b, "; %d more %s below", left, left > 1 ? "tasks are" : "task is");
}

static void compose(struct buf *b, const struct findings *f, const struct brevity *full)
{
    struct buf clauses = {0};
    char *why = find_obstacle(f);
    const int decided = wording_is_decided(f);
    if (contender_plain(&f->contenders, 0) && contender_plain(&f->contenders, 1))
        put_clauses(&clauses, f, full);
    if (!decided)
        buf_format(b, "Undecided: %s%s", why ? why : "", why && clauses.len ? ". " : "");
    else if (f->n && is_random(&f->v[0]))
        buf_text(b, "The weights are random, so quality is not compared. ");
    else if (full->machine)
        buf_text(b, "On this machine ");
    if (clauses.len)
        buf_text(b, clauses.data);
    buf_text(b, ".");
    buf_free(&clauses);
    free(why);
}

void wording_answer(struct buf *b, const struct findings *f)
{
    struct buf text = {0};
    for (size_t i = 0; i < sizeof shorter / sizeof *shorter; i++) {
        buf_clear(&text);
        compose(&text, f, &shorter[i]);
        if (count_words(text.data) <= WORDING_MOST)
            break;
    }
    assert(count_words(text.data) <= WORDING_MOST);
    buf_text(b, text.data);
    buf_free(&text);
}
