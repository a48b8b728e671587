/* jinja_arguments.c - finds the arguments of a call by place or by name; see jinja_run.h.
 *
 * An argument that nothing asks for is an error, because it would change the result in Python. */
#include "lib/text/jinja/jinja_run.h"

#include <string.h>

const struct jinja_value *jinja_argument(const struct jinja_arguments *a, size_t place,
                                         const struct jinja_string *name)
{
    if (place < a->n && !a->v[place].name)
        return &a->v[place].value;
    for (size_t i = 0; i < a->n; i++)
        if (a->v[i].name && jinja_same(a->v[i].name, name))
            return &a->v[i].value;
    return NULL;
}

void jinja_bind(struct jinja_run *r, const struct jinja_string *who,
                const struct jinja_arguments *a, const char *names,
                struct jinja_value to[JINJA_BOUND_MAX])
{
    size_t used = 0, place = 0;
    int optional = 0;
    memset(to, 0, JINJA_BOUND_MAX * sizeof *to);
    for (size_t n; *names; names += n + (names[n] == ' '), place++) {
        optional |= *names == '?';
        names += *names == '?';
        n = strcspn(names, " ");
        const struct jinja_string name = {.bytes = names, .n = n};
        const struct jinja_value *given = jinja_argument(a, place, &name);
        if (given)
            to[place] = *given;
        else if (!optional)
            jinja_fail(r->w, "%.*s needs %.*s", JINJA_SHOWN(who), (int)n, names);
        used += given != NULL;
        jinja_spend_on(r->w, to[place]);
    }
    if (used < a->n)
        jinja_fail(r->w, "%.*s with these arguments: not supported", JINJA_SHOWN(who));
}

int64_t jinja_integer(struct jinja_run *r, struct jinja_value x, int64_t standard)
{
    if (x.kind != JINJA_ABSENT && !jinja_is_number(x))
        jinja_fail(r->w, "expected a number, got %s", jinja_kind_name(x.kind));
    return jinja_is_number(x) ? x.as.number : standard;
}
