/* jinja_expression.c - parses expressions; see jinja_node.h.
 *
 * From weak to strong, as in Jinja: if else; or; and; not; comparisons; + -; ~; * / // %; power;
 * signs; then calls, attributes, items, filters and tests. Filters and tests are looked up when
 * they run, because a template names many in branches that a plain conversation never takes. */
#include "lib/text/jinja/jinja_node.h"

enum { LEVEL_NOT = 2, LEVEL_COMPARE = 3, LEVELS = 8 };
static const struct {
    const char *sign;
    int level;
    enum jinja_node_kind kind;
} operators[] = {
    {"+", 4, JINJA_ADD}, {"-", 4, JINJA_SUBTRACT}, {"~", 5, JINJA_CONCAT}, {"*", 6, JINJA_MULTIPLY},
    {"/", 6, JINJA_DIVIDE}, {"//", 6, JINJA_FLOOR}, {"%", 6, JINJA_MODULO}, {"**", 7, JINJA_POWER},
};

static struct jinja_node *constant(struct jinja_parser *p, struct jinja_value value)
{
    struct jinja_node *x = jinja_node(p, JINJA_CONST, NULL, NULL);
    x->value = value;
    return x;
}

static struct jinja_node *named(struct jinja_parser *p, enum jinja_node_kind kind,
                                struct jinja_node *a, const struct jinja_string *name)
{
    struct jinja_node *x = jinja_node(p, kind, a, NULL);
    x->name = name;
    return x;
}

/* ---- lists of values ---- */

/* Parses (a, b, name=c) from its bracket on. */
static void arguments(struct jinja_parser *p, struct jinja_node *around)
{
    struct jinja_node **end = &around->list;
    jinja_expect_sign(p, "(");
    while (!jinja_at_sign(p, ")") && !p->w->failed) {
        const struct jinja_token *t = jinja_peek(p);
        struct jinja_node *x;
        if (jinja_at_sign(p, "*") || jinja_at_sign(p, "**"))
            jinja_fail(p->w, "%.*s in a call: not supported", JINJA_SHOWN(t->text));
        if (t->kind == JINJA_TOKEN_NAME && t[1].kind == JINJA_TOKEN_SIGN &&
            jinja_is(t[1].text, "=")) {
            jinja_step(p);
            jinja_step(p);
            x = named(p, JINJA_KEYWORD, jinja_expression(p, 1), t->text);
        } else {
            x = jinja_expression(p, 1);
        }
        end = jinja_append(p, around, end, x);
        if (!jinja_at_sign(p, ")"))
            jinja_expect_sign(p, ",");
    }
    jinja_expect_sign(p, ")");
}

void jinja_parameters(struct jinja_parser *p, struct jinja_node *macro)
{
    struct jinja_node **end = &macro->other;
    jinja_expect_sign(p, "(");
    while (!jinja_at_sign(p, ")") && !p->w->failed) {
        const struct jinja_string *name = jinja_expect_name(p);
        struct jinja_node *standard = jinja_skip_sign(p, "=") ? jinja_expression(p, 1) : NULL;
        end = jinja_append(p, macro, end, named(p, JINJA_KEYWORD, standard, name));
        if (!jinja_at_sign(p, ")"))
            jinja_expect_sign(p, ",");
    }
    jinja_expect_sign(p, ")");
}

static struct jinja_node *listing(struct jinja_parser *p, enum jinja_kind kind)
{
    struct jinja_node *x = jinja_node(p, JINJA_LISTING, NULL, NULL);
    x->value.kind = kind;
    return x;
}

static struct jinja_node *list_in_brackets(struct jinja_parser *p)
{
    struct jinja_node *x = listing(p, JINJA_LIST), **end = &x->list;
    while (!jinja_at_sign(p, "]") && !p->w->failed) {
        end = jinja_append(p, x, end, jinja_expression(p, 1));
        if (!jinja_at_sign(p, "]"))
            jinja_expect_sign(p, ",");
    }
    jinja_expect_sign(p, "]");
    return x;
}

