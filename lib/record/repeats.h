/* repeats.h - repeated records, in all tools that reduce records: a record equal to an earlier one
 * is left out and counted; a different record in the place of an earlier one is refused.
 *
 * The place of a `generation` is its point, workload, phase, launch, round, seq and id; that of a
 * `metric` its point, workload and metric; that of a `quality` these and its id and seed. Other
 * kinds have no place. The point is `point`, or in records without it `config`. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"

struct repeats_seen { uint64_t place, content; }; /* hashes; place 0: unused */
struct repeats { /* begins as zeroes */
    struct repeats_seen *seen; /* [cap], n in use: 21 to 43 bytes a record */
    size_t n, cap;
    int64_t dropped;           /* repeats that were left out */
};
/* 0: new, or its kind has no place; 1: equal to an earlier one; -1 (EXIT_BAD_DATA): a different
 * record has its place. */
int repeats_take(struct repeats *repeats, const json_t *record, struct err *e);
void repeats_free(struct repeats *repeats);
