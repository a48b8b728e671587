/* jinja_value.c - values of a template; see jinja_value.h.
 *
 * A list, tuple or mapping stores how deep its members are nested. This depth is checked when a
 * member is added, so the functions that visit members may be recursive. */
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

struct jinja_value jinja_string(const struct jinja_string *string)
{
    return (struct jinja_value){JINJA_STRING, {.string = string}};
}

struct jinja_value jinja_text_value(struct jinja_text *text)
{
    return jinja_string(jinja_taken(text));
}

struct jinja_value jinja_plain_value(struct jinja_text *text)
{
    text->safe = 0;
    return jinja_text_value(text);
}

struct jinja_value jinja_list(struct jinja_work *work, enum jinja_kind kind)
{
    struct jinja_list *list = jinja_alloc(work, sizeof *list);
    list->depth = 1;
    return (struct jinja_value){kind, {.list = list}};
}

struct jinja_value jinja_dict(struct jinja_work *work, enum jinja_kind kind)
{
    struct jinja_dict *dict = jinja_alloc(work, sizeof *dict);
    dict->depth = 1;
    return (struct jinja_value){kind, {.dict = dict}};
}

int jinja_is_list(struct jinja_value value)
{
    return value.kind == JINJA_LIST || value.kind == JINJA_TUPLE;
}

int jinja_is_number(struct jinja_value value)
{
    return value.kind == JINJA_NUMBER || value.kind == JINJA_BOOL;
}

/* The new depth of a list or mapping of depth `depth` that gets this member. */
static int depth_around(struct jinja_work *work, struct jinja_value member, int depth)
{
    int inner = jinja_is_list(member) ? member.as.list->depth
                : member.kind == JINJA_DICT ? member.as.dict->depth : 0;
    if (inner >= JINJA_DEPTH)
        jinja_fail(work, "values are nested too deep");
    return inner + 1 > depth ? inner + 1 : depth;
}

/* Returns an array with room for n + 1 elements of `size` bytes: v, or, if v is full, a copy with
 * twice the room. */
static void *room(struct jinja_work *work, void *v, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return v;
    size_t more = *cap ? 2 * *cap : 4;
    void *to = jinja_alloc(work, more * size);
    if (n)
        memcpy(to, v, n * size);
    *cap = more;
    return to;
}

void jinja_push(struct jinja_work *work, struct jinja_value list, struct jinja_value member)
{
    struct jinja_list *to = list.as.list;
    to->depth = depth_around(work, member, to->depth);
    if (work->failed)
        return;
    to->v = room(work, to->v, to->n, &to->cap, sizeof *to->v);
    to->v[to->n++] = member;
}

static struct jinja_pair *pair_of(struct jinja_work *work, struct jinja_value dict,
                                  struct jinja_value key)
{
    jinja_spend(work, dict.as.dict->n / 4);
    for (size_t i = 0; i < dict.as.dict->n; i++)
        if (jinja_equal(work, dict.as.dict->v[i].key, key))
            return &dict.as.dict->v[i];
    return NULL;
}

void jinja_set(struct jinja_work *work, struct jinja_value dict, struct jinja_value key,
               struct jinja_value value)
{
    struct jinja_dict *to = dict.as.dict;
    if (key.kind != JINJA_STRING && key.kind != JINJA_NONE && !jinja_is_number(key))
        jinja_fail(work, "%s as a key", jinja_kind_name(key.kind));
    if (dict.kind == JINJA_DICT) /* a namespace may hold itself; nothing visits its members */
        to->depth = depth_around(work, value, to->depth);
    struct jinja_pair *known = pair_of(work, dict, key);
    if (work->failed)
        return;
    if (!known) {
        to->v = room(work, to->v, to->n, &to->cap, sizeof *to->v);
        known = &to->v[to->n++];
        known->key = key;
    }
    known->value = value;
}

const struct jinja_value *jinja_get(struct jinja_work *work, struct jinja_value dict,
                                    struct jinja_value key)
{
    const struct jinja_pair *found = pair_of(work, dict, key);
    return found ? &found->value : NULL;
}

const struct jinja_value *jinja_member(struct jinja_work *work, struct jinja_value dict,
                                       const struct jinja_string *key)
{
    return jinja_get(work, dict, jinja_string(key));
}

