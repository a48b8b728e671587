/* jinja_expression.c - parses expressions; see jinja_node.h.
 *
 * Operators from weak to strong, as in Jinja: if else; or; and; not; comparisons; + -; ~; * / // %;
 * power; signs; then calls, attributes, items, filters and tests. Filters and tests are looked up
 * only when they run, because a template names many in branches that a plain conversation never
 * takes. */
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

static struct jinja_node *constant(struct jinja_parser *parser, struct jinja_value value)
{
    struct jinja_node *node = jinja_node(parser, JINJA_CONST, NULL, NULL);
    node->value = value;
    return node;
}

static struct jinja_node *named(struct jinja_parser *parser, enum jinja_node_kind kind,
                                struct jinja_node *a, const struct jinja_string *name)
{
    struct jinja_node *x = jinja_node(parser, kind, a, NULL);
    x->name = name;
    return x;
}

/* ---- lists of values ---- */

/* Parses the arguments of a call with their brackets: (a, b, name=c). */
static void arguments(struct jinja_parser *parser, struct jinja_node *around)
{
    struct jinja_node **end = &around->list;
    jinja_expect_sign(parser, "(");
    while (!jinja_at_sign(parser, ")") && !parser->w->failed) {
        const struct jinja_token *token = jinja_peek(parser);
        struct jinja_node *node;
        if (jinja_at_sign(parser, "*") || jinja_at_sign(parser, "**"))
            jinja_fail(parser->w, "%.*s in a call: not supported", JINJA_SHOWN(token->text));
        if (token->kind == JINJA_TOKEN_NAME && token[1].kind == JINJA_TOKEN_SIGN &&
            jinja_is(token[1].text, "=")) {
            jinja_step(parser);
            jinja_step(parser);
            node = named(parser, JINJA_KEYWORD, jinja_expression(parser, 1), token->text);
        } else {
            node = jinja_expression(parser, 1);
        }
        end = jinja_append(parser, around, end, node);
        if (!jinja_at_sign(parser, ")"))
            jinja_expect_sign(parser, ",");
    }
    jinja_expect_sign(parser, ")");
}

void jinja_parameters(struct jinja_parser *parser, struct jinja_node *macro)
{
    struct jinja_node **end = &macro->other;
    jinja_expect_sign(parser, "(");
    while (!jinja_at_sign(parser, ")") && !parser->w->failed) {
        const struct jinja_string *name = jinja_expect_name(parser);
        struct jinja_node *standard = jinja_skip_sign(parser, "=") ? jinja_expression(parser, 1)
                                                                   : NULL;
        end = jinja_append(parser, macro, end, named(parser, JINJA_KEYWORD, standard, name));
        if (!jinja_at_sign(parser, ")"))
            jinja_expect_sign(parser, ",");
    }
    jinja_expect_sign(parser, ")");
}

static struct jinja_node *listing(struct jinja_parser *parser, enum jinja_kind kind)
{
    struct jinja_node *node = jinja_node(parser, JINJA_LISTING, NULL, NULL);
    node->value.kind = kind;
    return node;
}

static struct jinja_node *list_in_brackets(struct jinja_parser *parser)
{
    struct jinja_node *node = listing(parser, JINJA_LIST), **end = &node->list;
    while (!jinja_at_sign(parser, "]") && !parser->w->failed) {
        end = jinja_append(parser, node, end, jinja_expression(parser, 1));
        if (!jinja_at_sign(parser, "]"))
            jinja_expect_sign(parser, ",");
    }
    jinja_expect_sign(parser, "]");
    return node;
}

static struct jinja_node *mapping(struct jinja_parser *parser)
{
    struct jinja_node *node = jinja_node(parser, JINJA_MAPPING, NULL, NULL), **end = &node->list;
    while (!jinja_at_sign(parser, "}") && !parser->w->failed) {
        end = jinja_append(parser, node, end, jinja_expression(parser, 1));
        jinja_expect_sign(parser, ":");
        end = jinja_append(parser, node, end, jinja_expression(parser, 1));
        if (!jinja_at_sign(parser, "}"))
            jinja_expect_sign(parser, ",");
    }
    jinja_expect_sign(parser, "}");
    return node;
}

