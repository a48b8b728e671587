/* fraction.h - the shares of the ceilings of a machine that this program reaches. Forecasts
 * multiply the numbers of a data sheet by these shares.
 *
 *     mfu  flops a second / ceiling, in passes bound by arithmetic; one for each paradigm
 *     mbu  bytes a second / ceiling, in passes bound by memory
 *
 * A share is stated by the caller, or measured, or assumed. Measured shares come from metric
 * records. A diffusion point gives only the larger of its mfu and mbu: its passes were bound by
 * that ceiling. An autoregressive point gives the mfu of its first pass (prefill_mfu_ratio) and, if
 * its mbu is larger than its mfu, the mbu of the other passes (decode_mbu_ratio). With several
 * points the median is used. */
#pragma once

#include <jansson.h>

#include "kernels/dtype.h"
#include "lib/base/err.h"

enum fraction_kind { FRACTION_MFU_TEXT, FRACTION_MFU_CANVAS, FRACTION_MBU, FRACTIONS };
#define FRACTION_MFU_ASSUMED 0.6
#define FRACTION_MBU_ASSUMED 0.8

struct fraction_point { /* a point with its measurements; NaN: none */
    json_t *about;      /* one of the records of the point; owned */
    char *id;           /* identity of the point: its setting, prompts and machine; owned */
    double mfu, mbu, prefill_mfu, decode_mbu, e2e_ns, rows, passes;
};
struct fraction_points {
    struct fraction_point *v; /* owned */
    size_t n, cap;
};
/* Takes the value of a metric record into the point of the record. Returns 1, or 0: the record is
 * of no use (another metric, disturbed, null). */
int fraction_take(struct fraction_points *points, const json_t *record);
void fraction_free(struct fraction_points *points);

struct fraction {
    double is[FRACTIONS];        /* the shares */
    const char *from[FRACTIONS]; /* "stated", "measured", "assumed" */
    size_t witnesses[FRACTIONS]; /* number of points of a measured share */
};
/* The shares for products of `unit`. stated[k] NaN: share k is not stated. without: this point does
 * not count, because it is the point to forecast; if the points come from several machines
 * (source.h), no point of its machine counts. without NULL: all points count. */
struct fraction fraction_of(const struct fraction_points *points, enum unit unit,
                            const double stated[FRACTIONS], const struct fraction_point *without);
