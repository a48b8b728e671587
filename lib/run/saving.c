/* saving.c - see saving.h. A level is a row: options that have values of their own, which a value
 * that was said wins over. What changes no bit and costs no time is always on and stands in no row:
 * attention over tiles of keys (online softmax), and the head over tiles of the vocabulary, for the
 * rows that are wanted, without a matrix of logits. So `exact` switches nothing on. Row tiles
 * change no bit either, but read the weights again for each: they stand where memory counts. A
 * pruned checkpoint is another model: the last level runs it where one was named, and a plan, which
 * would run what nobody asked for, does not.
 */
#include "lib/run/saving.h"

#include <string.h>

enum { TILE = 512 }; /* rows; with so many the arithmetic of a tile outweighs reading the weights */
static const struct saving list[] = {
    {"exact", NULL, NULL, 0, 0},
    {"mild", "bf16", NULL, TILE, 0},
    {"moderate", "bf16", "int8", TILE, 0},
    {"aggressive", "bf16", "nf4", TILE, 1},
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
