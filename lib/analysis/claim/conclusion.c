/* conclusion.c - see conclusion.h. Each claim is made from struct findings alone, so no two claims
 * contradict each other. The crossing in quality is the place that the answer names. Parity is the
 * same place, if LLaDA is shown to take no longer than LLaMA there. */
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
static const json_t *crossover_of(const struct findings *f, const struct finding *g,
                                  const char *name)
{
    const struct contender *llada = contender_plain(&f->contenders, 1);
    const char *series = llada ? rec_text(llada->about, "series") : NULL, *task = g->goal->task;
    const json_t *r;
    size_t i;
    json_array_foreach(evidence_list(f->evidence, "crossover"), i, r) {
        const char *metric = rec_text(r, "quality_metric");
        if (rec_is(r, "name", name) && series && rec_is(r, "series", series) &&
            (task ? rec_is(r, "task", task) : !rec_text(r, "task")) &&
            (!metric || !strcmp(metric, g->goal->metric)))
            return r;
    }
    return NULL;
}

static void add_quality_crossing(json_t *list, const struct findings *f, const struct finding *g)
{
    json_t *c = statement_add(list, "crossing", "X_q", 1, g->state == FINDING_FROM ||
                                                    g->state == FINDING_WORSE);
    const json_t *r = crossover_of(f, g, "X_q");
    const double none = NAN;
    const struct interval x = {g->at, isnan(g->at) ? none : g->below, g->at};
    struct buf note = {0};
    statement_goal(c, g->goal);
    statement_interval(c, &x, statement_never(g));
    if (!isnan(x.value) && isnan(x.lo))
        json_object_set_new(c, "lo_reason", json_string(every_count));
    json_object_set_new(c, "unit", json_string("steps"));
    rec_set_number(c, "estimate", isnan(g->at) ? (double)NAN : rec_number(r, "estimate"),
                   "not interpolated");
    if (!isnan(g->at) && !isnan(g->below))
        buf_format(&note, "%.0f steps are not shown to match LLaMA; %.0f steps and more are",
                   g->below, g->at);
    else
        buf_text(&note, isnan(g->at) ? statement_never(g) : every_count);
    statement_text(c, "note", &note);
}

static void add_parity_crossing(json_t *list, const struct finding *g)
{
    const struct versus *x = &g->equal;
    const int met = g->state == FINDING_FROM, timed = met && !x->reason;
    const int cheap = timed && x->x.hi <= 1, dear = timed && x->x.lo > 1;
    const double none = NAN;
    const struct interval at = {cheap ? g->at : none, cheap ? g->below : none,
                                cheap ? g->at : none};
    const int decided = cheap || dear || g->state == FINDING_WORSE;
    json_t *c = statement_add(list, "crossing", "X_par", 1, decided);
    const char *why = cheap    ? "LLaDA matches LLaMA and is no slower"
                      : !met   ? statement_never(g)
                      : !timed ? wording_reason(x->reason)
                      : dear   ? "LLaDA is slower than LLaMA at the least step count that matches"
                               : "at the least step count that matches, no model is shown faster";
    statement_goal(c, g->goal);
    statement_interval(c, &at, cheap ? every_count : why);
    json_object_set_new(c, "unit", json_string("steps"));
    json_object_set_new(c, "note", json_string(why));
}

/* Only if the record is by the clock of the answer. */
static void add_latency_crossing(json_t *list, const struct findings *f, const struct finding *g)
{
    const json_t *r = crossover_of(f, g, "X_lat");
    const char *cost = rec_text(r, "cost_metric");
    if (!cost || strcmp(cost, pairs_clocks[f->clock]))
        return;
    const struct interval x = {rec_number(r, "at"), rec_number(r, "lo"), rec_number(r, "hi")};
    json_t *c = statement_add(list, "crossing", "X_lat", 1, !isnan(x.value));
    json_object_set_new(c, "task", statement_task(g->goal->task));
    statement_interval(c, &x, rec_text(r, "reason"));
    json_object_set_new(c, "unit", json_string("steps"));
}

/* ---- every ratio and quality ---- */

static void add_quality(json_t *list, const struct finding *g, const struct tried *t, int primary,
                        const char *of)
{
    json_t *c = statement_add(list, "quality", of, primary, t->good.shown > 0 || t->good.is_worse);
    statement_goal(c, g->goal);
    statement_interval(c, &t->good.effect, t->good.reason);
    json_object_set_new(c, "unit", json_string(t->good.is_ratio ? "x" : g->goal->metric));
    rec_set_flag(c, "shown", t->good.shown, t->good.reason);
    rec_set_int(c, "prompts", (int64_t)t->good.prompts);
    json_object_set_new(c, "llada", json_string(t->c->point));
}

/* goal NULL: the ratio belongs to no goal and is exploratory. */
static void add_ratio(json_t *list, const struct findings *f, const struct versus *x,
                      const struct goal *goal, const char *of)
{
    json_t *c = statement_add(list, "ratio", of, goal != NULL, finding_is_decided(x));
    statement_versus(c, f, x);
    if (goal)
        json_object_set_new(c, "quality_metric", json_string(goal->metric));
}