static int tuple_ends(const struct jinja_parser *parser)
{
    const struct jinja_token *token = jinja_peek(parser);
    return token->kind == JINJA_TOKEN_CLOSE || token->kind == JINJA_TOKEN_END ||
           jinja_at_sign(parser, ")") || jinja_at_name(parser, "in");
}

struct jinja_node *jinja_tuple(struct jinja_parser *parser, int choices)
{
    struct jinja_node *first = jinja_expression(parser, choices);
    if (!jinja_at_sign(parser, ","))
        return first;
    struct jinja_node *node = listing(parser, JINJA_TUPLE);
    struct jinja_node **end = jinja_append(parser, node, &node->list, first);
    while (jinja_skip_sign(parser, ",") && !tuple_ends(parser))
        end = jinja_append(parser, node, end, jinja_expression(parser, choices));
    return node;
}

static struct jinja_node *in_brackets(struct jinja_parser *parser)
{
    if (jinja_skip_sign(parser, ")"))
        return listing(parser, JINJA_TUPLE);
    struct jinja_node *node = jinja_tuple(parser, 1);
    jinja_expect_sign(parser, ")");
    return node;
}

/* ---- single values ---- */

/* Parses a string. Neighbouring strings are joined into one. */
static struct jinja_node *string(struct jinja_parser *parser)
{
    const struct jinja_string *s = jinja_peek(parser)->text;
    jinja_step(parser);
    while (jinja_peek(parser)->kind == JINJA_TOKEN_STRING) {
        struct jinja_text both = {.w = parser->w};
        jinja_put(&both, s);
        jinja_put(&both, jinja_peek(parser)->text);
        s = jinja_taken(&both);
        jinja_step(parser);
    }
    return constant(parser, jinja_string(s));
}

static struct jinja_node *name(struct jinja_parser *parser)
{
    static const struct { const char *word; int number; } known[] = {
        {"true", 1}, {"True", 1}, {"false", 0}, {"False", 0}, {"none", -1}, {"None", -1}};
    static const char *const reserved[] = {"and", "or", "not", "if", "else", "in", "is"};
    const struct jinja_string *word = jinja_peek(parser)->text;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (jinja_is(word, reserved[i]))
            jinja_unexpected(parser, "a value");
    jinja_step(parser);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (jinja_is(word, known[i].word))
            return constant(parser,
                            known[i].number < 0 ? jinja_none() : jinja_bool(known[i].number));
    return named(parser, JINJA_NAME, NULL, word);
}

static struct jinja_node *primary(struct jinja_parser *parser)
{
    const struct jinja_token *token = jinja_peek(parser);
    if (token->kind == JINJA_TOKEN_NAME)
        return name(parser);
    if (token->kind == JINJA_TOKEN_STRING)
        return string(parser);
    if (token->kind == JINJA_TOKEN_NUMBER) {
        jinja_step(parser);
        return constant(parser, jinja_number(token->number));
    }
    if (jinja_skip_sign(parser, "("))
        return in_brackets(parser);
    if (jinja_skip_sign(parser, "["))
        return list_in_brackets(parser);
    if (jinja_skip_sign(parser, "{"))
        return mapping(parser);
    jinja_unexpected(parser, "a value");
    return constant(parser, jinja_none());
}

/* Parses the rest of [a] or [a:b:c] after the opening bracket. */
static struct jinja_node *item(struct jinja_parser *parser, struct jinja_node *of)
{
    struct jinja_node *node = jinja_node(parser, JINJA_SLICE, of, NULL), **end = &node->list;
    int parts = 0;
    do {
        int absent = jinja_at_sign(parser, ":") || jinja_at_sign(parser, "]");
        end = jinja_append(parser, node, end, absent ? constant(parser, (struct jinja_value){0})
                                                     : jinja_expression(parser, 1));
        parts++;
    } while (parts < 3 && jinja_skip_sign(parser, ":"));
    if (parts == 1) {
        node->kind = JINJA_ITEM;
        node->b = node->list;
        if (node->b->kind == JINJA_CONST && node->b->value.kind == JINJA_ABSENT)
            jinja_unexpected(parser, "a value");
    }
    for (; parts > 1 && parts < 3; parts++)
        end = jinja_append(parser, node, end, constant(parser, (struct jinja_value){0}));
    jinja_expect_sign(parser, "]");
    return node;
}

