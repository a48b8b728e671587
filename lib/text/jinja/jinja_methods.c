/* jinja_methods.c - methods of strings, mappings and lists; see jinja_run.h.
 *
 * They do what Python's and Jinja's do. Letters beyond ASCII change case only where both Unicode
 * tables agree on one letter; others are refused. */
#include "lib/text/jinja/jinja_run.h"

#include <string.h>
#include <utf8proc.h>

#include "lib/text/utf8.h"

typedef const struct jinja_string *words;
typedef struct jinja_value value;
enum { LEFT = 1, RIGHT = 2 };

/* The string in an argument; standard: where there is none. */
static words string_of(struct jinja_run *r, value x, words standard)
{
    if (x.kind == JINJA_ABSENT || x.kind == JINJA_NONE)
        return standard;
    if (x.kind != JINJA_STRING)
        jinja_fail(r->w, "expected a string, got %s", jinja_kind_name(x.kind));
    return x.kind == JINJA_STRING ? x.as.string : jinja_own(r->w, "", 0);
}

/* ---- texts ---- */

static int holds(struct jinja_run *r, words letters, const char *s, size_t len)
{
    jinja_spend(r->w, 1 + letters->n / 64);
    for (size_t i = 0, n; i < letters->n && !r->w->failed; i += n) {
        utf8_read(letters->bytes + i, &n);
        if (n == len && !memcmp(letters->bytes + i, s, n))
            return 1;
    }
    return 0;
}

value jinja_strip(struct jinja_run *r, words s, int sides, words letters)
{
    size_t begin = 0, end = s->n, len;
    if (!letters)
        jinja_trim(s, sides & LEFT, sides & RIGHT, &begin, &end);
    while (letters && sides & LEFT && begin < end) {
        utf8_read(s->bytes + begin, &len);
        if (!holds(r, letters, s->bytes + begin, len))
            break;
        begin += len;
    }
    while (letters && sides & RIGHT && begin < end) {
        size_t at = utf8_before(s->bytes, end);
        if (!holds(r, letters, s->bytes + at, end - at))
            break;
        end = at;
    }
    return jinja_string(jinja_part(r->w, s, begin, end));
}

value jinja_replace(struct jinja_run *r, words s, words old, words by, int64_t most)
{
    struct jinja_text text = {.w = r->w};
    size_t done = 0, at;
    if (!old->n)
        jinja_fail(r->w, "replace of an empty string: not supported");
    for (; most != 0 && !r->w->failed && (at = jinja_find(r->w, s, old, done)) <= s->n; most--) {
        jinja_put_part(&text, s, done, at);
        jinja_put(&text, by);
        jinja_spend(r->w, 1);
        done = at + old->n;
    }
    jinja_put_part(&text, s, done, s->n);
    text.safe = s->safe;
    return jinja_text_value(&text);
}

void jinja_put_escaped(struct jinja_text *to, words s)
{
    static const char letters[] = "&<>'\"";
    static const char *const forms[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    size_t done = 0;
    for (size_t i = 0; i < s->n; i++) {
        const char *at = s->bytes[i] ? strchr(letters, s->bytes[i]) : NULL;
        if (!at)
            continue;
        const char *form = forms[at - letters];
        jinja_put_part(to, s, done, i);
        jinja_put_own(to, form, strlen(form), s->given ? s->given[i] : 0);
        done = i + 1;
    }
    jinja_put_part(to, s, done, s->n);
}

value jinja_format(struct jinja_run *r, const struct jinja_asked *q)
{
    struct jinja_text text = {.w = r->w};
    words s = jinja_words(r->w, q->x);
    size_t used = 0, done = 0;
    if (s->safe)
        jinja_fail(r->w, "format and a text from the filter safe: not supported");
    for (size_t i = 0; i < s->n && !r->w->failed; i++) {
        char c = s->bytes[i], next = i + 1 < s->n ? s->bytes[i + 1] : ' ';
        if (q->how ? c != '%' : c != '{' && c != '}')
            continue;
        jinja_put_part(&text, s, done, i + (next == c)); /* twice: itself */
        done = ++i + 1;
        if (next == c)
            continue;
        if (next != (q->how ? 's' : '}') || c == '}')
            jinja_fail(r->w, "format with %c%c: not supported", c, next);
        else if (used >= q->all->n || q->all->v[used].name)
            jinja_fail(r->w, "format needs more arguments");
        else
            jinja_put_value(&text, q->all->v[used++].value);
    }
    if (q->how && used < q->all->n)
        jinja_fail(r->w, "format with more arguments than the text has places");
    jinja_put_part(&text, s, done, s->n);
    return jinja_plain_value(&text);
}

/* The character in another case; itself if it has none. */
static uint32_t recase(struct jinja_run *r, uint32_t code, int upper)
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
        jinja_fail(r->w, "upper or lower case of U+%04X: not supported", (unsigned)code);
    return upper ? high : low;
}