static struct jinja_node *mapping(struct jinja_parser *p)
{
    struct jinja_node *x = jinja_node(p, JINJA_MAPPING, NULL, NULL), **end = &x->list;
    while (!jinja_at_sign(p, "}") && !p->w->failed) {
        end = jinja_append(p, x, end, jinja_expression(p, 1));
        jinja_expect_sign(p, ":");
        end = jinja_append(p, x, end, jinja_expression(p, 1));
        if (!jinja_at_sign(p, "}"))
            jinja_expect_sign(p, ",");
    }
    jinja_expect_sign(p, "}");
    return x;
}

static int tuple_ends(const struct jinja_parser *p)
{
    const struct jinja_token *t = jinja_peek(p);
    return t->kind == JINJA_TOKEN_CLOSE || t->kind == JINJA_TOKEN_END || jinja_at_sign(p, ")") ||
           jinja_at_name(p, "in");
}

struct jinja_node *jinja_tuple(struct jinja_parser *p, int choices)
{
    struct jinja_node *first = jinja_expression(p, choices);
    if (!jinja_at_sign(p, ","))
        return first;
    struct jinja_node *x = listing(p, JINJA_TUPLE);
    struct jinja_node **end = jinja_append(p, x, &x->list, first);
    while (jinja_skip_sign(p, ",") && !tuple_ends(p))
        end = jinja_append(p, x, end, jinja_expression(p, choices));
    return x;
}

static struct jinja_node *in_brackets(struct jinja_parser *p)
{
    if (jinja_skip_sign(p, ")"))
        return listing(p, JINJA_TUPLE);
    struct jinja_node *x = jinja_tuple(p, 1);
    jinja_expect_sign(p, ")");
    return x;
}

/* ---- single values ---- */

/* Neighbouring strings are joined into one. */
static struct jinja_node *string(struct jinja_parser *p)
{
    const struct jinja_string *s = jinja_peek(p)->text;
    jinja_step(p);
    while (jinja_peek(p)->kind == JINJA_TOKEN_STRING) {
        struct jinja_text both = {.w = p->w};
        jinja_put(&both, s);
        jinja_put(&both, jinja_peek(p)->text);
        s = jinja_taken(&both);
        jinja_step(p);
    }
    return constant(p, jinja_string(s));
}

static struct jinja_node *name(struct jinja_parser *p)
{
    static const struct { const char *word; int number; } known[] = {
        {"true", 1}, {"True", 1}, {"false", 0}, {"False", 0}, {"none", -1}, {"None", -1}};
    static const char *const reserved[] = {"and", "or", "not", "if", "else", "in", "is"};
    const struct jinja_string *word = jinja_peek(p)->text;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (jinja_is(word, reserved[i]))
            jinja_unexpected(p, "a value");
    jinja_step(p);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (jinja_is(word, known[i].word))
            return constant(p, known[i].number < 0 ? jinja_none() : jinja_bool(known[i].number));
    return named(p, JINJA_NAME, NULL, word);
}

static struct jinja_node *primary(struct jinja_parser *p)
{
    const struct jinja_token *t = jinja_peek(p);
    if (t->kind == JINJA_TOKEN_NAME)
        return name(p);
    if (t->kind == JINJA_TOKEN_STRING)
        return string(p);
    if (t->kind == JINJA_TOKEN_NUMBER) {
        jinja_step(p);
        return constant(p, jinja_number(t->number));
    }
    if (jinja_skip_sign(p, "("))
        return in_brackets(p);
    if (jinja_skip_sign(p, "["))
        return list_in_brackets(p);
    if (jinja_skip_sign(p, "{"))
        return mapping(p);
    jinja_unexpected(p, "a value");
    return constant(p, jinja_none());
}

/* Parses [a] or [a:b:c] behind the first bracket. */
static struct jinja_node *item(struct jinja_parser *p, struct jinja_node *of)
{
    struct jinja_node *x = jinja_node(p, JINJA_SLICE, of, NULL), **end = &x->list;
    int parts = 0;
    do {
        int absent = jinja_at_sign(p, ":") || jinja_at_sign(p, "]");
        end = jinja_append(p, x, end, absent ? constant(p, (struct jinja_value){0})
                                             : jinja_expression(p, 1));
        parts++;
    } while (parts < 3 && jinja_skip_sign(p, ":"));
    if (parts == 1) {
        x->kind = JINJA_ITEM;
        x->b = x->list;
        if (x->b->kind == JINJA_CONST && x->b->value.kind == JINJA_ABSENT)
            jinja_unexpected(p, "a value");
    }
    for (; parts > 1 && parts < 3; parts++)
        end = jinja_append(p, x, end, constant(p, (struct jinja_value){0}));
    jinja_expect_sign(p, "]");
    return x;
}

