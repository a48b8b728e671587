/* wording.c - see wording.h. The answer is first composed in full. If it has more than WORDING_MOST
 * words, it is composed again with the next row of `shorter`, which leaves out more parts. The
 * first rows leave out parts that the page repeats, later rows details. No row leaves out the step
 * count, the metric or the verdict. */
#include "lib/analysis/claim/wording.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/asgood.h"

/* The number of words; spaces separate words. */
static size_t count_words(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text != ' ' && (text[1] == ' ' || !text[1]);
    return n;
}

/* ---- parts of sentences ---- */

static int decimals(double x)
{
    return x < 0.0995 ? 3 : x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
}

static void put_interval(struct buf *text, const struct versus *versus)
{
    const int n = decimals(versus->x.value);
    buf_format(text, " [%.*f, %.*f]", n, versus->x.lo, n, versus->x.hi);
}

void wording_times(struct buf *text, const struct versus *versus)
{
    buf_format(text, "%.*f times", decimals(versus->x.value), versus->x.value);
    put_interval(text, versus);
}

/* Appends "takes 1.40 times as long [1.31, 1.50]"; verb: "take" or "takes". */
static void put_takes(struct buf *text, const char *verb, const struct versus *versus,
                      enum pairs_clock clock, int has_interval)
{
    const int is_cpu = clock == PAIRS_CPU;
    if (versus->verdict == RATIO_SAME)
        buf_format(text, "%s the same %s (%.*f times", verb, is_cpu ? "processor time" : "time",
                   decimals(versus->x.value), versus->x.value);
    else
        buf_format(text, "%s %.*f times %s", verb, decimals(versus->x.value), versus->x.value,
                   is_cpu ? "the processor time" : "as long");
    if (has_interval)
        put_interval(text, versus);
    buf_text(text, versus->verdict == RATIO_SAME        ? ")"
                   : versus->verdict == RATIO_UNDECIDED ? ", faster or slower undecided"
                                                        : "");
}

void wording_takes(struct buf *text, const struct versus *versus, enum pairs_clock clock)
{
    put_takes(text, "takes", versus, clock, 1);
}

void wording_pace(struct buf *text, const struct contender *contender)
{
    const double pace = contender->length / contender->steps;
    if (pace > 1)
        buf_format(text, "%.3g tokens a step", pace);
    else
        buf_text(text, "one token a step");
}

const char *wording_task(const struct goal *goal)
{
    static const char *const plurals[][2] = {{"sum", "sums"}, {"story", "stories"}};
    for (size_t i = 0; i < sizeof plurals / sizeof *plurals && goal->task; i++)
        if (!strcmp(plurals[i][0], goal->task))
            return plurals[i][1];
    return goal->task ? goal->task : "";
}

char *wording_metric(const struct goal *goal)
{
    char *text = mem_text(!strcmp(goal->metric, "judge_ppl") ? "judge perplexity"
                          : !strcmp(goal->metric, "ppl")     ? "perplexity"
                                                             : goal->metric);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return text;
}

static void put_margin(struct buf *text, const struct goal *goal)
{
    if (goal->margin.relative)
        buf_format(text, "%.4g %%", 100 * goal->margin.by);
    else if (goal->kind.transform == POOLED_PLAIN)
        buf_format(text, "%.4g points", 100 * goal->margin.by);
    else
        buf_format(text, "%.4g", goal->margin.by);
}

void wording_margin(struct buf *text, const struct goal *goal)
{
    char *metric = wording_metric(goal);
    buf_format(text, "%s within ", metric);
    put_margin(text, goal);
    free(metric);
}

/* Appends "(accuracy within 5 points)", or "(accuracy)" if has_margin is 0. */
static void put_quality(struct buf *text, const struct goal *goal, int has_margin)
{
    char *metric = wording_metric(goal);
    buf_text(text, "(");
    if (has_margin)
        wording_margin(text, goal);
    else
        buf_text(text, metric);
    buf_text(text, ")");
    free(metric);
}

static void put_llama(struct buf *text, const struct goal *goal, int has_margin)
{
    const char *task = wording_task(goal);
    buf_format(text, "LLaMA%s%s ", *task ? " on " : "", task);
    put_quality(text, goal, has_margin);
}

void wording_llama(struct buf *text, const struct goal *goal)
{
    put_llama(text, goal, 1);
}

