/* jinja_filters.c - filters and tests; see jinja_run.h.
 *
 * A filter that is not in the table is refused by its name. map, select and their kin call other
 * filters and tests with the arguments after the first. */
#include "lib/text/jinja/jinja_run.h"

#include <stdlib.h>
#include <string.h>

typedef struct jinja_value value;
typedef value filter(struct jinja_run *r, const struct jinja_asked *q);

static value to_string(struct jinja_run *r, const struct jinja_asked *q)
{
    return jinja_string(jinja_words(r->w, q->x));
}

static value trim(struct jinja_run *r, const struct jinja_asked *q)
{
    const struct jinja_string *letters = NULL;
    if (q->a[0].kind != JINJA_ABSENT && q->a[0].kind != JINJA_NONE)
        letters = jinja_words(r->w, q->a[0]);
    return jinja_strip(r, jinja_words(r->w, q->x), 3, letters);
}

static value tojson(struct jinja_run *r, const struct jinja_asked *q)
{
    int64_t indent = q->a[1].kind == JINJA_NUMBER ? q->a[1].as.number : -1;
    struct jinja_json_form form = {.ascii = jinja_true(q->a[0]), .indent = (int)indent};
    int between = jinja_true(q->a[2]), pair = jinja_is_list(q->a[2]) && q->a[2].as.list->n == 2;
    const value *v = pair ? q->a[2].as.list->v : NULL;
    if (jinja_true(q->a[3]) || indent > 16 || (indent < 0 && q->a[1].kind == JINJA_NUMBER) ||
        (between && (!pair || v[0].kind != JINJA_STRING || v[1].kind != JINJA_STRING))) {
        jinja_fail(r->w, "tojson with these arguments: not supported");
        return q->x;
    }
    if (between) {
        form.after_item = v[0].as.string;
        form.after_key = v[1].as.string;
    }
    return jinja_to_json(r, q->x, form);
}

static value length(struct jinja_run *r, const struct jinja_asked *q)
{
    return jinja_number((int64_t)jinja_length(r->w, q->x));
}

static value change_case(struct jinja_run *r, const struct jinja_asked *q)
{
    return jinja_change_case(r, jinja_words(r->w, q->x), (enum jinja_case)q->how);
}

static value standard(struct jinja_run *r, const struct jinja_asked *q)
{
    int absent = q->x.kind == JINJA_UNDEFINED || (jinja_true(q->a[1]) && !jinja_true(q->x));
    if (!absent)
        return q->x;
    return q->a[0].kind == JINJA_ABSENT ? jinja_string(jinja_own(r->w, "", 0)) : q->a[0];
}

static value first(struct jinja_run *r, const struct jinja_asked *q)
{
    if (q->x.kind == JINJA_GENERATOR && q->x.as.list->n) { /* the others stay */
        q->x.as.list->n--;
        return *q->x.as.list->v++;
    }
    const struct jinja_list *list = jinja_members(r->w, q->x).as.list;
    return list->n ? list->v[0] : jinja_undefined(NULL);
}

static value last(struct jinja_run *r, const struct jinja_asked *q)
{
    const struct jinja_list *list = jinja_members(r->w, q->x).as.list;
    if (q->x.kind == JINJA_GENERATOR)
        jinja_fail(r->w, "last of a generator");
    if (q->x.kind == JINJA_STRING && list->n) { /* an item of the text, which Jinja keeps safe */
        struct jinja_text text = {.w = r->w, .safe = q->x.as.string->safe};
        jinja_put(&text, list->v[list->n - 1].as.string);
        return jinja_text_value(&text);
    }
    return list->n ? list->v[list->n - 1] : jinja_undefined(NULL);
}

static value to_list(struct jinja_run *r, const struct jinja_asked *q)
{
    return jinja_members(r->w, q->x);
}

/* The list as what Python makes its members one by one: always true, and without a length. */
static value generator(value list)
{
    list.kind = JINJA_GENERATOR;
    return list;
}

static value reverse(struct jinja_run *r, const struct jinja_asked *q)
{
    const struct jinja_list *list = jinja_members(r->w, q->x).as.list;
    value to = jinja_list(r->w, JINJA_LIST);
    if (q->x.kind == JINJA_STRING)
        jinja_fail(r->w, "reverse of a string: not supported");
    for (size_t i = list->n; i > 0; i--)
        jinja_push(r->w, to, list->v[i - 1]);
    return q->x.kind == JINJA_GENERATOR ? to : generator(to);
}

static value items(struct jinja_run *r, const struct jinja_asked *q)
{
    if (q->x.kind != JINJA_DICT && q->x.kind != JINJA_UNDEFINED)
        jinja_fail(r->w, "items of %s", jinja_kind_name(q->x.kind));
    return generator(jinja_items(r, q->x));
}

