/* idle.h - what a device takes with a model loaded and nothing to do, from `idle` records: the mean
 * of what was measured before and after the batches of a launch.
 */
#ifndef ANALYSIS_MEASURE_IDLE_H
#define ANALYSIS_MEASURE_IDLE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

/* device: its name; "": the processor. */
struct idle_power { char *model, *device; int64_t launch; double watts; };
struct idle { struct idle_power *v; size_t n, cap; }; /* begins as zeroes */

/* Takes an idle record; one of a device that others used is left out. -1: EXIT_BAD_DATA. */
int idle_add(struct idle *l, const json_t *record, struct err *e);
/* Watts, in the same bits whatever the order of the records; NaN: nothing was measured. device
 * NULL: the processor. */
double idle_watts(const struct idle *l, const char *model, const char *device, int64_t launch);
void idle_free(struct idle *l);

#endif
