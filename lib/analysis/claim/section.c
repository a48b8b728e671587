/* section.c - see section.h. A sentence joins the findings of the goals with semicolons. If there
 * is nothing to compare, the sentence says so. The title of its figure then names the content of
 * the figure and claims nothing. */
#include "lib/analysis/claim/section.h"

#include <math.h>
#include <stdlib.h>

#include "lib/analysis/claim/statement.h"
#include "lib/analysis/claim/wording.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"

/* Appends "accuracy 0.95 against 0.96, difference -0.01 [-0.03, 0.01]". */
static void put_quality(struct buf *b, const struct goal *g, const struct good *t)
{
    char *metric = wording_metric(g);
    buf_format(b, "%s %.3g against %.3g, %s %.3g [%.3g, %.3g]", metric, t->value, t->base,
               t->is_ratio ? "ratio" : "difference", t->effect.value, t->effect.lo, t->effect.hi);
    free(metric);
}

static const struct tried *tried_of(const struct finding *g)
{
    for (size_t i = 0; i < g->n_steps; i++)
        if (g->step[i].c == g->timed)
            return &g->step[i];
    return NULL;
}

static void put_quality_of(struct buf *b, const struct finding *g)
{
    const char *task = wording_task(g->goal);
    const struct tried *t = tried_of(g);
    buf_format(b, "%s: ", *task ? task : "all prompts");
    if (g->state == FINDING_UNTESTED) {
        buf_format(b, "not tested, %s", wording_reason(g->reason));
        return;
    }
    if (g->state == FINDING_FROM)
        buf_format(b, "as good as LLaMA from %.0f steps on", g->at);
    else
        buf_format(b, "%s with %.0f steps",
                   g->state == FINDING_WORSE ? "worse than LLaMA"
                                             : "not shown to be as good as LLaMA",
                   g->timed->steps);
    buf_text(b, " (");
    put_quality(b, g->goal, &t->good);
    buf_text(b, ", ");
    wording_margin(b, g->goal);
    buf_text(b, ")");
}

static void add_quality_section(json_t *list, const struct findings *f)
{
    struct buf b = {0};
    int decided = f->n > 0;
    for (int i = 0; i < f->n; i++) {
        buf_text(&b, i ? "; " : "");
        put_quality_of(&b, &f->v[i]);
        decided &= f->v[i].state == FINDING_FROM || f->v[i].state == FINDING_WORSE;
    }
    buf_text(&b, f->n ? "." : "No quality was declared.");
    statement_sentence(statement_add(list, "section", "quality", 1, decided), &b);
}

static void put_ways(struct buf *b, const struct findings *f, const struct finding *g)
{
    const char *task = wording_task(g->goal);
    buf_format(b, "%zu of %zu other ways %s shown to %s%s%s as well as LLaMA", g->n_shown,
               g->n_ways, g->n_shown == 1 ? "is" : "are", wording_verb(g->goal, 0),
               *task ? " " : "", task);
    if (g->best_of < 0)
        return;
    if (g->best.reason) {
        buf_format(b, "; their times are not compared, %s", wording_reason(g->best.reason));
        return;
    }
    buf_format(b, "; the fastest, %s, ", g->best.llada->name);
    wording_takes(b, &g->best, f->clock);
}

static void add_decoding_section(json_t *list, const struct findings *f)
{
    struct buf b = {0};
    int ways = 0, decided = f->n > 0;
    for (int i = 0; i < f->n; i++) {
        if (!f->v[i].n_ways || f->v[i].state == FINDING_UNTESTED)
            continue;
        buf_text(&b, ways++ ? "; " : "");
        put_ways(&b, f, &f->v[i]);
        decided &= finding_is_told(&f->v[i].best);
    }
    if (!ways)
        buf_text(&b, "No other way of decoding was tested");
    buf_text(&b, ".");
    statement_sentence(statement_add(list, "section", "decoding", 1, ways && decided), &b);
}

static void put_rate(struct buf *b, const struct findings *f)
{
    buf_format(b, "at batch %.0f LLaDA makes ", f->batch);
    wording_times(b, &f->rate);
    buf_text(b, " as many tokens a second as LLaMA, at ");
    wording_pace(b, f->rate.llada);
}

