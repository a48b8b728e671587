/* roof.h - finds the ceilings of arithmetic and memory traffic for a configuration: the ceilings
 * that were measured on its GPU, or on its processor with its number of threads. */
#pragma once

#include <jansson.h>

struct roof {
    json_t *list; /* roofline records with `ceiling` true; owned; NULL: none */
};
/* Keeps a copy of the record and returns 1 if it is a ceiling record; else returns 0. */
int roof_take(struct roof *roof, const json_t *record);
/* The ceilings for a record with device_name, threads and flops_unit. Ceilings from the file of the
 * record are preferred, if records are marked (source.h). Without a ceiling in flops_unit (the
 * processor has no instruction for it) the ceiling of f32 holds. int4 has the higher of the
 * ceilings of int4 and int8. NaN with why (static): no ceiling. */
struct roof_limit {
    double bytes_per_s, flops_per_s;
    const char *why;
};
struct roof_limit roof_find(const struct roof *roof, const json_t *about);
void roof_free(struct roof *roof);
