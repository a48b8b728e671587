/* jinja_statement.c - parses tags and the text between them; see jinja_node.h.
 *
 * A tag that is not in the table is refused by its name, because its end is not known. */
#include "lib/text/jinja/jinja_node.h"

struct ends { /* names of the tags that may end a body; NULL: none */
    const char *names[3];
};
static struct jinja_node *statement(struct jinja_parser *p);

static void close_tag(struct jinja_parser *p)
{
    if (jinja_peek(p)->kind == JINJA_TOKEN_CLOSE)
        jinja_step(p);
    else
        jinja_unexpected(p, "the end of the tag");
}

static struct jinja_node *text(struct jinja_parser *p)
{
    struct jinja_node *x = jinja_node(p, JINJA_CONST, NULL, NULL);
    x->value = jinja_string(jinja_peek(p)->text);
    jinja_step(p);
    return jinja_node(p, JINJA_PRINT, x, NULL);
}

static struct jinja_node *print(struct jinja_parser *p)
{
    jinja_step(p);
    struct jinja_node *x = jinja_node(p, JINJA_PRINT, jinja_tuple(p, 1), NULL);
    close_tag(p);
    return x;
}

/* 1: one of the ends is at hand; it is skipped, except its own words. Returns 1 + its index. */
static int at_end(struct jinja_parser *p, const struct ends *ends)
{
    for (int i = 0; i < 3 && ends->names[i]; i++)
        if (jinja_skip_name(p, ends->names[i]))
            return i + 1;
    return 0;
}

/* Reads a body into *list up to one of the tags; returns 1 + the index of that tag. No ends: up to
 * the end of the template. */
static int body(struct jinja_parser *p, struct jinja_node *around, struct jinja_node **list,
                struct ends ends)
{
    struct jinja_node **end = list;
    int line = p->w->line, found = 0;
    for (const struct jinja_token *t; (t = jinja_peek(p))->kind != JINJA_TOKEN_END;) {
        if (t->kind == JINJA_TOKEN_TAG) {
            jinja_step(p);
            if ((found = at_end(p, &ends)))
                return found;
        }
        end = jinja_append(p, around, end, t->kind == JINJA_TOKEN_DATA ? text(p)
                                           : t->kind == JINJA_TOKEN_PRINT ? print(p)
                                                                          : statement(p));
    }
    p->w->line = line;
    if (ends.names[0])
        jinja_fail(p->w, "no %s ends this tag", ends.names[0]);
    return 0;
}

static struct jinja_node *if_tag(struct jinja_parser *p)
{
    static const struct ends ends = {{"endif", "else", "elif"}};
    struct jinja_node *first = NULL, *last = NULL;
    int found = 3;
    while (found == 3) {
        struct jinja_node *x = jinja_node(p, JINJA_IF, jinja_tuple(p, 0), NULL);
        close_tag(p);
        found = body(p, x, &x->list, ends);
        if (last)
            last->b = x;
        else
            first = x;
        jinja_deepen(p, first, x->a);
        for (const struct jinja_node *part = x->list; part; part = part->next)
            jinja_deepen(p, first, part);
        last = x;
    }
    if (found == 2) {
        close_tag(p);
        body(p, first, &last->other, (struct ends){{"endif"}});
    }
    close_tag(p);
    return first;
}

static struct jinja_node *for_tag(struct jinja_parser *p)
{
    struct jinja_node *target = jinja_target(p, 0);
    if (!jinja_skip_name(p, "in"))
        jinja_unexpected(p, "in");
    struct jinja_node *x = jinja_node(p, JINJA_FOR, target, jinja_tuple(p, 0));
    if (jinja_skip_name(p, "if"))
        x->c = jinja_expression(p, 1);
    jinja_deepen(p, x, x->c);
    if (jinja_at_name(p, "recursive"))
        jinja_fail(p->w, "a loop that is recursive: not supported");
    close_tag(p);
    p->loops++;
    int found = body(p, x, &x->list, (struct ends){{"endfor", "else"}});
    p->loops--;
    if (found == 2) {
        close_tag(p);
        body(p, x, &x->other, (struct ends){{"endfor"}});
    }
    close_tag(p);
    return x;
}

