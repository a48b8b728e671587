/* jinja_node.c - reads the tokens and makes the nodes of a template; see jinja_node.h.
 *
 * The depth of nodes is limited when a node gets its parts, because the functions that run a
 * template are recursive over the parts. */
#include "lib/text/jinja/jinja_node.h"

const struct jinja_token *jinja_peek(const struct jinja_parser *parser)
{
    static const struct jinja_token end = {.kind = JINJA_TOKEN_END};
    return parser->w->failed ? &end : parser->token;
}

void jinja_step(struct jinja_parser *parser)
{
    parser->w->line = parser->token->line; /* so that a node gets the line of its last token */
    if (parser->token->kind != JINJA_TOKEN_END)
        parser->token++;
}

static int at(const struct jinja_parser *parser, enum jinja_token_kind kind, const char *word)
{
    const struct jinja_token *token = jinja_peek(parser);
    return token->kind == kind && jinja_is(token->text, word);
}

int jinja_at_sign(const struct jinja_parser *parser, const char *sign)
{
    return at(parser, JINJA_TOKEN_SIGN, sign);
}

int jinja_at_name(const struct jinja_parser *parser, const char *name)
{
    return at(parser, JINJA_TOKEN_NAME, name);
}

int jinja_skip_sign(struct jinja_parser *parser, const char *sign)
{
    int there = jinja_at_sign(parser, sign);
    if (there)
        jinja_step(parser);
    return there;
}

int jinja_skip_name(struct jinja_parser *parser, const char *name)
{
    int there = jinja_at_name(parser, name);
    if (there)
        jinja_step(parser);
    return there;
}

void jinja_unexpected(struct jinja_parser *parser, const char *wanted)
{
    static const char *const names[] = {"the end of the template", "text", "a tag", "a tag",
                                        "the end of a tag", "", "a number", "a string", ""};
    const struct jinja_token *token = jinja_peek(parser);
    int shown = token->kind == JINJA_TOKEN_NAME || token->kind == JINJA_TOKEN_SIGN;
    parser->w->line = parser->token->line;
    if (shown)
        jinja_fail(parser->w, "expected %s, got %.*s", wanted, JINJA_SHOWN(token->text));
    else
        jinja_fail(parser->w, "expected %s, got %s", wanted, names[token->kind]);
}

void jinja_expect_sign(struct jinja_parser *parser, const char *sign)
{
    if (!jinja_skip_sign(parser, sign))
        jinja_unexpected(parser, sign);
}

const struct jinja_string *jinja_expect_name(struct jinja_parser *parser)
{
    const struct jinja_token *token = jinja_peek(parser);
    if (token->kind != JINJA_TOKEN_NAME) {
        jinja_unexpected(parser, "a name");
        return jinja_own(parser->w, "", 0);
    }
    jinja_step(parser);
    return token->text;
}

void jinja_deepen(struct jinja_parser *parser, struct jinja_node *around,
                  const struct jinja_node *part)
{
    if (part && part->depth >= around->depth)
        around->depth = part->depth + 1;
    if (around->depth > JINJA_DEPTH)
        jinja_fail(parser->w, "nested too deep");
}

struct jinja_node *jinja_node(struct jinja_parser *parser, enum jinja_node_kind kind,
                              struct jinja_node *a, struct jinja_node *b)
{
    struct jinja_node *x = jinja_alloc(parser->w, sizeof *x);
    *x = (struct jinja_node){.kind = kind, .line = parser->w->line, .depth = 1, .a = a, .b = b};
    jinja_deepen(parser, x, a);
    jinja_deepen(parser, x, b);
    return x;
}

struct jinja_node **jinja_append(struct jinja_parser *parser, struct jinja_node *around,
                                 struct jinja_node **end, struct jinja_node *part)
{
    jinja_deepen(parser, around, part);
    *end = part;
    return &part->next;
}

int jinja_enter(struct jinja_parser *parser)
{
    if (++parser->depth > JINJA_DEPTH)
        jinja_fail(parser->w, "nested too deep");
    return !parser->w->failed;
}

void jinja_leave(struct jinja_parser *parser)
{
    parser->depth--;
}
