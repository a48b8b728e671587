/* jinja_statement.c - parses tags and the text between them; see jinja_node.h.
 *
 * A tag that is not in the table is refused by its name, because its end is not known. */
#include "lib/text/jinja/jinja_node.h"

struct ends { /* names of the tags that may end a body; NULL: none */
    const char *names[3];
};
static struct jinja_node *statement(struct jinja_parser *parser);

static void close_tag(struct jinja_parser *parser)
{
    if (jinja_peek(parser)->kind == JINJA_TOKEN_CLOSE)
        jinja_step(parser);
    else
        jinja_unexpected(parser, "the end of the tag");
}

static struct jinja_node *text(struct jinja_parser *parser)
{
    struct jinja_node *node = jinja_node(parser, JINJA_CONST, NULL, NULL);
    node->value = jinja_string(jinja_peek(parser)->text);
    jinja_step(parser);
    return jinja_node(parser, JINJA_PRINT, node, NULL);
}

static struct jinja_node *print(struct jinja_parser *parser)
{
    jinja_step(parser);
    struct jinja_node *node = jinja_node(parser, JINJA_PRINT, jinja_tuple(parser, 1), NULL);
    close_tag(parser);
    return node;
}

/* If the current tag is one of the ends: skips its name and returns 1 + its index in `ends`. Else
 * returns 0. */
static int at_end(struct jinja_parser *parser, const struct ends *ends)
{
    for (int i = 0; i < 3 && ends->names[i]; i++)
        if (jinja_skip_name(parser, ends->names[i]))
            return i + 1;
    return 0;
}

/* Reads a body into *list up to one of the tags `ends`; returns 1 + the index of this tag. Without
 * ends: reads up to the end of the template and returns 0. */
static int body(struct jinja_parser *parser, struct jinja_node *around, struct jinja_node **list,
                struct ends ends)
{
    struct jinja_node **end = list;
    int line = parser->w->line, found = 0;
    for (const struct jinja_token *token; (token = jinja_peek(parser))->kind != JINJA_TOKEN_END;) {
        if (token->kind == JINJA_TOKEN_TAG) {
            jinja_step(parser);
            if ((found = at_end(parser, &ends)))
                return found;
        }
        end = jinja_append(parser, around, end,
                           token->kind == JINJA_TOKEN_DATA    ? text(parser)
                           : token->kind == JINJA_TOKEN_PRINT ? print(parser)
                                                              : statement(parser));
    }
    parser->w->line = line;
    if (ends.names[0])
        jinja_fail(parser->w, "no %s ends this tag", ends.names[0]);
    return 0;
}

static struct jinja_node *if_tag(struct jinja_parser *parser)
{
    static const struct ends ends = {{"endif", "else", "elif"}};
    struct jinja_node *first = NULL, *last = NULL;
    int found = 3;
    while (found == 3) {
        struct jinja_node *node = jinja_node(parser, JINJA_IF, jinja_tuple(parser, 0), NULL);
        close_tag(parser);
        found = body(parser, node, &node->list, ends);
        if (last)
            last->b = node;
        else
            first = node;
        jinja_deepen(parser, first, node->a);
        for (const struct jinja_node *part = node->list; part; part = part->next)
            jinja_deepen(parser, first, part);
        last = node;
    }
    if (found == 2) {
        close_tag(parser);
        body(parser, first, &last->other, (struct ends){{"endif"}});
    }
    close_tag(parser);
    return first;
}

static struct jinja_node *for_tag(struct jinja_parser *parser)
{
    struct jinja_node *target = jinja_target(parser, 0);
    if (!jinja_skip_name(parser, "in"))
        jinja_unexpected(parser, "in");
    struct jinja_node *node = jinja_node(parser, JINJA_FOR, target, jinja_tuple(parser, 0));
    if (jinja_skip_name(parser, "if"))
        node->c = jinja_expression(parser, 1);
    jinja_deepen(parser, node, node->c);
    if (jinja_at_name(parser, "recursive"))
        jinja_fail(parser->w, "a loop that is recursive: not supported");
    close_tag(parser);
    parser->loops++;
    int found = body(parser, node, &node->list, (struct ends){{"endfor", "else"}});
    parser->loops--;
    if (found == 2) {
        close_tag(parser);
        body(parser, node, &node->other, (struct ends){{"endfor"}});
    }
    close_tag(parser);
    return node;
}