static struct jinja_node *attribute(struct jinja_parser *p, struct jinja_node *of)
{
    const struct jinja_token *t = jinja_peek(p);
    if (t->kind != JINJA_TOKEN_NUMBER)
        return named(p, JINJA_ATTRIBUTE, of, jinja_expect_name(p));
    jinja_step(p);
    return jinja_node(p, JINJA_ITEM, of, constant(p, jinja_number(t->number)));
}

static struct jinja_node *call(struct jinja_parser *p, struct jinja_node *of)
{
    struct jinja_node *x = jinja_node(p, JINJA_CALL, of, NULL);
    arguments(p, x);
    return x;
}

/* Parses the attributes, items and calls that follow x. */
static struct jinja_node *postfix(struct jinja_parser *p, struct jinja_node *x)
{
    for (;;) {
        if (jinja_skip_sign(p, "."))
            x = attribute(p, x);
        else if (jinja_skip_sign(p, "["))
            x = item(p, x);
        else if (jinja_at_sign(p, "("))
            x = call(p, x);
        else
            return x;
    }
}

struct jinja_node *jinja_filter(struct jinja_parser *p, struct jinja_node *x)
{
    x = named(p, JINJA_FILTER, x, jinja_expect_name(p));
    if (jinja_at_sign(p, "("))
        arguments(p, x);
    return x;
}

struct jinja_node *jinja_filters(struct jinja_parser *p, struct jinja_node *x)
{
    while (jinja_skip_sign(p, "|"))
        x = jinja_filter(p, x);
    return x;
}

/* The argument of a test without brackets: is divisibleby 3. */
static int has_bare_argument(const struct jinja_parser *p)
{
    const struct jinja_token *t = jinja_peek(p);
    return t->kind == JINJA_TOKEN_STRING || t->kind == JINJA_TOKEN_NUMBER ||
           jinja_at_sign(p, "[") || jinja_at_sign(p, "{") ||
           (t->kind == JINJA_TOKEN_NAME && !jinja_at_name(p, "else") && !jinja_at_name(p, "or") &&
            !jinja_at_name(p, "and"));
}

static struct jinja_node *test(struct jinja_parser *p, struct jinja_node *x)
{
    int negated = jinja_skip_name(p, "not");
    x = named(p, JINJA_TEST, x, jinja_expect_name(p));
    if (jinja_at_name(p, "is"))
        jinja_unexpected(p, "one test");
    else if (jinja_at_sign(p, "("))
        arguments(p, x);
    else if (has_bare_argument(p))
        jinja_append(p, x, &x->list, postfix(p, primary(p)));
    return negated ? jinja_node(p, JINJA_NOT, x, NULL) : x;
}

static struct jinja_node *unary(struct jinja_parser *p, int with_filters)
{
    struct jinja_node *x;
    int deep = !jinja_enter(p);
    if (deep)
        x = constant(p, jinja_none());
    else if (jinja_skip_sign(p, "-"))
        x = jinja_node(p, JINJA_MINUS, unary(p, 0), NULL);
    else if (jinja_skip_sign(p, "+"))
        x = jinja_node(p, JINJA_PLUS, unary(p, 0), NULL);
    else
        x = primary(p);
    jinja_leave(p);
    x = postfix(p, x);
    for (int more = with_filters; more;) {
        if (jinja_skip_sign(p, "|"))
            x = jinja_filter(p, x);
        else if (jinja_skip_name(p, "is"))
            x = test(p, x);
        else if (jinja_at_sign(p, "("))
            x = call(p, x);
        else
            more = 0;
    }
    return x;
}

/* ---- operators ---- */

static struct jinja_node *binary(struct jinja_parser *p, int level);