value jinja_change_case(struct jinja_run *r, words s, enum jinja_case to)
{
    struct jinja_text text = {.w = r->w, .safe = s->safe};
    struct buf one = {0};
    int inside = 0; /* 1: the character before has a case */
    jinja_spend(r->w, s->n / 16);
    for (size_t i = 0, len; i < s->n && !r->w->failed; i += len) {
        uint32_t code = utf8_read(s->bytes + i, &len);
        int upper = to == JINJA_UPPER || (to == JINJA_TITLE && !inside) ||
                    (to == JINJA_CAPITAL && i == 0);
        buf_clear(&one);
        utf8_put(&one, recase(r, code, upper));
        inside = recase(r, code, 1) != code || recase(r, code, 0) != code;
        jinja_put_own(&text, one.data, one.len, s->given ? s->given[i] : 0);
    }
    buf_free(&one);
    return jinja_text_value(&text);
}

/* ---- methods of strings ---- */

static value strip(struct jinja_run *r, const struct jinja_asked *q)
{
    return jinja_strip(r, q->x.as.string, q->how, string_of(r, q->a[0], NULL));
}

static value change_case(struct jinja_run *r, const struct jinja_asked *q)
{
    return jinja_change_case(r, q->x.as.string, (enum jinja_case)q->how);
}

static value replace(struct jinja_run *r, const struct jinja_asked *q)
{
    words none = jinja_own(r->w, "", 0);
    words by = string_of(r, q->a[1], none);
    struct jinja_text text = {.w = r->w};
    (q->x.as.string->safe && !by->safe ? jinja_put_escaped : jinja_put)(&text, by);
    return jinja_replace(r, q->x.as.string, string_of(r, q->a[0], none), jinja_taken(&text),
                         jinja_integer(r, q->a[2], -1));
}

static void push_part(struct jinja_run *r, value list, words s, size_t begin, size_t end)
{
    jinja_push(r->w, list, jinja_string(jinja_part(r->w, s, begin, end)));
}

/* Between runs of white space; after `most` cuts, the rest. */
static value split_at_space(struct jinja_run *r, words s, int64_t most)
{
    value list = jinja_list(r->w, JINJA_LIST);
    size_t at = 0, end = s->n, stop, len;
    for (jinja_trim(s, 1, 0, &at, &end); at < s->n && !r->w->failed; most--) {
        for (stop = at; most != 0 && stop < s->n; stop += len)
            if (jinja_is_space(utf8_read(s->bytes + stop, &len)))
                break;
        push_part(r, list, s, at, most ? stop : s->n);
        at = most ? stop : s->n;
        jinja_trim(s, 1, 0, &at, &end);
    }
    return list;
}

