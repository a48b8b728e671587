/* rule.c - see rule.h: the table of rules, and what they have in common. A response is cut at its
 * stops here, so that no rule has to know of them. */
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/rule/parts.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const struct {
    const char *name;
    int (*judge)(struct rule *r, const char *answer, const char *response, const char **why,
                 struct err *e);
} kinds[] = {{"extract", rule_extract},     {"math", rule_math},
             {"program", rule_program},     {"list", rule_list},
             {"list-shuffle", rule_list},   {"list-insert", rule_list},
             {"list-remove", rule_list},    {"list-replace", rule_list},
             {"latin-square", rule_square}, {"sudoku", rule_sudoku}};

/* The way to find an answer that is named so, or the first; NULL: the row has none. */
static const json_t *find_way(const json_t *rule, const char *name)
{
    size_t i;
    const json_t *way;
    json_array_foreach(json_object_get(rule, "find"), i, way)
        if (!name || rec_is(way, "name", name))
            return way;
    return NULL;
}

static int open_kind(struct rule *r, const char *find, struct err *e)
{
    const json_t *rule = json_object_get(r->row, "rule"), *way = find_way(rule, find);
    const char *type = rec_text(rule, "type"), *name = rec_text(r->row, "name");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, type))
            r->judge = kinds[i].judge;
    if (!r->judge)
        return err_set(e, EXIT_BAD_DATA, "task %s: rule '%.40s' is not for responses%s", name, type,
                       strcmp(type, "choice") ? "" : "; use score-ppl --mode choice");
    if (find && !way)
        return err_set(e, EXIT_BAD_USAGE, "--find: task %s has no way '%.40s'", name, find);
    r->boxed = way && rec_is(way, "name", "boxed");
    return r->judge == rule_extract   ? rule_extract_open(r, rule, way, e)
           : r->judge == rule_program ? rule_program_open(r, rule, e)
                                      : 0;
}

struct rule *rule_open(const json_t *row, const char *find, struct err *e)
{
    struct rule *r = mem_zero(1, sizeof *r);
    r->row = row;
    if (!open_kind(r, find, e))
        return r;
    rule_close(r);
    return NULL;
}

void rule_close(struct rule *r)
{
    if (!r)
        return;
    regex_free(r->find);
    for (int i = 0; i < RULE_EDITS; i++)
        regex_free(r->edit[i]);
    buf_free(&r->one);
    buf_free(&r->two);
    free(r);
}

int rule_judge(struct rule *r, const char *answer, const char *response, const char **why,
               struct err *e)
{
    char *text = mem_text(response);
    size_t i;
    const json_t *stop;
    json_array_foreach(json_object_get(r->row, "stop"), i, stop) {
        char *at = json_string_length(stop) ? strstr(text, json_string_value(stop)) : NULL;
        if (at)
            *at = 0;
    }
    int verdict = r->judge(r, answer, text, why, e);
    free(text);
    return verdict;
}
