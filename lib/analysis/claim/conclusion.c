/* conclusion.c - see conclusion.h. Each claim is made from struct findings alone, so no two claims
 * contradict each other. X_q, the crossing in quality, is the step count that the answer names.
 * X_par, parity, is the same step count, if LLaDA is shown to take no longer than LLaMA there. */
#include "lib/analysis/claim/conclusion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/claim/card.h"
#include "lib/analysis/claim/section.h"
#include "lib/analysis/claim/statement.h"
#include "lib/analysis/claim/wording.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

/* ---- crossings ---- */

static const char every_count[] = "LLaDA matches LLaMA at every step count measured";

/* The crossover record of plain LLaDA against plain LLaMA; NULL: none. */
static const json_t *crossover_of(const struct findings *findings, const struct finding *finding,
                                  const char *name)
{
    const struct contender *llada = contender_plain(&findings->contenders, 1);
    const char *series = llada ? rec_text(llada->about, "series") : NULL,
               *task = finding->goal->task;
    const json_t *record;
    size_t i;
    json_array_foreach(evidence_list(findings->evidence, "crossover"), i, record) {
        const char *metric = rec_text(record, "quality_metric");
        if (rec_is(record, "name", name) && series && rec_is(record, "series", series) &&
            !rec_is(record, "rival", "fastest") &&
            (task ? rec_is(record, "task", task) : !rec_text(record, "task")) &&
            (!metric || !strcmp(metric, finding->goal->metric)))
            return record;
    }
    return NULL;
}

static void add_quality_crossing(json_t *list, const struct findings *findings,
                                 const struct finding *finding)
{
    const int decided = finding->state == FINDING_FROM || finding->state == FINDING_WORSE;
    json_t *claim = statement_add(list, "crossing", "X_q", 1, decided);
    const json_t *record = crossover_of(findings, finding, "X_q");
    const double none = NAN;
    const struct interval interval = {finding->at, isnan(finding->at) ? none : finding->below,
                                      finding->at};
    struct buf note = {0};
    statement_goal(claim, finding->goal);
    statement_interval(claim, &interval, statement_never(finding));
    if (!isnan(interval.value) && isnan(interval.lo))
        json_object_set_new(claim, "lo_reason", json_string(every_count));
    json_object_set_new(claim, "unit", json_string("steps"));
    rec_set_number(claim, "estimate",
                   isnan(finding->at) ? (double)NAN : rec_number(record, "estimate"),
                   "not interpolated");
    if (!isnan(finding->at) && !isnan(finding->below))
        buf_format(&note, "%.0f steps are not shown to match LLaMA; %.0f steps and more are",
                   finding->below, finding->at);
    else
        buf_text(&note, isnan(finding->at) ? statement_never(finding) : every_count);
    statement_text(claim, "note", &note);
}

static void add_parity_crossing(json_t *list, const struct finding *finding)
{
    const struct versus *versus = &finding->equal;
    const int met = finding->state == FINDING_FROM, timed = met && !versus->reason;
    const int cheap = timed && versus->x.hi <= 1, dear = timed && versus->x.lo > 1;
    const double none = NAN;
    const struct interval at = {cheap ? finding->at : none, cheap ? finding->below : none,
                                cheap ? finding->at : none};
    const int decided = cheap || dear || finding->state == FINDING_WORSE;
    json_t *claim = statement_add(list, "crossing", "X_par", 1, decided);
    const char *why = cheap    ? "LLaDA matches LLaMA and is no slower"
                      : !met   ? statement_never(finding)
                      : !timed ? wording_reason(versus->reason)
                      : dear   ? "LLaDA is slower than LLaMA at the least step count that matches"
                               : "at the least step count that matches, no model is shown faster";
    statement_goal(claim, finding->goal);
    statement_interval(claim, &at, cheap ? every_count : why);
    json_object_set_new(claim, "unit", json_string("steps"));
    json_object_set_new(claim, "note", json_string(why));
}

