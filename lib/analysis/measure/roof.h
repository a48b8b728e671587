/* roof.h - which ceilings hold for a configuration: those that were measured on the device, or with
 * the threads, that it ran on. */
#ifndef ANALYSIS_MEASURE_ROOF_H
#define ANALYSIS_MEASURE_ROOF_H

#include <jansson.h>

struct roof {
    json_t *list; /* roofline records with `ceiling` true; owned; NULL: none yet */
};
/* 1: the record is a ceiling, and a copy is kept. */
int roof_take(struct roof *r, const json_t *record);
/* The most bytes and flops a second for a record with device_name, threads and flops_unit; of its
 * file before those of others, where records are marked (origin.h). A unit that the processor has
 * no instruction for multiplies in f32. NaN with *why (static): none. */
struct roof_limit {
    double bytes_per_s, flops_per_s;
    const char *why;
};
struct roof_limit roof_find(const struct roof *r, const json_t *about);
void roof_free(struct roof *r);

#endif