static struct jinja_node *attribute(struct jinja_parser *parser, struct jinja_node *of)
{
    const struct jinja_token *token = jinja_peek(parser);
    if (token->kind != JINJA_TOKEN_NUMBER)
        return named(parser, JINJA_ATTRIBUTE, of, jinja_expect_name(parser));
    jinja_step(parser);
    return jinja_node(parser, JINJA_ITEM, of, constant(parser, jinja_number(token->number)));
}

static struct jinja_node *call(struct jinja_parser *parser, struct jinja_node *of)
{
    struct jinja_node *node = jinja_node(parser, JINJA_CALL, of, NULL);
    arguments(parser, node);
    return node;
}

/* Parses the attributes, items and calls that follow node. */
static struct jinja_node *postfix(struct jinja_parser *parser, struct jinja_node *node)
{
    for (;;) {
        if (jinja_skip_sign(parser, "."))
            node = attribute(parser, node);
        else if (jinja_skip_sign(parser, "["))
            node = item(parser, node);
        else if (jinja_at_sign(parser, "("))
            node = call(parser, node);
        else
            return node;
    }
}

struct jinja_node *jinja_filter(struct jinja_parser *parser, struct jinja_node *node)
{
    node = named(parser, JINJA_FILTER, node, jinja_expect_name(parser));
    if (jinja_at_sign(parser, "("))
        arguments(parser, node);
    return node;
}

struct jinja_node *jinja_filters(struct jinja_parser *parser, struct jinja_node *node)
{
    while (jinja_skip_sign(parser, "|"))
        node = jinja_filter(parser, node);
    return node;
}

/* 1: the current token begins an argument of a test without brackets: 3 in "is divisibleby 3". */
static int has_bare_argument(const struct jinja_parser *parser)
{
    const struct jinja_token *token = jinja_peek(parser);
    return token->kind == JINJA_TOKEN_STRING || token->kind == JINJA_TOKEN_NUMBER ||
           jinja_at_sign(parser, "[") || jinja_at_sign(parser, "{") ||
           (token->kind == JINJA_TOKEN_NAME && !jinja_at_name(parser, "else") &&
            !jinja_at_name(parser, "or") && !jinja_at_name(parser, "and"));
}

static struct jinja_node *test(struct jinja_parser *parser, struct jinja_node *node)
{
    int negated = jinja_skip_name(parser, "not");
    node = named(parser, JINJA_TEST, node, jinja_expect_name(parser));
    if (jinja_at_name(parser, "is"))
        jinja_unexpected(parser, "one test");
    else if (jinja_at_sign(parser, "("))
        arguments(parser, node);
    else if (has_bare_argument(parser))
        jinja_append(parser, node, &node->list, postfix(parser, primary(parser)));
    return negated ? jinja_node(parser, JINJA_NOT, node, NULL) : node;
}

static struct jinja_node *unary(struct jinja_parser *parser, int with_filters)
{
    struct jinja_node *node;
    int deep = !jinja_enter(parser);
    if (deep)
        node = constant(parser, jinja_none());
    else if (jinja_skip_sign(parser, "-"))
        node = jinja_node(parser, JINJA_MINUS, unary(parser, 0), NULL);
    else if (jinja_skip_sign(parser, "+"))
        node = jinja_node(parser, JINJA_PLUS, unary(parser, 0), NULL);
    else
        node = primary(parser);
    jinja_leave(parser);
    node = postfix(parser, node);
    for (int more = with_filters; more;) {
        if (jinja_skip_sign(parser, "|"))
            node = jinja_filter(parser, node);
        else if (jinja_skip_name(parser, "is"))
            node = test(parser, node);
        else if (jinja_at_sign(parser, "("))
            node = call(parser, node);
        else
            more = 0;
    }
    return node;
}

/* ---- operators ---- */

static struct jinja_node *binary(struct jinja_parser *parser, int level);