const char *wording_reason(const char *reason)
{
    static const char *const says[][2] = {
        {PAIRED_DISTURBED, "other work disturbed the timed launches"},
        {LAUNCH_FEW, "fewer than 5 launches were timed"},
        {ASGOOD_FEW, "too few prompts were scored"},
        {"not scored", "quality was not scored"},
        {"no direction", "no record says if more or less is better"},
        {"not timed", "not both models were timed"},
        {PAIRED_NONE, "the two models were not timed together"},
        {PAIRED_MISSING, "over a tenth of the prompts have times of one model only"},
        {PAIRED_PROMPTS, "the prompts of the two models differ"},
        {"random weights", "the weights are random"},
    };
    for (size_t i = 0; i < sizeof says / sizeof *says && reason; i++)
        if (!strcmp(reason, says[i][0]))
            return says[i][1];
    return reason ? reason : "";
}

/* ---- whether the answer is decided ---- */

static int goal_is_decided(const struct finding *finding)
{
    return (finding->state == FINDING_FROM || finding->state == FINDING_WORSE) &&
           finding_is_decided(&finding->equal);
}

static int is_random(const struct finding *finding)
{
    return finding->state == FINDING_UNTESTED && finding->reason &&
           !strcmp(finding->reason, "random weights");
}

const json_t *wording_ranking(const struct evidence *evidence, const struct goal *goal)
{
    const json_t *record, *of_all = NULL;
    size_t i;
    json_array_foreach(evidence_list(evidence, "ranking"), i, record) {
        const char *task = rec_text(record, "task");
        if (!rec_is(record, "metric", goal->kind.name))
            continue;
        if (task && goal->task && !strcmp(task, goal->task))
            return record;
        of_all = of_all || task ? of_all : record;
    }
    return of_all;
}

static int is_pair(const json_t *pair, const char *one, const char *other)
{
    return (rec_is(pair, "first", one) && rec_is(pair, "second", other)) ||
           (rec_is(pair, "first", other) && rec_is(pair, "second", one));
}

/* The verdict on the pair of the answer. SAME supports only a finding that LLaDA matches LLaMA
 * within a margin, which must not be smaller than that of the record. Else it is UNDECIDED. */
static const char *supported(const json_t *record, const char *verdict,
                             const struct finding *finding)
{
    const struct pooled_margin *margin = &finding->goal->margin;
    const int is_relative = json_is_true(json_object_get(record, "margin_relative"));
    if (!verdict || strcmp(verdict, "SAME"))
        return verdict;
    return finding->state == FINDING_FROM && is_relative == margin->relative &&
                   rec_number(record, "margin") <= margin->by
               ? verdict
               : "UNDECIDED";
}

/* 1: the verdict is HOLDS or SAME, or there is none (NULL). */
static int is_holding(const char *order)
{
    return !order || !strcmp(order, "HOLDS") || !strcmp(order, "SAME");
}

const char *wording_order(const struct evidence *evidence, const struct finding *finding)
{
    const json_t *record = wording_ranking(evidence, finding->goal), *pair;
    const struct contender *llada = finding->equal.llada, *llama = finding->equal.llama;
    const char *one = llada ? rec_text(llada->about, "config") : NULL;
    const char *other = llama ? rec_text(llama->about, "config") : NULL;
    const json_t *pairs = json_object_get(record, "pairs");
    size_t i;
    if (!one || !other || !json_is_array(pairs)) /* records of version 1.0.0 have no pairs */
        return supported(record, rec_text(record, "verdict"), finding);
    json_array_foreach(pairs, i, pair)
        if (is_pair(pair, one, other))
            return supported(record, rec_text(pair, "verdict"), finding);
    return "UNDECIDED"; /* these two points were not ranked */
}

int wording_is_decided(const struct findings *findings)
{
    int all = !finding_selftest(findings->evidence, findings->clock);
    for (int i = 0; i < findings->n; i++) {
        const char *order = wording_order(findings->evidence, &findings->v[i]);
        all &= (goal_is_decided(&findings->v[i]) ||
                (is_random(&findings->v[i]) && finding_is_decided(&findings->v[i].equal))) &&
               is_holding(order);
    }
    return findings->n ? all : all && finding_is_decided(&findings->vanilla);
}

/* ---- the answer ---- */

/* The parts of an answer; 0 leaves a part out. goals: the number of goals; intervals: the number of
 * goals that have an interval. */
