/* extract.c - judges an answer that a pattern finds, in the steps of lm-eval. The first or the last
 * match counts, without white space around it; if there is no match, the text is "[invalid]". Then
 * the patterns of `ignore` are deleted from the match and from the right answer, letters become
 * small if `lower` is set, and both must be equal. */
#include <ctype.h>
#include <string.h>

#include "lib/analysis/rule/parts.h"
#include "lib/record/rec.h"

int rule_extract_open(struct rule *into, const json_t *rule, const json_t *find, struct err *e)
{
    const char *pattern = find ? rec_text(find, "regex") : NULL;
    size_t i;
    const json_t *value;
    if (!pattern)
        return err_set(e, EXIT_BAD_DATA, "task %s: rule.find: expected a regex",
                       rec_text(into->row, "name"));
    if (json_array_size(json_object_get(rule, "ignore")) > RULE_EDITS)
        return err_set(e, EXIT_BAD_DATA, "task %s: rule.ignore: expected at most %d patterns",
                       rec_text(into->row, "name"), RULE_EDITS);
    into->last = rec_is(find, "take", "last");
    into->lower = json_is_true(json_object_get(rule, "lower"));
    into->find = regex_new(pattern, e);
    json_array_foreach(json_object_get(rule, "ignore"), i, value)
        if (into->find && !(into->edit[i] = regex_new(json_string_value(value), e)))
            return -1;
    return into->find ? 0 : -1;
}

static void find(const struct rule *rule, const char *text, struct buf *out)
{
    struct regex_span whole = {0, 0}, group, found = {0, 0};
    size_t n = strlen(text);
    int any = 0;
    for (; regex_next(rule->find, text, n, any, &whole, &group) && (rule->last || !any); any = 1)
        found = group;
    while (found.from < found.to && isspace((unsigned char)text[found.from]))
        found.from++;
    while (found.from < found.to && isspace((unsigned char)text[found.to - 1]))
        found.to--;
    buf_clear(out);
    buf_put(out, any ? text + found.from : "[invalid]", any ? found.to - found.from : 9);
}

static void edit(const struct rule *rule, struct buf *text)
{
    for (int i = 0; i < RULE_EDITS && rule->edit[i]; i++)
        regex_replace(rule->edit[i], "", text);
    for (size_t i = 0; rule->lower && i < text->len; i++)
        text->data[i] = (char)tolower((unsigned char)text->data[i]);
}

int rule_extract(struct rule *rule, const char *answer, const char *response, const char **why,
                 struct err *e)
{
    (void)why;
    (void)e;
    buf_clear(&rule->one);
    buf_text(&rule->one, answer);
    find(rule, response, &rule->two);
    edit(rule, &rule->one);
    edit(rule, &rule->two);
    return rule->one.len == rule->two.len && !memcmp(rule->one.data ? rule->one.data : "",
                                                     rule->two.data ? rule->two.data : "",
                                                     rule->one.len);
}