static value split(struct jinja_run *r, const struct jinja_asked *q)
{
    words s = q->x.as.string, by = string_of(r, q->a[0], NULL);
    int64_t most = jinja_integer(r, q->a[1], -1);
    if (!by)
        return split_at_space(r, s, most);
    value list = jinja_list(r->w, JINJA_LIST);
    size_t done = 0, at;
    if (!by->n)
        jinja_fail(r->w, "split at an empty string");
    for (; most != 0 && !r->w->failed && (at = jinja_find(r->w, s, by, done)) <= s->n; most--) {
        push_part(r, list, s, done, at);
        done = at + by->n;
    }
    push_part(r, list, s, done, s->n);
    return list;
}

/* Byte of the last `part` in s; s->n + 1: none. */
static size_t find_last(struct jinja_run *r, words s, words part)
{
    size_t after = s->n < part->n ? 0 : s->n - part->n + 1;
    for (; after > 0 && !r->w->failed; after--) {
        if (!memcmp(s->bytes + after - 1, part->bytes, part->n))
            return after - 1;
        jinja_spend(r->w, part->n / 64);
    }
    return s->n + 1;
}

static value rsplit(struct jinja_run *r, const struct jinja_asked *q)
{
    words s = q->x.as.string, by = string_of(r, q->a[0], NULL);
    if (!by || !by->n || jinja_integer(r, q->a[1], -1) != 1) {
        jinja_fail(r->w, "rsplit other than with a separator and one cut: not supported");
        return q->x;
    }
    value list = jinja_list(r->w, JINJA_LIST);
    size_t last = find_last(r, s, by);
    push_part(r, list, s, 0, last > s->n ? s->n : last);
    if (last <= s->n)
        push_part(r, list, s, last + by->n, s->n);
    return list;
}

static value splitlines(struct jinja_run *r, const struct jinja_asked *q)
{
    words s = q->x.as.string;
    value list = jinja_list(r->w, JINJA_LIST);
    size_t done = 0, len;
    for (size_t i = 0; i < s->n && !r->w->failed; i += len) {
        uint32_t code = utf8_read(s->bytes + i, &len);
        size_t pair = code == '\r' && i + 1 < s->n && s->bytes[i + 1] == '\n';
        if ((code < '\n' || code > '\r') && (code < 0x1C || code > 0x1E) && code != 0x85 &&
            code != 0x2028 && code != 0x2029)
            continue;
        push_part(r, list, s, done, i);
        len += pair;
        done = i + len;
    }
    if (done < s->n)
        push_part(r, list, s, done, s->n);
    return list;
}

/* at_end: 1: the end of s is compared, not its beginning. part: a string, or a tuple of them. */
static int has_at(struct jinja_run *r, words s, value part, int at_end)
{
    if (part.kind == JINJA_TUPLE) {
        for (size_t i = 0; i < part.as.list->n; i++)
            if (part.as.list->v[i].kind == JINJA_STRING && has_at(r, s, part.as.list->v[i], at_end))
                return 1;
        return 0;
    }
    words one = string_of(r, part, jinja_own(r->w, "", 0));
    return one->n <= s->n &&
           !memcmp(s->bytes + (at_end ? s->n - one->n : 0), one->bytes, one->n);
}

static value begins_or_ends(struct jinja_run *r, const struct jinja_asked *q)
{
    return jinja_bool(has_at(r, q->x.as.string, q->a[0], q->how));
}

static value remove_end(struct jinja_run *r, const struct jinja_asked *q)
{
    words s = q->x.as.string, part = string_of(r, q->a[0], jinja_own(r->w, "", 0));
    size_t cut = has_at(r, s, jinja_string(part), q->how) ? part->n : 0;
    return jinja_string(jinja_part(r->w, s, q->how ? 0 : cut, s->n - (q->how ? cut : 0)));
}

/* Place of a character, of the byte where a part is found; -1: nowhere. */
static value place_of(words s, size_t at)
{
    if (at > s->n)
        return jinja_number(-1);
    const struct jinja_string before = {.bytes = s->bytes, .n = at};
    return jinja_number((int64_t)jinja_characters(&before));
}

