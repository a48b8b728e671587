/* repeats.h - one rule for records that come more than once, for all tools that reduce records: a
 * record that is the same as an earlier one is left out and counted; one that claims the place of
 * an earlier one and says something else is refused.
 *
 * The place of a `generation` is its point, workload, phase, launch, round, seq and id; that of a
 * `metric` its point, workload and metric; that of a `quality` these and its id and seed. Other
 * kinds have no place. The point is `point`, or in records without it `config`.
 */
#ifndef RECORD_REPEATS_H
#define RECORD_REPEATS_H

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"

struct repeats_seen { uint64_t place, content; }; /* hashes; place 0: nothing */
struct repeats { /* begins as zeroes */
    struct repeats_seen *seen; /* [cap], of which n are taken: 21 to 43 bytes a record */
    size_t n, cap;
    int64_t dropped;           /* repeats met */
};
/* 0: new, or of no place; 1: the same as an earlier one; -1: another one has its place
 * (EXIT_BAD_DATA). */
int repeats_take(struct repeats *r, const json_t *record, struct err *e);
void repeats_free(struct repeats *r);

#endif