/* Adds X_lat, but only if its record uses the clock of the answer. */
static void add_latency_crossing(json_t *list, const struct findings *findings,
                                 const struct finding *finding)
{
    const json_t *record = crossover_of(findings, finding, "X_lat");
    const char *cost = rec_text(record, "cost_metric");
    if (!cost || strcmp(cost, pairs_clocks[findings->clock]))
        return;
    const struct interval interval = {rec_number(record, "at"), rec_number(record, "lo"),
                                      rec_number(record, "hi")};
    json_t *claim = statement_add(list, "crossing", "X_lat", 1, !isnan(interval.value));
    json_object_set_new(claim, "task", statement_task(finding->goal->task));
    statement_interval(claim, &interval, rec_text(record, "reason"));
    json_object_set_new(claim, "unit", json_string("steps"));
}

/* ---- every ratio and quality ---- */

static void add_quality(json_t *list, const struct finding *finding, const struct tried *tried,
                        int primary, const char *of)
{
    json_t *claim = statement_add(list, "quality", of, primary,
                                  tried->good.shown > 0 || tried->good.is_worse);
    statement_goal(claim, finding->goal);
    statement_interval(claim, &tried->good.effect, tried->good.reason);
    json_object_set_new(claim, "unit",
                        json_string(tried->good.is_ratio ? "x" : finding->goal->metric));
    rec_set_flag(claim, "shown", tried->good.shown, tried->good.reason);
    rec_set_int(claim, "prompts", (int64_t)tried->good.prompts);
    json_object_set_new(claim, "llada", json_string(tried->c->point));
}

/* Adds a ratio of times. goal NULL: the ratio belongs to no goal and is exploratory. */
static json_t *add_ratio(json_t *list, const struct findings *findings,
                         const struct versus *versus, const struct goal *goal, const char *of)
{
    json_t *claim = statement_add(list, "ratio", of, goal != NULL, finding_is_decided(versus));
    statement_versus(claim, findings, versus);
    if (goal) {
        json_object_set_new(claim, "quality_metric", json_string(goal->metric));
        statement_times(claim, versus);
    }
    return claim;
}

/* Adds the ratio to the fastest LLaMA, and the ways that it was chosen from. */
static void add_rival(json_t *list, const struct findings *findings, const struct finding *finding,
                      const char *of)
{
    json_t *claim = add_ratio(list, findings, &finding->rival, finding->goal, of);
    json_t *names = json_array();
    for (size_t i = 0; i < finding->n_among; i++)
        json_array_append_new(names, json_string(finding->among[i]->name));
    json_object_set_new(claim, "chosen", json_string(finding->rival.llama->name));
    json_object_set_new(claim, "candidates", names);
}

static void add_numbers(json_t *list, const struct findings *findings,
                        const struct finding *finding)
{
    for (size_t i = 0; i < finding->n_steps; i++) {
        char *key = mem_format("%.0f steps", finding->step[i].c->steps);
        add_quality(list, finding, &finding->step[i], 1, key);
        free(key);
    }
    for (size_t i = 0; i < finding->n_ways; i++)
        add_quality(list, finding, &finding->way[i], 1, finding->way[i].c->name);
    const int met = finding->state == FINDING_FROM;
    add_ratio(list, findings, &finding->equal, finding->goal,
              met ? "equal quality" : "largest step count");
    if (finding->rival.comparisons)
        add_rival(list, findings, finding,
                  met ? "equal quality, fastest LLaMA" : "largest step count, fastest LLaMA");
    if (finding->best_of >= 0)
        add_ratio(list, findings, &finding->best, finding->goal, "fastest way");
}

/* Adds the exploratory ratio of every LLaDA point to plain LLaMA; skips ratios without a value. */
static void add_ratios(json_t *list, const struct findings *findings, const char *task)
{
    const struct contender *llama = contender_plain(&findings->contenders, 0);
    for (size_t i = 0; i < findings->contenders.n; i++) {
        const struct contender *contender = &findings->contenders.v[i];
        struct versus versus = finding_ratio(findings, contender, llama, task, 1);
        char *of = contender->is_plain ? mem_format("%.0f steps", contender->steps)
                                       : mem_text(contender->name);
        if (contender->is_diffusion && !versus.reason)
            add_ratio(list, findings, &versus, NULL, of);
        free(of);
    }
}

