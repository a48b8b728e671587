/* idle.h - idle power of a device with a model loaded, in W, from `idle` records: the mean of the
 * measurements before and after the batches of a launch. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

/* device: name of the GPU; "": the processor. */
struct idle_power { char *model, *device; int64_t launch; double watts; };
struct idle { struct idle_power *v; size_t n, cap; }; /* begins as zeroes */

/* Takes an idle record; ignores it if other processes used the device. -1: EXIT_BAD_DATA. */
int idle_add(struct idle *idle, const json_t *record, struct err *e);
/* W; the order of the records changes no bit. NaN: not measured. device NULL: the processor. */
double idle_watts(const struct idle *idle, const char *model, const char *device, int64_t launch);
void idle_free(struct idle *idle);
