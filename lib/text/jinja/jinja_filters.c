/* jinja_filters.c - filters and tests; see jinja_run.h.
 *
 * A filter that is not in the table is refused by its name. map, select, reject, selectattr and
 * rejectattr call another filter or test, and pass their further arguments to it. */
#include "lib/text/jinja/jinja_run.h"

#include <stdlib.h>
#include <string.h>

typedef struct jinja_value value;
typedef value filter(struct jinja_run *run, const struct jinja_asked *asked);

static value to_string(struct jinja_run *run, const struct jinja_asked *asked)
{
    return jinja_string(jinja_words(run->w, asked->x));
}

static value trim(struct jinja_run *run, const struct jinja_asked *asked)
{
    const struct jinja_string *letters = NULL;
    if (asked->a[0].kind != JINJA_ABSENT && asked->a[0].kind != JINJA_NONE)
        letters = jinja_words(run->w, asked->a[0]);
    return jinja_strip(run, jinja_words(run->w, asked->x), 3, letters);
}

static value tojson(struct jinja_run *run, const struct jinja_asked *asked)
{
    int64_t indent = asked->a[1].kind == JINJA_NUMBER ? asked->a[1].as.number : -1;
    struct jinja_json_form form = {.ascii = jinja_true(asked->a[0]), .indent = (int)indent};
    int between = jinja_true(asked->a[2]),
        pair = jinja_is_list(asked->a[2]) && asked->a[2].as.list->n == 2;
    const value *marks = pair ? asked->a[2].as.list->v : NULL;
    if (jinja_true(asked->a[3]) || indent > 16 ||
        (indent < 0 && asked->a[1].kind == JINJA_NUMBER) ||
        (between && (!pair || marks[0].kind != JINJA_STRING || marks[1].kind != JINJA_STRING))) {
        jinja_fail(run->w, "tojson with these arguments: not supported");
        return asked->x;
    }
    if (between) {
        form.after_item = marks[0].as.string;
        form.after_key = marks[1].as.string;
    }
    return jinja_to_json(run, asked->x, form);
}

static value length(struct jinja_run *run, const struct jinja_asked *asked)
{
    return jinja_number((int64_t)jinja_length(run->w, asked->x));
}

static value change_case(struct jinja_run *run, const struct jinja_asked *asked)
{
    return jinja_change_case(run, jinja_words(run->w, asked->x), (enum jinja_case)asked->how);
}

static value standard(struct jinja_run *run, const struct jinja_asked *asked)
{
    int absent = asked->x.kind == JINJA_UNDEFINED ||
                 (jinja_true(asked->a[1]) && !jinja_true(asked->x));
    if (!absent)
        return asked->x;
    return asked->a[0].kind == JINJA_ABSENT ? jinja_string(jinja_own(run->w, "", 0)) : asked->a[0];
}

static value first(struct jinja_run *run, const struct jinja_asked *asked)
{
    if (asked->x.kind == JINJA_GENERATOR && asked->x.as.list->n) { /* the other members stay */
        asked->x.as.list->n--;
        return *asked->x.as.list->v++;
    }
    const struct jinja_list *list = jinja_members(run->w, asked->x).as.list;
    return list->n ? list->v[0] : jinja_undefined(NULL);
}

static value last(struct jinja_run *run, const struct jinja_asked *asked)
{
    const struct jinja_list *list = jinja_members(run->w, asked->x).as.list;
    if (asked->x.kind == JINJA_GENERATOR)
        jinja_fail(run->w, "last of a generator");
    /* the last character of a string, which Jinja keeps safe */
    if (asked->x.kind == JINJA_STRING && list->n) {
        struct jinja_text text = {.w = run->w, .safe = asked->x.as.string->safe};
        jinja_put(&text, list->v[list->n - 1].as.string);
        return jinja_text_value(&text);
    }
    return list->n ? list->v[list->n - 1] : jinja_undefined(NULL);
}

static value to_list(struct jinja_run *run, const struct jinja_asked *asked)
{
    return jinja_members(run->w, asked->x);
}

/* Turns a list into a generator: in Python it gives its members one by one, counts as true, and has
 * no length. */
static value generator(value list)
{
    list.kind = JINJA_GENERATOR;
    return list;
}

