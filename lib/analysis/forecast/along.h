/* along.h - times of a step sweep that nobody ran, from a few step counts that were measured.
 *
 *     ns(steps) = a + b steps
 *
 * Where every pass computes the whole canvas (cache none) and the schedule is uniform that is no
 * approximation: passes differ in the masks that the head answers, length (steps + 1) / 2 of them
 * in all. So a few steps say what many take, and the residual shows where the line does not hold
 * (line_holds: no measured point is farther from it than CROSSOVER_RESIDUAL). Each launch has a
 * line of its own; the interval is that of their values, on the log scale, from five launches on,
 * and of a crossover it holds what the launches of the text differ in, too. A reading of a line
 * more than two octaves beyond the measured step counts is flagged (is_far, beyond_ratio).
 */
#ifndef ANALYSIS_FORECAST_ALONG_H
#define ANALYSIS_FORECAST_ALONG_H

#include <jansson.h>
#include <stdint.h>

#include "lib/base/places.h"

enum { ALONG_STEPS = 64 };
struct along {     /* e2e_ns records that it took, owned; begins as zeroes */
    json_t *canvas; /* an array of sweeps, each an array */
    json_t *text;
    struct places sweeps; /* what makes a sweep: its place in `canvas` */
};
/* 1: an e2e_ns record with values of launches, under contract fixed, of an autoregressive model or
 * of a schedule without a cache. */
int along_take(struct along *a, const json_t *record);
void along_free(struct along *a);

/* Sweeps that have at least two step counts. */
size_t along_sweeps(const struct along *a);
/* Records of kind forecast about sweep k, the caller's references. The first says what `steps`
 * steps take. The second says at how many steps that is what a text takes that is measured with the
 * same batch, length and number format; NULL: there is none. */
json_t *along_point(const struct along *a, size_t k, int64_t steps);
json_t *along_crossover(const struct along *a, size_t k);
/* A record of sweep k; borrowed. */
const json_t *along_record(const struct along *a, size_t k);

#endif
