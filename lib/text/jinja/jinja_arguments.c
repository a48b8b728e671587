/* jinja_arguments.c - finds the arguments of a call by place or by name; see jinja_run.h.
 *
 * An argument that fits no parameter is an error, because it would change the result in Python. */
#include "lib/text/jinja/jinja_run.h"

#include <string.h>

const struct jinja_value *jinja_argument(const struct jinja_arguments *arguments, size_t place,
                                         const struct jinja_string *name)
{
    if (place < arguments->n && !arguments->v[place].name)
        return &arguments->v[place].value;
    for (size_t i = 0; i < arguments->n; i++)
        if (arguments->v[i].name && jinja_same(arguments->v[i].name, name))
            return &arguments->v[i].value;
    return NULL;
}

void jinja_bind(struct jinja_run *run, const struct jinja_string *who,
                const struct jinja_arguments *arguments, const char *names,
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
        const struct jinja_value *given = jinja_argument(arguments, place, &name);
        if (given)
            to[place] = *given;
        else if (!optional)
            jinja_fail(run->w, "%.*s needs %.*s", JINJA_SHOWN(who), (int)n, names);
        used += given != NULL;
        jinja_spend_on(run->w, to[place]);
    }
    if (used < arguments->n)
        jinja_fail(run->w, "%.*s with these arguments: not supported", JINJA_SHOWN(who));
}

int64_t jinja_integer(struct jinja_run *run, struct jinja_value value, int64_t standard)
{
    if (value.kind != JINJA_ABSENT && !jinja_is_number(value))
        jinja_fail(run->w, "expected a number, got %s", jinja_kind_name(value.kind));
    return jinja_is_number(value) ? value.as.number : standard;
}