static value reverse(struct jinja_run *run, const struct jinja_asked *asked)
{
    const struct jinja_list *list = jinja_members(run->w, asked->x).as.list;
    value to = jinja_list(run->w, JINJA_LIST);
    if (asked->x.kind == JINJA_STRING)
        jinja_fail(run->w, "reverse of a string: not supported");
    for (size_t i = list->n; i > 0; i--)
        jinja_push(run->w, to, list->v[i - 1]);
    return asked->x.kind == JINJA_GENERATOR ? to : generator(to);
}

static value items(struct jinja_run *run, const struct jinja_asked *asked)
{
    if (asked->x.kind != JINJA_DICT && asked->x.kind != JINJA_UNDEFINED)
        jinja_fail(run->w, "items of %s", jinja_kind_name(asked->x.kind));
    return generator(jinja_items(run, asked->x));
}

/* The filter int: reads digits with a sign. A text without digits becomes a[0], by default 0. */
static value to_int(struct jinja_run *run, const struct jinja_asked *asked)
{
    char digits[20] = "", *end;
    value other = asked->a[0].kind == JINJA_ABSENT ? jinja_number(0) : asked->a[0];
    if (jinja_is_number(asked->x))
        return jinja_number(asked->x.as.number);
    if (asked->x.kind == JINJA_UNDEFINED)
        jinja_fail(run->w, "int of an undefined value");
    if (asked->x.kind != JINJA_STRING)
        return other;
    const struct jinja_string *string = jinja_strip(run, asked->x.as.string, 3, NULL).as.string;
    if (string->n < sizeof digits)
        memcpy(digits, string->bytes, string->n);
    long long n = strtoll(digits, &end, 10);
    if (string->n && string->n < sizeof digits && !*end && strlen(digits) == string->n)
        return jinja_number(n);
    for (size_t i = 0; i < string->n; i++)
        if (string->bytes[i] >= '0' && string->bytes[i] <= '9')
            jinja_fail(run->w, "int of this text: not supported");
    return other;
}

static value absolute(struct jinja_run *run, const struct jinja_asked *asked)
{
    if (!jinja_is_number(asked->x) || asked->x.as.number == INT64_MIN)
        jinja_fail(run->w, "abs of %s", jinja_kind_name(asked->x.kind));
    return jinja_number(asked->x.as.number < 0 && !run->w->failed ? -asked->x.as.number
                                                                  : asked->x.as.number);
}

static value replace(struct jinja_run *run, const struct jinja_asked *asked)
{
    struct jinja_text text = {.w = run->w};
    value subject = jinja_replace(run, jinja_words(run->w, asked->x),
                                  jinja_words(run->w, asked->a[0]),
                                  jinja_words(run->w, asked->a[1]),
                                  jinja_integer(run, asked->a[2], -1));
    jinja_put(&text, subject.as.string);
    return jinja_plain_value(&text);
}

static value safe(struct jinja_run *run, const struct jinja_asked *asked)
{
    struct jinja_text text = {.w = run->w, .safe = 1};
    jinja_put_value(&text, asked->x);
    return jinja_text_value(&text);
}

value jinja_follow(struct jinja_run *run, value subject, value path)
{
    jinja_spend(run->w, 1);
    jinja_spend_on(run->w, path);
    if (jinja_is_number(path))
        return jinja_item(run, subject, path);
    const struct jinja_string *string = jinja_words(run->w, path);
    for (size_t begin = 0, end; begin <= string->n && !run->w->failed; begin = end + 1) {
        const char *dot = memchr(string->bytes + begin, '.', string->n - begin);
        end = dot ? (size_t)(dot - string->bytes) : string->n;
        if (end > begin && string->bytes[begin] >= '0' && string->bytes[begin] <= '9')
            jinja_fail(run->w, "a number in a path: not supported");
        subject = jinja_item(run, subject, jinja_string(jinja_part(run->w, string, begin, end)));
    }
    return subject;
}

static value join(struct jinja_run *run, const struct jinja_asked *asked)
{
    struct jinja_text text = {.w = run->w};
    const struct jinja_list *list = jinja_members(run->w, asked->x).as.list;
    for (size_t i = 0; i < list->n && !run->w->failed; i++) {
        if (i && asked->a[0].kind != JINJA_ABSENT)
            jinja_put_value(&text, asked->a[0]);
        jinja_put_value(&text, asked->a[1].kind == JINJA_ABSENT
                                   ? list->v[i]
                                   : jinja_follow(run, list->v[i], asked->a[1]));
    }
    return jinja_plain_value(&text);
}

