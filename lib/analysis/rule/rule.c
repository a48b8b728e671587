/* rule.c - see rule.h. This file has the table of rules and the code that they share. It cuts a
 * response at the stops of its task, so that no rule has to know the stops. */
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/ifeval/ifeval.h"
#include "lib/analysis/rule/parts.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

static int ifeval(struct rule *rule, const char *answer, const char *response, const char **why,
                  struct err *e)
{
    return ifeval_judge(rule->loose, answer, response, why, e);
}

static const struct {
    const char *name;
    int (*judge)(struct rule *rule, const char *answer, const char *response, const char **why,
                 struct err *e);
} kinds[] = {{"extract", rule_extract},     {"math", rule_math},
             {"program", rule_program},     {"list", rule_list},
             {"list-shuffle", rule_list},   {"list-insert", rule_list},
             {"list-remove", rule_list},    {"list-replace", rule_list},
             {"latin-square", rule_square}, {"sudoku", rule_sudoku},
             {"ifeval", ifeval}};

/* The way to find an answer with this name; name NULL: the first way. NULL: the rule has none. */
static const json_t *find_way(const json_t *rule, const char *name)
{
    size_t i;
    const json_t *way;
    json_array_foreach(json_object_get(rule, "find"), i, way)
        if (!name || rec_is(way, "name", name))
            return way;
    return NULL;
}

static int open_kind(struct rule *into, const char *find, struct err *e)
{
    const json_t *rule = json_object_get(into->row, "rule"), *way = find_way(rule, find);
    const char *type = rec_text(rule, "type"), *name = rec_text(into->row, "name");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, type))
            into->judge = kinds[i].judge;
    if (!into->judge)
        return err_set(e, EXIT_BAD_DATA, "task %s: rule '%.40s' is not for responses%s", name, type,
                       strcmp(type, "choice") ? "" : "; use score-ppl --mode choice");
    if (find && !way)
        return err_set(e, EXIT_BAD_USAGE, "--find: task %s has no way '%.40s'", name, find);
    into->loose = way && rec_is(way, "name", "loose");
    into->boxed = way && rec_is(way, "name", "boxed");
    return into->judge == rule_extract   ? rule_extract_open(into, rule, way, e)
           : into->judge == rule_program ? rule_program_open(into, rule, e)
                                         : 0;
}

struct rule *rule_open(const json_t *row, const char *find, struct err *e)
{
    struct rule *rule = mem_zero(1, sizeof *rule);
    rule->row = row;
    if (!open_kind(rule, find, e))
        return rule;
    rule_close(rule);
    return NULL;
}

void rule_close(struct rule *rule)
{
    if (!rule)
        return;
    regex_free(rule->find);
    for (int i = 0; i < RULE_EDITS; i++)
        regex_free(rule->edit[i]);
    buf_free(&rule->one);
    buf_free(&rule->two);
    free(rule);
}

int rule_judge(struct rule *rule, const char *answer, const char *response, const char **why,
               struct err *e)
{
    char *text = mem_text(response);
    size_t i;
    const json_t *stop;
    json_array_foreach(json_object_get(rule->row, "stop"), i, stop) {
        char *at = json_string_length(stop) ? strstr(text, json_string_value(stop)) : NULL;
        if (at)
            *at = 0;
    }
    int verdict = rule->judge(rule, answer, text, why, e);
    free(text);
    return verdict;
}
