/* statement.c - see statement.h. An unknown value is null with its reason, and so are both ends of
 * its interval. Verdicts are those of the ratio: SLOWER means that LLaDA takes longer than
 * LLaMA. */
#include "lib/analysis/claim/statement.h"

#include <math.h>

#include "lib/analysis/claim/wording.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"

json_t *statement_task(const char *s)
{
    return s ? json_string(s) : json_null();
}

json_t *statement_add(json_t *list, const char *name, const char *of, int primary, int decided)
{
    json_t *c = json_object();
    json_object_set_new(c, "name", json_string(name));
    if (of)
        json_object_set_new(c, "key", json_string(of));
    json_object_set_new(c, "primary", json_boolean(primary));
    json_object_set_new(c, "decided", json_boolean(decided));
    json_array_append_new(list, c);
    return c;
}

void statement_text(json_t *c, const char *key, struct buf *b)
{
    if (b->len)
        json_object_set_new(c, key, json_string(b->data));
    buf_free(b);
}

void statement_sentence(json_t *c, struct buf *b)
{
    if (b->len && b->data[0] >= 'a' && b->data[0] <= 'z')
        b->data[0] = (char)(b->data[0] - 'a' + 'A');
    statement_text(c, "text", b);
}

const char *statement_clock(const struct findings *f)
{
    return f->clock == PAIRS_CPU ? "cpu" : "wall";
}

static const char *const statement_verdicts[] = {[RATIO_SAME] = "SAME", [RATIO_ABOVE] = "SLOWER",
                                       [RATIO_BELOW] = "FASTER", [RATIO_UNDECIDED] = "UNDECIDED"};

void statement_interval(json_t *c, const struct interval *x, const char *reason)
{
    rec_set_number(c, "value", x->value, reason ? reason : "not measured");
    rec_set_number(c, "lo", x->lo, reason ? reason : "not measured");
    rec_set_number(c, "hi", x->hi, reason ? reason : "not measured");
}

void statement_versus(json_t *c, const struct findings *f, const struct versus *x)
{
    json_object_set_new(c, "task", statement_task(x->task));
    json_object_set_new(c, "clock", json_string(statement_clock(f)));
    json_object_set_new(c, "verdict", json_string(statement_verdicts[x->verdict]));
    statement_interval(c, &x->x, x->reason);
    json_object_set_new(c, "unit", json_string("x"));
    if (x->reason)
        return;
    rec_set_int(c, "launches", (int64_t)x->launches);
    rec_set_int(c, "prompts", (int64_t)x->prompts);
    rec_set_int(c, "comparisons", (int64_t)x->comparisons);
    json_object_set_new(c, "llada", json_string(x->llada->point));
    json_object_set_new(c, "llama", json_string(x->llama->point));
}

void statement_goal(json_t *c, const struct goal *g)
{
    json_object_set_new(c, "task", statement_task(g->task));
    json_object_set_new(c, "quality_metric", json_string(g->metric));
    json_object_set_new(c, "margin", json_real(g->margin.by));
    json_object_set_new(c, "margin_relative", json_boolean(g->margin.relative));
}

const char *statement_never(const struct finding *g)
{
    return g->state == FINDING_UNTESTED ? wording_reason(g->reason)
           : g->state == FINDING_WORSE
               ? "LLaDA does not match LLaMA, even with the most steps measured"
               : "LLaDA is not shown to match LLaMA, even with the most steps measured";
}

void statement_bytes(struct buf *b, const struct findings *f)
{
    display_value(b, f->memory.metric, f->memory.llada);
    buf_text(b, " against ");
    display_value(b, f->memory.metric, f->memory.llama);
}
