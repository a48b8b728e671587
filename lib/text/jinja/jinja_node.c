/* jinja_node.c - the tokens at hand and the nodes of a template; see jinja_node.h.
 *
 * Depth is limited where a node gets its parts, because the functions that run a template call
 * themselves for each part. */
#include "lib/text/jinja/jinja_node.h"

const struct jinja_token *jinja_peek(const struct jinja_parser *p)
{
    static const struct jinja_token end = {.kind = JINJA_TOKEN_END};
    return p->w->failed ? &end : p->token;
}

void jinja_step(struct jinja_parser *p)
{
    p->w->line = p->token->line; /* a node has the line of its last word */
    if (p->token->kind != JINJA_TOKEN_END)
        p->token++;
}

static int at(const struct jinja_parser *p, enum jinja_token_kind kind, const char *word)
{
    const struct jinja_token *t = jinja_peek(p);
    return t->kind == kind && jinja_is(t->text, word);
}

int jinja_at_sign(const struct jinja_parser *p, const char *sign)
{
    return at(p, JINJA_TOKEN_SIGN, sign);
}

int jinja_at_name(const struct jinja_parser *p, const char *name)
{
    return at(p, JINJA_TOKEN_NAME, name);
}

int jinja_skip_sign(struct jinja_parser *p, const char *sign)
{
    int there = jinja_at_sign(p, sign);
    if (there)
        jinja_step(p);
    return there;
}

int jinja_skip_name(struct jinja_parser *p, const char *name)
{
    int there = jinja_at_name(p, name);
    if (there)
        jinja_step(p);
    return there;
}

void jinja_unexpected(struct jinja_parser *p, const char *wanted)
{
    static const char *const names[] = {"the end of the template", "text", "a tag", "a tag",
                                        "the end of a tag", "", "a number", "a string", ""};
    const struct jinja_token *t = jinja_peek(p);
    int shown = t->kind == JINJA_TOKEN_NAME || t->kind == JINJA_TOKEN_SIGN;
    p->w->line = p->token->line;
    if (shown)
        jinja_fail(p->w, "expected %s, got %.*s", wanted, JINJA_SHOWN(t->text));
    else
        jinja_fail(p->w, "expected %s, got %s", wanted, names[t->kind]);
}

void jinja_expect_sign(struct jinja_parser *p, const char *sign)
{
    if (!jinja_skip_sign(p, sign))
        jinja_unexpected(p, sign);
}

const struct jinja_string *jinja_expect_name(struct jinja_parser *p)
{
    const struct jinja_token *t = jinja_peek(p);
    if (t->kind != JINJA_TOKEN_NAME) {
        jinja_unexpected(p, "a name");
        return jinja_own(p->w, "", 0);
    }
    jinja_step(p);
    return t->text;
}

void jinja_deepen(struct jinja_parser *p, struct jinja_node *around,
                  const struct jinja_node *part)
{
    if (part && part->depth >= around->depth)
        around->depth = part->depth + 1;
    if (around->depth > JINJA_DEPTH)
        jinja_fail(p->w, "nested too deep");
}

struct jinja_node *jinja_node(struct jinja_parser *p, enum jinja_node_kind kind,
                              struct jinja_node *a, struct jinja_node *b)
{
    struct jinja_node *x = jinja_alloc(p->w, sizeof *x);
    *x = (struct jinja_node){.kind = kind, .line = p->w->line, .depth = 1, .a = a, .b = b};
    jinja_deepen(p, x, a);
    jinja_deepen(p, x, b);
    return x;
}

struct jinja_node **jinja_append(struct jinja_parser *p, struct jinja_node *around,
                                 struct jinja_node **end, struct jinja_node *part)
{
    jinja_deepen(p, around, part);
    *end = part;
    return &part->next;
}

int jinja_enter(struct jinja_parser *p)
{
    if (++p->depth > JINJA_DEPTH)
        jinja_fail(p->w, "nested too deep");
    return !p->w->failed;
}

void jinja_leave(struct jinja_parser *p)
{
    p->depth--;
}