/* Digits with a sign; a text that is not a number becomes a[0], or 0. */
static value to_int(struct jinja_run *r, const struct jinja_asked *q)
{
    char digits[20] = "", *end;
    value other = q->a[0].kind == JINJA_ABSENT ? jinja_number(0) : q->a[0];
    if (jinja_is_number(q->x))
        return jinja_number(q->x.as.number);
    if (q->x.kind == JINJA_UNDEFINED)
        jinja_fail(r->w, "int of an undefined value");
    if (q->x.kind != JINJA_STRING)
        return other;
    const struct jinja_string *s = jinja_strip(r, q->x.as.string, 3, NULL).as.string;
    if (s->n < sizeof digits)
        memcpy(digits, s->bytes, s->n);
    long long n = strtoll(digits, &end, 10);
    if (s->n && s->n < sizeof digits && !*end && strlen(digits) == s->n)
        return jinja_number(n);
    for (size_t i = 0; i < s->n; i++)
        if (s->bytes[i] >= '0' && s->bytes[i] <= '9')
            jinja_fail(r->w, "int of this text: not supported");
    return other;
}

static value absolute(struct jinja_run *r, const struct jinja_asked *q)
{
    if (!jinja_is_number(q->x) || q->x.as.number == INT64_MIN)
        jinja_fail(r->w, "abs of %s", jinja_kind_name(q->x.kind));
    return jinja_number(q->x.as.number < 0 && !r->w->failed ? -q->x.as.number : q->x.as.number);
}

static value replace(struct jinja_run *r, const struct jinja_asked *q)
{
    struct jinja_text text = {.w = r->w};
    value x = jinja_replace(r, jinja_words(r->w, q->x), jinja_words(r->w, q->a[0]),
                            jinja_words(r->w, q->a[1]), jinja_integer(r, q->a[2], -1));
    jinja_put(&text, x.as.string);
    return jinja_plain_value(&text);
}

static value safe(struct jinja_run *r, const struct jinja_asked *q)
{
    struct jinja_text text = {.w = r->w, .safe = 1};
    jinja_put_value(&text, q->x);
    return jinja_text_value(&text);
}

value jinja_follow(struct jinja_run *r, value x, value path)
{
    jinja_spend(r->w, 1);
    jinja_spend_on(r->w, path);
    if (jinja_is_number(path))
        return jinja_item(r, x, path);
    const struct jinja_string *s = jinja_words(r->w, path);
    for (size_t begin = 0, end; begin <= s->n && !r->w->failed; begin = end + 1) {
        const char *dot = memchr(s->bytes + begin, '.', s->n - begin);
        end = dot ? (size_t)(dot - s->bytes) : s->n;
        if (end > begin && s->bytes[begin] >= '0' && s->bytes[begin] <= '9')
            jinja_fail(r->w, "a number in a path: not supported");
        x = jinja_item(r, x, jinja_string(jinja_part(r->w, s, begin, end)));
    }
    return x;
}

static value join(struct jinja_run *r, const struct jinja_asked *q)
{
    struct jinja_text text = {.w = r->w};
    const struct jinja_list *list = jinja_members(r->w, q->x).as.list;
    for (size_t i = 0; i < list->n && !r->w->failed; i++) {
        if (i && q->a[0].kind != JINJA_ABSENT)
            jinja_put_value(&text, q->a[0]);
        jinja_put_value(&text, q->a[1].kind == JINJA_ABSENT ? list->v[i]
                                                            : jinja_follow(r, list->v[i], q->a[1]));
    }
    return jinja_plain_value(&text);
}

static value unique(struct jinja_run *r, const struct jinja_asked *q)
{
    const struct jinja_list *list = jinja_members(r->w, q->x).as.list;
    value to = jinja_list(r->w, JINJA_LIST);
    for (size_t i = 0; i < list->n && !r->w->failed; i++) {
        if (list->v[i].kind == JINJA_STRING) /* Jinja does not tell their cases apart */
            jinja_fail(r->w, "unique of strings: not supported");
        if (!jinja_contains(r->w, to, list->v[i]))
            jinja_push(r->w, to, list->v[i]);
    }
    return generator(to);
}

/* ---- filters that call others ---- */

/* The name in the first argument; its own arguments, those after it. */
static const struct jinja_string *inner(struct jinja_run *r, const struct jinja_arguments *all,
                                        size_t at, struct jinja_arguments *to)
{
    to->n = 0;
    if (at >= all->n || all->v[at].name || all->v[at].value.kind != JINJA_STRING) {
        jinja_fail(r->w, "a filter of filters or tests needs a name");
        return jinja_own(r->w, "", 0);
    }
    for (size_t i = at + 1; i < all->n; i++)
        to->v[to->n++] = all->v[i];
    return all->v[at].value.as.string;
}

