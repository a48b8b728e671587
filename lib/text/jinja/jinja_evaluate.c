/* jinja_evaluate.c - computes expressions; see jinja_run.h.
 *
 * Signs mean what they mean in Python for numbers without a point, strings and lists. */
#include "lib/text/jinja/jinja_run.h"

static struct jinja_value undefined(void)
{
    return jinja_undefined(NULL);
}

/* ---- variables ---- */

/* In the scope at hand; around: 1: also in those around it. NULL: none. */
static struct jinja_variable *find(const struct jinja_run *r, const struct jinja_string *name,
                                   int around)
{
    struct jinja_variable *v = NULL;
    size_t seen = 0;
    for (const struct jinja_scope *s = r->scope; s && !v; s = around ? s->around : NULL)
        for (v = s->first; v && !jinja_same(v->name, name); v = v->next)
            seen++;
    jinja_spend(r->w, seen / 64);
    return v;
}

static const struct jinja_value *look_up(const struct jinja_run *r, const struct jinja_string *name)
{
    const struct jinja_variable *v = find(r, name, 1);
    return v ? &v->value : NULL;
}

void jinja_assign(struct jinja_run *r, const struct jinja_string *name, struct jinja_value value)
{
    struct jinja_variable *v = find(r, name, 0);
    if (!v) {
        v = jinja_alloc(r->w, sizeof *v);
        *v = (struct jinja_variable){.name = name, .next = r->scope->first};
        r->scope->first = v;
    }
    v->value = value;
}

/* ---- calls ---- */

static void read_arguments(struct jinja_run *r, const struct jinja_node *list,
                           struct jinja_arguments *to)
{
    to->n = 0;
    for (; list && !r->w->failed; list = list->next) {
        if (to->n == JINJA_ARGUMENTS_MAX) {
            jinja_fail(r->w, "more than %d arguments", JINJA_ARGUMENTS_MAX);
            return;
        }
        int named = list->kind == JINJA_KEYWORD;
        to->v[to->n].name = named ? list->name : NULL;
        to->v[to->n++].value = jinja_evaluate(r, named ? list->a : list);
    }
}

static struct jinja_value call(struct jinja_run *r, const struct jinja_node *x)
{
    const struct jinja_node *what = x->a;
    const struct jinja_value *known = NULL;
    if (what->kind == JINJA_NAME)
        known = look_up(r, what->name);
    struct jinja_value of = undefined(), callee = known ? *known : undefined();
    struct jinja_arguments a;
    if (what->kind == JINJA_ATTRIBUTE)
        of = jinja_evaluate(r, what->a);
    else if (what->kind != JINJA_NAME)
        callee = jinja_evaluate(r, what);
    if (of.kind == JINJA_NAMESPACE || of.kind == JINJA_UNDEFINED)
        callee = what->kind == JINJA_ATTRIBUTE ? jinja_attribute(r, of, what->name) : callee;
    read_arguments(r, x->list, &a);
    r->w->line = x->line;
    if (r->w->failed)
        return undefined();
    if (callee.kind == JINJA_MACRO)
        return r->call(r, callee.as.macro, &a);
    if (what->kind == JINJA_NAME && !known)
        return jinja_call_function(r, what->name, &a);
    if (what->kind == JINJA_ATTRIBUTE)
        return jinja_call_method(r, what->name, of, &a);
    jinja_fail(r->w, "%s is called", jinja_kind_name(callee.kind));
    return undefined();
}

/* ---- operators ---- */

static struct jinja_value refuse(struct jinja_run *r, const char *sign, struct jinja_value a,
                                 struct jinja_value b)
{
    jinja_fail(r->w, "%s %s %s: not supported", jinja_kind_name(a.kind), sign,
               jinja_kind_name(b.kind));
    return undefined();
}

static struct jinja_value add(struct jinja_run *r, struct jinja_value a, struct jinja_value b)
{
    struct jinja_value list;
    if (a.kind == JINJA_STRING && b.kind == JINJA_STRING) {
        const struct jinja_string *x = a.as.string, *y = b.as.string;
        struct jinja_text text = {.w = r->w, .safe = x->safe || y->safe};
        (y->safe && !x->safe ? jinja_put_escaped : jinja_put)(&text, x);
        (x->safe && !y->safe ? jinja_put_escaped : jinja_put)(&text, y);
        return jinja_text_value(&text);
    }
    if (!jinja_is_list(a) || a.kind != b.kind)
        return refuse(r, "+", a, b);
    list = jinja_list(r->w, a.kind);
    for (size_t i = 0; i < a.as.list->n; i++)
        jinja_push(r->w, list, a.as.list->v[i]);
    for (size_t i = 0; i < b.as.list->n; i++)
        jinja_push(r->w, list, b.as.list->v[i]);
    return list;
}

