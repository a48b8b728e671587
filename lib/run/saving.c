/* saving.c - see saving.h. A level is a row: options that have values of their own, which a value
 * that was said wins over. What changes no bit and costs no time is always on and stands in no row:
 * attention over tiles of keys (online softmax), and the head over tiles of the vocabulary, for the
 * rows that are wanted, without a matrix of logits. So `exact` switches nothing on.
 */
#include "lib/run/saving.h"

#include <stddef.h>
#include <string.h>

static const struct saving list[] = {
    {"exact", NULL, NULL},
    {"mild", "bf16", NULL},
    {"moderate", "bf16", "int8"},
    {"aggressive", "bf16", "nf4"},
};
enum { LEVELS = sizeof list / sizeof *list };

const struct saving *saving_named(const char *name)
{
    for (size_t i = 0; name && i < LEVELS; i++)
        if (!strcmp(list[i].name, name))
            return &list[i];
    return NULL;
}

const struct saving *saving_next(const struct saving *l)
{
    size_t i = l ? (size_t)(l - list) + 1 : 0;
    return i < LEVELS ? &list[i] : NULL;
}
