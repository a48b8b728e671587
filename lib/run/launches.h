/* runplan.h - the schedule of a timing run as data: which process measures which points, in which
 * order.
 *
 * A launch is one fresh process of one system. Launches go A B B A A B B A ..., so that a machine
 * that warms up or is disturbed for a while touches both systems alike; inside a launch every round
 * holds each point once, in a fresh random order (randomised complete blocks).
 */
#ifndef RUN_RUNPLAN_H
#define RUN_RUNPLAN_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

enum { RUNPLAN_LIST = 64 };

struct runplan_list {
    int64_t v[RUNPLAN_LIST];
    size_t n;
};

struct runplan {
    const char *systems[2];  /* "llada", "llama": the order of the first pair */
    size_t n_systems;
    struct runplan_list steps, gen_length, block_length, batch;
    int64_t launches, rounds; /* launches: of each system */
    uint64_t seed;
};

/* -1 (EXIT_BAD_USAGE): a block length that does not divide the generation length, or fewer steps
 * than blocks. */
int runplan_check(const struct runplan *p, struct err *e);

/* Array of {launch, system, seed, rounds, points: [{round, ...point}, ...]} in the order to run. A
 * point is {steps, gen_length, block_length, batch} for llada, {max_new, batch} with max_new from
 * gen_length for llama.
 * previous: array of launch records that ran or are planned, borrowed, or NULL: then only points
 * that are not in it get launches, whose numbers go on, and each of these launches repeats two old
 * points of its system (one when there is one), marked "bridge": true, so that a shift of the
 * machine between the two sessions can be seen and taken out. NULL (EXIT_BAD_DATA): previous is no
 * schedule. The caller's reference. */
json_t *runplan_schedule(const struct runplan *p, const json_t *previous, struct err *e);

#endif
