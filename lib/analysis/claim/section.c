/* section.c - see section.h. A section has one or two sentences for each goal, with its metric. If
 * there is nothing to compare, the sentence says so. The title of its figure then names the content
 * of the figure and claims nothing. */
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
static void put_quality(struct buf *b, const struct goal *g, const struct good *t)
{
    const int is_share = g->kind.transform == POOLED_PLAIN;
    const double scale = is_share ? 100 : 1;
    char *metric = wording_metric(g);
    buf_format(b, "%s is %.3g against %.3g, a %s of %.3g [%.3g, %.3g]%s", metric, t->value, t->base,
               t->is_ratio ? "ratio" : "difference", scale * t->effect.value, scale * t->effect.lo,
               scale * t->effect.hi, is_share ? " points" : "");
    free(metric);
}

/* Appends "Sums", else "All prompts". */
static void put_task(struct buf *b, const struct goal *g)
{
    const char *task = wording_task(g);
    const size_t at = b->len;
    buf_text(b, *task ? task : "all prompts");
    b->data[at] = (char)toupper((unsigned char)b->data[at]);
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
    const struct tried *t = tried_of(g);
    put_task(b, g->goal);
    if (g->state == FINDING_UNTESTED) {
        char *metric = wording_metric(g->goal);
        buf_format(b, " (%s): %s.", metric, wording_reason(g->reason));
        free(metric);
        return;
    }
    if (g->state == FINDING_FROM)
        buf_format(b, ": LLaDA matches LLaMA from %.0f steps on (", g->at);
    else
        buf_format(b, ": LLaDA %s LLaMA, even with %.0f steps (",
                   g->state == FINDING_WORSE ? "does not match" : "is not shown to match",
                   g->timed->steps);
    wording_margin(b, g->goal);
    buf_format(b, "). With %.0f steps ", g->timed->steps);
    put_quality(b, g->goal, &t->good);
    buf_text(b, ".");
}

static void add_quality_section(json_t *list, const struct findings *f)
{
    struct buf b = {0};
    int decided = f->n > 0;
    for (int i = 0; i < f->n; i++) {
        buf_text(&b, i ? " " : "");
        put_quality_of(&b, &f->v[i]);
        decided &= f->v[i].state == FINDING_FROM || f->v[i].state == FINDING_WORSE;
    }
    if (!f->n)
        buf_text(&b, "No quality was declared.");
    statement_sentence(statement_add(list, "section", "quality", 1, decided), &b);
}

static void put_ways(struct buf *b, const struct findings *f, const struct finding *g)
{
    put_task(b, g->goal);
    buf_text(b, " (");
    wording_margin(b, g->goal);
    buf_format(b, "): %zu of %zu other methods %s shown to match LLaMA", g->n_shown, g->n_ways,
               g->n_shown == 1 ? "is" : "are");
    if (g->best_of >= 0 && g->best.reason)
        buf_format(b, "; their times are not compared: %s", wording_reason(g->best.reason));
    else if (g->best_of >= 0) {
        buf_format(b, "; the fastest, %s, ", g->best.llada->name);
        wording_takes(b, &g->best, f->clock);
    }
    buf_text(b, ".");
}

static void add_decoding_section(json_t *list, const struct findings *f)
{
    struct buf b = {0};
    const char *why = NULL;
    int ways = 0, decided = f->n > 0;
    for (int i = 0; i < f->n; i++) {
        if (f->v[i].n_ways && f->v[i].state == FINDING_UNTESTED)
            why = wording_reason(f->v[i].reason);
        if (!f->v[i].n_ways || f->v[i].state == FINDING_UNTESTED)
            continue;
        buf_text(&b, ways++ ? " " : "");
        put_ways(&b, f, &f->v[i]);
        decided &= finding_is_decided(&f->v[i].best);
    }
    if (!ways && why)
        buf_format(&b, "Decoding methods are not compared: %s.", why);
    else if (!ways)
        buf_text(&b, "No other decoding method was measured.");
    statement_sentence(statement_add(list, "section", "decoding", 1, ways && decided), &b);
}

static void put_rate(struct buf *b, const struct findings *f)
{
    buf_format(b, "at batch %.0f LLaDA writes ", f->batch);
    wording_times(b, &f->rate);
    buf_text(b, " as many tokens a second as LLaMA, with ");
    wording_pace(b, f->rate.llada);
}

static void add_scale_section(json_t *list, const struct findings *f)
{
    struct buf b = {0};
    if (f->rate.reason)
        buf_format(&b, "throughput is not compared: %s", wording_reason(f->rate.reason));
    else
        put_rate(&b, f);
    buf_text(&b, ".");
    statement_sentence(
        statement_add(list, "section", "scale", 0, finding_is_decided(&f->rate)), &b);
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
        buf_format(&b, "Times are not compared: %s.", wording_reason(x->reason));
    else
        buf_format(&b, "A ratio of times pairs the same prompt in the same launch: it is the "
                       "geometric mean over the prompts of %zu launches, by %s. Its 95 %% interval "
                       "is over launches and prompts.", x->launches,
                   f->clock == PAIRS_CPU ? "processor time" : "elapsed time");
    statement_sentence(statement_add(list, "section", "method", 0, !x->reason), &b);
}

/* ---- figures ---- */

static void add_figure(json_t *list, const char *of, int primary, int decided, struct buf *text)
{
    statement_sentence(statement_add(list, "figure", of, primary, decided), text);
}

/* Appends the title of the lead figure. */
static void put_lead(struct buf *b, const struct finding *g)
{
    if (!g || g->state == FINDING_UNTESTED) {
        buf_text(b, "Quality against time; the quality was not tested");
        return;
    }
    buf_text(b, g->state == FINDING_FROM    ? "LLaDA matches "
                : g->state == FINDING_WORSE ? "LLaDA does not match "
                                            : "LLaDA is not shown to match ");
    wording_llama(b, g->goal);
    if (g->state == FINDING_FROM)
        buf_format(b, " from %.0f steps on", g->at);
    else
        buf_format(b, ", even with %.0f steps", g->timed->steps);
}

static void put_fastest(struct buf *b, const struct findings *f, const struct finding *g)
{
    if (g && g->best_of >= 0 && !g->best.reason) {
        buf_text(b, "The fastest method that is shown to match ");
        wording_llama(b, g->goal);
        buf_format(b, ", %s, ", g->best.llada->name);
        wording_takes(b, &g->best, f->clock);
        return;
    }
    buf_text(b, "Decoding methods: none is both timed and shown to match LLaMA");
}

/* Titles of figures, without a full stop. A figure of a section whose sentence has the result
 * names its content. */
static void add_figures(json_t *list, const struct findings *f)
{
    struct buf lead = {0}, ways = {0}, rate = {0}, memory = {0};
    const struct finding *g = f->n ? &f->v[0] : NULL;
    put_lead(&lead, g);
    add_figure(list, "lead", 1, g && g->state != FINDING_UNTESTED, &lead);
    put_fastest(&ways, f, g);
    add_figure(list, "methods", 1, g && finding_is_decided(&g->best), &ways);
    buf_text(&rate, "Tokens a second by batch size");
    add_figure(list, "throughput", 0, finding_is_decided(&f->rate), &rate);
    buf_text(&memory, "Peak memory by batch size and answer length");
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
