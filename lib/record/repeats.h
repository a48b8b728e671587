/* repeats.h - finds repeated records, for all tools that reduce records. A record equal to an
 * earlier record is left out and counted. A different record in the place of an earlier record is
 * refused.
 *
 * The place of a record is a set of its members:
 *     generation   point, workload, phase, launch, round, seq, id
 *     metric       point, workload, metric
 *     quality      point, workload, metric, id, seed, summary
 * A member counts as absent if it has the value that readers assume then: phase `timed`, summary
 * false. Other kinds have no place. In a record without `point`, `config` stands for it. */
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
/* Returns 0 if the record is new or its kind has no place; 1 if it is equal to an earlier record;
 * -1 (EXIT_BAD_DATA) if a different record has its place. */
int repeats_take(struct repeats *repeats, const json_t *record, struct err *e);
void repeats_free(struct repeats *repeats);
