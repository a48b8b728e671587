/* jinja_functions.c - functions that a template may call, and values as JSON; see jinja_run.h.
 *
 * strftime_now formats one fixed day: see lib/text/jinja.h. JSON is that of transformers' tojson:
 * characters beyond ASCII stay, unless ensure_ascii is set. */
#include "lib/text/jinja/jinja_run.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/text/utf8.h"

typedef struct jinja_value value;
enum { RANGE_MAX = 100000, DATE_MAX = 128 };

/* ---- JSON ---- */

/* The escape sequence of JSON for the character at s->bytes[i] of len bytes, written to `form`.
 * NULL: JSON has the character itself. */
static const char *escaped(const struct jinja_string *s, size_t i, size_t len, int ascii,
                           char form[16])
{
    static const char letters[] = "\"\\\n\r\t\b\f";
    static const char *const forms[] = {"\\\"", "\\\\", "\\n", "\\r", "\\t", "\\b", "\\f"};
    char c = s->bytes[i];
    const char *known = c ? strchr(letters, c) : NULL;
    uint32_t code = (unsigned char)c;
    if (known)
        return forms[known - letters];
    if (len == 1 ? code >= 0x20 && (!ascii || code != 0x7F) : !ascii)
        return NULL;
    if (len > 1)
        code = utf8_read(s->bytes + i, &len);
    if (code < 0x10000)
        snprintf(form, 16, "\\u%04x", (unsigned)code);
    else /* a pair of surrogates */
        snprintf(form, 16, "\\u%04x\\u%04x", (unsigned)(0xD7C0 + (code >> 10)),
                 (unsigned)(0xDC00 + (code & 0x3FF)));
    return form;
}

static void put_json_string(struct jinja_text *t, const struct jinja_string *s, int ascii)
{
    char form[16];
    size_t done = 0;
    jinja_put_word(t, "\"");
    for (size_t i = 0, len; i < s->n; i += len) {
        utf8_read(s->bytes + i, &len);
        const char *written = escaped(s, i, len, ascii, form);
        if (!written)
            continue;
        jinja_put_part(t, s, done, i);
        jinja_put_own(t, written, strlen(written), s->given ? s->given[i] : 0);
        done = i + len;
    }
    jinja_put_part(t, s, done, s->n);
    jinja_put_word(t, "\"");
}

static void new_line(struct jinja_text *t, int indent, int depth)
{
    if (indent >= 0)
        jinja_put_word(t, "\n");
    for (int i = 0; i < indent * depth; i++)
        jinja_put_word(t, " ");
}

typedef const struct jinja_json_form *json_form;
static void put_json(struct jinja_text *t, value x, json_form form, int depth);

static void put_key(struct jinja_text *t, value key, json_form form)
{
    const char *quote = key.kind == JINJA_STRING ? "" : "\"";
    jinja_put_word(t, quote);
    put_json(t, key, form, 0);
    jinja_put_word(t, quote);
    if (form->after_key)
        jinja_put(t, form->after_key);
    else
        jinja_put_word(t, ": ");
}

static void put_members(struct jinja_text *t, value x, json_form form, int depth)
{
    int is_dict = x.kind == JINJA_DICT;
    size_t n = is_dict ? x.as.dict->n : x.as.list->n;
    jinja_put_word(t, is_dict ? "{" : "[");
    for (size_t i = 0; i < n && !t->w->failed; i++) {
        if (i && form->after_item)
            jinja_put(t, form->after_item);
        else if (i)
            jinja_put_word(t, form->indent < 0 ? ", " : ",");
        new_line(t, form->indent, depth + 1);
        if (is_dict)
            put_key(t, x.as.dict->v[i].key, form);
        put_json(t, is_dict ? x.as.dict->v[i].value : x.as.list->v[i], form, depth + 1);
    }
    if (n)
        new_line(t, form->indent, depth);
    jinja_put_word(t, is_dict ? "}" : "]");
}

static void put_json(struct jinja_text *t, value x, json_form form, int depth)
{
    if (x.kind == JINJA_STRING)
        put_json_string(t, x.as.string, form->ascii);
    else if (x.kind == JINJA_NUMBER)
        jinja_put_value(t, x);
    else if (x.kind == JINJA_BOOL)
        jinja_put_word(t, x.as.number ? "true" : "false");
    else if (x.kind == JINJA_NONE)
        jinja_put_word(t, "null");
    else if (x.kind == JINJA_DICT || jinja_is_list(x))
        put_members(t, x, form, depth);
    else
        jinja_fail(t->w, "%s as JSON", jinja_kind_name(x.kind));
}

value jinja_to_json(struct jinja_run *r, value x, struct jinja_json_form form)
{
    struct jinja_text text = {.w = r->w};
    put_json(&text, x, &form, 0);
    return jinja_plain_value(&text);
}

