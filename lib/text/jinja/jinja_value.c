/* jinja_value.c - values of a template; see jinja_value.h.
 *
 * A list, tuple or mapping knows how deep its members are nested, and the depth is limited where
 * one is made. So the functions that visit members may call themselves. */
#include "lib/text/jinja/jinja_value.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "lib/text/utf8.h"

struct jinja_value jinja_undefined(const struct jinja_string *name)
{
    return (struct jinja_value){JINJA_UNDEFINED, {.string = name}};
}

struct jinja_value jinja_none(void)
{
    return (struct jinja_value){JINJA_NONE, {0}};
}

struct jinja_value jinja_bool(int yes)
{
    return (struct jinja_value){JINJA_BOOL, {.number = yes != 0}};
}

struct jinja_value jinja_number(int64_t n)
{
    return (struct jinja_value){JINJA_NUMBER, {.number = n}};
}

struct jinja_value jinja_string(const struct jinja_string *s)
{
    return (struct jinja_value){JINJA_STRING, {.string = s}};
}

struct jinja_value jinja_text_value(struct jinja_text *t)
{
    return jinja_string(jinja_taken(t));
}

struct jinja_value jinja_plain_value(struct jinja_text *t)
{
    t->safe = 0;
    return jinja_text_value(t);
}

struct jinja_value jinja_list(struct jinja_work *w, enum jinja_kind kind)
{
    struct jinja_list *list = jinja_alloc(w, sizeof *list);
    list->depth = 1;
    return (struct jinja_value){kind, {.list = list}};
}

struct jinja_value jinja_dict(struct jinja_work *w, enum jinja_kind kind)
{
    struct jinja_dict *dict = jinja_alloc(w, sizeof *dict);
    dict->depth = 1;
    return (struct jinja_value){kind, {.dict = dict}};
}

int jinja_is_list(struct jinja_value x)
{
    return x.kind == JINJA_LIST || x.kind == JINJA_TUPLE;
}

int jinja_is_number(struct jinja_value x)
{
    return x.kind == JINJA_NUMBER || x.kind == JINJA_BOOL;
}

/* The depth of a value around this member. */
static int depth_around(struct jinja_work *w, struct jinja_value member, int depth)
{
    int inner = jinja_is_list(member) ? member.as.list->depth
                : member.kind == JINJA_DICT ? member.as.dict->depth : 0;
    if (inner >= JINJA_DEPTH)
        jinja_fail(w, "values are nested too deep");
    return inner + 1 > depth ? inner + 1 : depth;
}

/* v with room for one more of `size` bytes after n; twice the room when it is full. */
static void *room(struct jinja_work *w, void *v, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return v;
    size_t more = *cap ? 2 * *cap : 4;
    void *to = jinja_alloc(w, more * size);
    if (n)
        memcpy(to, v, n * size);
    *cap = more;
    return to;
}

void jinja_push(struct jinja_work *w, struct jinja_value list, struct jinja_value member)
{
    struct jinja_list *to = list.as.list;
    to->depth = depth_around(w, member, to->depth);
    if (w->failed)
        return;
    to->v = room(w, to->v, to->n, &to->cap, sizeof *to->v);
    to->v[to->n++] = member;
}

static struct jinja_pair *pair_of(struct jinja_work *w, struct jinja_value dict,
                                  struct jinja_value key)
{
    jinja_spend(w, dict.as.dict->n / 4);
    for (size_t i = 0; i < dict.as.dict->n; i++)
        if (jinja_equal(w, dict.as.dict->v[i].key, key))
            return &dict.as.dict->v[i];
    return NULL;
}

void jinja_set(struct jinja_work *w, struct jinja_value dict, struct jinja_value key,
               struct jinja_value value)
{
    struct jinja_dict *to = dict.as.dict;
    if (key.kind != JINJA_STRING && key.kind != JINJA_NONE && !jinja_is_number(key))
        jinja_fail(w, "%s as a key", jinja_kind_name(key.kind));
    if (dict.kind == JINJA_DICT) /* a namespace may hold itself; nothing visits its members */
        to->depth = depth_around(w, value, to->depth);
    struct jinja_pair *known = pair_of(w, dict, key);
    if (w->failed)
        return;
    if (!known) {
        to->v = room(w, to->v, to->n, &to->cap, sizeof *to->v);
        known = &to->v[to->n++];
        known->key = key;
    }
    known->value = value;
}