static void add_numbers(json_t *list, const struct findings *f, const struct finding *g)
{
    for (size_t i = 0; i < g->n_steps; i++) {
        char *key = mem_format("%.0f steps", g->step[i].c->steps);
        add_quality(list, g, &g->step[i], 1, key);
        free(key);
    }
    for (size_t i = 0; i < g->n_ways; i++)
        add_quality(list, g, &g->way[i], 1, g->way[i].c->name);
    const int met = g->state == FINDING_FROM;
    add_ratio(list, f, &g->equal, g->goal, met ? "equal quality" : "largest step count");
    if (g->rival.comparisons)
        add_ratio(list, f, &g->rival, g->goal, met ? "equal quality, fastest LLaMA"
                                                   : "largest step count, fastest LLaMA");
    if (g->best_of >= 0)
        add_ratio(list, f, &g->best, g->goal, "fastest way");
}

/* Every LLaDA point against plain LLaMA, exploratory; ratios without a value are left out. */
static void add_ratios(json_t *list, const struct findings *f, const char *task)
{
    const struct contender *llama = contender_plain(&f->contenders, 0);
    for (size_t i = 0; i < f->contenders.n; i++) {
        const struct contender *c = &f->contenders.v[i];
        struct versus x = finding_ratio(f, c, llama, task, 1);
        char *of = c->is_plain ? mem_format("%.0f steps", c->steps) : mem_text(c->name);
        if (c->is_diffusion && !x.reason)
            add_ratio(list, f, &x, NULL, of);
        free(of);
    }
}

static int is_first_of_task(const struct findings *f, int at)
{
    const char *task = f->v[at].goal->task;
    for (int i = 0; i < at && task; i++)
        if (f->v[i].goal->task && !strcmp(f->v[i].goal->task, task))
            return 0;
    return task != NULL;
}

/* ---- hashes of the answers ---- */

static char *hardware_of(const json_t *about)
{
    static const char *const keys[] = {"device", "device_name", "isa", "library", "dtype",
                                       "kv_dtype", "quant"};
    struct buf b = {0};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *s = rec_text(about, keys[i]);
        buf_format(&b, "%s%s", i ? " " : "", s ? s : "-");
    }
    return b.data;
}

static void add_answers(json_t *list, const struct findings *f)
{
    for (size_t i = 0; i < f->contenders.n; i++) {
        const struct contender *x = &f->contenders.v[i];
        json_t *of = json_object_get(f->evidence->answers, x->point);
        struct buf b = {0};
        char hex[65];
        if (!json_object_size(of) || json_put(of, JSON_COMPACT | JSON_SORT_KEYS, &b))
            continue;
        json_t *c = statement_add(list, "answers", x->point, 0, 1);
        hash_bytes(b.data, b.len, hex);
        buf_free(&b);
        rec_set_int(c, "prompts", (int64_t)json_object_size(of));
        json_object_set_new(c, "sha256", json_string(hex));
        char *hardware = hardware_of(x->about);
        json_object_set_new(c, "hardware", json_string(hardware));
        free(hardware);
    }
}

/* ---- all ---- */

static void add_first(json_t *list, const struct findings *f, const struct finding_plan *plan)
{
    struct buf question = {0}, machine = {0}, answer = {0}, sure = {0};
    json_t *tasks = json_array();
    wording_question(&question, f);
    json_t *c = statement_add(list, "question", NULL, 1, 1);
    statement_text(c, "text", &question);
    wording_machine(&machine, f->evidence);
    statement_text(c, "hardware", &machine);
    wording_answer(&answer, f);
    c = statement_add(list, "answer", NULL, 1, wording_is_decided(f));
    statement_text(c, "text", &answer);
    for (int i = 0; i < f->n; i++)
        json_array_append_new(tasks, json_string(f->v[i].goal->task ? f->v[i].goal->task : ""));
    json_object_set_new(c, "tasks", tasks);
    json_object_set_new(c, "clock", json_string(statement_clock(f)));
    if (plan->contract)
        json_object_set_new(c, "contract", json_string(plan->contract));
    rec_set_int(c, "batch", (int64_t)plan->batch);
    wording_sure(&sure, f);
    statement_text(statement_add(list, "sure", NULL, 1, wording_is_decided(f)), "text", &sure);
}

json_t *conclusion_of(const struct findings *f, const struct finding_plan *plan)
{
    json_t *list = json_array();
    add_first(list, f, plan);
    card_all(list, f);
    section_all(list, f);
    for (int i = 0; i < f->n; i++) {
        add_quality_crossing(list, f, &f->v[i]);
        add_latency_crossing(list, f, &f->v[i]);
        add_parity_crossing(list, &f->v[i]);
        add_numbers(list, f, &f->v[i]);
    }
    add_ratios(list, f, NULL);
    for (int i = 0; i < f->n; i++)
        if (is_first_of_task(f, i))
            add_ratios(list, f, f->v[i].goal->task);
    add_answers(list, f);
    return list;
}
