/* hardware.h - what machines can do at most: a table of data sheets, data/hardware.ndjson. */
#ifndef ANALYSIS_FORECAST_HARDWARE_H
#define ANALYSIS_FORECAST_HARDWARE_H

#include <jansson.h>

#include "kernels/dtype.h"
#include "lib/base/err.h"

struct hardware {
    char name[64];
    char device[64];            /* as its driver calls it; "": not said */
    int is_gpu;
    double flops_per_s[UNITS];  /* dense; a unit that the processor lacks multiplies in f32 */
    double bytes_per_s;
    double memory_bytes;        /* NaN: not said */
};
struct hardware_table {
    struct hardware *v; /* owned */
    size_t n;
};
/* path NULL: the table that comes with the program. -1: EXIT_NO_INPUT, EXIT_BAD_DATA (a line that
 * is no machine, a name that comes twice). */
int hardware_read(struct hardware_table *t, const char *path, struct err *e);
/* The machine of that name; NULL: none. */
const struct hardware *hardware_find(const struct hardware_table *t, const char *name);
/* The machine whose driver calls it that; NULL: none, or device is NULL. */
const struct hardware *hardware_of_device(const struct hardware_table *t, const char *device);
/* The same rate for every unit: what was measured, for one format. */
struct hardware hardware_measured(double flops_per_s, double bytes_per_s);
void hardware_free(struct hardware_table *t);

#endif