struct brevity { int way, machine, goals, intervals, margin, rival; };
static const struct brevity shorter[] = {
    {1, 1, 8, 8, 1, 1}, {0, 1, 8, 8, 1, 1}, {0, 0, 8, 8, 1, 1}, {0, 0, 8, 1, 1, 1},
    {0, 0, 2, 2, 1, 1}, {0, 0, 2, 1, 1, 1}, {0, 0, 2, 0, 1, 1}, {0, 0, 1, 1, 1, 1},
    {0, 0, 1, 0, 0, 1}, {0, 0, 1, 0, 0, 0},
};

/* Appends "LLaDA with 64 steps takes 21.0 times as long as LLaMA [19.1, 23.2]". */
static void put_time_alone(struct buf *text, const struct versus *versus, enum pairs_clock clock)
{
    const int n = decimals(versus->x.value);
    buf_text(text, "LLaDA");
    if (versus->llada->steps > 0)
        buf_format(text, " with %.0f steps", versus->llada->steps);
    buf_format(text, " takes %.*f times %s", n, versus->x.value,
               clock == PAIRS_CPU ? "LLaMA's processor time" : "as long as LLaMA");
    put_interval(text, versus);
    if (versus->verdict == RATIO_UNDECIDED)
        buf_text(text, ", faster or slower undecided");
}

/* Appends the ratio to the fastest LLaMA, if LLaDA is faster than plain LLaMA or the same, and the
 * verdict against the fastest LLaMA is another one. */
static void put_rival(struct buf *text, const struct finding *finding, int has_interval)
{
    const struct versus *versus = &finding->rival;
    const int wins = finding->equal.verdict == RATIO_BELOW || finding->equal.verdict == RATIO_SAME;
    if (finding->equal.reason || !wins || !versus->comparisons || versus->reason ||
        versus->verdict == finding->equal.verdict)
        return;
    buf_format(text, ", but %.*f times", decimals(versus->x.value), versus->x.value);
    if (has_interval)
        put_interval(text, versus);
    buf_format(text, " against LLaMA %s", versus->llama->name);
}

/* Appends the time of a goal that is met. has_interval 1: with the interval of the time. */
static void put_cost(struct buf *text, const struct finding *finding,
                     const struct findings *findings, const struct brevity *full, int has_interval)
{
    if (finding->equal.reason)
        return;
    put_takes(text, " and takes", &finding->equal, findings->clock, has_interval);
    if (full->rival)
        put_rival(text, finding, has_interval);
}

/* Appends the first goal of an answer. */
static void put_goal(struct buf *text, const struct finding *finding,
                     const struct findings *findings, const struct brevity *full)
{
    const int has_interval = full->intervals > 0;
    if (finding->state == FINDING_UNTESTED) {
        if (!finding->equal.reason)
            put_time_alone(text, &finding->equal, findings->clock);
        return;
    }
    buf_text(text, "LLaDA ");
    if (finding->state == FINDING_FROM)
        buf_format(text, "needs %s%.0f steps to match ", isnan(finding->below) ? "at most " : "",
                   finding->at);
    else
        buf_text(text,
                 finding->state == FINDING_WORSE ? "does not match " : "is not shown to match ");
    put_llama(text, finding->goal, full->margin);
    if (finding->state == FINDING_FROM) {
        put_cost(text, finding, findings, full, has_interval);
        return;
    }
    buf_format(text, ", even with %.0f steps", finding->timed->steps);
    if (!finding->equal.reason)
        put_takes(text, ", which take", &finding->equal, findings->clock, has_interval);
}

/* Appends a further goal as a sentence of its own. */
static void put_next(struct buf *text, const struct finding *finding,
                     const struct findings *findings, const struct brevity *full, int has_interval)
{
    const char *task = wording_task(finding->goal);
    buf_format(text, "%sOn %s ", text->len ? ". " : "", *task ? task : "all prompts");
    put_quality(text, finding->goal, full->margin && finding->state != FINDING_UNTESTED);
    if (finding->state == FINDING_UNTESTED)
        buf_format(text, " %s", wording_reason(finding->reason));
    else if (finding->state == FINDING_FROM) {
        buf_format(text, " LLaDA needs %s%.0f steps", isnan(finding->below) ? "at most " : "",
                   finding->at);
        put_cost(text, finding, findings, full, has_interval);
    } else
        buf_format(text, " %.0f steps are not %s", finding->timed->steps,
                   finding->state == FINDING_WORSE ? "enough" : "shown to be enough");
}

/* The reason why the answer is undecided, without a full stop. NULL: the sentences of the answer
 * contain the reason. The caller frees. */
