/* along.h - the time of a step count that was not run, from a few measured step counts of a sweep:
 *
 *     ns(steps) = a + b steps
 *
 * If every pass computes the whole canvas (cache none) and the schedule is uniform, this is exact:
 * passes differ only in the masked positions that the head computes, length (steps + 1) / 2 in all.
 * line_holds is true if no measured point is farther from the line than CROSSOVER_RESIDUAL. Each
 * launch has a line of its own. From five launches on there is an interval, over the values of the
 * launches on logarithms; that of a crossover also holds the spread of the autoregressive launches.
 * A value more than two octaves outside the measured step counts is flagged (is_far,
 * beyond_ratio). */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/places.h"

enum { ALONG_STEPS = 64 };
struct along {     /* the e2e_ns records that were taken, owned; begins as zeroes */
    json_t *canvas; /* array of sweeps, each an array of records */
    json_t *text;
    struct places sweeps; /* identity of a sweep -> its place in `canvas` */
};
/* Takes an e2e_ns record with launch values, under contract fixed, of an autoregressive model or of
 * a schedule without a cache; 1: it was one. */
int along_take(struct along *along, const json_t *record);
void along_free(struct along *along);

/* The number of sweeps with at least two step counts. */
size_t along_sweeps(const struct along *along);
/* Records of kind forecast about sweep k; the caller's references. along_point(): the time of
 * `steps` steps. along_crossover(): the steps at which the sweep takes as long as the
 * autoregressive point with the same batch, length and number format; NULL: no such point. */
json_t *along_point(const struct along *along, size_t k, int64_t steps);
json_t *along_crossover(const struct along *along, size_t k);
/* The first record of sweep k; borrowed. */
const json_t *along_record(const struct along *along, size_t k);
