/* jinja_run.c - runs the statements of a template; see jinja_run.h.
 *
 * A loop, a macro, the body of a set and a generation tag have a scope of their own: a variable set
 * inside is not seen outside. An if has no scope. A macro sees the scope in which it is defined. */
#include "lib/text/jinja/jinja_run.h"

#include <string.h>

enum flow { GO_ON, BREAK, CONTINUE };
static enum flow run_all(struct jinja_run *run, const struct jinja_node *list,
                         struct jinja_text *out);

static struct jinja_scope *open_scope(struct jinja_run *run, struct jinja_scope *around)
{
    struct jinja_scope *scope = jinja_alloc(run->w, sizeof *scope), *before = run->scope;
    scope->around = around;
    run->scope = scope;
    return before;
}

/* Assigns the value to a name or to a member of a namespace, or its members to several names. */
static void assign_to(struct jinja_run *run, const struct jinja_node *target,
                      struct jinja_value value)
{
    if (target->kind == JINJA_NAME) {
        jinja_assign(run, target->name, value);
    } else if (target->kind == JINJA_ATTRIBUTE) {
        struct jinja_value space = jinja_evaluate(run, target->a);
        if (space.kind == JINJA_NAMESPACE)
            jinja_set(run->w, space, jinja_string(target->name), value);
        else
            jinja_fail(run->w, "a member of %s cannot be set", jinja_kind_name(space.kind));
    } else {
        const struct jinja_list *list = jinja_members(run->w, value).as.list;
        size_t names = 0;
        for (const struct jinja_node *name = target->list; name; name = name->next, names++)
            if (names < list->n)
                assign_to(run, name, list->v[names]);
        if (names != list->n)
            jinja_fail(run->w, "%zu values for %zu names", list->n, names);
    }
}

/* Runs a body in a scope of its own, and returns the text that the body writes. */
static struct jinja_value text_of(struct jinja_run *run, const struct jinja_node *list)
{
    struct jinja_text text = {.w = run->w};
    struct jinja_scope *before = open_scope(run, run->scope);
    run_all(run, list, &text);
    run->scope = before;
    return jinja_plain_value(&text);
}

/* Applies a chain of filters to value. The value replaces the innermost node of the chain, which is
 * a JINJA_CONST. */
static struct jinja_value apply_filters(struct jinja_run *run, const struct jinja_node *chain,
                                        struct jinja_value value)
{
    if (chain->kind == JINJA_CONST)
        return value;
    struct jinja_node place = {.kind = JINJA_CONST, .line = chain->line,
                               .value = apply_filters(run, chain->a, value)};
    struct jinja_node last = *chain;
    last.a = &place;
    return jinja_evaluate(run, &last);
}

static void set(struct jinja_run *run, const struct jinja_node *node)
{
    assign_to(run, node->a,
              node->b ? jinja_evaluate(run, node->b)
                      : apply_filters(run, node->c, text_of(run, node->list)));
}

static enum flow choose(struct jinja_run *run, const struct jinja_node *node,
                        struct jinja_text *out)
{
    for (;; node = node->b) {
        if (jinja_true(jinja_evaluate(run, node->a)))
            return run_all(run, node->list, out);
        if (!node->b)
            return run_all(run, node->other, out);
    }
}

/* ---- loops ---- */

/* The members for which the condition of the loop holds. */
static struct jinja_value select_members(struct jinja_run *run, const struct jinja_node *node,
                                         struct jinja_value all)
{
    struct jinja_value some = jinja_list(run->w, JINJA_LIST);
    for (size_t i = 0; i < all.as.list->n && !run->w->failed; i++) {
        struct jinja_scope *before = open_scope(run, run->scope);
        assign_to(run, node->a, all.as.list->v[i]);
        if (jinja_true(jinja_evaluate(run, node->c)))
            jinja_push(run->w, some, all.as.list->v[i]);
        run->scope = before;
    }
    return some;
}

