/* jinja_run.c - runs the statements of a template; see jinja_run.h.
 *
 * A loop, macro, block of set and generation tag has a scope of its own: what is set inside is not
 * seen outside. An if has none. A macro sees the scope in which it is defined. */
#include "lib/text/jinja/jinja_run.h"

#include <string.h>

enum flow { GO_ON, BREAK, CONTINUE };
static enum flow run_all(struct jinja_run *r, const struct jinja_node *list,
                         struct jinja_text *out);

static struct jinja_scope *open_scope(struct jinja_run *r, struct jinja_scope *around)
{
    struct jinja_scope *scope = jinja_alloc(r->w, sizeof *scope), *before = r->scope;
    scope->around = around;
    r->scope = scope;
    return before;
}

/* Assigns the value to a name, or its members to several names. */
static void assign_to(struct jinja_run *r, const struct jinja_node *target,
                      struct jinja_value value)
{
    if (target->kind == JINJA_NAME) {
        jinja_assign(r, target->name, value);
    } else if (target->kind == JINJA_ATTRIBUTE) {
        struct jinja_value space = jinja_evaluate(r, target->a);
        if (space.kind == JINJA_NAMESPACE)
            jinja_set(r->w, space, jinja_string(target->name), value);
        else
            jinja_fail(r->w, "a member of %s is set", jinja_kind_name(space.kind));
    } else {
        const struct jinja_list *list = jinja_members(r->w, value).as.list;
        size_t names = 0;
        for (const struct jinja_node *name = target->list; name; name = name->next, names++)
            if (names < list->n)
                assign_to(r, name, list->v[names]);
        if (names != list->n)
            jinja_fail(r->w, "%zu values for %zu names", list->n, names);
    }
}

/* The text that a body writes, in a scope of its own. */
static struct jinja_value text_of(struct jinja_run *r, const struct jinja_node *list)
{
    struct jinja_text text = {.w = r->w};
    struct jinja_scope *before = open_scope(r, r->scope);
    run_all(r, list, &text);
    r->scope = before;
    return jinja_plain_value(&text);
}

/* Applies a chain of filters to x, which takes the place of the innermost node (JINJA_CONST). */
static struct jinja_value apply_filters(struct jinja_run *r, const struct jinja_node *chain,
                                        struct jinja_value x)
{
    if (chain->kind == JINJA_CONST)
        return x;
    struct jinja_node place = {.kind = JINJA_CONST, .line = chain->line,
                               .value = apply_filters(r, chain->a, x)};
    struct jinja_node last = *chain;
    last.a = &place;
    return jinja_evaluate(r, &last);
}

static void set(struct jinja_run *r, const struct jinja_node *x)
{
    assign_to(r, x->a,
              x->b ? jinja_evaluate(r, x->b) : apply_filters(r, x->c, text_of(r, x->list)));
}

static enum flow choose(struct jinja_run *r, const struct jinja_node *x, struct jinja_text *out)
{
    for (;; x = x->b) {
        if (jinja_true(jinja_evaluate(r, x->a)))
            return run_all(r, x->list, out);
        if (!x->b)
            return run_all(r, x->other, out);
    }
}

/* ---- loops ---- */

/* The members for which the condition of the loop holds. */
static struct jinja_value select_members(struct jinja_run *r, const struct jinja_node *x,
                                         struct jinja_value all)
{
    struct jinja_value some = jinja_list(r->w, JINJA_LIST);
    for (size_t i = 0; i < all.as.list->n && !r->w->failed; i++) {
        struct jinja_scope *before = open_scope(r, r->scope);
        assign_to(r, x->a, all.as.list->v[i]);
        if (jinja_true(jinja_evaluate(r, x->c)))
            jinja_push(r->w, some, all.as.list->v[i]);
        r->scope = before;
    }
    return some;
}

