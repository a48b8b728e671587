/* along.h - predicts the time of a step count that was not run, from a few measured step counts of
 * a sweep, by a line:
 *
 *     ns(steps) = a + b steps
 *
 * The line is exact if every pass computes the whole canvas (cache none) and the schedule is
 * uniform. Passes then differ only in the masked positions that the head computes, and these are
 * length (steps + 1) / 2 in all. line_holds is true if no measured point is farther from the line
 * than the share CROSSOVER_RESIDUAL.
 *
 * Each launch has its own line. From five launches on a value has an interval, computed from the
 * logarithms of the values of the launches. The interval of a crossover includes the spread of the
 * autoregressive launches. A step count more than two octaves outside the measured step counts is
 * flagged (is_far, beyond_ratio). */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/places.h"

enum { ALONG_STEPS = 64 };
struct along {     /* e2e_ns records, owned; all zero at first */
    json_t *canvas; /* array of sweeps of diffusion models, each an array of records */
    json_t *text;   /* array of records of autoregressive models */
    struct places sweeps; /* identity of a sweep -> its place in `canvas` */
};
/* Keeps a copy of the record and returns 1, if it is an e2e_ns metric record with launch values and
 * contract fixed, of an autoregressive model or of a sweep over steps without a cache. Else returns
 * 0. */
int along_take(struct along *along, const json_t *record);
void along_free(struct along *along);

/* The number of sweeps with at least two step counts. */
size_t along_sweeps(const struct along *along);
/* Records of kind forecast about sweep k < along_sweeps(); the caller's references. along_point():
 * the time of `steps` steps. along_crossover(): the steps at which the sweep takes as long as the
 * autoregressive point with the same machine, prompts, batch, length and number format; NULL: no
 * such point. */
json_t *along_point(const struct along *along, size_t k, int64_t steps);
json_t *along_crossover(const struct along *along, size_t k);
/* The first record of sweep k; borrowed. NULL: no such sweep. */
const json_t *along_record(const struct along *along, size_t k);