/* Skips the sign of a comparison and returns it; NULL: there is none. */
static const struct jinja_string *comparison_sign(struct jinja_parser *parser)
{
    static const char *const signs[] = {"==", "!=", "<", ">", "<=", ">="};
    const struct jinja_token *token = jinja_peek(parser);
    int there = jinja_at_name(parser, "in"), outside = 0;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        there |= jinja_at_sign(parser, signs[i]);
    if (jinja_at_name(parser, "not") && token[1].kind == JINJA_TOKEN_NAME &&
        jinja_is(token[1].text, "in"))
        outside = 1;
    if (!there && !outside)
        return NULL;
    for (int i = 0; i <= outside; i++)
        jinja_step(parser);
    return token->text; /* "not" stands for "not in" */
}

static struct jinja_node *comparison(struct jinja_parser *parser)
{
    struct jinja_node *first = binary(parser, LEVEL_COMPARE + 1), *node = NULL, **end = NULL;
    const struct jinja_string *sign;
    while ((sign = comparison_sign(parser))) {
        if (!node) {
            node = jinja_node(parser, JINJA_COMPARE, first, NULL);
            end = &node->list;
        }
        end = jinja_append(parser, node, end,
                           named(parser, JINJA_OPERAND, binary(parser, LEVEL_COMPARE + 1), sign));
    }
    return node ? node : first;
}

static struct jinja_node *negation(struct jinja_parser *parser)
{
    if (!jinja_skip_name(parser, "not"))
        return comparison(parser);
    struct jinja_node *inner = jinja_enter(parser) ? negation(parser)
                                                   : constant(parser, jinja_none());
    jinja_leave(parser);
    return jinja_node(parser, JINJA_NOT, inner, NULL);
}

/* If the current token is an operator of this level: skips it and returns its kind. Else returns
 * JINJA_CONST. */
static enum jinja_node_kind operator_at(struct jinja_parser *parser, int level)
{
    if (level < LEVEL_NOT)
        return !jinja_skip_name(parser, level ? "and" : "or") ? JINJA_CONST
               : level ? JINJA_AND : JINJA_OR;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].level == level && jinja_skip_sign(parser, operators[i].sign))
            return operators[i].kind;
    return JINJA_CONST;
}

static struct jinja_node *binary(struct jinja_parser *parser, int level)
{
    if (level == LEVEL_NOT)
        return negation(parser);
    if (level == LEVELS)
        return unary(parser, 1);
    struct jinja_node *node = binary(parser, level + 1);
    enum jinja_node_kind kind;
    while ((kind = operator_at(parser, level)) != JINJA_CONST)
        node = jinja_node(parser, kind, node, binary(parser, level + 1));
    return node;
}

struct jinja_node *jinja_expression(struct jinja_parser *parser, int choices)
{
    int deep = !jinja_enter(parser);
    struct jinja_node *node = deep ? constant(parser, jinja_none()) : binary(parser, 0);
    while (choices && jinja_skip_name(parser, "if")) {
        node = jinja_node(parser, JINJA_CHOICE, node, binary(parser, 0));
        if (jinja_skip_name(parser, "else"))
            node->c = jinja_expression(parser, 1);
        jinja_deepen(parser, node, node->c);
    }
    jinja_leave(parser);
    return node;
}

/* ---- targets of assignments ---- */

static struct jinja_node *one_target(struct jinja_parser *parser, int attribute)
{
    struct jinja_node *node = named(parser, JINJA_NAME, NULL, jinja_expect_name(parser));
    if (attribute && jinja_skip_sign(parser, "."))
        node = named(parser, JINJA_ATTRIBUTE, node, jinja_expect_name(parser));
    return node;
}

struct jinja_node *jinja_target(struct jinja_parser *parser, int attribute)
{
    int bracket = jinja_skip_sign(parser, "(");
    struct jinja_node *node = one_target(parser, attribute);
    if (jinja_at_sign(parser, ",")) {
        struct jinja_node *all = listing(parser, JINJA_TUPLE);
        struct jinja_node **end = jinja_append(parser, all, &all->list, node);
        while (jinja_skip_sign(parser, ",") && !tuple_ends(parser))
            end = jinja_append(parser, all, end, one_target(parser, 0));
        node = all;
    }
    if (bracket)
        jinja_expect_sign(parser, ")");
    return node;
}
