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

static struct jinja_value absent_from(struct jinja_run *run, struct jinja_value value,
                                      const struct jinja_string *name)
{
    static const struct jinja_string item = {.bytes = "such item", .n = 9};
    const struct jinja_string *shown = name ? name : &item;
    if (value.kind == JINJA_UNDEFINED && value.as.string)
        jinja_fail(run->w, "%.*s is undefined and has no %.*s", JINJA_SHOWN(value.as.string),
                   JINJA_SHOWN(shown));
    else if (value.kind == JINJA_UNDEFINED)
        jinja_fail(run->w, "an undefined value has no %.*s", JINJA_SHOWN(shown));
    else if (jinja_is_method(value, name))
        jinja_fail(run->w, "the method %.*s without a call: not supported", JINJA_SHOWN(name));
    return jinja_undefined(name);
}

struct jinja_value jinja_attribute(struct jinja_run *run, struct jinja_value value,
                                   const struct jinja_string *name)
{
    const struct jinja_value *found = NULL;
    if (value.kind == JINJA_LOOP)
        return loop_attribute(value.as.loop, name);
    if (value.kind == JINJA_NAMESPACE ||
        (value.kind == JINJA_DICT && !jinja_is_method(value, name)))
        found = jinja_member(run->w, value, name);
    return found ? *found : absent_from(run, value, name);
}

/* Index of the first byte of character number `at`; string->n if there are not more characters. */
static size_t byte_of(struct jinja_run *run, const struct jinja_string *string, size_t at)
{
    size_t i = 0, len;
    for (; at > 0 && i < string->n; at--, i += len)
        utf8_read(string->bytes + i, &len);
    jinja_spend(run->w, i / 64);
    return i;
}

static struct jinja_value member_at(struct jinja_run *run, struct jinja_value value, int64_t at)
{
    int64_t n = (int64_t)jinja_length(run->w, value);
    at += at < 0 ? n : 0;
    if (at < 0 || at >= n)
        return jinja_undefined(NULL);
    if (jinja_is_list(value))
        return value.as.list->v[at];
    size_t begin = byte_of(run, value.as.string, (size_t)at), len;
    utf8_read(value.as.string->bytes + begin, &len);
    return jinja_string(jinja_part(run->w, value.as.string, begin, begin + len));
}

struct jinja_value jinja_item(struct jinja_run *run, struct jinja_value value,
                              struct jinja_value key)
{
    if ((jinja_is_list(value) || value.kind == JINJA_STRING) && jinja_is_number(key))
        return member_at(run, value, key.as.number);
    if (value.kind == JINJA_DICT) {
        const struct jinja_value *found = jinja_get(run->w, value, key);
        if (found)
            return *found;
    }
    if (key.kind == JINJA_STRING && value.kind != JINJA_DICT)
        return jinja_attribute(run, value, key.as.string);
    return absent_from(run, value, key.kind == JINJA_STRING ? key.as.string : NULL);
}

/* A bound of a slice, limited to low..high. A negative bound counts from the end, n. absent: the
 * bound if none is given. */
static int64_t bound(struct jinja_run *run, struct jinja_value value, int64_t n, int64_t absent,
                     int64_t low, int64_t high)
{
    if (value.kind == JINJA_ABSENT || value.kind == JINJA_NONE)
        return absent;
    if (!jinja_is_number(value))
        jinja_fail(run->w, "%s in a slice", jinja_kind_name(value.kind));
    int64_t at = jinja_is_number(value) ? value.as.number : 0;
    at += at < 0 ? n : 0;
    return at < low ? low : at > high ? high : at;
}

struct jinja_value jinja_slice(struct jinja_run *run, struct jinja_value value,
                               const struct jinja_value given[3])
{
    if (!jinja_is_list(value) && value.kind != JINJA_STRING) {
        jinja_fail(run->w, "a slice of %s", jinja_kind_name(value.kind));
        return jinja_undefined(NULL);
    }
    int64_t n = (int64_t)jinja_length(run->w, value),
            step = bound(run, given[2], 0, 1, -n - 1, n + 1);
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    int64_t begin = bound(run, given[0], n, step < 0 ? high : low, low, high);
    int64_t end = bound(run, given[1], n, step < 0 ? low : high, low, high);
    if (step == 0)
        jinja_fail(run->w, "a slice with the step 0");
    if (value.kind == JINJA_STRING && step == 1) {
        size_t from = byte_of(run, value.as.string, (size_t)begin);
        size_t to = byte_of(run, value.as.string, (size_t)end);
        return jinja_string(jinja_part(run->w, value.as.string, from, to > from ? to : from));
    }
    struct jinja_value all = jinja_members(run->w, value), list = jinja_list(run->w, JINJA_LIST);
    for (int64_t i = begin; !run->w->failed && (step < 0 ? i > end : i < end); i += step)
        jinja_push(run->w, list, all.as.list->v[i]);
    if (value.kind == JINJA_TUPLE)
        list.kind = JINJA_TUPLE;
    if (value.kind != JINJA_STRING)
        return list;
    struct jinja_text text = {.w = run->w, .safe = value.as.string->safe};
    for (size_t i = 0; i < list.as.list->n; i++)
        jinja_put(&text, list.as.list->v[i].as.string);
    return jinja_text_value(&text);
}