/* The list that map, select and similar filters go through. It is empty if x counts as false. */
static value passed(struct jinja_run *r, value x)
{
    return jinja_true(x) ? jinja_members(r->w, x) : jinja_list(r->w, JINJA_LIST);
}

static value map(struct jinja_run *r, const struct jinja_asked *q)
{
    static const struct jinja_string word = {.bytes = "attribute", .n = 9};
    value list = passed(r, q->x), to = jinja_list(r->w, JINJA_LIST);
    int named = q->all->n && q->all->v[0].name && jinja_same(q->all->v[0].name, &word);
    struct jinja_arguments own = {0};
    const struct jinja_string *name = named ? NULL : inner(r, q->all, 0, &own);
    if (named && (q->all->n > 2 || (q->all->n == 2 && !jinja_is(q->all->v[1].name, "default"))))
        jinja_fail(r->w, "map with these arguments: not supported");
    for (size_t i = 0; i < list.as.list->n && !r->w->failed; i++) {
        value one = list.as.list->v[i];
        one = named ? jinja_follow(r, one, q->all->v[0].value)
                    : jinja_apply_filter(r, name, one, &own);
        if (named && q->all->n == 2 && one.kind == JINJA_UNDEFINED)
            one = q->all->v[1].value;
        jinja_push(r->w, to, one);
    }
    return generator(to);
}

enum { REJECT, SELECT, BY_ATTRIBUTE };

/* Members that pass a test, or that do not; BY_ATTRIBUTE: the test is for an attribute. */
static value choose(struct jinja_run *r, const struct jinja_asked *q)
{
    int by_attribute = q->how & BY_ATTRIBUTE, wanted = q->how & SELECT;
    value list = passed(r, q->x), to = jinja_list(r->w, JINJA_LIST);
    struct jinja_arguments own = {0};
    size_t at = by_attribute != 0;
    const struct jinja_string *name = q->all->n > at ? inner(r, q->all, at, &own) : NULL;
    if (by_attribute && (!q->all->n || q->all->v[0].name))
        jinja_fail(r->w, "selectattr or rejectattr needs an attribute");
    for (size_t i = 0; i < list.as.list->n && !r->w->failed; i++) {
        value one = list.as.list->v[i], asked = one;
        if (by_attribute)
            asked = jinja_follow(r, one, q->all->v[0].value);
        if ((name ? jinja_apply_test(r, name, asked, &own) : jinja_true(asked)) == wanted)
            jinja_push(r->w, to, one);
    }
    return generator(to);
}

static const struct {
    const char *name, *arguments; /* NULL: any */
    filter *apply;
    int how;
} filters[] = {
    {"trim", "?chars", trim, 0},
    {"tojson", "?ensure_ascii indent separators sort_keys", tojson, 0},
    {"length", "", length, 0},
    {"count", "", length, 0},
    {"join", "?d attribute", join, 0},
    {"upper", "", change_case, JINJA_UPPER},
    {"lower", "", change_case, JINJA_LOWER},
    {"capitalize", "", change_case, JINJA_CAPITAL},
    {"default", "?default_value boolean", standard, 0},
    {"d", "?default_value boolean", standard, 0},
    {"first", "", first, 0},
    {"last", "", last, 0},
    {"list", "", to_list, 0},
    {"reverse", "", reverse, 0},
    {"items", "", items, 0},
    {"string", "", to_string, 0},
    {"int", "?default", to_int, 0},
    {"abs", "", absolute, 0},
    {"replace", "old new ?count", replace, 0},
    {"safe", "", safe, 0},
    {"unique", "", unique, 0},
    {"sort", "?reverse case_sensitive attribute", jinja_sort, 0},
    {"dictsort", "?case_sensitive by reverse", jinja_sort_dict, 0},
    {"min", "?case_sensitive attribute", jinja_extreme, 0},
    {"max", "?case_sensitive attribute", jinja_extreme, 1},
    {"format", NULL, jinja_format, 1},
    {"map", NULL, map, 0},
    {"select", NULL, choose, SELECT},
    {"reject", NULL, choose, REJECT},
    {"selectattr", NULL, choose, SELECT | BY_ATTRIBUTE},
    {"rejectattr", NULL, choose, REJECT | BY_ATTRIBUTE},
};

value jinja_apply_filter(struct jinja_run *r, const struct jinja_string *name, value x,
                         const struct jinja_arguments *a)
{
    jinja_spend(r->w, 1);
    jinja_spend_on(r->w, x);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        if (!jinja_is(name, filters[i].name))
            continue;
        struct jinja_asked q = {.x = x, .all = a, .how = filters[i].how};
        if (filters[i].arguments)
            jinja_bind(r, name, a, filters[i].arguments, q.a);
        return r->w->failed ? x : filters[i].apply(r, &q);
    }
    jinja_fail(r->w, "the filter %.*s: not supported", JINJA_SHOWN(name));
    return x;
}

