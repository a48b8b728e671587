/* section.c - see section.h. A section has one or two sentences for each goal and names the metric
 * of the goal. If there is nothing to compare, the sentence says so. Then the title of the figure
 * names the content of the figure and claims nothing. */
#include "lib/analysis/claim/section.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "lib/analysis/claim/statement.h"
#include "lib/analysis/claim/wording.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"

/* Appends "accuracy is 0.95 against 0.96, a difference of -1 [-3, 1] points" or, for perplexities,
 * "judge perplexity is 1.4 against 1.3, a ratio of 1.08 [1.02, 1.14]". */
static void put_quality(struct buf *text, const struct goal *goal, const struct good *good)
{
    const int is_share = goal->kind.transform == POOLED_PLAIN;
    const double scale = is_share ? 100 : 1;
    char *metric = wording_metric(goal);
    buf_format(text, "%s is %.3g against %.3g, a %s of %.3g [%.3g, %.3g]%s", metric, good->value,
               good->base, good->is_ratio ? "ratio" : "difference", scale * good->effect.value,
               scale * good->effect.lo, scale * good->effect.hi, is_share ? " points" : "");
    free(metric);
}

/* Appends the task as "Sums", or "All prompts" for a goal without a task. */
static void put_task(struct buf *text, const struct goal *goal)
{
    const char *task = wording_task(goal);
    const size_t at = text->len;
    buf_text(text, *task ? task : "all prompts");
    text->data[at] = (char)toupper((unsigned char)text->data[at]);
}

static const struct tried *tried_of(const struct finding *finding)
{
    for (size_t i = 0; i < finding->n_steps; i++)
        if (finding->step[i].c == finding->timed)
            return &finding->step[i];
    return NULL;
}

static void put_quality_of(struct buf *text, const struct finding *finding)
{
    const struct tried *tried = tried_of(finding);
    put_task(text, finding->goal);
    if (finding->state == FINDING_UNTESTED) {
        char *metric = wording_metric(finding->goal);
        buf_format(text, " (%s): %s.", metric, wording_reason(finding->reason));
        free(metric);
        return;
    }
    if (finding->state == FINDING_FROM)
        buf_format(text, ": LLaDA matches LLaMA from %.0f steps on (", finding->at);
    else
        buf_format(text, ": LLaDA %s LLaMA, even with %.0f steps (",
                   finding->state == FINDING_WORSE ? "does not match" : "is not shown to match",
                   finding->timed->steps);
    wording_margin(text, finding->goal);
    buf_format(text, "). With %.0f steps ", finding->timed->steps);
    put_quality(text, finding->goal, &tried->good);
    buf_text(text, ".");
}

static void add_quality_section(json_t *list, const struct findings *findings)
{
    struct buf text = {0};
    int decided = findings->n > 0;
    for (int i = 0; i < findings->n; i++) {
        buf_text(&text, i ? " " : "");
        put_quality_of(&text, &findings->v[i]);
        decided &= findings->v[i].state == FINDING_FROM || findings->v[i].state == FINDING_WORSE;
    }
    if (!findings->n)
        buf_text(&text, "No quality was declared.");
    statement_sentence(statement_add(list, "section", "quality", 1, decided), &text);
}

static void put_ways(struct buf *text, const struct findings *findings,
                     const struct finding *finding)
{
    put_task(text, finding->goal);
    buf_text(text, " (");
    wording_margin(text, finding->goal);
    buf_format(text, "): %zu of %zu other methods %s shown to match LLaMA", finding->n_shown,
               finding->n_ways, finding->n_shown == 1 ? "is" : "are");
    if (finding->best_of >= 0 && finding->best.reason)
        buf_format(text, "; their times are not compared: %s",
                   wording_reason(finding->best.reason));
    else if (finding->best_of >= 0) {
        buf_format(text, "; the fastest, %s, ", finding->best.llada->name);
        wording_takes(text, &finding->best, findings->clock);
    }
    buf_text(text, ".");
}

static void add_decoding_section(json_t *list, const struct findings *findings)
{
    struct buf text = {0};
    const char *why = NULL;
    int ways = 0, decided = findings->n > 0;
    for (int i = 0; i < findings->n; i++) {
        if (findings->v[i].n_ways && findings->v[i].state == FINDING_UNTESTED)
            why = wording_reason(findings->v[i].reason);
        if (!findings->v[i].n_ways || findings->v[i].state == FINDING_UNTESTED)
            continue;
        buf_text(&text, ways++ ? " " : "");
        put_ways(&text, findings, &findings->v[i]);
        decided &= finding_is_decided(&findings->v[i].best);
    }
    if (!ways && why)
        buf_format(&text, "Decoding methods are not compared: %s.", why);
    else if (!ways)
        buf_text(&text, "No other decoding method was measured.");
    statement_sentence(statement_add(list, "section", "decoding", 1, ways && decided), &text);
}

