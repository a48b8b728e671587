/* jinja_evaluate.c - computes expressions; see jinja_run.h.
 *
 * Operators on whole numbers, strings and lists work as in Python. */
#include "lib/text/jinja/jinja_run.h"

static struct jinja_value undefined(void)
{
    return jinja_undefined(NULL);
}

/* ---- variables ---- */

/* Finds a variable in the current scope and, if `around`, in the scopes around it. NULL: none. */
static struct jinja_variable *find(const struct jinja_run *run, const struct jinja_string *name,
                                   int around)
{
    struct jinja_variable *variable = NULL;
    size_t seen = 0;
    for (const struct jinja_scope *scope = run->scope; scope && !variable;
         scope = around ? scope->around : NULL)
        for (variable = scope->first; variable && !jinja_same(variable->name, name);
             variable = variable->next)
            seen++;
    jinja_spend(run->w, seen / 64);
    return variable;
}

static const struct jinja_value *look_up(const struct jinja_run *run,
                                         const struct jinja_string *name)
{
    const struct jinja_variable *variable = find(run, name, 1);
    return variable ? &variable->value : NULL;
}

void jinja_assign(struct jinja_run *run, const struct jinja_string *name, struct jinja_value value)
{
    struct jinja_variable *variable = find(run, name, 0);
    if (!variable) {
        variable = jinja_alloc(run->w, sizeof *variable);
        *variable = (struct jinja_variable){.name = name, .next = run->scope->first};
        run->scope->first = variable;
    }
    variable->value = value;
}

/* ---- calls ---- */

static void read_arguments(struct jinja_run *run, const struct jinja_node *list,
                           struct jinja_arguments *to)
{
    to->n = 0;
    for (; list && !run->w->failed; list = list->next) {
        if (to->n == JINJA_ARGUMENTS_MAX) {
            jinja_fail(run->w, "more than %d arguments", JINJA_ARGUMENTS_MAX);
            return;
        }
        int named = list->kind == JINJA_KEYWORD;
        to->v[to->n].name = named ? list->name : NULL;
        to->v[to->n++].value = jinja_evaluate(run, named ? list->a : list);
    }
}

static struct jinja_value call(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_node *what = node->a;
    const struct jinja_value *known = NULL;
    if (what->kind == JINJA_NAME)
        known = look_up(run, what->name);
    struct jinja_value of = undefined(), callee = known ? *known : undefined();
    struct jinja_arguments arguments;
    if (what->kind == JINJA_ATTRIBUTE)
        of = jinja_evaluate(run, what->a);
    else if (what->kind != JINJA_NAME)
        callee = jinja_evaluate(run, what);
    if (of.kind == JINJA_NAMESPACE || of.kind == JINJA_UNDEFINED)
        callee = what->kind == JINJA_ATTRIBUTE ? jinja_attribute(run, of, what->name) : callee;
    read_arguments(run, node->list, &arguments);
    run->w->line = node->line;
    if (run->w->failed)
        return undefined();
    if (callee.kind == JINJA_MACRO)
        return run->call(run, callee.as.macro, &arguments);
    if (what->kind == JINJA_NAME && !known)
        return jinja_call_function(run, what->name, &arguments);
    if (what->kind == JINJA_ATTRIBUTE)
        return jinja_call_method(run, what->name, of, &arguments);
    jinja_fail(run->w, "%s cannot be called", jinja_kind_name(callee.kind));
    return undefined();
}

/* ---- operators ---- */

static struct jinja_value refuse(struct jinja_run *run, const char *sign, struct jinja_value left,
                                 struct jinja_value right)
{
    jinja_fail(run->w, "%s %s %s: not supported", jinja_kind_name(left.kind), sign,
               jinja_kind_name(right.kind));
    return undefined();
}

static struct jinja_value add(struct jinja_run *run, struct jinja_value left,
                              struct jinja_value right)
{
    struct jinja_value list;
    if (left.kind == JINJA_STRING && right.kind == JINJA_STRING) {
        const struct jinja_string *first = left.as.string, *second = right.as.string;
        struct jinja_text text = {.w = run->w, .safe = first->safe || second->safe};
        (second->safe && !first->safe ? jinja_put_escaped : jinja_put)(&text, first);
        (first->safe && !second->safe ? jinja_put_escaped : jinja_put)(&text, second);
        return jinja_text_value(&text);
    }
    if (!jinja_is_list(left) || left.kind != right.kind)
        return refuse(run, "+", left, right);
    list = jinja_list(run->w, left.kind);
    for (size_t i = 0; i < left.as.list->n; i++)
        jinja_push(run->w, list, left.as.list->v[i]);
    for (size_t i = 0; i < right.as.list->n; i++)
        jinja_push(run->w, list, right.as.list->v[i]);
    return list;
}

