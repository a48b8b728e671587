/* extract.c - an answer found by a pattern, in the steps of lm-eval: the first or last match,
 * without white space around it ("[invalid]" where there is none); then the patterns of `ignore`
 * are deleted from it and from the answer, letters become small, and both must be equal. */
#include <ctype.h>
#include <string.h>

#include "lib/analysis/rule/parts.h"
#include "lib/record/rec.h"

int rule_extract_open(struct rule *r, const json_t *rule, const json_t *find, struct err *e)
{
    const char *pattern = find ? rec_text(find, "regex") : NULL;
    size_t i;
    const json_t *v;
    if (!pattern)
        return err_set(e, EXIT_BAD_DATA, "task %s: rule.find: expected a regex",
                       rec_text(r->row, "name"));
    if (json_array_size(json_object_get(rule, "ignore")) > RULE_EDITS)
        return err_set(e, EXIT_BAD_DATA, "task %s: rule.ignore: expected at most %d patterns",
                       rec_text(r->row, "name"), RULE_EDITS);
    r->last = rec_is(find, "take", "last");
    r->lower = json_is_true(json_object_get(rule, "lower"));
    r->find = regex_new(pattern, e);
    json_array_foreach(json_object_get(rule, "ignore"), i, v)
        if (r->find && !(r->edit[i] = regex_new(json_string_value(v), e)))
            return -1;
    return r->find ? 0 : -1;
}

static void find(const struct rule *r, const char *s, struct buf *out)
{
    struct regex_span whole = {0, 0}, group, found = {0, 0};
    size_t n = strlen(s);
    int any = 0;
    for (; regex_next(r->find, s, n, any, &whole, &group) && (r->last || !any); any = 1)
        found = group;
    while (found.from < found.to && isspace((unsigned char)s[found.from]))
        found.from++;
    while (found.from < found.to && isspace((unsigned char)s[found.to - 1]))
        found.to--;
    buf_clear(out);
    buf_put(out, any ? s + found.from : "[invalid]", any ? found.to - found.from : 9);
}

static void edit(const struct rule *r, struct buf *text)
{
    for (int i = 0; i < RULE_EDITS && r->edit[i]; i++)
        regex_replace(r->edit[i], "", text);
    for (size_t i = 0; r->lower && i < text->len; i++)
        text->data[i] = (char)tolower((unsigned char)text->data[i]);
}

int rule_extract(struct rule *r, const char *answer, const char *response, const char **why,
                 struct err *e)
{
    (void)why;
    (void)e;
    buf_clear(&r->one);
    buf_text(&r->one, answer);
    find(r, response, &r->two);
    edit(r, &r->one);
    edit(r, &r->two);
    return r->one.len == r->two.len && !memcmp(r->one.data ? r->one.data : "",
                                               r->two.data ? r->two.data : "", r->one.len);
}
