/* ids.c - see ids.h. The capacity doubles when the list is full, so n pushes cost O(n). A struct of
 * zeros is an empty list. */
#include "lib/text/ids.h"

#include <stdlib.h>

#include "lib/base/mem.h"

void ids_push(struct ids *ids, int32_t id)
{
    MEM_GROW(ids->v, ids->n, ids->cap);
    ids->v[ids->n++] = id;
}

void ids_append(struct ids *ids, const struct ids *more)
{
    for (size_t i = 0; i < more->n; i++)
        ids_push(ids, more->v[i]);
}

void ids_free(struct ids *ids)
{
    free(ids->v);
    *ids = (struct ids){0};
}