static struct jinja_value multiply(struct jinja_run *run, struct jinja_value left,
                                   struct jinja_value right)
{
    struct jinja_text text = {.w = run->w};
    if (left.kind != JINJA_STRING || !jinja_is_number(right))
        return refuse(run, "*", left, right);
    for (int64_t i = 0; i < right.as.number && left.as.string->n && !run->w->failed; i++)
        jinja_put(&text, left.as.string);
    return jinja_text_value(&text);
}

/* Computes with two numbers. As in Python, division rounds down, and a remainder has the sign of
 * the divisor. */
static struct jinja_value compute(struct jinja_run *run, enum jinja_node_kind kind,
                                  struct jinja_value left, struct jinja_value right)
{
    int64_t one = left.as.number, other = right.as.number, result = 0;
    int64_t rest = other == 0 || other == -1 ? 0 : one % other;
    int below = rest != 0 && (rest < 0) != (other < 0);
    if ((kind == JINJA_FLOOR || kind == JINJA_MODULO) && other == 0)
        jinja_fail(run->w, "a division by 0");
    else if (kind == JINJA_FLOOR && other != -1)
        result = one / other - below;
    else if (kind == JINJA_MODULO)
        result = rest + (below ? other : 0);
    else if (kind == JINJA_FLOOR      ? __builtin_sub_overflow(0, one, &result)
             : kind == JINJA_ADD      ? __builtin_add_overflow(one, other, &result)
             : kind == JINJA_SUBTRACT ? __builtin_sub_overflow(one, other, &result)
                                      : __builtin_mul_overflow(one, other, &result))
        jinja_fail(run->w, "a number of more than 64 bits");
    return jinja_number(result);
}

static struct jinja_value operate(struct jinja_run *run, enum jinja_node_kind kind,
                                  struct jinja_value left, struct jinja_value right)
{
    static const char *const signs[] = {[JINJA_SUBTRACT] = "-", [JINJA_DIVIDE] = "/",
                                        [JINJA_FLOOR] = "//", [JINJA_MODULO] = "%",
                                        [JINJA_POWER] = "**"};
    if (kind == JINJA_CONCAT) {
        struct jinja_text text = {.w = run->w};
        jinja_put_value(&text, left);
        jinja_put_value(&text, right);
        return jinja_plain_value(&text);
    }
    if (jinja_is_number(left) && jinja_is_number(right) && kind != JINJA_DIVIDE &&
        kind != JINJA_POWER)
        return compute(run, kind, left, right);
    if (kind == JINJA_ADD)
        return add(run, left, right);
    if (kind == JINJA_MULTIPLY)
        return jinja_is_number(left) ? multiply(run, right, left) : multiply(run, left, right);
    return refuse(run, signs[kind], left, right);
}

static int compare_one(struct jinja_run *run, const struct jinja_string *sign,
                       struct jinja_value left, struct jinja_value right)
{
    if (jinja_is(sign, "=="))
        return jinja_equal(run->w, left, right);
    if (jinja_is(sign, "!="))
        return !jinja_equal(run->w, left, right);
    if (jinja_is(sign, "in"))
        return jinja_contains(run->w, right, left);
    if (jinja_is(sign, "not"))
        return !jinja_contains(run->w, right, left);
    int order = jinja_order(run->w, left, right);
    return jinja_is(sign, "<") ? order < 0 : jinja_is(sign, ">") ? order > 0
           : jinja_is(sign, "<=") ? order <= 0 : order >= 0;
}

static struct jinja_value compare(struct jinja_run *run, const struct jinja_node *x)
{
    struct jinja_value left = jinja_evaluate(run, x->a);
    int holds = 1;
    for (const struct jinja_node *o = x->list; o && holds; o = o->next) {
        struct jinja_value right = jinja_evaluate(run, o->a);
        holds = compare_one(run, o->name, left, right);
        left = right;
    }
    return jinja_bool(holds);
}