static void put_rate(struct buf *text, const struct findings *findings)
{
    buf_format(text, "at batch %.0f LLaDA writes ", findings->batch);
    wording_times(text, &findings->rate);
    buf_text(text, " as many tokens a second as LLaMA, with ");
    wording_pace(text, findings->rate.llada);
}

static void add_scale_section(json_t *list, const struct findings *findings)
{
    struct buf text = {0};
    if (findings->rate.reason)
        buf_format(&text, "throughput is not compared: %s", wording_reason(findings->rate.reason));
    else
        put_rate(&text, findings);
    buf_text(&text, ".");
    statement_sentence(
        statement_add(list, "section", "scale", 0, finding_is_decided(&findings->rate)), &text);
}

static void put_memory(struct buf *text, const struct findings *findings)
{
    buf_format(text, "LLaDA's peak memory is %.2f times LLaMA's: ",
               findings->memory.llada / findings->memory.llama);
    statement_bytes(text, findings);
}

static void add_memory_section(json_t *list, const struct findings *findings)
{
    struct buf text = {0};
    if (findings->memory.reason)
        buf_format(&text, "Peak memory is not compared: %s", findings->memory.reason);
    else
        put_memory(&text, findings);
    buf_text(&text, ".");
    statement_sentence(statement_add(list, "section", "memory", 0, !findings->memory.reason),
                       &text);
}

static void add_method_section(json_t *list, const struct findings *findings)
{
    const struct versus *versus = findings->n ? &findings->v[0].equal : &findings->vanilla;
    struct buf text = {0};
    if (versus->reason)
        buf_format(&text, "Times are not compared: %s.", wording_reason(versus->reason));
    else
        buf_format(&text,
                   "A ratio of times pairs the same prompt in the same launch: it is the "
                   "geometric mean over the prompts of %zu launches, by %s. Its 95 %% interval "
                   "is over launches and prompts.",
                   versus->launches,
                   findings->clock == PAIRS_CPU ? "processor time" : "elapsed time");
    statement_sentence(statement_add(list, "section", "method", 0, !versus->reason), &text);
}

/* ---- figures ---- */

static void add_figure(json_t *list, const char *of, int primary, int decided, struct buf *text)
{
    statement_sentence(statement_add(list, "figure", of, primary, decided), text);
}

/* Appends the title of the lead figure. */
static void put_lead(struct buf *text, const struct finding *finding)
{
    if (!finding || finding->state == FINDING_UNTESTED) {
        buf_text(text, "Quality against time; the quality was not tested");
        return;
    }
    buf_text(text, finding->state == FINDING_FROM    ? "LLaDA matches "
                   : finding->state == FINDING_WORSE ? "LLaDA does not match "
                                                     : "LLaDA is not shown to match ");
    wording_llama(text, finding->goal);
    if (finding->state == FINDING_FROM)
        buf_format(text, " from %.0f steps on", finding->at);
    else
        buf_format(text, ", even with %.0f steps", finding->timed->steps);
}

static void put_fastest(struct buf *text, const struct findings *findings,
                        const struct finding *finding)
{
    if (finding && finding->best_of >= 0 && !finding->best.reason) {
        buf_text(text, "The fastest method that is shown to match ");
        wording_llama(text, finding->goal);
        buf_format(text, ", %s, ", finding->best.llada->name);
        wording_takes(text, &finding->best, findings->clock);
        return;
    }
    buf_text(text, "Decoding methods: none is both timed and shown to match LLaMA");
}

/* Adds the titles of figures, without a full stop. The titles of throughput and memory name the
 * content, because the sentence of their section has the result. */
static void add_figures(json_t *list, const struct findings *findings)
{
    struct buf lead = {0}, ways = {0}, rate = {0}, memory = {0};
    const struct finding *finding = findings->n ? &findings->v[0] : NULL;
    put_lead(&lead, finding);
    add_figure(list, "lead", 1, finding && finding->state != FINDING_UNTESTED, &lead);
    put_fastest(&ways, findings, finding);
    add_figure(list, "methods", 1, finding && finding_is_decided(&finding->best), &ways);
    buf_text(&rate, "Tokens a second by batch size");
    add_figure(list, "throughput", 0, finding_is_decided(&findings->rate), &rate);
    buf_text(&memory, "Peak memory by batch size and answer length");
    add_figure(list, "memory", 0, !findings->memory.reason, &memory);
}

void section_all(json_t *list, const struct findings *findings)
{
    add_quality_section(list, findings);
    add_decoding_section(list, findings);
    add_scale_section(list, findings);
    add_memory_section(list, findings);
    add_method_section(list, findings);
    add_figures(list, findings);
}
