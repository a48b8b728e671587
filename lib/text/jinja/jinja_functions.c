/* jinja_functions.c - functions that a template may call, and values as JSON; see jinja_run.h.
 *
 * strftime_now formats one fixed day: see lib/text/jinja.h. JSON is written as by tojson of
 * transformers: characters beyond ASCII stay, unless ensure_ascii is set. */
#include "lib/text/jinja/jinja_run.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/text/utf8.h"

typedef struct jinja_value value;
enum { RANGE_MAX = 100000, DATE_MAX = 128 };

/* ---- JSON ---- */

/* The escape sequence of JSON for the character at string->bytes[i], which has len bytes. form:
 * memory for the sequence. NULL: the character is not escaped. */
static const char *escaped(const struct jinja_string *string, size_t i, size_t len, int ascii,
                           char form[16])
{
    static const char letters[] = "\"\\\n\r\t\b\f";
    static const char *const forms[] = {"\\\"", "\\\\", "\\n", "\\r", "\\t", "\\b", "\\f"};
    char letter = string->bytes[i];
    const char *known = letter ? strchr(letters, letter) : NULL;
    uint32_t code = (unsigned char)letter;
    if (known)
        return forms[known - letters];
    if (len == 1 ? code >= 0x20 && (!ascii || code != 0x7F) : !ascii)
        return NULL;
    if (len > 1)
        code = utf8_read(string->bytes + i, &len);
    if (code < 0x10000)
        snprintf(form, 16, "\\u%04x", (unsigned)code);
    else /* a pair of surrogates */
        snprintf(form, 16, "\\u%04x\\u%04x", (unsigned)(0xD7C0 + (code >> 10)),
                 (unsigned)(0xDC00 + (code & 0x3FF)));
    return form;
}

static void put_json_string(struct jinja_text *text, const struct jinja_string *string, int ascii)
{
    char form[16];
    size_t done = 0;
    jinja_put_word(text, "\"");
    for (size_t i = 0, len; i < string->n; i += len) {
        utf8_read(string->bytes + i, &len);
        const char *written = escaped(string, i, len, ascii, form);
        if (!written)
            continue;
        jinja_put_part(text, string, done, i);
        jinja_put_own(text, written, strlen(written), string->given ? string->given[i] : 0);
        done = i + len;
    }
    jinja_put_part(text, string, done, string->n);
    jinja_put_word(text, "\"");
}

static void new_line(struct jinja_text *text, int indent, int depth)
{
    if (indent >= 0)
        jinja_put_word(text, "\n");
    for (int i = 0; i < indent * depth; i++)
        jinja_put_word(text, " ");
}

typedef const struct jinja_json_form *json_form;
static void put_json(struct jinja_text *text, value subject, json_form form, int depth);

static void put_key(struct jinja_text *text, value key, json_form form)
{
    const char *quote = key.kind == JINJA_STRING ? "" : "\"";
    jinja_put_word(text, quote);
    put_json(text, key, form, 0);
    jinja_put_word(text, quote);
    if (form->after_key)
        jinja_put(text, form->after_key);
    else
        jinja_put_word(text, ": ");
}

static void put_members(struct jinja_text *text, value subject, json_form form, int depth)
{
    int is_dict = subject.kind == JINJA_DICT;
    size_t n = is_dict ? subject.as.dict->n : subject.as.list->n;
    jinja_put_word(text, is_dict ? "{" : "[");
    for (size_t i = 0; i < n && !text->w->failed; i++) {
        if (i && form->after_item)
            jinja_put(text, form->after_item);
        else if (i)
            jinja_put_word(text, form->indent < 0 ? ", " : ",");
        new_line(text, form->indent, depth + 1);
        if (is_dict)
            put_key(text, subject.as.dict->v[i].key, form);
        put_json(text, is_dict ? subject.as.dict->v[i].value : subject.as.list->v[i], form,
                 depth + 1);
    }
    if (n)
        new_line(text, form->indent, depth);
    jinja_put_word(text, is_dict ? "}" : "]");
}

static void put_json(struct jinja_text *text, value subject, json_form form, int depth)
{
    if (subject.kind == JINJA_STRING)
        put_json_string(text, subject.as.string, form->ascii);
    else if (subject.kind == JINJA_NUMBER)
        jinja_put_value(text, subject);
    else if (subject.kind == JINJA_BOOL)
        jinja_put_word(text, subject.as.number ? "true" : "false");
    else if (subject.kind == JINJA_NONE)
        jinja_put_word(text, "null");
    else if (subject.kind == JINJA_DICT || jinja_is_list(subject))
        put_members(text, subject, form, depth);
    else
        jinja_fail(text->w, "%s as JSON", jinja_kind_name(subject.kind));
}