static struct jinja_value signed_number(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value of = jinja_evaluate(run, node->a);
    if (!jinja_is_number(of)) {
        jinja_fail(run->w, "a sign before %s", jinja_kind_name(of.kind));
        return undefined();
    }
    return compute(run, node->kind == JINJA_MINUS ? JINJA_SUBTRACT : JINJA_ADD, jinja_number(0),
                   of);
}

/* ---- nodes ---- */

static struct jinja_value make_list(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value list = jinja_list(run->w, node->value.kind);
    for (const struct jinja_node *part = node->list; part && !run->w->failed; part = part->next)
        jinja_push(run->w, list, jinja_evaluate(run, part));
    return list;
}

static struct jinja_value make_dict(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value dict = jinja_dict(run->w, JINJA_DICT);
    for (const struct jinja_node *key = node->list; key && !run->w->failed; key = key->next->next) {
        struct jinja_value name = jinja_evaluate(run, key);
        jinja_set(run->w, dict, name, jinja_evaluate(run, key->next));
    }
    return dict;
}

static struct jinja_value variable(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value *found = look_up(run, node->name);
    if (!found && jinja_is_function(node->name)) /* for "strftime_now is defined" */
        return (struct jinja_value){JINJA_MACRO, {.macro = NULL}};
    return found ? *found : jinja_undefined(node->name);
}

static struct jinja_value filtered(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value of = jinja_evaluate(run, node->a);
    struct jinja_arguments arguments;
    read_arguments(run, node->list, &arguments);
    run->w->line = node->line;
    return run->w->failed ? undefined() : jinja_apply_filter(run, node->name, of, &arguments);
}

static struct jinja_value tested(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value of = jinja_evaluate(run, node->a);
    struct jinja_arguments arguments;
    read_arguments(run, node->list, &arguments);
    run->w->line = node->line;
    return jinja_bool(!run->w->failed && jinja_apply_test(run, node->name, of, &arguments));
}

static struct jinja_value choose(struct jinja_run *run, const struct jinja_node *node)
{
    int yes = jinja_true(jinja_evaluate(run, node->b));
    return yes       ? jinja_evaluate(run, node->a)
           : node->c ? jinja_evaluate(run, node->c)
                     : undefined();
}

/* Computes an operator with two operands. `and` and `or` compute the second one only if needed. */
static struct jinja_value both_sides(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value left = jinja_evaluate(run, node->a), right;
    if ((node->kind == JINJA_AND && !jinja_true(left)) ||
        (node->kind == JINJA_OR && jinja_true(left)))
        return left;
    right = jinja_evaluate(run, node->b);
    run->w->line = node->line;
    return node->kind == JINJA_AND || node->kind == JINJA_OR
               ? right
               : operate(run, node->kind, left, right);
}

static struct jinja_value slice(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value of = jinja_evaluate(run, node->a), given[3];
    const struct jinja_node *part = node->list;
    for (int i = 0; i < 3; i++, part = part->next)
        given[i] = jinja_evaluate(run, part);
    run->w->line = node->line;
    return jinja_slice(run, of, given);
}

static struct jinja_value item(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value of = jinja_evaluate(run, node->a), key = jinja_evaluate(run, node->b);
    run->w->line = node->line;
    return jinja_item(run, of, key);
}

struct jinja_value jinja_evaluate(struct jinja_run *run, const struct jinja_node *node)
{
    jinja_spend(run->w, 1);
    if (run->w->failed)
        return undefined();
    run->w->line = node->line;
    switch (node->kind) {
    case JINJA_CONST:
        return node->value;
    case JINJA_NAME:
        return variable(run, node);
    case JINJA_LISTING:
        return make_list(run, node);
    case JINJA_MAPPING:
        return make_dict(run, node);
    case JINJA_ATTRIBUTE:
        return jinja_attribute(run, jinja_evaluate(run, node->a), node->name);
    case JINJA_ITEM:
        return item(run, node);
    case JINJA_SLICE:
        return slice(run, node);
    case JINJA_CALL:
        return call(run, node);
    case JINJA_FILTER:
        return filtered(run, node);
    case JINJA_TEST:
        return tested(run, node);
    case JINJA_NOT:
        return jinja_bool(!jinja_true(jinja_evaluate(run, node->a)));
    case JINJA_MINUS:
    case JINJA_PLUS:
        return signed_number(run, node);
    case JINJA_COMPARE:
        return compare(run, node);
    case JINJA_CHOICE:
        return choose(run, node);
    default:
        return both_sides(run, node);
    }
}