static enum flow run_loop(struct jinja_run *r, const struct jinja_node *x, struct jinja_text *out)
{
    static const struct jinja_string name = {.bytes = "loop", .n = 4};
    struct jinja_value all = jinja_members(r->w, jinja_evaluate(r, x->b));
    if (x->c)
        all = select_members(r, x, all);
    struct jinja_loop *loop = jinja_alloc(r->w, sizeof *loop);
    loop->items = all.as.list;
    enum flow flow = GO_ON;
    struct jinja_scope *before = r->scope;
    for (; loop->at < loop->items->n && flow != BREAK && !r->w->failed; loop->at++) {
        open_scope(r, before);
        jinja_assign(r, &name, (struct jinja_value){JINJA_LOOP, {.loop = loop}});
        assign_to(r, x->a, loop->items->v[loop->at]);
        flow = run_all(r, x->list, out);
        r->scope = before;
    }
    if (!loop->items->n) {
        open_scope(r, before);
        flow = run_all(r, x->other, out); /* a break there leaves the loop around */
        r->scope = before;
        return flow;
    }
    return GO_ON;
}

/* ---- macros ---- */

static void define(struct jinja_run *r, const struct jinja_node *x)
{
    struct jinja_macro *macro = jinja_alloc(r->w, sizeof *macro);
    *macro = (struct jinja_macro){x, r->scope};
    jinja_assign(r, x->name, (struct jinja_value){JINJA_MACRO, {.macro = macro}});
}

static void take_arguments(struct jinja_run *r, const struct jinja_node *definition,
                           const struct jinja_arguments *a)
{
    size_t place = 0, used = 0;
    for (const struct jinja_node *x = definition->other; x; x = x->next, place++) {
        const struct jinja_value *given = jinja_argument(a, place, x->name);
        used += given != NULL;
        jinja_assign(r, x->name, given ? *given : x->a ? jinja_evaluate(r, x->a)
                                                       : jinja_undefined(x->name));
    }
    if (used < a->n)
        jinja_fail(r->w, "the macro %.*s has no place for an argument",
                   JINJA_SHOWN(definition->name));
}

static struct jinja_value call_macro(struct jinja_run *r, const struct jinja_macro *macro,
                                     const struct jinja_arguments *a)
{
    struct jinja_value text = jinja_undefined(NULL);
    if (!macro)
        jinja_fail(r->w, "a function in a variable: not supported");
    else if (r->calls == JINJA_CALLS)
        jinja_fail(r->w, "macros are nested too deep");
    if (r->w->failed)
        return text;
    struct jinja_scope *before = open_scope(r, macro->around);
    r->calls++;
    take_arguments(r, macro->definition, a);
    text = text_of(r, macro->definition->list);
    r->calls--;
    r->scope = before;
    return text;
}

/* ---- all statements ---- */

static enum flow run_one(struct jinja_run *r, const struct jinja_node *x, struct jinja_text *out)
{
    struct jinja_value text = {JINJA_UNDEFINED, {0}};
    jinja_spend(r->w, 1);
    switch (x->kind) {
    case JINJA_PRINT:
        text = jinja_evaluate(r, x->a);
        break;
    case JINJA_IF:
        return choose(r, x, out);
    case JINJA_FOR:
        return run_loop(r, x, out);
    case JINJA_SET:
        set(r, x);
        break;
    case JINJA_MACRO_DEFINITION:
        define(r, x);
        break;
    case JINJA_FILTER_BODY:
        text = apply_filters(r, x->c, text_of(r, x->list));
        break;
    case JINJA_SCOPE:
        text = text_of(r, x->list);
        break;
    default:
        return x->kind == JINJA_BREAK ? BREAK : CONTINUE;
    }
    jinja_put_value(out, text);
    return GO_ON;
}

static enum flow run_all(struct jinja_run *r, const struct jinja_node *list,
                         struct jinja_text *out)
{
    enum flow flow = GO_ON;
    for (; list && flow == GO_ON && !r->w->failed; list = list->next)
        flow = run_one(r, list, out);
    return flow;
}

void jinja_run(struct jinja_work *w, const struct jinja_node *all, const json_t *variables,
               struct jinja_text *out)
{
    struct jinja_run r = {.w = w, .call = call_macro};
    const char *key;
    const json_t *value;
    open_scope(&r, NULL);
    json_object_foreach((json_t *)(uintptr_t)variables, key, value)
        jinja_assign(&r, jinja_own(w, key, strlen(key)),
                     jinja_json(w, value, !strcmp(key, "messages"), 0));
    run_all(&r, all->list, out);
}