/* ---- functions ---- */

static value range(struct jinja_run *r, const struct jinja_asked *q)
{
    value list = jinja_list(r->w, JINJA_LIST);
    int64_t first = jinja_integer(r, q->a[0], 0), end = jinja_integer(r, q->a[1], 0);
    int64_t step = jinja_integer(r, q->a[2], 1);
    if (q->all->n == 1) {
        end = first;
        first = 0;
    }
    if (step == 0 || step < -RANGE_MAX || step > RANGE_MAX || first < INT32_MIN ||
        first > INT32_MAX)
        jinja_fail(r->w, "a range of these numbers: not supported");
    for (int64_t i = first; !r->w->failed && (step < 0 ? i > end : i < end); i += step) {
        jinja_push(r->w, list, jinja_number(i));
        if (list.as.list->n > RANGE_MAX)
            jinja_fail(r->w, "a range of more than %d numbers", RANGE_MAX);
    }
    return list;
}

/* A namespace or mapping of the named arguments, and of the members of a mapping before them. */
static value gather(struct jinja_run *r, const struct jinja_arguments *a, enum jinja_kind kind)
{
    value all = jinja_dict(r->w, kind);
    for (size_t i = 0; i < a->n; i++) {
        value x = a->v[i].value;
        if (a->v[i].name)
            jinja_set(r->w, all, jinja_string(a->v[i].name), x);
        else if (x.kind != JINJA_DICT)
            jinja_fail(r->w, "a mapping of %s: not supported", jinja_kind_name(x.kind));
        for (size_t k = 0; !a->v[i].name && x.kind == JINJA_DICT && k < x.as.dict->n; k++)
            jinja_set(r->w, all, x.as.dict->v[k].key, x.as.dict->v[k].value);
    }
    return all;
}

static value namespace(struct jinja_run *r, const struct jinja_asked *q)
{
    return gather(r, q->all, JINJA_NAMESPACE);
}

static value dict(struct jinja_run *r, const struct jinja_asked *q)
{
    return gather(r, q->all, JINJA_DICT);
}

static value raise_exception(struct jinja_run *r, const struct jinja_asked *q)
{
    const struct jinja_string *why = jinja_words(r->w, q->a[0]);
    jinja_fail(r->w, "the template says: %.*s", why->n < 300 ? (int)why->n : 300, why->bytes);
    return jinja_none();
}

static value strftime_now(struct jinja_run *r, const struct jinja_asked *q)
{
    const struct tm day = {.tm_mday = 26, .tm_mon = 6, .tm_year = 124, .tm_wday = 5,
                           .tm_yday = 207};
    char format[DATE_MAX / 2], text[DATE_MAX];
    const struct jinja_string *given = jinja_words(r->w, q->a[0]);
    if (q->a[0].kind != JINJA_STRING || given->n >= sizeof format ||
        memchr(given->bytes, 0, given->n)) {
        jinja_fail(r->w, "%s of %zu bytes as a date format", jinja_kind_name(q->a[0].kind),
                   given->n);
        return jinja_none();
    }
    memcpy(format, given->bytes, given->n);
    format[given->n] = 0;
    for (const char *p = format; (p = strchr(p, '%')); p += 2)
        if (!p[1] || !strchr("aAbBdHIjmMpSyY%", p[1])) {
            jinja_fail(r->w, "the date format %%%c: not supported", p[1] ? p[1] : ' ');
            return jinja_none();
        }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    size_t n = strftime(text, sizeof text, format, &day);
#pragma GCC diagnostic pop
    return jinja_string(jinja_own(r->w, text, n));
}

static const struct function {
    const char *name, *arguments; /* NULL: any */
    value (*call)(struct jinja_run *r, const struct jinja_asked *q); /* NULL: not supported */
} functions[] = {
    {"range", "start ?stop step", range},
    {"namespace", NULL, namespace},
    {"dict", NULL, dict},
    {"raise_exception", "message", raise_exception},
    {"strftime_now", "format", strftime_now},
    {"cycler", NULL, NULL},
    {"joiner", NULL, NULL},
    {"lipsum", NULL, NULL},
};

static const struct function *function_of(const struct jinja_string *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (jinja_is(name, functions[i].name))
            return &functions[i];
    return NULL;
}

int jinja_is_function(const struct jinja_string *name)
{
    return function_of(name) != NULL;
}

value jinja_call_function(struct jinja_run *r, const struct jinja_string *name,
                          const struct jinja_arguments *a)
{
    const struct function *known = function_of(name);
    struct jinja_asked q = {.all = a};
    if (!known || !known->call)
        jinja_fail(r->w, "the function %.*s: not supported", JINJA_SHOWN(name));
    else if (known->arguments)
        jinja_bind(r, name, a, known->arguments, q.a);
    return r->w->failed ? jinja_none() : known->call(r, &q);
}
