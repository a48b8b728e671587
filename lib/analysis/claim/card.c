/* card.c - see card.h. The page shows the note of a card after its value, so that both read as one
 * phrase: "1.40 ×", "LLaMA's time". A card without a value has the reason as its note. Only a goal
 * that is met has a time at equal quality: the card shows the first such goal, and its note lists
 * the other goals. */
#include "lib/analysis/claim/card.h"

#include <math.h>
#include <stdlib.h>

#include "lib/analysis/claim/statement.h"
#include "lib/analysis/claim/wording.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"

static const char *llama_time(const struct findings *findings)
{
    return findings->clock == PAIRS_CPU ? "LLaMA's processor time" : "LLaMA's time";
}

/* Appends ": 389 ms against 9.65 ms", the mean times of this run. */
static void put_session(struct buf *text, const struct versus *versus)
{
    if (isnan(versus->ns[0].value) || isnan(versus->ns[1].value))
        return;
    buf_text(text, ": ");
    display_value(text, "e2e_ns", versus->ns[0].value);
    buf_text(text, " against ");
    display_value(text, "e2e_ns", versus->ns[1].value);
}

/* Appends "8 steps on sums (accuracy)". */
static void put_place(struct buf *text, const struct finding *finding)
{
    const char *task = wording_task(finding->goal);
    char *metric = wording_metric(finding->goal);
    buf_format(text, "%.0f steps%s%s (%s)", finding->at, *task ? " on " : "", task, metric);
    free(metric);
}

static void put_rest(struct buf *text, const struct findings *findings, const struct finding *first)
{
    for (int i = 0; i < findings->n; i++) {
        const struct finding *finding = &findings->v[i];
        const char *task = wording_task(finding->goal);
        if (finding == first || finding->state == FINDING_UNTESTED)
            continue;
        buf_text(text, "; ");
        if (finding->state != FINDING_FROM) {
            char *metric = wording_metric(finding->goal);
            buf_format(text, "%s%s(%s): a match is not shown", task, *task ? " " : "", metric);
            free(metric);
            continue;
        }
        put_place(text, finding);
        if (finding->equal.reason)
            continue;
        buf_text(text, ": ");
        wording_times(text, &finding->equal);
    }
}

/* Adds the card of the first goal that is met; if none is met, of the first goal. */
static void add_equal_card(json_t *list, const struct findings *findings)
{
    const struct finding *finding = findings->n ? &findings->v[0] : NULL;
    for (int i = findings->n - 1; i >= 0; i--)
        if (findings->v[i].state == FINDING_FROM)
            finding = &findings->v[i];
    struct versus versus = finding ? finding->equal : findings->vanilla;
    struct buf note = {0};
    if (!finding || finding->state != FINDING_FROM) {
        versus.reason = finding ? statement_never(finding) : "no quality was declared";
        versus.x = (struct interval){NAN, NAN, NAN};
        versus.verdict = RATIO_UNDECIDED;
    }
    json_t *claim = statement_add(list, "card", "time_at_equal_quality", 1,
                                  finding_is_decided(&versus));
    json_object_set_new(claim, "title", json_string(findings->clock == PAIRS_CPU
        ? "Processor time for an answer of equal quality"
        : "Time for an answer of equal quality"));
    statement_versus(claim, findings, &versus);
    if (versus.reason)
        buf_text(&note, wording_reason(versus.reason));
    else {
        buf_format(&note, "%s, with ", llama_time(findings));
        put_place(&note, finding);
        put_session(&note, &versus);
    }
    if (!versus.reason && finding->rival.comparisons && !finding->rival.reason) {
        buf_format(&note, "; against LLaMA %s: ", finding->rival.llama->name);
        wording_times(&note, &finding->rival);
    }
    if (finding)
        put_rest(&note, findings, finding);
    statement_text(claim, "note", &note);
}

static void add_rate_card(json_t *list, const struct findings *findings)
{
    const struct versus *versus = &findings->rate;
    struct buf title = {0}, note = {0};
    buf_text(&title, "Tokens a second");
    if (findings->batch > 1)
        buf_format(&title, ", batch %.0f", findings->batch);
    json_t *claim = statement_add(list, "card", "throughput", 0, finding_is_decided(versus));
    statement_text(claim, "title", &title);
    statement_versus(claim, findings, versus);
    if (versus->reason)
        buf_text(&note, wording_reason(versus->reason));
    else {
        buf_format(&note, "LLaMA's rate; both write %.0f tokens, LLaDA ", versus->llada->length);
        wording_pace(&note, versus->llada);
    }
    statement_text(claim, "note", &note);
}

static void add_memory_card(json_t *list, const struct findings *findings)
{
    const struct memory_found *found = &findings->memory;
    const struct interval interval = {found->llada / found->llama, NAN, NAN};
    struct buf note = {0};
    json_t *claim = statement_add(list, "card", "memory", 0, !found->reason);
    json_object_set_new(claim, "title", json_string("Peak memory"));
    json_object_set_new(claim, "task", json_null());
    statement_interval(claim, &interval, found->reason ? found->reason : "a peak has no interval");
    json_object_set_new(claim, "unit", json_string("x"));
    if (found->reason)
        buf_text(&note, found->reason);
    else {
        buf_text(&note, "LLaMA's peak: ");
        statement_bytes(&note, findings);
    }
    statement_text(claim, "note", &note);
}

static void add_vanilla_card(json_t *list, const struct findings *findings)
{
    const struct versus *versus = &findings->vanilla;
    struct buf note = {0};
    json_t *claim = statement_add(list, "card", "vanilla", 1, finding_is_decided(versus));
    json_object_set_new(claim, "title", json_string("One token a step, as published"));
    statement_versus(claim, findings, versus);
    if (versus->reason)
        buf_text(&note, wording_reason(versus->reason));
    else {
        double text = evidence_metric(findings->evidence, versus->llada->point, "tokens_to_eos");
        buf_text(&note, llama_time(findings));
        put_session(&note, versus);
        buf_format(&note, "; LLaDA fills %.0f positions", versus->llada->length);
        if (text > 0)
            buf_format(&note, ", the mean text has %.0f tokens", text);
    }
    if (findings->grown.comparisons && !findings->grown.reason) {
        buf_text(&note, "; with --suffix grow ");
        wording_times(&note, &findings->grown);
    }
    statement_text(claim, "note", &note);
}

void card_all(json_t *list, const struct findings *findings)
{
    add_equal_card(list, findings);
    add_rate_card(list, findings);
    add_memory_card(list, findings);
    add_vanilla_card(list, findings);
}
