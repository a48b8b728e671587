/* hardware.h - the ceilings of machines, from a table of data sheets (data/hardware.ndjson). */
#pragma once

#include <jansson.h>

#include "kernels/dtype.h"
#include "lib/base/err.h"

struct hardware {
    char name[64];
    char device[64];            /* name that the driver gives; "": unknown */
    int is_gpu;
    double flops_per_s[UNITS];  /* without sparsity; if the table has no rate, that of
                                 * dtype_unit_instead() */
    double bytes_per_s;
    double memory_bytes;        /* NaN: unknown */
};
struct hardware_table {
    struct hardware *v; /* owned */
    size_t n;
};
/* Reads a table; path NULL: the embedded one. -1: EXIT_NO_INPUT, EXIT_BAD_DATA (a bad line, or a
 * name that occurs twice). */
int hardware_read(struct hardware_table *table, const char *path, struct err *e);
/* The machine with this name; NULL: none. */
const struct hardware *hardware_find(const struct hardware_table *table, const char *name);
/* The machine with this device name; NULL: none, or device is NULL. */
const struct hardware *hardware_of_device(const struct hardware_table *table, const char *device);
/* A machine named "measured", with measured ceilings. Every unit has the same rate. */
struct hardware hardware_measured(double flops_per_s, double bytes_per_s);
void hardware_free(struct hardware_table *table);