static struct jinja_value multiply(struct jinja_run *r, struct jinja_value a, struct jinja_value b)
{
    struct jinja_text text = {.w = r->w};
    if (a.kind != JINJA_STRING || !jinja_is_number(b))
        return refuse(r, "*", a, b);
    for (int64_t i = 0; i < b.as.number && a.as.string->n && !r->w->failed; i++)
        jinja_put(&text, a.as.string);
    return jinja_text_value(&text);
}

/* Division rounds down, and a remainder has the sign of y, as in Python. */
static struct jinja_value compute(struct jinja_run *r, enum jinja_node_kind kind,
                                  struct jinja_value a, struct jinja_value b)
{
    int64_t x = a.as.number, y = b.as.number, result = 0;
    int64_t rest = y == 0 || y == -1 ? 0 : x % y;
    int below = rest != 0 && (rest < 0) != (y < 0);
    if ((kind == JINJA_FLOOR || kind == JINJA_MODULO) && y == 0)
        jinja_fail(r->w, "a division by 0");
    else if (kind == JINJA_FLOOR && y != -1)
        result = x / y - below;
    else if (kind == JINJA_MODULO)
        result = rest + (below ? y : 0);
    else if (kind == JINJA_FLOOR ? __builtin_sub_overflow(0, x, &result)
             : kind == JINJA_ADD ? __builtin_add_overflow(x, y, &result)
             : kind == JINJA_SUBTRACT ? __builtin_sub_overflow(x, y, &result)
             : __builtin_mul_overflow(x, y, &result))
        jinja_fail(r->w, "a number of more than 64 bits");
    return jinja_number(result);
}

static struct jinja_value operate(struct jinja_run *r, enum jinja_node_kind kind,
                                  struct jinja_value a, struct jinja_value b)
{
    static const char *const signs[] = {[JINJA_SUBTRACT] = "-", [JINJA_DIVIDE] = "/",
                                        [JINJA_FLOOR] = "//", [JINJA_MODULO] = "%",
                                        [JINJA_POWER] = "**"};
    if (kind == JINJA_CONCAT) {
        struct jinja_text text = {.w = r->w};
        jinja_put_value(&text, a);
        jinja_put_value(&text, b);
        return jinja_plain_value(&text);
    }
    if (jinja_is_number(a) && jinja_is_number(b) && kind != JINJA_DIVIDE && kind != JINJA_POWER)
        return compute(r, kind, a, b);
    if (kind == JINJA_ADD)
        return add(r, a, b);
    if (kind == JINJA_MULTIPLY)
        return jinja_is_number(a) ? multiply(r, b, a) : multiply(r, a, b);
    return refuse(r, signs[kind], a, b);
}

static int compare_one(struct jinja_run *r, const struct jinja_string *sign, struct jinja_value a,
                       struct jinja_value b)
{
    if (jinja_is(sign, "=="))
        return jinja_equal(r->w, a, b);
    if (jinja_is(sign, "!="))
        return !jinja_equal(r->w, a, b);
    if (jinja_is(sign, "in"))
        return jinja_contains(r->w, b, a);
    if (jinja_is(sign, "not"))
        return !jinja_contains(r->w, b, a);
    int order = jinja_order(r->w, a, b);
    return jinja_is(sign, "<") ? order < 0 : jinja_is(sign, ">") ? order > 0
           : jinja_is(sign, "<=") ? order <= 0 : order >= 0;
}

static struct jinja_value compare(struct jinja_run *r, const struct jinja_node *x)
{
    struct jinja_value left = jinja_evaluate(r, x->a);
    int holds = 1;
    for (const struct jinja_node *o = x->list; o && holds; o = o->next) {
        struct jinja_value right = jinja_evaluate(r, o->a);
        holds = compare_one(r, o->name, left, right);
        left = right;
    }
    return jinja_bool(holds);
}

static struct jinja_value signed_number(struct jinja_run *r, const struct jinja_node *x)
{
    struct jinja_value of = jinja_evaluate(r, x->a);
    if (!jinja_is_number(of)) {
        jinja_fail(r->w, "a sign before %s", jinja_kind_name(of.kind));
        return undefined();
    }
    return compute(r, x->kind == JINJA_MINUS ? JINJA_SUBTRACT : JINJA_ADD, jinja_number(0), of);
}

/* ---- nodes ---- */

