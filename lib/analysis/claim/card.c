/* card.c - see card.h. A value is followed by its note, so that both read as one phrase: "1.40 ×",
 * "LLaMA's time". A card without a value has the reason as its note. Only a goal that is met has a
 * time at equal quality: the value is that of the first such goal, the note lists the others. */
#include "lib/analysis/claim/card.h"

#include <math.h>
#include <stdlib.h>

#include "lib/analysis/claim/statement.h"
#include "lib/analysis/claim/wording.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"

static const char *llama_time(const struct findings *f)
{
    return f->clock == PAIRS_CPU ? "LLaMA's processor time" : "LLaMA's time";
}

/* Appends ": 389 ms against 9.65 ms", the mean times of this run. */
static void put_session(struct buf *b, const struct versus *x)
{
    if (isnan(x->ns[0]) || isnan(x->ns[1]))
        return;
    buf_text(b, ": ");
    display_value(b, "e2e_ns", x->ns[0]);
    buf_text(b, " against ");
    display_value(b, "e2e_ns", x->ns[1]);
}

/* Appends "8 steps on sums (accuracy)". */
static void put_place(struct buf *b, const struct finding *g)
{
    const char *task = wording_task(g->goal);
    char *metric = wording_metric(g->goal);
    buf_format(b, "%.0f steps%s%s (%s)", g->at, *task ? " on " : "", task, metric);
    free(metric);
}

static void put_rest(struct buf *b, const struct findings *f, const struct finding *first)
{
    for (int i = 0; i < f->n; i++) {
        const struct finding *g = &f->v[i];
        const char *task = wording_task(g->goal);
        if (g == first || g->state == FINDING_UNTESTED)
            continue;
        buf_text(b, "; ");
        if (g->state != FINDING_FROM) {
            char *metric = wording_metric(g->goal);
            buf_format(b, "%s%s(%s): a match is not shown", task, *task ? " " : "", metric);
            free(metric);
            continue;
        }
        put_place(b, g);
        if (g->equal.reason)
            continue;
        buf_text(b, ": ");
        wording_times(b, &g->equal);
    }
}

/* The card of the first goal that is met; if none is met, of the first goal. */
static void add_equal_card(json_t *list, const struct findings *f)
{
    const struct finding *g = f->n ? &f->v[0] : NULL;
    for (int i = f->n - 1; i >= 0; i--)
        if (f->v[i].state == FINDING_FROM)
            g = &f->v[i];
    struct versus x = g ? g->equal : f->vanilla;
    struct buf note = {0};
    if (!g || g->state != FINDING_FROM) {
        x.reason = g ? statement_never(g) : "no quality was declared";
        x.x = (struct interval){NAN, NAN, NAN};
        x.verdict = RATIO_UNDECIDED;
    }
    json_t *c = statement_add(list, "card", "time_at_equal_quality", 1, finding_is_decided(&x));
    json_object_set_new(c, "title", json_string(f->clock == PAIRS_CPU
        ? "Processor time for an answer of equal quality"
        : "Time for an answer of equal quality"));
    statement_versus(c, f, &x);
    if (x.reason)
        buf_text(&note, wording_reason(x.reason));
    else {
        buf_format(&note, "%s, with ", llama_time(f));
        put_place(&note, g);
        put_session(&note, &x);
    }
    if (!x.reason && g->rival.comparisons && !g->rival.reason) {
        buf_format(&note, "; against LLaMA %s: ", g->rival.llama->name);
        wording_times(&note, &g->rival);
    }
    if (g)
        put_rest(&note, f, g);
    statement_text(c, "note", &note);
}

static void add_rate_card(json_t *list, const struct findings *f)
{
    const struct versus *x = &f->rate;
    struct buf title = {0}, note = {0};
    buf_text(&title, "Tokens a second");
    if (f->batch > 1)
        buf_format(&title, ", batch %.0f", f->batch);
    json_t *c = statement_add(list, "card", "throughput", 0, finding_is_decided(x));
    statement_text(c, "title", &title);
    statement_versus(c, f, x);
    if (x->reason)
        buf_text(&note, wording_reason(x->reason));
    else {
        buf_format(&note, "LLaMA's rate; both write %.0f tokens, LLaDA ", x->llada->length);
        wording_pace(&note, x->llada);
    }
    statement_text(c, "note", &note);
}

static void add_memory_card(json_t *list, const struct findings *f)
{
    const struct memory_found *m = &f->memory;
    const struct interval x = {m->llada / m->llama, NAN, NAN};
    struct buf note = {0};
    json_t *c = statement_add(list, "card", "memory", 0, !m->reason);
    json_object_set_new(c, "title", json_string("Peak memory"));
    json_object_set_new(c, "task", json_null());
    statement_interval(c, &x, m->reason ? m->reason : "a peak has no interval");
    json_object_set_new(c, "unit", json_string("x"));
    if (m->reason)
        buf_text(&note, m->reason);
    else {
        buf_text(&note, "LLaMA's peak: ");
        statement_bytes(&note, f);
    }
    statement_text(c, "note", &note);
}

static void add_vanilla_card(json_t *list, const struct findings *f)
{
    const struct versus *x = &f->vanilla;
    struct buf note = {0};
    json_t *c = statement_add(list, "card", "vanilla", 1, finding_is_decided(x));
    json_object_set_new(c, "title", json_string("One token a step, as published"));
    statement_versus(c, f, x);
    if (x->reason)
        buf_text(&note, wording_reason(x->reason));
    else {
        double text = evidence_metric(f->evidence, x->llada->point, "tokens_to_eos");
        buf_text(&note, llama_time(f));
        put_session(&note, x);
        buf_format(&note, "; LLaDA fills %.0f positions", x->llada->length);
        if (text > 0)
            buf_format(&note, ", the mean text has %.0f tokens", text);
    }
    if (f->grown.comparisons && !f->grown.reason) {
        buf_text(&note, "; with --suffix grow ");
        wording_times(&note, &f->grown);
    }
    statement_text(c, "note", &note);
}

void card_all(json_t *list, const struct findings *f)
{
    add_equal_card(list, f);
    add_rate_card(list, f);
    add_memory_card(list, f);
    add_vanilla_card(list, f);
}