/* A body that belongs to no loop around it. */
static struct jinja_node *inner_body(struct jinja_parser *p, struct jinja_node *x,
                                     const char *end)
{
    int loops = p->loops;
    close_tag(p);
    p->loops = 0;
    body(p, x, &x->list, (struct ends){{end}});
    p->loops = loops;
    close_tag(p);
    return x;
}

/* A body and the filters that its text goes through, around a place for it. */
static struct jinja_node *filtered(struct jinja_parser *p, enum jinja_node_kind kind,
                                   struct jinja_node *target, int bare)
{
    struct jinja_node *place = jinja_node(p, JINJA_CONST, NULL, NULL);
    struct jinja_node *x = jinja_node(p, kind, target, NULL);
    if (bare) /* {% filter NAME %} has no sign in front */
        place = jinja_filter(p, place);
    x->c = jinja_filters(p, place);
    jinja_deepen(p, x, x->c);
    return x;
}

static struct jinja_node *set_tag(struct jinja_parser *p)
{
    struct jinja_node *target = jinja_target(p, 1);
    if (jinja_skip_sign(p, "=")) {
        struct jinja_node *x = jinja_node(p, JINJA_SET, target, jinja_tuple(p, 1));
        close_tag(p);
        return x;
    }
    return inner_body(p, filtered(p, JINJA_SET, target, 0), "endset");
}

static struct jinja_node *macro_tag(struct jinja_parser *p)
{
    struct jinja_node *x = jinja_node(p, JINJA_MACRO_DEFINITION, NULL, NULL);
    x->name = jinja_expect_name(p);
    jinja_parameters(p, x);
    return inner_body(p, x, "endmacro");
}

static struct jinja_node *filter_tag(struct jinja_parser *p)
{
    return inner_body(p, filtered(p, JINJA_FILTER_BODY, NULL, 1), "endfilter");
}

static struct jinja_node *generation_tag(struct jinja_parser *p)
{
    return inner_body(p, jinja_node(p, JINJA_SCOPE, NULL, NULL), "endgeneration");
}

static struct jinja_node *leave_loop(struct jinja_parser *p, enum jinja_node_kind kind)
{
    if (!p->loops)
        jinja_fail(p->w, "break or continue outside of a loop");
    close_tag(p);
    return jinja_node(p, kind, NULL, NULL);
}

static struct jinja_node *break_tag(struct jinja_parser *p)
{
    return leave_loop(p, JINJA_BREAK);
}

static struct jinja_node *continue_tag(struct jinja_parser *p)
{
    return leave_loop(p, JINJA_CONTINUE);
}

static const struct {
    const char *name;
    struct jinja_node *(*parse)(struct jinja_parser *p);
} tags[] = {
    {"if", if_tag}, {"for", for_tag}, {"set", set_tag}, {"macro", macro_tag},
    {"filter", filter_tag}, {"generation", generation_tag}, {"break", break_tag},
    {"continue", continue_tag},
};

/* The tag whose name is at hand. */
static struct jinja_node *statement(struct jinja_parser *p)
{
    struct jinja_node *x = NULL;
    const struct jinja_string *name = jinja_expect_name(p);
    int line = p->w->line, enters = jinja_enter(p);
    for (size_t i = 0; enters && !x && i < sizeof tags / sizeof *tags; i++)
        if (jinja_is(name, tags[i].name))
            x = tags[i].parse(p);
    if (!x) {
        p->w->line = line;
        jinja_fail(p->w, "the tag %.*s: not supported", JINJA_SHOWN(name));
        x = jinja_node(p, JINJA_SCOPE, NULL, NULL);
    }
    jinja_leave(p);
    return x;
}

struct jinja_node *jinja_statements(struct jinja_work *w, const struct jinja_token *tokens)
{
    struct jinja_parser p = {.w = w, .token = tokens};
    w->line = tokens->line;
    struct jinja_node *all = jinja_node(&p, JINJA_SCOPE, NULL, NULL);
    body(&p, all, &all->list, (struct ends){{NULL}});
    return all;
}
