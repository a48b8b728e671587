/* jinja_methods.c - methods of strings, mappings and lists; see jinja_run.h.
 *
 * Methods work as in Python and Jinja. A letter beyond ASCII changes case only where the Unicode
 * tables of Python and of utf8proc agree on one letter; other letters are refused. */
#include "lib/text/jinja/jinja_run.h"

#include <string.h>
#include <utf8proc.h>

#include "lib/text/utf8.h"

typedef const struct jinja_string *words;
typedef struct jinja_value value;
enum { LEFT = 1, RIGHT = 2 };

/* The string in an argument; `standard` if the argument is ABSENT or NONE. Fails for other
 * values. */
static words string_of(struct jinja_run *run, value subject, words standard)
{
    if (subject.kind == JINJA_ABSENT || subject.kind == JINJA_NONE)
        return standard;
    if (subject.kind != JINJA_STRING)
        jinja_fail(run->w, "expected a string, got %s", jinja_kind_name(subject.kind));
    return subject.kind == JINJA_STRING ? subject.as.string : jinja_own(run->w, "", 0);
}

/* ---- texts ---- */

static int holds(struct jinja_run *run, words letters, const char *text, size_t len)
{
    jinja_spend(run->w, 1 + letters->n / 64);
    for (size_t i = 0, n; i < letters->n && !run->w->failed; i += n) {
        utf8_read(letters->bytes + i, &n);
        if (n == len && !memcmp(letters->bytes + i, text, n))
            return 1;
    }
    return 0;
}

value jinja_strip(struct jinja_run *run, words text, int sides, words letters)
{
    size_t begin = 0, end = text->n, len;
    if (!letters)
        jinja_trim(text, sides & LEFT, sides & RIGHT, &begin, &end);
    while (letters && sides & LEFT && begin < end) {
        utf8_read(text->bytes + begin, &len);
        if (!holds(run, letters, text->bytes + begin, len))
            break;
        begin += len;
    }
    while (letters && sides & RIGHT && begin < end) {
        size_t at = utf8_before(text->bytes, end);
        if (!holds(run, letters, text->bytes + at, end - at))
            break;
        end = at;
    }
    return jinja_string(jinja_part(run->w, text, begin, end));
}

value jinja_replace(struct jinja_run *run, words bytes, words old, words by, int64_t most)
{
    struct jinja_text text = {.w = run->w};
    size_t done = 0, at;
    if (!old->n)
        jinja_fail(run->w, "replace of an empty string: not supported");
    for (; most != 0 && !run->w->failed && (at = jinja_find(run->w, bytes, old, done)) <= bytes->n;
         most--) {
        jinja_put_part(&text, bytes, done, at);
        jinja_put(&text, by);
        jinja_spend(run->w, 1);
        done = at + old->n;
    }
    jinja_put_part(&text, bytes, done, bytes->n);
    text.safe = bytes->safe;
    return jinja_text_value(&text);
}

