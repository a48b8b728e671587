/* saving.h - levels of saving memory: what --level says in one word. The ladder that a plan climbs
 * down (lib/run/session-plan.c) is the same table, from the top.
 */
#ifndef RUN_SAVING_H
#define RUN_SAVING_H

#include <stddef.h>

#define SAVING_CHOICES "exact|mild|moderate|aggressive"

struct saving {
    const char *name;
    const char *kv, *quant; /* of --kv-dtype and --quant; NULL: as without a level */
    size_t row_tile;        /* of --row-tile */
    int pruned;             /* the checkpoint of --pruned, if one is named, in place of -m */
};
/* NULL: no level, or none of that name. */
const struct saving *saving_named(const char *name);
/* The one that takes less than l (NULL: the first); NULL: there is none. */
const struct saving *saving_next(const struct saving *l);

#endif
