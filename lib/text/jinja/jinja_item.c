/* jinja_item.c - attributes, items and slices of values; see jinja_run.h.
 *
 * A string is cut between characters, as in Python, not between bytes. */
#include "lib/text/jinja/jinja_run.h"

#include "lib/text/utf8.h"

static struct jinja_value loop_attribute(const struct jinja_loop *loop,
                                         const struct jinja_string *name)
{
    int64_t at = (int64_t)loop->at, n = (int64_t)loop->items->n;
    static const char *const numbers[] = {"index", "index0", "revindex", "revindex0", "length",
                                          "depth", "depth0"};
    const int64_t values[] = {at + 1, at, n - at, n - at - 1, n, 1, 0};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (jinja_is(name, numbers[i]))
            return jinja_number(values[i]);
    if (jinja_is(name, "first"))
        return jinja_bool(at == 0);
    if (jinja_is(name, "last"))
        return jinja_bool(at + 1 == n);
    if (jinja_is(name, "previtem") && at > 0)
        return loop->items->v[at - 1];
    if (jinja_is(name, "nextitem") && at + 1 < n)
        return loop->items->v[at + 1];
    return jinja_undefined(name);
}

static struct jinja_value absent_from(struct jinja_run *r, struct jinja_value x,
                                      const struct jinja_string *name)
{
    static const struct jinja_string item = {.bytes = "such item", .n = 9};
    const struct jinja_string *shown = name ? name : &item;
    if (x.kind == JINJA_UNDEFINED && x.as.string)
        jinja_fail(r->w, "%.*s is undefined and has no %.*s", JINJA_SHOWN(x.as.string),
                   JINJA_SHOWN(shown));
    else if (x.kind == JINJA_UNDEFINED)
        jinja_fail(r->w, "an undefined value has no %.*s", JINJA_SHOWN(shown));
    else if (jinja_is_method(x, name))
        jinja_fail(r->w, "the method %.*s without a call: not supported", JINJA_SHOWN(name));
    return jinja_undefined(name);
}

struct jinja_value jinja_attribute(struct jinja_run *r, struct jinja_value x,
                                   const struct jinja_string *name)
{
    const struct jinja_value *found = NULL;
    if (x.kind == JINJA_LOOP)
        return loop_attribute(x.as.loop, name);
    if (x.kind == JINJA_NAMESPACE || (x.kind == JINJA_DICT && !jinja_is_method(x, name)))
        found = jinja_member(r->w, x, name);
    return found ? *found : absent_from(r, x, name);
}

/* Byte of the character `at`; at the end: s->n. */
static size_t byte_of(struct jinja_run *r, const struct jinja_string *s, size_t at)
{
    size_t i = 0, len;
    for (; at > 0 && i < s->n; at--, i += len)
        utf8_read(s->bytes + i, &len);
    jinja_spend(r->w, i / 64);
    return i;
}

static struct jinja_value member_at(struct jinja_run *r, struct jinja_value x, int64_t at)
{
    int64_t n = (int64_t)jinja_length(r->w, x);
    at += at < 0 ? n : 0;
    if (at < 0 || at >= n)
        return jinja_undefined(NULL);
    if (jinja_is_list(x))
        return x.as.list->v[at];
    size_t begin = byte_of(r, x.as.string, (size_t)at), len;
    utf8_read(x.as.string->bytes + begin, &len);
    return jinja_string(jinja_part(r->w, x.as.string, begin, begin + len));
}

struct jinja_value jinja_item(struct jinja_run *r, struct jinja_value x, struct jinja_value key)
{
    if ((jinja_is_list(x) || x.kind == JINJA_STRING) && jinja_is_number(key))
        return member_at(r, x, key.as.number);
    if (x.kind == JINJA_DICT) {
        const struct jinja_value *found = jinja_get(r->w, x, key);
        if (found)
            return *found;
    }
    if (key.kind == JINJA_STRING && x.kind != JINJA_DICT)
        return jinja_attribute(r, x, key.as.string);
    return absent_from(r, x, key.kind == JINJA_STRING ? key.as.string : NULL);
}

/* A bound of a slice, within low..high; negative ones count from the end n. */
static int64_t bound(struct jinja_run *r, struct jinja_value x, int64_t n, int64_t absent,
                     int64_t low, int64_t high)
{
    if (x.kind == JINJA_ABSENT || x.kind == JINJA_NONE)
        return absent;
    if (!jinja_is_number(x))
        jinja_fail(r->w, "%s in a slice", jinja_kind_name(x.kind));
    int64_t at = jinja_is_number(x) ? x.as.number : 0;
    at += at < 0 ? n : 0;
    return at < low ? low : at > high ? high : at;
}

struct jinja_value jinja_slice(struct jinja_run *r, struct jinja_value x,
                               const struct jinja_value given[3])
{
    if (!jinja_is_list(x) && x.kind != JINJA_STRING) {
        jinja_fail(r->w, "a slice of %s", jinja_kind_name(x.kind));
        return jinja_undefined(NULL);
    }
    int64_t n = (int64_t)jinja_length(r->w, x), step = bound(r, given[2], 0, 1, -n - 1, n + 1);
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    int64_t begin = bound(r, given[0], n, step < 0 ? high : low, low, high);
    int64_t end = bound(r, given[1], n, step < 0 ? low : high, low, high);
    if (step == 0)
        jinja_fail(r->w, "a slice with the step 0");
    if (x.kind == JINJA_STRING && step == 1) {
        size_t from = byte_of(r, x.as.string, (size_t)begin);
        size_t to = byte_of(r, x.as.string, (size_t)end);
        return jinja_string(jinja_part(r->w, x.as.string, from, to > from ? to : from));
    }
    struct jinja_value all = jinja_members(r->w, x), list = jinja_list(r->w, JINJA_LIST);
    for (int64_t i = begin; !r->w->failed && (step < 0 ? i > end : i < end); i += step)
        jinja_push(r->w, list, all.as.list->v[i]);
    if (x.kind == JINJA_TUPLE)
        list.kind = JINJA_TUPLE;
    if (x.kind != JINJA_STRING)
        return list;
    struct jinja_text text = {.w = r->w, .safe = x.as.string->safe};
    for (size_t i = 0; i < list.as.list->n; i++)
        jinja_put(&text, list.as.list->v[i].as.string);
    return jinja_text_value(&text);
}
