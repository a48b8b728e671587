/* statement.c - see statement.h. An unknown value is null with its reason, and so are both ends of
 * its interval. Verdicts are those of the ratio: SLOWER means that LLaDA takes longer than
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
    json_t *cell = json_object();
    json_object_set_new(cell, "name", json_string(name));
    if (of)
        json_object_set_new(cell, "key", json_string(of));
    json_object_set_new(cell, "primary", json_boolean(primary));
    json_object_set_new(cell, "decided", json_boolean(decided));
    json_array_append_new(list, cell);
    return cell;
}

void statement_text(json_t *cell, const char *key, struct buf *text)
{
    if (text->len)
        json_object_set_new(cell, key, json_string(text->data));
    buf_free(text);
}

void statement_sentence(json_t *cell, struct buf *text)
{
    if (text->len && text->data[0] >= 'a' && text->data[0] <= 'z')
        text->data[0] = (char)(text->data[0] - 'a' + 'A');
    statement_text(cell, "text", text);
}

const char *statement_clock(const struct findings *findings)
{
    return findings->clock == PAIRS_CPU ? "cpu" : "wall";
}

static const char *const statement_verdicts[] = {[RATIO_SAME] = "SAME", [RATIO_ABOVE] = "SLOWER",
                                       [RATIO_BELOW] = "FASTER", [RATIO_UNDECIDED] = "UNDECIDED"};

void statement_interval(json_t *cell, const struct interval *interval, const char *reason)
{
    rec_set_number(cell, "value", interval->value, reason ? reason : "not measured");
    rec_set_number(cell, "lo", interval->lo, reason ? reason : "not measured");
    rec_set_number(cell, "hi", interval->hi, reason ? reason : "not measured");
}

void statement_versus(json_t *cell, const struct findings *findings, const struct versus *versus)
{
    json_object_set_new(cell, "task", statement_task(versus->task));
    json_object_set_new(cell, "clock", json_string(statement_clock(findings)));
    json_object_set_new(cell, "verdict", json_string(statement_verdicts[versus->verdict]));
    statement_interval(cell, &versus->x, versus->reason);
    json_object_set_new(cell, "unit", json_string("x"));
    if (versus->reason)
        return;
    rec_set_int(cell, "launches", (int64_t)versus->launches);
    rec_set_int(cell, "prompts", (int64_t)versus->prompts);
    rec_set_int(cell, "comparisons", (int64_t)versus->comparisons);
    json_object_set_new(cell, "llada", json_string(versus->llada->point));
    json_object_set_new(cell, "llama", json_string(versus->llama->point));
}

void statement_goal(json_t *cell, const struct goal *goal)
{
    json_object_set_new(cell, "task", statement_task(goal->task));
    json_object_set_new(cell, "quality_metric", json_string(goal->metric));
    json_object_set_new(cell, "margin", json_real(goal->margin.by));
    json_object_set_new(cell, "margin_relative", json_boolean(goal->margin.relative));
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