/* ---- tests ---- */

enum test {
    DEFINED, UNDEFINED, NONE, STRING, MAPPING, ITERABLE, SEQUENCE, NUMBER, INTEGER, FLOAT, BOOLEAN,
    TRUE, FALSE, CALLABLE, ODD, EVEN, ONE_SIDED, /* those below have an argument */
    DIVISIBLE, EQUAL, UNEQUAL, GREATER, AT_LEAST, LESS, AT_MOST, IN
};
static const struct {
    const char *name;
    enum test test;
} tests[] = {
    {"defined", DEFINED}, {"undefined", UNDEFINED}, {"none", NONE}, {"string", STRING},
    {"mapping", MAPPING}, {"iterable", ITERABLE}, {"sequence", SEQUENCE}, {"number", NUMBER},
    {"integer", INTEGER}, {"float", FLOAT}, {"boolean", BOOLEAN}, {"true", TRUE},
    {"false", FALSE}, {"callable", CALLABLE}, {"odd", ODD}, {"even", EVEN},
    {"divisibleby", DIVISIBLE}, {"equalto", EQUAL}, {"eq", EQUAL}, {"==", EQUAL},
    {"ne", UNEQUAL}, {"!=", UNEQUAL}, {"gt", GREATER}, {"greaterthan", GREATER}, {">", GREATER},
    {"ge", AT_LEAST}, {">=", AT_LEAST}, {"lt", LESS}, {"lessthan", LESS}, {"<", LESS},
    {"le", AT_MOST}, {"<=", AT_MOST}, {"in", IN},
};

/* The remainder of x / n: 0, or a number with the sign of x. */
static int64_t remainder_of(struct jinja_run *r, value x, value n)
{
    if (!jinja_is_number(x) || !jinja_is_number(n) || n.as.number <= 0) {
        jinja_fail(r->w, "a remainder of %s", jinja_kind_name(x.kind));
        return 0;
    }
    return x.as.number % n.as.number;
}

static int test_alone(struct jinja_run *r, enum test test, value x)
{
    int has_members = x.kind == JINJA_STRING || jinja_is_list(x) || x.kind == JINJA_DICT ||
                      x.kind == JINJA_UNDEFINED || x.kind == JINJA_GENERATOR;
    switch (test) {
    case DEFINED:
        return x.kind != JINJA_UNDEFINED;
    case UNDEFINED:
        return x.kind == JINJA_UNDEFINED;
    case NONE:
        return x.kind == JINJA_NONE;
    case STRING:
        return x.kind == JINJA_STRING;
    case MAPPING:
        return x.kind == JINJA_DICT;
    case ITERABLE:
        return has_members;
    case SEQUENCE:
        return has_members && x.kind != JINJA_GENERATOR;
    case NUMBER:
        return jinja_is_number(x);
    case INTEGER:
        return x.kind == JINJA_NUMBER;
    case BOOLEAN:
        return x.kind == JINJA_BOOL;
    case TRUE:
        return x.kind == JINJA_BOOL && x.as.number;
    case FALSE:
        return x.kind == JINJA_BOOL && !x.as.number;
    case CALLABLE:
        return x.kind == JINJA_MACRO;
    case ODD:
    case EVEN:
        return (remainder_of(r, x, jinja_number(2)) != 0) == (test == ODD);
    default:
        return 0; /* FLOAT: there are none */
    }
}

static int test_pair(struct jinja_run *r, enum test test, value x, value y)
{
    if (test == DIVISIBLE)
        return remainder_of(r, x, y) == 0;
    if (test == EQUAL || test == UNEQUAL)
        return jinja_equal(r->w, x, y) == (test == EQUAL);
    if (test == IN)
        return jinja_contains(r->w, y, x);
    int order = jinja_order(r->w, x, y);
    return test == GREATER ? order > 0 : test == AT_LEAST ? order >= 0
           : test == LESS ? order < 0 : order <= 0;
}

int jinja_apply_test(struct jinja_run *r, const struct jinja_string *name, value x,
                     const struct jinja_arguments *a)
{
    jinja_spend(r->w, 1);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (!jinja_is(name, tests[i].name))
            continue;
        if (a->n != (tests[i].test > ONE_SIDED)) {
            jinja_fail(r->w, "the test %.*s with %zu arguments", JINJA_SHOWN(name), a->n);
            return 0;
        }
        return a->n ? test_pair(r, tests[i].test, x, a->v[0].value)
                    : test_alone(r, tests[i].test, x);
    }
    jinja_fail(r->w, "the test %.*s: not supported", JINJA_SHOWN(name));
    return 0;
}