static enum flow run_loop(struct jinja_run *run, const struct jinja_node *node,
                          struct jinja_text *out)
{
    static const struct jinja_string name = {.bytes = "loop", .n = 4};
    struct jinja_value all = jinja_members(run->w, jinja_evaluate(run, node->b));
    if (node->c)
        all = select_members(run, node, all);
    struct jinja_loop *loop = jinja_alloc(run->w, sizeof *loop);
    loop->items = all.as.list;
    enum flow flow = GO_ON;
    struct jinja_scope *before = run->scope;
    for (; loop->at < loop->items->n && flow != BREAK && !run->w->failed; loop->at++) {
        open_scope(run, before);
        jinja_assign(run, &name, (struct jinja_value){JINJA_LOOP, {.loop = loop}});
        assign_to(run, node->a, loop->items->v[loop->at]);
        flow = run_all(run, node->list, out);
        run->scope = before;
    }
    if (!loop->items->n) {
        open_scope(run, before);
        flow = run_all(run, node->other, out); /* a break in it leaves the loop around this one */
        run->scope = before;
        return flow;
    }
    return GO_ON;
}

/* ---- macros ---- */

static void define(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_macro *macro = jinja_alloc(run->w, sizeof *macro);
    *macro = (struct jinja_macro){node, run->scope};
    jinja_assign(run, node->name, (struct jinja_value){JINJA_MACRO, {.macro = macro}});
}

static void take_arguments(struct jinja_run *run, const struct jinja_node *definition,
                           const struct jinja_arguments *arguments)
{
    size_t place = 0, used = 0;
    for (const struct jinja_node *node = definition->other; node; node = node->next, place++) {
        const struct jinja_value *given = jinja_argument(arguments, place, node->name);
        used += given != NULL;
        jinja_assign(run, node->name, given ? *given : node->a ? jinja_evaluate(run, node->a)
                                                               : jinja_undefined(node->name));
    }
    if (used < arguments->n)
        jinja_fail(run->w, "the macro %.*s has no place for an argument",
                   JINJA_SHOWN(definition->name));
}

static struct jinja_value call_macro(struct jinja_run *run, const struct jinja_macro *macro,
                                     const struct jinja_arguments *arguments)
{
    struct jinja_value text = jinja_undefined(NULL);
    if (!macro)
        jinja_fail(run->w, "a function in a variable: not supported");
    else if (run->calls == JINJA_CALLS)
        jinja_fail(run->w, "macros are nested too deep");
    if (run->w->failed)
        return text;
    struct jinja_scope *before = open_scope(run, macro->around);
    run->calls++;
    take_arguments(run, macro->definition, arguments);
    text = text_of(run, macro->definition->list);
    run->calls--;
    run->scope = before;
    return text;
}

/* ---- all statements ---- */

static enum flow run_one(struct jinja_run *run, const struct jinja_node *node,
                         struct jinja_text *out)
{
    struct jinja_value text = {JINJA_UNDEFINED, {0}};
    jinja_spend(run->w, 1);
    switch (node->kind) {
    case JINJA_PRINT:
        text = jinja_evaluate(run, node->a);
        break;
    case JINJA_IF:
        return choose(run, node, out);
    case JINJA_FOR:
        return run_loop(run, node, out);
    case JINJA_SET:
        set(run, node);
        break;
    case JINJA_MACRO_DEFINITION:
        define(run, node);
        break;
    case JINJA_FILTER_BODY:
        text = apply_filters(run, node->c, text_of(run, node->list));
        break;
    case JINJA_SCOPE:
        text = text_of(run, node->list);
        break;
    default:
        return node->kind == JINJA_BREAK ? BREAK : CONTINUE;
    }
    jinja_put_value(out, text);
    return GO_ON;
}

static enum flow run_all(struct jinja_run *run, const struct jinja_node *list,
                         struct jinja_text *out)
{
    enum flow flow = GO_ON;
    for (; list && flow == GO_ON && !run->w->failed; list = list->next)
        flow = run_one(run, list, out);
    return flow;
}

void jinja_run(struct jinja_work *work, const struct jinja_node *all, const json_t *variables,
               struct jinja_text *out)
{
    struct jinja_run run = {.w = work, .call = call_macro};
    const char *key;
    const json_t *value;
    open_scope(&run, NULL);
    json_object_foreach((json_t *)(uintptr_t)variables, key, value)
        jinja_assign(&run, jinja_own(work, key, strlen(key)),
                     jinja_json(work, value, !strcmp(key, "messages"), 0));
    run_all(&run, all->list, out);
}
