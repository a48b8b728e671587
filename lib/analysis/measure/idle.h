/* idle.h - the idle power, in W, of a device with a model loaded, from `idle` records. The idle
 * power of a launch is the mean of its records, which are measured before and after its batches. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

/* device: name of the GPU; "": the processor. */
struct idle_power { char *model, *device; int64_t launch; double watts; };
struct idle { struct idle_power *v; size_t n, cap; }; /* begins as zeroes */

/* Takes an idle record. Ignores it if other processes used the device, or if it has no power. -1:
 * EXIT_BAD_DATA. */
int idle_add(struct idle *idle, const json_t *record, struct err *e);
/* The idle power of a launch in W; NaN: not measured. The order of the records changes no bit.
 * device NULL: the processor. */
double idle_watts(const struct idle *idle, const char *model, const char *device, int64_t launch);
void idle_free(struct idle *idle);