static value find(struct jinja_run *r, const struct jinja_asked *q)
{
    words s = q->x.as.string, part = string_of(r, q->a[0], jinja_own(r->w, "", 0));
    return place_of(s, q->how ? find_last(r, s, part) : jinja_find(r->w, s, part, 0));
}

static value count(struct jinja_run *r, const struct jinja_asked *q)
{
    words s = q->x.as.string, part = string_of(r, q->a[0], jinja_own(r->w, "", 0));
    int64_t n = 0;
    if (!part->n)
        jinja_fail(r->w, "count of an empty string: not supported");
    for (size_t at = 0; !r->w->failed && (at = jinja_find(r->w, s, part, at)) <= s->n;
         at += part->n, n++)
        jinja_spend(r->w, 1);
    return jinja_number(n);
}

static value join(struct jinja_run *r, const struct jinja_asked *q)
{
    struct jinja_text text = {.w = r->w};
    const struct jinja_list *list = jinja_members(r->w, q->a[0]).as.list;
    for (size_t i = 0; i < list->n; i++) {
        if (list->v[i].kind != JINJA_STRING)
            jinja_fail(r->w, "join of %s", jinja_kind_name(list->v[i].kind));
        else if (i)
            jinja_put(&text, q->x.as.string);
        jinja_put_value(&text, list->v[i]);
    }
    if (q->x.as.string->safe)
        jinja_fail(r->w, "join by a text from the filter safe: not supported");
    return jinja_plain_value(&text);
}

/* ---- methods of mappings ---- */

value jinja_items(struct jinja_run *r, value dict)
{
    value list = jinja_list(r->w, JINJA_LIST);
    for (size_t i = 0; dict.kind == JINJA_DICT && i < dict.as.dict->n; i++) {
        value pair = jinja_list(r->w, JINJA_TUPLE);
        jinja_push(r->w, pair, dict.as.dict->v[i].key);
        jinja_push(r->w, pair, dict.as.dict->v[i].value);
        jinja_push(r->w, list, pair);
    }
    return list;
}

static value items(struct jinja_run *r, const struct jinja_asked *q)
{
    return jinja_items(r, q->x);
}

static value keys(struct jinja_run *r, const struct jinja_asked *q)
{
    return jinja_members(r->w, q->x);
}

static value values(struct jinja_run *r, const struct jinja_asked *q)
{
    value list = jinja_list(r->w, JINJA_LIST);
    for (size_t i = 0; i < q->x.as.dict->n; i++)
        jinja_push(r->w, list, q->x.as.dict->v[i].value);
    return list;
}

static value get(struct jinja_run *r, const struct jinja_asked *q)
{
    const value *found = jinja_get(r->w, q->x, q->a[0]);
    return found ? *found : q->a[1].kind == JINJA_ABSENT ? jinja_none() : q->a[1];
}

static value refuse_change(struct jinja_run *r, const struct jinja_asked *q)
{
    jinja_fail(r->w, "a method that changes %s: not supported", jinja_kind_name(q->x.kind));
    return q->x;
}

static const struct method {
    enum jinja_kind kind;
    const char *name, *arguments; /* NULL: any */
    value (*call)(struct jinja_run *r, const struct jinja_asked *q);
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

static const struct method *method_of(value x, words name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].kind == x.kind && jinja_is(name, methods[i].name))
            return &methods[i];
    return NULL;
}

int jinja_is_method(value x, words name)
{
    return name && method_of(x, name) != NULL;
}

value jinja_call_method(struct jinja_run *r, words name, value x, const struct jinja_arguments *a)
{
    const struct method *known = method_of(x, name);
    struct jinja_asked q = {.x = x, .all = a, .how = known ? known->how : 0};
    jinja_spend_on(r->w, x);
    if (!known)
        jinja_fail(r->w, "the method %.*s of %s: not supported", JINJA_SHOWN(name),
                   jinja_kind_name(x.kind));
    else if (known->arguments)
        jinja_bind(r, name, a, known->arguments, q.a);
    return r->w->failed ? x : known->call(r, &q);
}