static value unique(struct jinja_run *run, const struct jinja_asked *asked)
{
    const struct jinja_list *list = jinja_members(run->w, asked->x).as.list;
    value to = jinja_list(run->w, JINJA_LIST);
    for (size_t i = 0; i < list->n && !run->w->failed; i++) {
        if (list->v[i].kind == JINJA_STRING) /* Jinja ignores upper and lower case here */
            jinja_fail(run->w, "unique of strings: not supported");
        if (!jinja_contains(run->w, to, list->v[i]))
            jinja_push(run->w, to, list->v[i]);
    }
    return generator(to);
}

/* ---- filters that call other filters or tests ---- */

/* Returns argument `at`, the name of a filter or test. *to = its arguments: those after `at`. */
static const struct jinja_string *inner(struct jinja_run *run, const struct jinja_arguments *all,
                                        size_t at, struct jinja_arguments *to)
{
    to->n = 0;
    if (at >= all->n || all->v[at].name || all->v[at].value.kind != JINJA_STRING) {
        jinja_fail(run->w, "a filter of filters or tests needs a name");
        return jinja_own(run->w, "", 0);
    }
    for (size_t i = at + 1; i < all->n; i++)
        to->v[to->n++] = all->v[i];
    return all->v[at].value.as.string;
}

/* The members that map, select and similar filters visit: an empty list if subject counts as
 * false. */
static value passed(struct jinja_run *run, value subject)
{
    return jinja_true(subject) ? jinja_members(run->w, subject) : jinja_list(run->w, JINJA_LIST);
}

static value map(struct jinja_run *run, const struct jinja_asked *asked)
{
    static const struct jinja_string word = {.bytes = "attribute", .n = 9};
    value list = passed(run, asked->x), to = jinja_list(run->w, JINJA_LIST);
    int named = asked->all->n && asked->all->v[0].name && jinja_same(asked->all->v[0].name, &word);
    struct jinja_arguments own = {0};
    const struct jinja_string *name = named ? NULL : inner(run, asked->all, 0, &own);
    if (named &&
        (asked->all->n > 2 || (asked->all->n == 2 && !jinja_is(asked->all->v[1].name, "default"))))
        jinja_fail(run->w, "map with these arguments: not supported");
    for (size_t i = 0; i < list.as.list->n && !run->w->failed; i++) {
        value one = list.as.list->v[i];
        one = named ? jinja_follow(run, one, asked->all->v[0].value)
                    : jinja_apply_filter(run, name, one, &own);
        if (named && asked->all->n == 2 && one.kind == JINJA_UNDEFINED)
            one = asked->all->v[1].value;
        jinja_push(run->w, to, one);
    }
    return generator(to);
}

enum { REJECT, SELECT, BY_ATTRIBUTE };

/* The members that pass a test (SELECT), or that do not (REJECT). BY_ATTRIBUTE: the test applies to
 * an attribute of the member. */
static value choose(struct jinja_run *run, const struct jinja_asked *jinja_asked)
{
    int by_attribute = jinja_asked->how & BY_ATTRIBUTE, wanted = jinja_asked->how & SELECT;
    value list = passed(run, jinja_asked->x), to = jinja_list(run->w, JINJA_LIST);
    struct jinja_arguments own = {0};
    size_t at = by_attribute != 0;
    const struct jinja_string *name = jinja_asked->all->n > at
                                          ? inner(run, jinja_asked->all, at, &own)
                                          : NULL;
    if (by_attribute && (!jinja_asked->all->n || jinja_asked->all->v[0].name))
        jinja_fail(run->w, "selectattr or rejectattr needs an attribute");
    for (size_t i = 0; i < list.as.list->n && !run->w->failed; i++) {
        value one = list.as.list->v[i], asked = one;
        if (by_attribute)
            asked = jinja_follow(run, one, jinja_asked->all->v[0].value);
        if ((name ? jinja_apply_test(run, name, asked, &own) : jinja_true(asked)) == wanted)
            jinja_push(run->w, to, one);
    }
    return generator(to);
}