static struct jinja_value make_list(struct jinja_run *r, const struct jinja_node *x)
{
    struct jinja_value list = jinja_list(r->w, x->value.kind);
    for (const struct jinja_node *part = x->list; part && !r->w->failed; part = part->next)
        jinja_push(r->w, list, jinja_evaluate(r, part));
    return list;
}

static struct jinja_value make_dict(struct jinja_run *r, const struct jinja_node *x)
{
    struct jinja_value dict = jinja_dict(r->w, JINJA_DICT);
    for (const struct jinja_node *key = x->list; key && !r->w->failed; key = key->next->next) {
        struct jinja_value name = jinja_evaluate(r, key);
        jinja_set(r->w, dict, name, jinja_evaluate(r, key->next));
    }
    return dict;
}

static struct jinja_value variable(struct jinja_run *r, const struct jinja_node *x)
{
    const struct jinja_value *found = look_up(r, x->name);
    if (!found && jinja_is_function(x->name)) /* as in: strftime_now is defined */
        return (struct jinja_value){JINJA_MACRO, {.macro = NULL}};
    return found ? *found : jinja_undefined(x->name);
}

static struct jinja_value filtered(struct jinja_run *r, const struct jinja_node *x)
{
    struct jinja_value of = jinja_evaluate(r, x->a);
    struct jinja_arguments a;
    read_arguments(r, x->list, &a);
    r->w->line = x->line;
    return r->w->failed ? undefined() : jinja_apply_filter(r, x->name, of, &a);
}

static struct jinja_value tested(struct jinja_run *r, const struct jinja_node *x)
{
    struct jinja_value of = jinja_evaluate(r, x->a);
    struct jinja_arguments a;
    read_arguments(r, x->list, &a);
    r->w->line = x->line;
    return jinja_bool(!r->w->failed && jinja_apply_test(r, x->name, of, &a));
}

static struct jinja_value choose(struct jinja_run *r, const struct jinja_node *x)
{
    int yes = jinja_true(jinja_evaluate(r, x->b));
    return yes ? jinja_evaluate(r, x->a) : x->c ? jinja_evaluate(r, x->c) : undefined();
}

/* Operators of two sides, of which `and` and `or` may not need the second. */
static struct jinja_value both_sides(struct jinja_run *r, const struct jinja_node *x)
{
    struct jinja_value a = jinja_evaluate(r, x->a), b;
    if ((x->kind == JINJA_AND && !jinja_true(a)) || (x->kind == JINJA_OR && jinja_true(a)))
        return a;
    b = jinja_evaluate(r, x->b);
    r->w->line = x->line;
    return x->kind == JINJA_AND || x->kind == JINJA_OR ? b : operate(r, x->kind, a, b);
}

static struct jinja_value slice(struct jinja_run *r, const struct jinja_node *x)
{
    struct jinja_value of = jinja_evaluate(r, x->a), given[3];
    const struct jinja_node *part = x->list;
    for (int i = 0; i < 3; i++, part = part->next)
        given[i] = jinja_evaluate(r, part);
    r->w->line = x->line;
    return jinja_slice(r, of, given);
}

static struct jinja_value item(struct jinja_run *r, const struct jinja_node *x)
{
    struct jinja_value of = jinja_evaluate(r, x->a), key = jinja_evaluate(r, x->b);
    r->w->line = x->line;
    return jinja_item(r, of, key);
}

struct jinja_value jinja_evaluate(struct jinja_run *r, const struct jinja_node *x)
{
    jinja_spend(r->w, 1);
    if (r->w->failed)
        return undefined();
    r->w->line = x->line;
    switch (x->kind) {
    case JINJA_CONST:
        return x->value;
    case JINJA_NAME:
        return variable(r, x);
    case JINJA_LISTING:
        return make_list(r, x);
    case JINJA_MAPPING:
        return make_dict(r, x);
    case JINJA_ATTRIBUTE:
        return jinja_attribute(r, jinja_evaluate(r, x->a), x->name);
    case JINJA_ITEM:
        return item(r, x);
    case JINJA_SLICE:
        return slice(r, x);
    case JINJA_CALL:
        return call(r, x);
    case JINJA_FILTER:
        return filtered(r, x);
    case JINJA_TEST:
        return tested(r, x);
    case JINJA_NOT:
        return jinja_bool(!jinja_true(jinja_evaluate(r, x->a)));
    case JINJA_MINUS:
    case JINJA_PLUS:
        return signed_number(r, x);
    case JINJA_COMPARE:
        return compare(r, x);
    case JINJA_CHOICE:
        return choose(r, x);
    default:
        return both_sides(r, x);
    }
}