static void add_scale_section(json_t *list, const struct findings *f)
{
    struct buf b = {0};
    if (f->rate.reason)
        buf_format(&b, "batches are not compared: %s", wording_reason(f->rate.reason));
    else
        put_rate(&b, f);
    buf_text(&b, ".");
    statement_sentence(statement_add(list, "section", "scale", 0, finding_is_told(&f->rate)), &b);
}

static void put_memory(struct buf *b, const struct findings *f)
{
    buf_format(b, "LLaDA's peak memory is %.2f times LLaMA's: ", f->memory.llada / f->memory.llama);
    statement_bytes(b, f);
}

static void add_memory_section(json_t *list, const struct findings *f)
{
    struct buf b = {0};
    if (f->memory.reason)
        buf_format(&b, "Peak memory is not compared: %s", f->memory.reason);
    else
        put_memory(&b, f);
    buf_text(&b, ".");
    statement_sentence(statement_add(list, "section", "memory", 0, !f->memory.reason), &b);
}

static void add_method_section(json_t *list, const struct findings *f)
{
    const struct versus *x = f->n ? &f->v[0].equal : &f->vanilla;
    struct buf b = {0};
    if (x->reason)
        buf_format(&b, "No ratio of times is stated: %s.", wording_reason(x->reason));
    else
        buf_format(&b, "Each ratio is the geometric mean over prompts of %zu paired launches, "
                       "with a 95 %% interval over launches and prompts, by %s.", x->launches,
                   f->clock == PAIRS_CPU ? "processor time" : "the wall clock");
    statement_sentence(statement_add(list, "section", "method", 0, !x->reason), &b);
}

/* ---- figures ---- */

static void add_figure(json_t *list, const char *of, int primary, int decided, struct buf *text)
{
    statement_sentence(statement_add(list, "figure", of, primary, decided), text);
}

/* Titles of figures: sentences without a full stop. */
static void add_figures(json_t *list, const struct findings *f)
{
    struct buf lead = {0}, ways = {0}, rate = {0}, memory = {0};
    const struct finding *g = f->n ? &f->v[0] : NULL;
    const char *task = g ? wording_task(g->goal) : "";
    const char *gap = *task ? " " : "";
    const int tested = g && g->state != FINDING_UNTESTED;
    if (tested && g->state == FINDING_FROM)
        buf_format(&lead, "LLaDA %s%s%s as well as LLaMA from %.0f steps on",
                   wording_verb(g->goal, 1), gap, task, g->at);
    else if (tested)
        buf_format(&lead, "LLaDA is %s to %s%s%s as well as LLaMA, even with %.0f steps",
                   g->state == FINDING_WORSE ? "shown not" : "not shown",
                   wording_verb(g->goal, 0), gap, task, g->timed->steps);
    else
        buf_text(&lead, "Quality against time: not tested");
    add_figure(list, "lead", 1, tested, &lead);
    if (g && g->best_of >= 0 && !g->best.reason) {
        buf_format(&ways, "The fastest way as good as LLaMA, %s, ", g->best.llada->name);
        wording_takes(&ways, &g->best, f->clock);
    } else
        buf_text(&ways, "Ways of decoding: none is shown to be as good and timed");
    add_figure(list, "methods", 1, g && finding_is_told(&g->best), &ways);
    if (f->rate.reason)
        buf_text(&rate, "Tokens a second by batch");
    else
        put_rate(&rate, f);
    add_figure(list, "throughput", 0, finding_is_told(&f->rate), &rate);
    if (f->memory.reason)
        buf_text(&memory, "Peak memory by batch and length");
    else
        put_memory(&memory, f);
    add_figure(list, "memory", 0, !f->memory.reason, &memory);
}

void section_all(json_t *list, const struct findings *f)
{
    add_quality_section(list, f);
    add_decoding_section(list, f);
    add_scale_section(list, f);
    add_memory_section(list, f);
    add_method_section(list, f);
    add_figures(list, f);
}