const struct jinja_value *jinja_get(struct jinja_work *w, struct jinja_value dict,
                                    struct jinja_value key)
{
    const struct jinja_pair *found = pair_of(w, dict, key);
    return found ? &found->value : NULL;
}

const struct jinja_value *jinja_member(struct jinja_work *w, struct jinja_value dict,
                                       const struct jinja_string *key)
{
    return jinja_get(w, dict, jinja_string(key));
}

static struct jinja_value json_string_in(struct jinja_work *w, const char *bytes, size_t n,
                                         int given)
{
    struct jinja_text text = {.w = w};
    jinja_put_own(&text, bytes, n, given);
    return jinja_text_value(&text);
}

/* 1: the member is a role of letters, digits, - and _. */
static int is_plain_role(const char *key, const json_t *member)
{
    const char *role = json_string_value(member);
    return role && !strcmp(key, "role") &&
           strspn(role, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
               json_string_length(member);
}

struct jinja_value jinja_json(struct jinja_work *w, const json_t *j, int given, int depth)
{
    struct jinja_value all = jinja_none();
    const char *key;
    const json_t *member;
    size_t i;
    if (depth > JINJA_DEPTH)
        jinja_fail(w, "variables are nested too deep");
    else if (json_is_string(j))
        return json_string_in(w, json_string_value(j), json_string_length(j), given);
    else if (json_is_boolean(j))
        return jinja_bool(json_is_true(j));
    else if (json_is_integer(j))
        return jinja_number(json_integer_value(j));
    else if (json_is_real(j))
        jinja_fail(w, "a variable is a number with a point: not supported");
    if (w->failed || (!json_is_array(j) && !json_is_object(j)))
        return all;
    all = json_is_array(j) ? jinja_list(w, JINJA_LIST) : jinja_dict(w, JINJA_DICT);
    json_array_foreach(j, i, member)
        jinja_push(w, all, jinja_json(w, member, given, depth + 1));
    json_object_foreach((json_t *)(uintptr_t)j, key, member)
        jinja_set(w, all, json_string_in(w, key, strlen(key), 0),
                  jinja_json(w, member, given && !is_plain_role(key, member), depth + 1));
    return all;
}

void jinja_spend_on(struct jinja_work *w, struct jinja_value x)
{
    size_t n = x.kind == JINJA_STRING ? x.as.string->n
               : jinja_is_list(x) || x.kind == JINJA_GENERATOR ? x.as.list->n
               : x.kind == JINJA_DICT ? x.as.dict->n : 0;
    jinja_spend(w, n / 64);
}

const char *jinja_kind_name(enum jinja_kind kind)
{
    static const char *const names[] = {
        "nothing", "an undefined value", "none", "a boolean", "a number", "a string", "a list",
        "a tuple", "a mapping", "a namespace", "a macro", "the loop",
        "a generator"};
    return names[kind];
}

int jinja_true(struct jinja_value x)
{
    switch (x.kind) {
    case JINJA_ABSENT:
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        return 0;
    case JINJA_BOOL:
    case JINJA_NUMBER:
        return x.as.number != 0;
    case JINJA_STRING:
        return x.as.string->n > 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
        return x.as.list->n > 0;
    case JINJA_DICT:
        return x.as.dict->n > 0;
    case JINJA_NAMESPACE:
    case JINJA_MACRO:
    case JINJA_LOOP:
    case JINJA_GENERATOR:
        break;
    }
    return 1;
}

static int equal_dicts(struct jinja_work *w, struct jinja_value a, struct jinja_value b)
{
    const struct jinja_dict *one = a.as.dict;
    int same = one->n == b.as.dict->n;
    for (size_t i = 0; same && i < one->n && !w->failed; i++) {
        const struct jinja_value *other = jinja_get(w, b, one->v[i].key);
        same = other && jinja_equal(w, one->v[i].value, *other);
    }
    return same;
}

int jinja_equal(struct jinja_work *w, struct jinja_value a, struct jinja_value b)
{
    if (jinja_is_number(a) && jinja_is_number(b))
        return a.as.number == b.as.number;
    if (a.kind != b.kind)
        return 0;
    jinja_spend_on(w, a);
    if (a.kind == JINJA_STRING)
        return jinja_same(a.as.string, b.as.string);
    jinja_spend(w, 1);
    if (a.kind == JINJA_DICT)
        return equal_dicts(w, a, b);
    if (!jinja_is_list(a))
        return a.kind <= JINJA_NONE || a.as.dict == b.as.dict;
    int same = a.as.list->n == b.as.list->n;
    for (size_t i = 0; same && i < a.as.list->n && !w->failed; i++)
        same = jinja_equal(w, a.as.list->v[i], b.as.list->v[i]);
    return same;
}

int jinja_order(struct jinja_work *w, struct jinja_value a, struct jinja_value b)
{
    if (jinja_is_number(a) && jinja_is_number(b))
        return (a.as.number > b.as.number) - (a.as.number < b.as.number);
    if (a.kind != JINJA_STRING || b.kind != JINJA_STRING) {
        jinja_fail(w, "%s is not ordered against %s", jinja_kind_name(a.kind),
                   jinja_kind_name(b.kind));
        return 0;
    }
    const struct jinja_string *x = a.as.string, *y = b.as.string;
    jinja_spend_on(w, a);
    int order = memcmp(x->bytes, y->bytes, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

size_t jinja_find(struct jinja_work *w, const struct jinja_string *s,
                  const struct jinja_string *part, size_t from)
{
    const char *at = from > s->n || part->n > s->n - from ? NULL
                     : part->n == 0 ? s->bytes + from
                     : memmem(s->bytes + from, s->n - from, part->bytes, part->n);
    size_t place = at ? (size_t)(at - s->bytes) : s->n + 1;
    jinja_spend(w, (part->n + (place > from ? place - from : 0)) / 64);
    return place;
}

int jinja_contains(struct jinja_work *w, struct jinja_value all, struct jinja_value one)
{
    if (all.kind == JINJA_GENERATOR)
        all = jinja_members(w, all);
    if (all.kind == JINJA_DICT)
        return jinja_get(w, all, one) != NULL;
    if (all.kind == JINJA_STRING && one.kind == JINJA_STRING)
        return jinja_find(w, all.as.string, one.as.string, 0) <= all.as.string->n;
    if (!jinja_is_list(all)) {
        if (all.kind != JINJA_UNDEFINED)
            jinja_fail(w, "%s is not searched in %s", jinja_kind_name(one.kind),
                       jinja_kind_name(all.kind));
        return 0;
    }
    jinja_spend(w, all.as.list->n / 4);
    for (size_t i = 0; i < all.as.list->n; i++)
        if (jinja_equal(w, all.as.list->v[i], one))
            return 1;
    return 0;
}

size_t jinja_characters(const struct jinja_string *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += ((unsigned char)s->bytes[i] & 0xC0) != 0x80;
    return n;
}

size_t jinja_length(struct jinja_work *w, struct jinja_value x)
{
    if (x.kind == JINJA_STRING) {
        jinja_spend_on(w, x);
        return jinja_characters(x.as.string);
    }
    if (jinja_is_list(x))
        return x.as.list->n;
    if (x.kind == JINJA_DICT)
        return x.as.dict->n;
    if (x.kind != JINJA_UNDEFINED)
        jinja_fail(w, "%s has no length", jinja_kind_name(x.kind));
    return 0;
}

struct jinja_value jinja_members(struct jinja_work *w, struct jinja_value x)
{
    struct jinja_value list = jinja_list(w, JINJA_LIST);
    if (jinja_is_list(x))
        return (struct jinja_value){JINJA_LIST, {.list = x.as.list}};
    if (x.kind == JINJA_GENERATOR) {
        *list.as.list = *x.as.list;
        x.as.list->n = 0;
    } else if (x.kind == JINJA_DICT) {
        for (size_t i = 0; i < x.as.dict->n; i++)
            jinja_push(w, list, x.as.dict->v[i].key);
    } else if (x.kind == JINJA_STRING) {
        for (size_t i = 0, len; i < x.as.string->n && !w->failed; i += len) {
            struct jinja_string plain = *x.as.string;
            plain.safe = 0;
            utf8_read(plain.bytes + i, &len);
            jinja_push(w, list, jinja_string(jinja_part(w, &plain, i, i + len)));
        }
    } else if (x.kind != JINJA_UNDEFINED) {
        jinja_fail(w, "%s has no members", jinja_kind_name(x.kind));
    }
    return list;
}

/* ---- as text ---- */

/* 1: Python's repr shows the character itself. */
static int is_printable(uint32_t code)
{
    utf8proc_category_t kind = utf8proc_category((utf8proc_int32_t)code);
    return code == ' ' || (kind != UTF8PROC_CATEGORY_CN && kind < UTF8PROC_CATEGORY_ZS);
}

static void put_escaped(struct jinja_text *t, const struct jinja_string *s, size_t at, size_t len,
                        char quote)
{
    uint32_t code = utf8_read(s->bytes + at, &(size_t){0});
    const char *short_form = code == '\n' ? "\\n" : code == '\r' ? "\\r" : code == '\t' ? "\\t"
                             : code == '\\' ? "\\\\" : (char)code == quote && code < 128 ? "\\'"
                             : NULL;
    char form[16];
    if (!short_form && is_printable(code)) {
        jinja_put_part(t, s, at, at + len);
        return;
    }
    if (!short_form)
        snprintf(form, sizeof form, code < 256 ? "\\x%02x" : code < 65536 ? "\\u%04x" : "\\U%08x",
                 (unsigned)code);
    jinja_put_own(t, short_form ? short_form : form, strlen(short_form ? short_form : form),
                  s->given ? s->given[at] : 0);
}

static void put_quoted(struct jinja_text *t, const struct jinja_string *s)
{
    int has_single = memchr(s->bytes, '\'', s->n) != NULL;
    char quote = has_single && !memchr(s->bytes, '"', s->n) ? '"' : '\'';
    jinja_put_own(t, &quote, 1, 0);
    for (size_t i = 0, len; i < s->n; i += len) {
        utf8_read(s->bytes + i, &len);
        put_escaped(t, s, i, len, quote == '"' ? 0 : quote);
    }
    jinja_put_own(t, &quote, 1, 0);
}

static void put_shown(struct jinja_text *t, struct jinja_value x)
{
    if (x.kind == JINJA_STRING)
        put_quoted(t, x.as.string);
    else if (x.kind == JINJA_UNDEFINED)
        jinja_put_word(t, "Undefined");
    else
        jinja_put_value(t, x);
}

static void put_list(struct jinja_text *t, const struct jinja_list *list, int tuple)
{
    jinja_put_word(t, tuple ? "(" : "[");
    for (size_t i = 0; i < list->n && !t->w->failed; i++) {
        jinja_put_word(t, i ? ", " : "");
        put_shown(t, list->v[i]);
    }
    jinja_put_word(t, !tuple ? "]" : list->n == 1 ? ",)" : ")");
}

static void put_dict(struct jinja_text *t, const struct jinja_dict *dict)
{
    jinja_put_word(t, "{");
    for (size_t i = 0; i < dict->n && !t->w->failed; i++) {
        jinja_put_word(t, i ? ", " : "");
        put_shown(t, dict->v[i].key);
        jinja_put_word(t, ": ");
        put_shown(t, dict->v[i].value);
    }
    jinja_put_word(t, "}");
}

void jinja_put_value(struct jinja_text *t, struct jinja_value x)
{
    char digits[32];
    if (x.kind == JINJA_STRING) {
        jinja_put(t, x.as.string);
    } else if (x.kind == JINJA_NONE || x.kind == JINJA_BOOL) {
        jinja_put_word(t, x.kind == JINJA_NONE ? "None" : x.as.number ? "True" : "False");
    } else if (x.kind == JINJA_NUMBER) {
        snprintf(digits, sizeof digits, "%lld", (long long)x.as.number);
        jinja_put_word(t, digits);
    } else if (jinja_is_list(x)) {
        put_list(t, x.as.list, x.kind == JINJA_TUPLE);
    } else if (x.kind == JINJA_DICT) {
        put_dict(t, x.as.dict);
    } else if (x.kind != JINJA_UNDEFINED) {
        jinja_fail(t->w, "%s is not written", jinja_kind_name(x.kind));
    }
}

const struct jinja_string *jinja_words(struct jinja_work *w, struct jinja_value x)
{
    struct jinja_text text = {.w = w};
    if (x.kind == JINJA_STRING)
        return x.as.string;
    jinja_put_value(&text, x);
    return jinja_taken(&text);
}