static const struct {
    const char *name, *arguments; /* arguments: for jinja_bind; NULL: the filter reads them */
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

value jinja_apply_filter(struct jinja_run *run, const struct jinja_string *name, value subject,
                         const struct jinja_arguments *arguments)
{
    jinja_spend(run->w, 1);
    jinja_spend_on(run->w, subject);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        if (!jinja_is(name, filters[i].name))
            continue;
        struct jinja_asked asked = {.x = subject, .all = arguments, .how = filters[i].how};
        if (filters[i].arguments)
            jinja_bind(run, name, arguments, filters[i].arguments, asked.a);
        return run->w->failed ? subject : filters[i].apply(run, &asked);
    }
    jinja_fail(run->w, "the filter %.*s: not supported", JINJA_SHOWN(name));
    return subject;
}

/* ---- tests ---- */

enum test {
    DEFINED, UNDEFINED, NONE, STRING, MAPPING, ITERABLE, SEQUENCE, NUMBER, INTEGER, FLOAT, BOOLEAN,
    TRUE, FALSE, CALLABLE, ODD, EVEN, ONE_SIDED, /* tests after ONE_SIDED have an argument */
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

/* The remainder of subject / n: 0, or a number with the sign of subject. */
static int64_t remainder_of(struct jinja_run *run, value subject, value n)
{
    if (!jinja_is_number(subject) || !jinja_is_number(n) || n.as.number <= 0) {
        jinja_fail(run->w, "a remainder of %s", jinja_kind_name(subject.kind));
        return 0;
    }
    return subject.as.number % n.as.number;
}

static int test_alone(struct jinja_run *run, enum test test, value subject)
{
    int has_members = subject.kind == JINJA_STRING || jinja_is_list(subject) ||
                      subject.kind == JINJA_DICT || subject.kind == JINJA_UNDEFINED ||
                      subject.kind == JINJA_GENERATOR;
    switch (test) {
    case DEFINED:
        return subject.kind != JINJA_UNDEFINED;
    case UNDEFINED:
        return subject.kind == JINJA_UNDEFINED;
    case NONE:
        return subject.kind == JINJA_NONE;
    case STRING:
        return subject.kind == JINJA_STRING;
    case MAPPING:
        return subject.kind == JINJA_DICT;
    case ITERABLE:
        return has_members;
    case SEQUENCE:
        return has_members && subject.kind != JINJA_GENERATOR;
    case NUMBER:
        return jinja_is_number(subject);
    case INTEGER:
        return subject.kind == JINJA_NUMBER;
    case BOOLEAN:
        return subject.kind == JINJA_BOOL;
    case TRUE:
        return subject.kind == JINJA_BOOL && subject.as.number;
    case FALSE:
        return subject.kind == JINJA_BOOL && !subject.as.number;
    case CALLABLE:
        return subject.kind == JINJA_MACRO;
    case ODD:
    case EVEN:
        return (remainder_of(run, subject, jinja_number(2)) != 0) == (test == ODD);
    default:
        return 0; /* FLOAT: no value is a float */
    }
}

static int test_pair(struct jinja_run *run, enum test test, value subject, value y)
{
    if (test == DIVISIBLE)
        return remainder_of(run, subject, y) == 0;
    if (test == EQUAL || test == UNEQUAL)
        return jinja_equal(run->w, subject, y) == (test == EQUAL);
    if (test == IN)
        return jinja_contains(run->w, y, subject);
    int order = jinja_order(run->w, subject, y);
    return test == GREATER ? order > 0 : test == AT_LEAST ? order >= 0
           : test == LESS ? order < 0 : order <= 0;
}

int jinja_apply_test(struct jinja_run *run, const struct jinja_string *name, value subject,
                     const struct jinja_arguments *arguments)
{
    jinja_spend(run->w, 1);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (!jinja_is(name, tests[i].name))
            continue;
        if (arguments->n != (tests[i].test > ONE_SIDED)) {
            jinja_fail(run->w, "the test %.*s with %zu arguments", JINJA_SHOWN(name), arguments->n);
            return 0;
        }
        return arguments->n ? test_pair(run, tests[i].test, subject, arguments->v[0].value)
                            : test_alone(run, tests[i].test, subject);
    }
    jinja_fail(run->w, "the test %.*s: not supported", JINJA_SHOWN(name));
    return 0;
}