static int is_first_of_task(const struct findings *findings, int at)
{
    const char *task = findings->v[at].goal->task;
    for (int i = 0; i < at && task; i++)
        if (findings->v[i].goal->task && !strcmp(findings->v[i].goal->task, task))
            return 0;
    return task != NULL;
}

/* ---- hashes of the answers ---- */

static char *hardware_of(const json_t *about)
{
    static const char *const keys[] = {"device", "device_name", "isa", "library", "dtype",
                                       "kv_dtype", "quant"};
    struct buf text = {0};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *bytes = rec_text(about, keys[i]);
        buf_format(&text, "%s%s", i ? " " : "", bytes ? bytes : "-");
    }
    return text.data;
}

static void add_answers(json_t *list, const struct findings *findings)
{
    for (size_t i = 0; i < findings->contenders.n; i++) {
        const struct contender *contender = &findings->contenders.v[i];
        json_t *of = json_object_get(findings->evidence->answers, contender->point);
        struct buf text = {0};
        char hex[65];
        if (!json_object_size(of) || json_put(of, JSON_COMPACT | JSON_SORT_KEYS, &text))
            continue;
        json_t *claim = statement_add(list, "answers", contender->point, 0, 1);
        hash_bytes(text.data, text.len, hex);
        buf_free(&text);
        rec_set_int(claim, "prompts", (int64_t)json_object_size(of));
        json_object_set_new(claim, "sha256", json_string(hex));
        char *hardware = hardware_of(contender->about);
        json_object_set_new(claim, "hardware", json_string(hardware));
        free(hardware);
    }
}

/* ---- all claims ---- */

static void add_first(json_t *list, const struct findings *findings,
                      const struct finding_plan *plan)
{
    struct buf question = {0}, machine = {0}, answer = {0}, sure = {0};
    json_t *tasks = json_array();
    wording_question(&question, findings);
    const struct contender *ours = contender_plain(&findings->contenders, 1);
    const struct contender *theirs = contender_plain(&findings->contenders, 0);
    json_t *claim = statement_add(list, "question", NULL, 1, 1);
    statement_text(claim, "text", &question);
    rec_set_text(claim, "diffusion", ours ? ours->name : NULL);
    rec_set_text(claim, "autoregressive", theirs ? theirs->name : NULL);
    wording_machine(&machine, findings);
    statement_text(claim, "hardware", &machine);
    rec_set_text(claim, "fingerprint", wording_fingerprint(findings->evidence));
    wording_answer(&answer, findings);
    claim = statement_add(list, "answer", NULL, 1, wording_is_decided(findings));
    statement_text(claim, "text", &answer);
    for (int i = 0; i < findings->n; i++)
        json_array_append_new(
            tasks, json_string(findings->v[i].goal->task ? findings->v[i].goal->task : ""));
    json_object_set_new(claim, "tasks", tasks);
    json_object_set_new(claim, "clock", json_string(statement_clock(findings)));
    if (plan->contract)
        json_object_set_new(claim, "contract", json_string(plan->contract));
    rec_set_int(claim, "batch", (int64_t)plan->batch);
    wording_sure(&sure, findings);
    statement_text(statement_add(list, "sure", NULL, 1, wording_is_decided(findings)), "text",
                   &sure);
}

json_t *conclusion_of(const struct findings *findings, const struct finding_plan *plan)
{
    json_t *list = json_array();
    add_first(list, findings, plan);
    card_all(list, findings);
    section_all(list, findings);
    for (int i = 0; i < findings->n; i++) {
        add_quality_crossing(list, findings, &findings->v[i]);
        add_latency_crossing(list, findings, &findings->v[i]);
        add_parity_crossing(list, &findings->v[i]);
        add_numbers(list, findings, &findings->v[i]);
    }
    add_ratios(list, findings, NULL);
    for (int i = 0; i < findings->n; i++)
        if (is_first_of_task(findings, i))
            add_ratios(list, findings, findings->v[i].goal->task);
    add_answers(list, findings);
    return list;
}