/* Skips the sign of a comparison and returns it; NULL: there is none. */
static const struct jinja_string *comparison_sign(struct jinja_parser *p)
{
    static const char *const signs[] = {"==", "!=", "<", ">", "<=", ">="};
    const struct jinja_token *t = jinja_peek(p);
    int there = jinja_at_name(p, "in"), outside = 0;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        there |= jinja_at_sign(p, signs[i]);
    if (jinja_at_name(p, "not") && t[1].kind == JINJA_TOKEN_NAME && jinja_is(t[1].text, "in"))
        outside = 1;
    if (!there && !outside)
        return NULL;
    for (int i = 0; i <= outside; i++)
        jinja_step(p);
    return t->text; /* "not": not in */
}

static struct jinja_node *comparison(struct jinja_parser *p)
{
    struct jinja_node *first = binary(p, LEVEL_COMPARE + 1), *x = NULL, **end = NULL;
    const struct jinja_string *sign;
    while ((sign = comparison_sign(p))) {
        if (!x) {
            x = jinja_node(p, JINJA_COMPARE, first, NULL);
            end = &x->list;
        }
        end = jinja_append(p, x, end,
                           named(p, JINJA_OPERAND, binary(p, LEVEL_COMPARE + 1), sign));
    }
    return x ? x : first;
}

static struct jinja_node *negation(struct jinja_parser *p)
{
    if (!jinja_skip_name(p, "not"))
        return comparison(p);
    struct jinja_node *inner = jinja_enter(p) ? negation(p) : constant(p, jinja_none());
    jinja_leave(p);
    return jinja_node(p, JINJA_NOT, inner, NULL);
}

/* Skips the next token if it is an operator of this level, and returns its kind; JINJA_CONST: it is
 * none. */
static enum jinja_node_kind operator_at(struct jinja_parser *p, int level)
{
    if (level < LEVEL_NOT)
        return !jinja_skip_name(p, level ? "and" : "or") ? JINJA_CONST
               : level ? JINJA_AND : JINJA_OR;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].level == level && jinja_skip_sign(p, operators[i].sign))
            return operators[i].kind;
    return JINJA_CONST;
}

static struct jinja_node *binary(struct jinja_parser *p, int level)
{
    if (level == LEVEL_NOT)
        return negation(p);
    if (level == LEVELS)
        return unary(p, 1);
    struct jinja_node *x = binary(p, level + 1);
    enum jinja_node_kind kind;
    while ((kind = operator_at(p, level)) != JINJA_CONST)
        x = jinja_node(p, kind, x, binary(p, level + 1));
    return x;
}

struct jinja_node *jinja_expression(struct jinja_parser *p, int choices)
{
    int deep = !jinja_enter(p);
    struct jinja_node *x = deep ? constant(p, jinja_none()) : binary(p, 0);
    while (choices && jinja_skip_name(p, "if")) {
        x = jinja_node(p, JINJA_CHOICE, x, binary(p, 0));
        if (jinja_skip_name(p, "else"))
            x->c = jinja_expression(p, 1);
        jinja_deepen(p, x, x->c);
    }
    jinja_leave(p);
    return x;
}

/* ---- targets of assignments ---- */

static struct jinja_node *one_target(struct jinja_parser *p, int attribute)
{
    struct jinja_node *x = named(p, JINJA_NAME, NULL, jinja_expect_name(p));
    if (attribute && jinja_skip_sign(p, "."))
        x = named(p, JINJA_ATTRIBUTE, x, jinja_expect_name(p));
    return x;
}

struct jinja_node *jinja_target(struct jinja_parser *p, int attribute)
{
    int bracket = jinja_skip_sign(p, "(");
    struct jinja_node *x = one_target(p, attribute);
    if (jinja_at_sign(p, ",")) {
        struct jinja_node *all = listing(p, JINJA_TUPLE);
        struct jinja_node **end = jinja_append(p, all, &all->list, x);
        while (jinja_skip_sign(p, ",") && !tuple_ends(p))
            end = jinja_append(p, all, end, one_target(p, 0));
        x = all;
    }
    if (bracket)
        jinja_expect_sign(p, ")");
    return x;
}