value jinja_to_json(struct jinja_run *run, value subject, struct jinja_json_form form)
{
    struct jinja_text text = {.w = run->w};
    put_json(&text, subject, &form, 0);
    return jinja_plain_value(&text);
}

/* ---- functions ---- */

static value range(struct jinja_run *run, const struct jinja_asked *asked)
{
    value list = jinja_list(run->w, JINJA_LIST);
    int64_t first = jinja_integer(run, asked->a[0], 0), end = jinja_integer(run, asked->a[1], 0);
    int64_t step = jinja_integer(run, asked->a[2], 1);
    if (asked->all->n == 1) {
        end = first;
        first = 0;
    }
    if (step == 0 || step < -RANGE_MAX || step > RANGE_MAX || first < INT32_MIN ||
        first > INT32_MAX)
        jinja_fail(run->w, "a range of these numbers: not supported");
    for (int64_t i = first; !run->w->failed && (step < 0 ? i > end : i < end); i += step) {
        jinja_push(run->w, list, jinja_number(i));
        if (list.as.list->n > RANGE_MAX)
            jinja_fail(run->w, "a range of more than %d numbers", RANGE_MAX);
    }
    return list;
}

/* A namespace or mapping of the named arguments, and of the members of mappings that are given
 * without a name. */
static value gather(struct jinja_run *run, const struct jinja_arguments *arguments,
                    enum jinja_kind kind)
{
    value all = jinja_dict(run->w, kind);
    for (size_t i = 0; i < arguments->n; i++) {
        value subject = arguments->v[i].value;
        if (arguments->v[i].name)
            jinja_set(run->w, all, jinja_string(arguments->v[i].name), subject);
        else if (subject.kind != JINJA_DICT)
            jinja_fail(run->w, "a mapping of %s: not supported", jinja_kind_name(subject.kind));
        for (size_t k = 0;
             !arguments->v[i].name && subject.kind == JINJA_DICT && k < subject.as.dict->n; k++)
            jinja_set(run->w, all, subject.as.dict->v[k].key, subject.as.dict->v[k].value);
    }
    return all;
}

static value namespace(struct jinja_run *run, const struct jinja_asked *asked)
{
    return gather(run, asked->all, JINJA_NAMESPACE);
}

static value dict(struct jinja_run *run, const struct jinja_asked *asked)
{
    return gather(run, asked->all, JINJA_DICT);
}

static value raise_exception(struct jinja_run *run, const struct jinja_asked *asked)
{
    const struct jinja_string *why = jinja_words(run->w, asked->a[0]);
    jinja_fail(run->w, "the template says: %.*s", why->n < 300 ? (int)why->n : 300, why->bytes);
    return jinja_none();
}

static value strftime_now(struct jinja_run *run, const struct jinja_asked *asked)
{
    const struct tm day = {.tm_mday = 26, .tm_mon = 6, .tm_year = 124, .tm_wday = 5,
                           .tm_yday = 207};
    char format[DATE_MAX / 2], text[DATE_MAX];
    const struct jinja_string *given = jinja_words(run->w, asked->a[0]);
    if (asked->a[0].kind != JINJA_STRING || given->n >= sizeof format ||
        memchr(given->bytes, 0, given->n)) {
        jinja_fail(run->w, "%s of %zu bytes as a date format", jinja_kind_name(asked->a[0].kind),
                   given->n);
        return jinja_none();
    }
    memcpy(format, given->bytes, given->n);
    format[given->n] = 0;
    for (const char *at = format; (at = strchr(at, '%')); at += 2)
        if (!at[1] || !strchr("aAbBdHIjmMpSyY%", at[1])) {
            jinja_fail(run->w, "the date format %%%c: not supported", at[1] ? at[1] : ' ');
            return jinja_none();
        }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    size_t n = strftime(text, sizeof text, format, &day);
#pragma GCC diagnostic pop
    return jinja_string(jinja_own(run->w, text, n));
}

static const struct function {
    const char *name, *arguments; /* arguments: for jinja_bind; NULL: `call` reads them */
    value (*call)(struct jinja_run *run, const struct jinja_asked *asked); /* NULL: not supported */
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

value jinja_call_function(struct jinja_run *run, const struct jinja_string *name,
                          const struct jinja_arguments *arguments)
{
    const struct function *known = function_of(name);
    struct jinja_asked asked = {.all = arguments};
    if (!known || !known->call)
        jinja_fail(run->w, "the function %.*s: not supported", JINJA_SHOWN(name));
    else if (known->arguments)
        jinja_bind(run, name, arguments, known->arguments, asked.a);
    return run->w->failed ? jinja_none() : known->call(run, &asked);
}