void jinja_put_escaped(struct jinja_text *to, words text)
{
    static const char letters[] = "&<>'\"";
    static const char *const forms[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    size_t done = 0;
    for (size_t i = 0; i < text->n; i++) {
        const char *at = text->bytes[i] ? strchr(letters, text->bytes[i]) : NULL;
        if (!at)
            continue;
        const char *form = forms[at - letters];
        jinja_put_part(to, text, done, i);
        jinja_put_own(to, form, strlen(form), text->given ? text->given[i] : 0);
        done = i + 1;
    }
    jinja_put_part(to, text, done, text->n);
}

value jinja_format(struct jinja_run *run, const struct jinja_asked *asked)
{
    struct jinja_text text = {.w = run->w};
    words bytes = jinja_words(run->w, asked->x);
    size_t used = 0, done = 0;
    if (bytes->safe)
        jinja_fail(run->w, "format and a text from the filter safe: not supported");
    for (size_t i = 0; i < bytes->n && !run->w->failed; i++) {
        char letter = bytes->bytes[i], next = i + 1 < bytes->n ? bytes->bytes[i + 1] : ' ';
        if (asked->how ? letter != '%' : letter != '{' && letter != '}')
            continue;
        jinja_put_part(&text, bytes, done, i + (next == letter)); /* a doubled sign: writes one */
        done = ++i + 1;
        if (next == letter)
            continue;
        if (next != (asked->how ? 's' : '}') || letter == '}')
            jinja_fail(run->w, "format with %c%c: not supported", letter, next);
        else if (used >= asked->all->n || asked->all->v[used].name)
            jinja_fail(run->w, "format needs more arguments");
        else
            jinja_put_value(&text, asked->all->v[used++].value);
    }
    if (asked->how && used < asked->all->n)
        jinja_fail(run->w, "format with more arguments than the text has places");
    jinja_put_part(&text, bytes, done, bytes->n);
    return jinja_plain_value(&text);
}

/* The character in upper or lower case; the character itself if it has no case. */
static uint32_t recase(struct jinja_run *run, uint32_t code, int upper)
{
    uint32_t high = (uint32_t)utf8proc_toupper((utf8proc_int32_t)code);
    uint32_t low = (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
    static const uint32_t special[] = {0xDF, 0x130, 0x149, 0x1F0, 0x345, 0x390, 0x3A3, 0x3B0,
                                       0x3C2, 0x587};
    int odd = code >= 0x530 && (high != code || low != code ||
                                (code >= 0x1E96 && code < 0x2000) ||
                                (code >= 0xFB00 && code < 0xFB18));
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        odd |= code == special[i];
    if (odd)
        jinja_fail(run->w, "upper or lower case of U+%04X: not supported", (unsigned)code);
    return upper ? high : low;
}

value jinja_change_case(struct jinja_run *run, words bytes, enum jinja_case to)
{
    struct jinja_text text = {.w = run->w, .safe = bytes->safe};
    struct buf one = {0};
    int inside = 0; /* 1: the character before has a case */
    jinja_spend(run->w, bytes->n / 16);
    for (size_t i = 0, len; i < bytes->n && !run->w->failed; i += len) {
        uint32_t code = utf8_read(bytes->bytes + i, &len);
        int upper = to == JINJA_UPPER || (to == JINJA_TITLE && !inside) ||
                    (to == JINJA_CAPITAL && i == 0);
        buf_clear(&one);
        utf8_put(&one, recase(run, code, upper));
        inside = recase(run, code, 1) != code || recase(run, code, 0) != code;
        jinja_put_own(&text, one.data, one.len, bytes->given ? bytes->given[i] : 0);
    }
    buf_free(&one);
    return jinja_text_value(&text);
}

/* ---- methods of strings ---- */

static value strip(struct jinja_run *run, const struct jinja_asked *asked)
{
    return jinja_strip(run, asked->x.as.string, asked->how, string_of(run, asked->a[0], NULL));
}

static value change_case(struct jinja_run *run, const struct jinja_asked *asked)
{
    return jinja_change_case(run, asked->x.as.string, (enum jinja_case)asked->how);
}

static value replace(struct jinja_run *run, const struct jinja_asked *asked)
{
    words none = jinja_own(run->w, "", 0);
    words by = string_of(run, asked->a[1], none);
    struct jinja_text text = {.w = run->w};
    (asked->x.as.string->safe && !by->safe ? jinja_put_escaped : jinja_put)(&text, by);
    return jinja_replace(run, asked->x.as.string, string_of(run, asked->a[0], none),
                         jinja_taken(&text), jinja_integer(run, asked->a[2], -1));
}

static void push_part(struct jinja_run *run, value list, words text, size_t begin, size_t end)
{
    jinja_push(run->w, list, jinja_string(jinja_part(run->w, text, begin, end)));
}

/* The words between runs of white space; after `most` cuts, the rest of the text. */
static value split_at_space(struct jinja_run *run, words text, int64_t most)
{
    value list = jinja_list(run->w, JINJA_LIST);
    size_t at = 0, end = text->n, stop, len;
    for (jinja_trim(text, 1, 0, &at, &end); at < text->n && !run->w->failed; most--) {
        for (stop = at; most != 0 && stop < text->n; stop += len)
            if (jinja_is_space(utf8_read(text->bytes + stop, &len)))
                break;
        push_part(run, list, text, at, most ? stop : text->n);
        at = most ? stop : text->n;
        jinja_trim(text, 1, 0, &at, &end);
    }
    return list;
}

static value split(struct jinja_run *run, const struct jinja_asked *asked)
{
    words text = asked->x.as.string, by = string_of(run, asked->a[0], NULL);
    int64_t most = jinja_integer(run, asked->a[1], -1);
    if (!by)
        return split_at_space(run, text, most);
    value list = jinja_list(run->w, JINJA_LIST);
    size_t done = 0, at;
    if (!by->n)
        jinja_fail(run->w, "split at an empty string");
    for (; most != 0 && !run->w->failed && (at = jinja_find(run->w, text, by, done)) <= text->n;
         most--) {
        push_part(run, list, text, done, at);
        done = at + by->n;
    }
    push_part(run, list, text, done, text->n);
    return list;
}

/* Index of the first byte of the last `part` in text; text->n + 1: there is none. */
static size_t find_last(struct jinja_run *run, words text, words part)
{
    size_t after = text->n < part->n ? 0 : text->n - part->n + 1;
    for (; after > 0 && !run->w->failed; after--) {
        if (!memcmp(text->bytes + after - 1, part->bytes, part->n))
            return after - 1;
        jinja_spend(run->w, part->n / 64);
    }
    return text->n + 1;
}

static value rsplit(struct jinja_run *run, const struct jinja_asked *asked)
{
    words text = asked->x.as.string, by = string_of(run, asked->a[0], NULL);
    if (!by || !by->n || jinja_integer(run, asked->a[1], -1) != 1) {
        jinja_fail(run->w, "rsplit other than with a separator and one cut: not supported");
        return asked->x;
    }
    value list = jinja_list(run->w, JINJA_LIST);
    size_t last = find_last(run, text, by);
    push_part(run, list, text, 0, last > text->n ? text->n : last);
    if (last <= text->n)
        push_part(run, list, text, last + by->n, text->n);
    return list;
}

static value splitlines(struct jinja_run *run, const struct jinja_asked *asked)
{
    words text = asked->x.as.string;
    value list = jinja_list(run->w, JINJA_LIST);
    size_t done = 0, len;
    for (size_t i = 0; i < text->n && !run->w->failed; i += len) {
        uint32_t code = utf8_read(text->bytes + i, &len);
        size_t pair = code == '\r' && i + 1 < text->n && text->bytes[i + 1] == '\n';
        if ((code < '\n' || code > '\r') && (code < 0x1C || code > 0x1E) && code != 0x85 &&
            code != 0x2028 && code != 0x2029)
            continue;
        push_part(run, list, text, done, i);
        len += pair;
        done = i + len;
    }
    if (done < text->n)
        push_part(run, list, text, done, text->n);
    return list;
}

/* 1: the text begins (at_end 1: ends) with part. part: a string, or a tuple of strings, of which
 * one must fit. */
static int has_at(struct jinja_run *run, words text, value part, int at_end)
{
    if (part.kind == JINJA_TUPLE) {
        for (size_t i = 0; i < part.as.list->n; i++)
            if (part.as.list->v[i].kind == JINJA_STRING &&
                has_at(run, text, part.as.list->v[i], at_end))
                return 1;
        return 0;
    }
    words one = string_of(run, part, jinja_own(run->w, "", 0));
    return one->n <= text->n &&
           !memcmp(text->bytes + (at_end ? text->n - one->n : 0), one->bytes, one->n);
}

static value begins_or_ends(struct jinja_run *run, const struct jinja_asked *asked)
{
    return jinja_bool(has_at(run, asked->x.as.string, asked->a[0], asked->how));
}

static value remove_end(struct jinja_run *run, const struct jinja_asked *asked)
{
    words text = asked->x.as.string, part = string_of(run, asked->a[0], jinja_own(run->w, "", 0));
    size_t cut = has_at(run, text, jinja_string(part), asked->how) ? part->n : 0;
    return jinja_string(
        jinja_part(run->w, text, asked->how ? 0 : cut, text->n - (asked->how ? cut : 0)));
}

/* The number of the character that begins at byte `at`; -1 if at > text->n: nothing was found. */
static value place_of(words text, size_t at)
{
    if (at > text->n)
        return jinja_number(-1);
    const struct jinja_string before = {.bytes = text->bytes, .n = at};
    return jinja_number((int64_t)jinja_characters(&before));
}

static value find(struct jinja_run *run, const struct jinja_asked *asked)
{
    words text = asked->x.as.string, part = string_of(run, asked->a[0], jinja_own(run->w, "", 0));
    return place_of(text,
                    asked->how ? find_last(run, text, part) : jinja_find(run->w, text, part, 0));
}

static value count(struct jinja_run *run, const struct jinja_asked *asked)
{
    words text = asked->x.as.string, part = string_of(run, asked->a[0], jinja_own(run->w, "", 0));
    int64_t n = 0;
    if (!part->n)
        jinja_fail(run->w, "count of an empty string: not supported");
    for (size_t at = 0; !run->w->failed && (at = jinja_find(run->w, text, part, at)) <= text->n;
         at += part->n, n++)
        jinja_spend(run->w, 1);
    return jinja_number(n);
}

static value join(struct jinja_run *run, const struct jinja_asked *asked)
{
    struct jinja_text text = {.w = run->w};
    const struct jinja_list *list = jinja_members(run->w, asked->a[0]).as.list;
    for (size_t i = 0; i < list->n; i++) {
        if (list->v[i].kind != JINJA_STRING)
            jinja_fail(run->w, "join of %s", jinja_kind_name(list->v[i].kind));
        else if (i)
            jinja_put(&text, asked->x.as.string);
        jinja_put_value(&text, list->v[i]);
    }
    if (asked->x.as.string->safe)
        jinja_fail(run->w, "join by a text from the filter safe: not supported");
    return jinja_plain_value(&text);
}

/* ---- methods of mappings ---- */

value jinja_items(struct jinja_run *run, value dict)
{
    value list = jinja_list(run->w, JINJA_LIST);
    for (size_t i = 0; dict.kind == JINJA_DICT && i < dict.as.dict->n; i++) {
        value pair = jinja_list(run->w, JINJA_TUPLE);
        jinja_push(run->w, pair, dict.as.dict->v[i].key);
        jinja_push(run->w, pair, dict.as.dict->v[i].value);
        jinja_push(run->w, list, pair);
    }
    return list;
}

static value items(struct jinja_run *run, const struct jinja_asked *asked)
{
    return jinja_items(run, asked->x);
}

static value keys(struct jinja_run *run, const struct jinja_asked *asked)
{
    return jinja_members(run->w, asked->x);
}

static value values(struct jinja_run *run, const struct jinja_asked *asked)
{
    value list = jinja_list(run->w, JINJA_LIST);
    for (size_t i = 0; i < asked->x.as.dict->n; i++)
        jinja_push(run->w, list, asked->x.as.dict->v[i].value);
    return list;
}

static value get(struct jinja_run *run, const struct jinja_asked *asked)
{
    const value *found = jinja_get(run->w, asked->x, asked->a[0]);
    return found ? *found : asked->a[1].kind == JINJA_ABSENT ? jinja_none() : asked->a[1];
}

static value refuse_change(struct jinja_run *run, const struct jinja_asked *asked)
{
    jinja_fail(run->w, "a method that changes %s: not supported", jinja_kind_name(asked->x.kind));
    return asked->x;
}

static const struct method {
    enum jinja_kind kind;
    const char *name, *arguments; /* arguments: for jinja_bind; NULL: `call` reads them */
    value (*call)(struct jinja_run *run, const struct jinja_asked *asked);
    int how;
} methods[] = {
    {JINJA_STRING, "strip", "?chars", strip, LEFT | RIGHT},
    {JINJA_STRING, "lstrip", "?chars", strip, LEFT},
    {JINJA_STRING, "rstrip", "?chars", strip, RIGHT},
    {JINJA_STRING, "split", "?sep maxsplit", split, 0},
    {JINJA_STRING, "rsplit", "?sep maxsplit", rsplit, 0},
    {JINJA_STRING, "splitlines", "", splitlines, 0},
    {JINJA_STRING, "startswith", "prefix", begins_or_ends, 0},
    {JINJA_STRING, "endswith", "suffix", begins_or_ends, 1},
    {JINJA_STRING, "removeprefix", "prefix", remove_end, 0},
    {JINJA_STRING, "removesuffix", "suffix", remove_end, 1},
    {JINJA_STRING, "replace", "old new ?count", replace, 0},
    {JINJA_STRING, "format", NULL, jinja_format, 0},
    {JINJA_STRING, "upper", "", change_case, JINJA_UPPER},
    {JINJA_STRING, "lower", "", change_case, JINJA_LOWER},
    {JINJA_STRING, "title", "", change_case, JINJA_TITLE},
    {JINJA_STRING, "capitalize", "", change_case, JINJA_CAPITAL},
    {JINJA_STRING, "find", "sub", find, 0},
    {JINJA_STRING, "rfind", "sub", find, 1},
    {JINJA_STRING, "count", "sub", count, 0},
    {JINJA_STRING, "join", "iterable", join, 0},
    {JINJA_DICT, "items", "", items, 0},
    {JINJA_DICT, "keys", "", keys, 0},
    {JINJA_DICT, "values", "", values, 0},
    {JINJA_DICT, "get", "key ?default", get, 0},
    {JINJA_DICT, "pop", NULL, refuse_change, 0},
    {JINJA_DICT, "update", NULL, refuse_change, 0},
    {JINJA_DICT, "clear", NULL, refuse_change, 0},
    {JINJA_DICT, "setdefault", NULL, refuse_change, 0},
    {JINJA_LIST, "append", NULL, refuse_change, 0},
    {JINJA_LIST, "extend", NULL, refuse_change, 0},
    {JINJA_LIST, "insert", NULL, refuse_change, 0},
    {JINJA_LIST, "pop", NULL, refuse_change, 0},
    {JINJA_LIST, "remove", NULL, refuse_change, 0},
};

static const struct method *method_of(value subject, words name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].kind == subject.kind && jinja_is(name, methods[i].name))
            return &methods[i];
    return NULL;
}

int jinja_is_method(value subject, words name)
{
    return name && method_of(subject, name) != NULL;
}

value jinja_call_method(struct jinja_run *run, words name, value subject,
                        const struct jinja_arguments *arguments)
{
    const struct method *known = method_of(subject, name);
    struct jinja_asked asked = {.x = subject, .all = arguments, .how = known ? known->how : 0};
    jinja_spend_on(run->w, subject);
    if (!known)
        jinja_fail(run->w, "the method %.*s of %s: not supported", JINJA_SHOWN(name),
                   jinja_kind_name(subject.kind));
    else if (known->arguments)
        jinja_bind(run, name, arguments, known->arguments, asked.a);
    return run->w->failed ? subject : known->call(run, &asked);
}
