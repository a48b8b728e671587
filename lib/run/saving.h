/* saving.h - the levels of --level: sets of options that save memory. --on-oom plan tries them in
 * order (lib/run/session-memory.c). */
#pragma once

#include <stddef.h>

#define SAVING_CHOICES "exact|mild|moderate|aggressive"

struct saving {
    const char *name;
    const char *kv, *quant; /* values of --kv-dtype and --quant; NULL: unchanged */
    size_t row_tile;        /* value of --row-tile */
    int pruned;             /* 1: run the checkpoint of --pruned, if given, instead of -m */
};
/* Returns the level of that name; NULL: there is none, or name is NULL. */
const struct saving *saving_named(const char *name);
/* Returns the level after `saving`, which needs less memory; the first level if saving is NULL.
 * NULL: saving is the last level. */
const struct saving *saving_next(const struct saving *saving);
