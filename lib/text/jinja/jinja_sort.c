/* jinja_sort.c - the filters that order members: sort, dictsort, min, max; see jinja_run.h.
 *
 * As in Jinja, upper and lower case compare equal unless case_sensitive is set, members that
 * compare equal keep their order, and members of two kinds are refused. Each comparison is a step,
 * so sorting a very long list fails at the limit of steps. */
#include "lib/text/jinja/jinja_run.h"

#include <string.h>

typedef struct jinja_value value;
struct keyed {
    value key, item;
};

/* The key by which subject is sorted: subject itself, or its member at the path `attribute`. A
 * string is turned into lower case unless `cases`. */
static value key_of(struct jinja_run *run, value subject, value attribute, int cases)
{
    if (attribute.kind != JINJA_ABSENT && attribute.kind != JINJA_NONE) {
        if (attribute.kind == JINJA_STRING &&
            memchr(attribute.as.string->bytes, ',', attribute.as.string->n))
            jinja_fail(run->w, "an order by several attributes: not supported");
        subject = jinja_follow(run, subject, attribute);
    }
    return subject.kind == JINJA_STRING && !cases
               ? jinja_change_case(run, subject.as.string, JINJA_LOWER)
               : subject;
}

static struct keyed *keyed_members(struct jinja_run *run, const struct jinja_list *list,
                                   value attribute, int cases)
{
    struct keyed *all = jinja_alloc(run->w, list->n * sizeof *all);
    for (size_t i = 0; i < list->n && !run->w->failed; i++)
        all[i] = (struct keyed){key_of(run, list->v[i], attribute, cases), list->v[i]};
    return all;
}

/* < 0, 0 or > 0: a is less, equal or greater. in_lists 1: Python compares the keys of sort as
 * members of lists, so equal keys compare as 0 even if their kind has no order. */
static int order_of(struct jinja_run *run, value a, value b, int in_lists)
{
    jinja_spend(run->w, 1);
    return in_lists && jinja_equal(run->w, a, b) ? 0 : jinja_order(run->w, a, b);
}

static value sorted(struct jinja_run *run, struct keyed *all, size_t n, int reverse, int in_lists)
{
    value list = jinja_list(run->w, JINJA_LIST);
    for (size_t i = 1; i < n && !run->w->failed; i++) {
        struct keyed one = all[i];
        size_t at = i;
        for (; at > 0 && !run->w->failed; at--) {
            int order = order_of(run, one.key, all[at - 1].key, in_lists);
            if (reverse ? order <= 0 : order >= 0)
                break;
            all[at] = all[at - 1];
        }
        all[at] = one;
    }
    for (size_t i = 0; i < n && !run->w->failed; i++)
        jinja_push(run->w, list, all[i].item);
    return list;
}

value jinja_sort(struct jinja_run *run, const struct jinja_asked *asked)
{
    const struct jinja_list *list = jinja_members(run->w, asked->x).as.list;
    struct keyed *all = keyed_members(run, list, asked->a[2], jinja_true(asked->a[1]));
    return sorted(run, all, list->n, jinja_true(asked->a[0]), 1);
}

value jinja_sort_dict(struct jinja_run *run, const struct jinja_asked *asked)
{
    static const struct jinja_string key = {.bytes = "key", .n = 3},
                                     member = {.bytes = "value", .n = 5};
    value by = asked->a[1].kind == JINJA_ABSENT ? jinja_string(&key) : asked->a[1];
    int values = by.kind == JINJA_STRING && jinja_same(by.as.string, &member);
    if (asked->x.kind != JINJA_DICT)
        jinja_fail(run->w, "dictsort of %s", jinja_kind_name(asked->x.kind));
    if (!values && (by.kind != JINJA_STRING || !jinja_same(by.as.string, &key)))
        jinja_fail(run->w, "dictsort by something else than key or value");
    if (run->w->failed)
        return asked->x;
    struct keyed *all = keyed_members(run, jinja_items(run, asked->x).as.list, jinja_number(values),
                                      jinja_true(asked->a[0]));
    return sorted(run, all, asked->x.as.dict->n, jinja_true(asked->a[2]), 0);
}

value jinja_extreme(struct jinja_run *run, const struct jinja_asked *asked)
{
    const struct jinja_list *list = jinja_members(run->w, asked->x).as.list;
    struct keyed *all = keyed_members(run, list, asked->a[1], jinja_true(asked->a[0]));
    size_t best = 0;
    for (size_t i = 1; i < list->n && !run->w->failed; i++)
        if (order_of(run, all[i].key, all[best].key, 0) * (asked->how ? -1 : 1) < 0)
            best = i;
    return list->n ? all[best].item : jinja_undefined(NULL);
}
