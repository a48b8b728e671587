/* fraction.h - the shares of a machine's ceilings that this program reaches; forecasts multiply a
 * data sheet by them.
 *
 *     mfu  flops a second / ceiling, in passes bound by arithmetic; for each paradigm
 *     mbu  bytes a second / ceiling, in passes bound by memory
 *
 * They are stated, or come from metric records. A point gives the share of the ceiling that it came
 * closer to. An autoregressive point gives mfu of its first pass (prefill_mfu_ratio) and, if memory
 * bounds it, mbu of the other passes (decode_mbu_ratio). With several points the median is used. */
#pragma once

#include <jansson.h>

#include "kernels/dtype.h"
#include "lib/base/err.h"

enum fraction_kind { FRACTION_MFU_TEXT, FRACTION_MFU_CANVAS, FRACTION_MBU, FRACTIONS };
#define FRACTION_MFU_ASSUMED 0.6
#define FRACTION_MBU_ASSUMED 0.8

struct fraction_point { /* a point with its measurements; NaN: none */
    json_t *about;      /* one of its records; owned */
    char *id;           /* identity; owned */
    double mfu, mbu, prefill_mfu, decode_mbu, e2e_ns, rows, passes;
};
struct fraction_points {
    struct fraction_point *v; /* owned */
    size_t n, cap;
};
/* Takes a metric record; 1: it was of use. Disturbed records and nulls are not. */
int fraction_take(struct fraction_points *points, const json_t *record);
void fraction_free(struct fraction_points *points);

struct fraction {
    double is[FRACTIONS];
    const char *from[FRACTIONS]; /* "stated", "measured", "assumed" */
    size_t witnesses[FRACTIONS];
};
/* The shares for products of `unit`; stated[] NaN: not stated. without: a point that does not
 * count; if points are of several machines (source.h), no point of its machine counts. NULL:
 * all count. */
struct fraction fraction_of(const struct fraction_points *points, enum unit unit,
                            const double stated[FRACTIONS], const struct fraction_point *without);