/* Reads the body of a tag in which break and continue cannot leave a loop around the tag. */
static struct jinja_node *inner_body(struct jinja_parser *parser, struct jinja_node *node,
                                     const char *end)
{
    int loops = parser->loops;
    close_tag(parser);
    parser->loops = 0;
    body(parser, node, &node->list, (struct ends){{end}});
    parser->loops = loops;
    close_tag(parser);
    return node;
}

/* A node of this kind with a chain of filters in c, for the text of its body. The innermost node of
 * the chain is a CONST, which stands for this text. bare 1: the first filter has no "|". */
static struct jinja_node *filtered(struct jinja_parser *parser, enum jinja_node_kind kind,
                                   struct jinja_node *target, int bare)
{
    struct jinja_node *place = jinja_node(parser, JINJA_CONST, NULL, NULL);
    struct jinja_node *node = jinja_node(parser, kind, target, NULL);
    if (bare) /* {% filter NAME %} has no sign in front */
        place = jinja_filter(parser, place);
    node->c = jinja_filters(parser, place);
    jinja_deepen(parser, node, node->c);
    return node;
}

static struct jinja_node *set_tag(struct jinja_parser *parser)
{
    struct jinja_node *target = jinja_target(parser, 1);
    if (jinja_skip_sign(parser, "=")) {
        struct jinja_node *node = jinja_node(parser, JINJA_SET, target, jinja_tuple(parser, 1));
        close_tag(parser);
        return node;
    }
    return inner_body(parser, filtered(parser, JINJA_SET, target, 0), "endset");
}

static struct jinja_node *macro_tag(struct jinja_parser *parser)
{
    struct jinja_node *node = jinja_node(parser, JINJA_MACRO_DEFINITION, NULL, NULL);
    node->name = jinja_expect_name(parser);
    jinja_parameters(parser, node);
    return inner_body(parser, node, "endmacro");
}

static struct jinja_node *filter_tag(struct jinja_parser *parser)
{
    return inner_body(parser, filtered(parser, JINJA_FILTER_BODY, NULL, 1), "endfilter");
}

static struct jinja_node *generation_tag(struct jinja_parser *parser)
{
    return inner_body(parser, jinja_node(parser, JINJA_SCOPE, NULL, NULL), "endgeneration");
}

static struct jinja_node *leave_loop(struct jinja_parser *parser, enum jinja_node_kind kind)
{
    if (!parser->loops)
        jinja_fail(parser->w, "break or continue outside of a loop");
    close_tag(parser);
    return jinja_node(parser, kind, NULL, NULL);
}

static struct jinja_node *break_tag(struct jinja_parser *parser)
{
    return leave_loop(parser, JINJA_BREAK);
}

static struct jinja_node *continue_tag(struct jinja_parser *parser)
{
    return leave_loop(parser, JINJA_CONTINUE);
}

static const struct {
    const char *name;
    struct jinja_node *(*parse)(struct jinja_parser *parser);
} tags[] = {
    {"if", if_tag}, {"for", for_tag}, {"set", set_tag}, {"macro", macro_tag},
    {"filter", filter_tag}, {"generation", generation_tag}, {"break", break_tag},
    {"continue", continue_tag},
};

/* Reads the tag whose name is the current token. */
static struct jinja_node *statement(struct jinja_parser *parser)
{
    struct jinja_node *node = NULL;
    const struct jinja_string *name = jinja_expect_name(parser);
    int line = parser->w->line, enters = jinja_enter(parser);
    for (size_t i = 0; enters && !node && i < sizeof tags / sizeof *tags; i++)
        if (jinja_is(name, tags[i].name))
            node = tags[i].parse(parser);
    if (!node) {
        parser->w->line = line;
        jinja_fail(parser->w, "the tag %.*s: not supported", JINJA_SHOWN(name));
        node = jinja_node(parser, JINJA_SCOPE, NULL, NULL);
    }
    jinja_leave(parser);
    return node;
}

struct jinja_node *jinja_statements(struct jinja_work *work, const struct jinja_token *tokens)
{
    struct jinja_parser parser = {.w = work, .token = tokens};
    work->line = tokens->line;
    struct jinja_node *all = jinja_node(&parser, JINJA_SCOPE, NULL, NULL);
    body(&parser, all, &all->list, (struct ends){{NULL}});
    return all;
}