static struct jinja_value json_string_in(struct jinja_work *work, const char *bytes, size_t n,
                                         int given)
{
    struct jinja_text text = {.w = work};
    jinja_put_own(&text, bytes, n, given);
    return jinja_text_value(&text);
}

/* 1: the member is a role of only letters, digits, - and _. */
static int is_plain_role(const char *key, const json_t *member)
{
    const char *role = json_string_value(member);
    return role && !strcmp(key, "role") &&
           strspn(role, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
               json_string_length(member);
}

struct jinja_value jinja_json(struct jinja_work *work, const json_t *j, int given, int depth)
{
    struct jinja_value all = jinja_none();
    const char *key;
    const json_t *member;
    size_t i;
    if (depth > JINJA_DEPTH)
        jinja_fail(work, "variables are nested too deep");
    else if (json_is_string(j))
        return json_string_in(work, json_string_value(j), json_string_length(j), given);
    else if (json_is_boolean(j))
        return jinja_bool(json_is_true(j));
    else if (json_is_integer(j))
        return jinja_number(json_integer_value(j));
    else if (json_is_real(j))
        jinja_fail(work, "a variable is a number with a point: not supported");
    if (work->failed || (!json_is_array(j) && !json_is_object(j)))
        return all;
    all = json_is_array(j) ? jinja_list(work, JINJA_LIST) : jinja_dict(work, JINJA_DICT);
    json_array_foreach(j, i, member)
        jinja_push(work, all, jinja_json(work, member, given, depth + 1));
    json_object_foreach((json_t *)(uintptr_t)j, key, member)
        jinja_set(work, all, json_string_in(work, key, strlen(key), 0),
                  jinja_json(work, member, given && !is_plain_role(key, member), depth + 1));
    return all;
}

void jinja_spend_on(struct jinja_work *work, struct jinja_value value)
{
    size_t n = value.kind == JINJA_STRING ? value.as.string->n
               : jinja_is_list(value) || value.kind == JINJA_GENERATOR ? value.as.list->n
               : value.kind == JINJA_DICT ? value.as.dict->n : 0;
    jinja_spend(work, n / 64);
}

const char *jinja_kind_name(enum jinja_kind kind)
{
    static const char *const names[] = {
        "nothing", "an undefined value", "none", "a boolean", "a number", "a string", "a list",
        "a tuple", "a mapping", "a namespace", "a macro", "the loop",
        "a generator"};
    return names[kind];
}

int jinja_true(struct jinja_value value)
{
    switch (value.kind) {
    case JINJA_ABSENT:
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        return 0;
    case JINJA_BOOL:
    case JINJA_NUMBER:
        return value.as.number != 0;
    case JINJA_STRING:
        return value.as.string->n > 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
        return value.as.list->n > 0;
    case JINJA_DICT:
        return value.as.dict->n > 0;
    case JINJA_NAMESPACE:
    case JINJA_MACRO:
    case JINJA_LOOP:
    case JINJA_GENERATOR:
        break;
    }
    return 1;
}

static int equal_dicts(struct jinja_work *work, struct jinja_value left, struct jinja_value right)
{
    const struct jinja_dict *one = left.as.dict;
    int same = one->n == right.as.dict->n;
    for (size_t i = 0; same && i < one->n && !work->failed; i++) {
        const struct jinja_value *other = jinja_get(work, right, one->v[i].key);
        same = other && jinja_equal(work, one->v[i].value, *other);
    }
    return same;
}

int jinja_equal(struct jinja_work *work, struct jinja_value left, struct jinja_value right)
{
    if (jinja_is_number(left) && jinja_is_number(right))
        return left.as.number == right.as.number;
    if (left.kind != right.kind)
        return 0;
    jinja_spend_on(work, left);
    if (left.kind == JINJA_STRING)
        return jinja_same(left.as.string, right.as.string);
    jinja_spend(work, 1);
    if (left.kind == JINJA_DICT)
        return equal_dicts(work, left, right);
    if (!jinja_is_list(left))
        return left.kind <= JINJA_NONE || left.as.dict == right.as.dict;
    int same = left.as.list->n == right.as.list->n;
    for (size_t i = 0; same && i < left.as.list->n && !work->failed; i++)
        same = jinja_equal(work, left.as.list->v[i], right.as.list->v[i]);
    return same;
}

int jinja_order(struct jinja_work *work, struct jinja_value left, struct jinja_value right)
{
    if (jinja_is_number(left) && jinja_is_number(right))
        return (left.as.number > right.as.number) - (left.as.number < right.as.number);
    if (left.kind != JINJA_STRING || right.kind != JINJA_STRING) {
        jinja_fail(work, "%s is not ordered against %s", jinja_kind_name(left.kind),
                   jinja_kind_name(right.kind));
        return 0;
    }
    const struct jinja_string *x = left.as.string, *y = right.as.string;
    jinja_spend_on(work, left);
    int order = memcmp(x->bytes, y->bytes, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

size_t jinja_find(struct jinja_work *work, const struct jinja_string *string,
                  const struct jinja_string *part, size_t from)
{
    const char *at = from > string->n || part->n > string->n - from ? NULL
                     : part->n == 0 ? string->bytes + from
                     : memmem(string->bytes + from, string->n - from, part->bytes, part->n);
    size_t place = at ? (size_t)(at - string->bytes) : string->n + 1;
    jinja_spend(work, (part->n + (place > from ? place - from : 0)) / 64);
    return place;
}

int jinja_contains(struct jinja_work *work, struct jinja_value all, struct jinja_value one)
{
    if (all.kind == JINJA_GENERATOR)
        all = jinja_members(work, all);
    if (all.kind == JINJA_DICT)
        return jinja_get(work, all, one) != NULL;
    if (all.kind == JINJA_STRING && one.kind == JINJA_STRING)
        return jinja_find(work, all.as.string, one.as.string, 0) <= all.as.string->n;
    if (!jinja_is_list(all)) {
        if (all.kind != JINJA_UNDEFINED)
            jinja_fail(work, "%s is not searched in %s", jinja_kind_name(one.kind),
                       jinja_kind_name(all.kind));
        return 0;
    }
    jinja_spend(work, all.as.list->n / 4);
    for (size_t i = 0; i < all.as.list->n; i++)
        if (jinja_equal(work, all.as.list->v[i], one))
            return 1;
    return 0;
}

size_t jinja_characters(const struct jinja_string *string)
{
    size_t n = 0;
    for (size_t i = 0; i < string->n; i++)
        n += ((unsigned char)string->bytes[i] & 0xC0) != 0x80;
    return n;
}

size_t jinja_length(struct jinja_work *work, struct jinja_value value)
{
    if (value.kind == JINJA_STRING) {
        jinja_spend_on(work, value);
        return jinja_characters(value.as.string);
    }
    if (jinja_is_list(value))
        return value.as.list->n;
    if (value.kind == JINJA_DICT)
        return value.as.dict->n;
    if (value.kind != JINJA_UNDEFINED)
        jinja_fail(work, "%s has no length", jinja_kind_name(value.kind));
    return 0;
}

struct jinja_value jinja_members(struct jinja_work *work, struct jinja_value value)
{
    struct jinja_value list = jinja_list(work, JINJA_LIST);
    if (jinja_is_list(value))
        return (struct jinja_value){JINJA_LIST, {.list = value.as.list}};
    if (value.kind == JINJA_GENERATOR) {
        *list.as.list = *value.as.list;
        value.as.list->n = 0;
    } else if (value.kind == JINJA_DICT) {
        for (size_t i = 0; i < value.as.dict->n; i++)
            jinja_push(work, list, value.as.dict->v[i].key);
    } else if (value.kind == JINJA_STRING) {
        for (size_t i = 0, len; i < value.as.string->n && !work->failed; i += len) {
            struct jinja_string plain = *value.as.string;
            plain.safe = 0;
            utf8_read(plain.bytes + i, &len);
            jinja_push(work, list, jinja_string(jinja_part(work, &plain, i, i + len)));
        }
    } else if (value.kind != JINJA_UNDEFINED) {
        jinja_fail(work, "%s has no members", jinja_kind_name(value.kind));
    }
    return list;
}

/* ---- str() and repr() ---- */

/* 1: Python's repr() shows the character itself. */
static int is_printable(uint32_t code)
{
    utf8proc_category_t kind = utf8proc_category((utf8proc_int32_t)code);
    return code == ' ' || (kind != UTF8PROC_CATEGORY_CN && kind < UTF8PROC_CATEGORY_ZS);
}

static void put_escaped(struct jinja_text *text, const struct jinja_string *string, size_t at,
                        size_t len, char quote)
{
    uint32_t code = utf8_read(string->bytes + at, &(size_t){0});
    const char *short_form = code == '\n' ? "\\n" : code == '\r' ? "\\r" : code == '\t' ? "\\t"
                             : code == '\\' ? "\\\\" : (char)code == quote && code < 128 ? "\\'"
                             : NULL;
    char form[16];
    if (!short_form && is_printable(code)) {
        jinja_put_part(text, string, at, at + len);
        return;
    }
    if (!short_form)
        snprintf(form, sizeof form, code < 256 ? "\\x%02x" : code < 65536 ? "\\u%04x" : "\\U%08x",
                 (unsigned)code);
    jinja_put_own(text, short_form ? short_form : form, strlen(short_form ? short_form : form),
                  string->given ? string->given[at] : 0);
}

static void put_quoted(struct jinja_text *text, const struct jinja_string *string)
{
    int has_single = memchr(string->bytes, '\'', string->n) != NULL;
    char quote = has_single && !memchr(string->bytes, '"', string->n) ? '"' : '\'';
    jinja_put_own(text, &quote, 1, 0);
    for (size_t i = 0, len; i < string->n; i += len) {
        utf8_read(string->bytes + i, &len);
        put_escaped(text, string, i, len, quote == '"' ? 0 : quote);
    }
    jinja_put_own(text, &quote, 1, 0);
}

static void put_shown(struct jinja_text *text, struct jinja_value value)
{
    if (value.kind == JINJA_STRING)
        put_quoted(text, value.as.string);
    else if (value.kind == JINJA_UNDEFINED)
        jinja_put_word(text, "Undefined");
    else
        jinja_put_value(text, value);
}

static void put_list(struct jinja_text *text, const struct jinja_list *list, int tuple)
{
    jinja_put_word(text, tuple ? "(" : "[");
    for (size_t i = 0; i < list->n && !text->w->failed; i++) {
        jinja_put_word(text, i ? ", " : "");
        put_shown(text, list->v[i]);
    }
    jinja_put_word(text, !tuple ? "]" : list->n == 1 ? ",)" : ")");
}

static void put_dict(struct jinja_text *text, const struct jinja_dict *dict)
{
    jinja_put_word(text, "{");
    for (size_t i = 0; i < dict->n && !text->w->failed; i++) {
        jinja_put_word(text, i ? ", " : "");
        put_shown(text, dict->v[i].key);
        jinja_put_word(text, ": ");
        put_shown(text, dict->v[i].value);
    }
    jinja_put_word(text, "}");
}

void jinja_put_value(struct jinja_text *text, struct jinja_value value)
{
    char digits[32];
    if (value.kind == JINJA_STRING) {
        jinja_put(text, value.as.string);
    } else if (value.kind == JINJA_NONE || value.kind == JINJA_BOOL) {
        jinja_put_word(text, value.kind == JINJA_NONE ? "None"
                             : value.as.number        ? "True"
                                                      : "False");
    } else if (value.kind == JINJA_NUMBER) {
        snprintf(digits, sizeof digits, "%lld", (long long)value.as.number);
        jinja_put_word(text, digits);
    } else if (jinja_is_list(value)) {
        put_list(text, value.as.list, value.kind == JINJA_TUPLE);
    } else if (value.kind == JINJA_DICT) {
        put_dict(text, value.as.dict);
    } else if (value.kind != JINJA_UNDEFINED) {
        jinja_fail(text->w, "%s is not written", jinja_kind_name(value.kind));
    }
}

const struct jinja_string *jinja_words(struct jinja_work *work, struct jinja_value value)
{
    struct jinja_text text = {.w = work};
    if (value.kind == JINJA_STRING)
        return value.as.string;
    jinja_put_value(&text, value);
    return jinja_taken(&text);
}
