/* statement.c - see statement.h. An unknown value and both ends of its interval are null with a
 * reason. A verdict is about the ratio LLaDA / LLaMA: SLOWER means that LLaDA takes longer than
 * LLaMA. */
#include "lib/analysis/claim/statement.h"

#include <math.h>

#include "lib/analysis/claim/wording.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"

json_t *statement_task(const char *task)
{
    return task ? json_string(task) : json_null();
}

json_t *statement_add(json_t *list, const char *name, const char *of, int primary, int decided)
{
    json_t *claim = json_object();
    json_object_set_new(claim, "name", json_string(name));
    if (of)
        json_object_set_new(claim, "key", json_string(of));
    json_object_set_new(claim, "primary", json_boolean(primary));
    json_object_set_new(claim, "decided", json_boolean(decided));
    json_array_append_new(list, claim);
    return claim;
}

const json_t *statement_find(const json_t *list, const char *name)
{
    const json_t *claim;
    size_t i;
    json_array_foreach(list, i, claim)
        if (rec_is(claim, "name", name))
            return claim;
    return NULL;
}

void statement_text(json_t *claim, const char *key, struct buf *text)
{
    if (text->len)
        json_object_set_new(claim, key, json_string(text->data));
    buf_free(text);
}

void statement_sentence(json_t *claim, struct buf *text)
{
    if (text->len && text->data[0] >= 'a' && text->data[0] <= 'z')
        text->data[0] = (char)(text->data[0] - 'a' + 'A');
    statement_text(claim, "text", text);
}

const char *statement_clock(const struct findings *findings)
{
    return findings->clock == PAIRS_CPU ? "cpu" : "wall";
}

static const char *const statement_verdicts[] = {[RATIO_SAME] = "SAME", [RATIO_ABOVE] = "SLOWER",
                                       [RATIO_BELOW] = "FASTER", [RATIO_UNDECIDED] = "UNDECIDED"};

void statement_interval(json_t *claim, const struct interval *interval, const char *reason)
{
    rec_set_number(claim, "value", interval->value, reason ? reason : "not measured");
    rec_set_number(claim, "lo", interval->lo, reason ? reason : "not measured");
    rec_set_number(claim, "hi", interval->hi, reason ? reason : "not measured");
}

void statement_versus(json_t *claim, const struct findings *findings, const struct versus *versus)
{
    json_object_set_new(claim, "task", statement_task(versus->task));
    json_object_set_new(claim, "clock", json_string(statement_clock(findings)));
    json_object_set_new(claim, "verdict", json_string(statement_verdicts[versus->verdict]));
    statement_interval(claim, &versus->x, versus->reason);
    json_object_set_new(claim, "unit", json_string("x"));
    if (versus->reason)
        return;
    rec_set_int(claim, "launches", (int64_t)versus->launches);
    rec_set_int(claim, "prompts", (int64_t)versus->prompts);
    rec_set_int(claim, "comparisons", (int64_t)versus->comparisons);
    json_object_set_new(claim, "llada", json_string(versus->llada->point));
    json_object_set_new(claim, "llama", json_string(versus->llama->point));
}

void statement_times(json_t *claim, const struct versus *versus)
{
    static const char *const keys[2][3] = {{"llada_ns", "llada_lo_ns", "llada_hi_ns"},
                                           {"llama_ns", "llama_lo_ns", "llama_hi_ns"}};
    const char *none = versus->reason ? versus->reason : "not measured";
    for (size_t k = 0; k < 2; k++) {
        const struct interval *time = &versus->ns[k];
        const char *few = isnan(time->value) ? none : LAUNCH_FEW;
        rec_set_number(claim, keys[k][0], time->value, none);
        rec_set_number(claim, keys[k][1], time->lo, few);
        rec_set_number(claim, keys[k][2], time->hi, few);
    }
    rec_set_int(claim, "launches", (int64_t)versus->launches);
}

void statement_goal(json_t *claim, const struct goal *goal)
{
    json_object_set_new(claim, "task", statement_task(goal->task));
    json_object_set_new(claim, "quality_metric", json_string(goal->metric));
    json_object_set_new(claim, "margin", json_real(goal->margin.by));
    json_object_set_new(claim, "margin_relative", json_boolean(goal->margin.relative));
}

const char *statement_never(const struct finding *finding)
{
    return finding->state == FINDING_UNTESTED ? wording_reason(finding->reason)
           : finding->state == FINDING_WORSE
               ? "LLaDA does not match LLaMA, even with the most steps measured"
               : "LLaDA is not shown to match LLaMA, even with the most steps measured";
}

void statement_bytes(struct buf *text, const struct findings *findings)
{
    display_value(text, findings->memory.metric, findings->memory.llada);
    buf_text(text, " against ");
    display_value(text, findings->memory.metric, findings->memory.llama);
}
