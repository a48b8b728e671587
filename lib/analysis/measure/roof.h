/* roof.h - the ceilings that hold for a configuration: those measured on its device, or with its
 * threads on its processor. */
#pragma once

#include <jansson.h>

struct roof {
    json_t *list; /* roofline records with `ceiling` true; owned; NULL: none */
};
/* Keeps a copy of a ceiling record. 1: it was one. */
int roof_take(struct roof *roof, const json_t *record);
/* The ceilings for a record with device_name, threads and flops_unit. Ceilings of the record's own
 * file are preferred, if records are marked (source.h). If the processor has no instruction for
 * flops_unit, the f32 ceiling holds. NaN with why (static): no ceiling. */
struct roof_limit {
    double bytes_per_s, flops_per_s;
    const char *why;
};
struct roof_limit roof_find(const struct roof *roof, const json_t *about);
void roof_free(struct roof *roof);
