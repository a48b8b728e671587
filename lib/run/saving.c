/* saving.c - see saving.h. A level is a row of default values for options; a given option overrides
 * the row. Savings that change no bit and cost no time are always on and in no row: attention over
 * tiles of keys (online softmax), and the head over tiles of the vocabulary for the wanted rows
 * only, without a matrix of logits. So `exact` switches nothing on. Row tiles change no bit, but
 * each tile reads the weights again, so only the other levels have them. A pruned checkpoint is
 * another model: the last level runs it if --pruned names one; --on-oom plan never does. */
#include "lib/run/saving.h"

#include <string.h>

enum { TILE = 512 }; /* rows; enough that a tile computes longer than it reads weights */
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

const struct saving *saving_next(const struct saving *saving)
{
    size_t i = saving ? (size_t)(saving - list) + 1 : 0;
    return i < LEVELS ? &list[i] : NULL;
}