static char *find_obstacle(const struct findings *findings)
{
    const struct finding *finding = findings->n ? &findings->v[0] : NULL;
    const struct versus *versus = finding ? &finding->equal : &findings->vanilla;
    const char *selftest = finding_selftest(findings->evidence, findings->clock);
    const int has_llama = contender_plain(&findings->contenders, 0) != NULL;
    const int has_llada = contender_plain(&findings->contenders, 1) != NULL;
    if (!has_llama || !has_llada)
        return mem_text(has_llada   ? "no LLaMA was measured beside LLaDA"
                        : has_llama ? "no plain LLaDA was measured beside LLaMA"
                                    : "neither LLaDA nor LLaMA was measured");
    if (selftest)
        return mem_text(selftest);
    int is_any_timed = 0; /* a further goal may have a ratio of times */
    for (int i = 0; i < findings->n; i++)
        is_any_timed |= !findings->v[i].equal.reason;
    if (versus->reason)
        return mem_format("%s%s", wording_reason(versus->reason),
                          is_any_timed ? "" : ", so times are not compared");
    for (int i = 0; i < findings->n; i++)
        if (findings->v[i].state == FINDING_UNTESTED && !is_random(&findings->v[i]))
            return mem_text(wording_reason(findings->v[i].reason));
    for (int i = 0; i < findings->n; i++) {
        const char *order = wording_order(findings->evidence, &findings->v[i]);
        if (!is_holding(order))
            return mem_text(!strcmp(order, "FLIPS")
                                ? "the order of points flips over templates and seeds"
                                : "the order of points is not shown to hold over templates and "
                                  "seeds");
    }
    return NULL;
}

/* Sets list to the goals in the order of the answer: tested goals first. Returns how many. */
static int order_goals(const struct findings *findings, const struct finding *list[GOALS_MAX])
{
    int n = 0;
    for (int untested = 0; untested < 2; untested++)
        for (int i = 0; i < findings->n; i++)
            if ((findings->v[i].state == FINDING_UNTESTED) == untested)
                list[n++] = &findings->v[i];
    return n;
}

static void put_way(struct buf *text, const struct findings *findings)
{
    const struct finding *finding = &findings->v[0];
    if (findings->n != 1 || finding->best_of < 0 || finding->best.reason ||
        !wording_is_decided(findings))
        return;
    buf_format(text, "; with %s ", finding->best.llada->name);
    wording_times(text, &finding->best);
}

static void put_clauses(struct buf *text, const struct findings *findings,
                        const struct brevity *full)
{
    const struct finding *list[GOALS_MAX];
    int n = order_goals(findings, list), said = 0, left = 0;
    for (int i = 0; i < n; i++) {
        if (i && list[i]->reason && list[0]->reason && !strcmp(list[i]->reason, list[0]->reason))
            continue;
        if (i >= full->goals)
            left++;
        else if (!said++)
            put_goal(text, list[i], findings, full);
        else
            put_next(text, list[i], findings, full, full->intervals > i);
    }
    if (!n && !findings->vanilla.reason)
        put_time_alone(text, &findings->vanilla, findings->clock);
    if (full->way && n)
        put_way(text, findings);
    if (left)
        buf_format(text, "; %d more %s below", left, left > 1 ? "tasks are" : "task is");
}

static void compose(struct buf *text, const struct findings *findings, const struct brevity *full)
{
    struct buf clauses = {0};
    char *why = find_obstacle(findings);
    const int decided = wording_is_decided(findings);
    if (contender_plain(&findings->contenders, 0) && contender_plain(&findings->contenders, 1))
        put_clauses(&clauses, findings, full);
    if (!decided)
        buf_format(text, "Undecided: %s%s", why ? why : "", why && clauses.len ? ". " : "");
    else if (findings->n && is_random(&findings->v[0]))
        buf_text(text, "The weights are random, so quality is not compared. ");
    else if (full->machine)
        buf_text(text, "On this machine ");
    if (clauses.len)
        buf_text(text, clauses.data);
    buf_text(text, ".");
    buf_free(&clauses);
    free(why);
}

void wording_answer(struct buf *buffer, const struct findings *findings)
{
    struct buf text = {0};
    for (size_t i = 0; i < sizeof shorter / sizeof *shorter; i++) {
        buf_clear(&text);
        compose(&text, findings, &shorter[i]);
        if (count_words(text.data) <= WORDING_MOST)
            break;
    }
    assert(count_words(text.data) <= WORDING_MOST);
    buf_text(buffer, text.data);
    buf_free(&text);
}
