/* fraction.h - which share of a machine's limits this program reaches: what a forecast multiplies
 * a data sheet by.
 *
 *     mfu  flops a second / the most there are, in passes that arithmetic bounds; of each paradigm
 *     mbu  bytes a second / the most there are, in passes that memory bounds
 *
 * Stated, or out of metric records: a point bears witness of the limit that it came nearer to, an
 * autoregressive one of mfu by its first pass (prefill_mfu_ratio) and, if memory bounds it, of mbu
 * by the others (decode_mbu_ratio). Of several witnesses the median counts.
 */
#ifndef ANALYSIS_FORECAST_FRACTION_H
#define ANALYSIS_FORECAST_FRACTION_H

#include <jansson.h>

#include "kernels/dtype.h"
#include "lib/base/err.h"

enum fraction_kind { FRACTION_MFU_TEXT, FRACTION_MFU_CANVAS, FRACTION_MBU, FRACTIONS };
#define FRACTION_MFU_ASSUMED 0.6
#define FRACTION_MBU_ASSUMED 0.8

struct fraction_point { /* a point and what it measured; NaN: not */
    json_t *about;      /* one of its records; owned */
    char *id;           /* what tells it from others; owned */
    double mfu, mbu, prefill_mfu, decode_mbu, e2e_ns, rows, passes;
};
struct fraction_points {
    struct fraction_point *v; /* owned */
    size_t n, cap;
};
/* 1: a metric record of use. Records of disturbed machines and without a value are not. */
int fraction_take(struct fraction_points *p, const json_t *record);
void fraction_free(struct fraction_points *p);

struct fraction {
    double is[FRACTIONS];
    const char *from[FRACTIONS]; /* "stated", "measured", "assumed" */
    size_t witnesses[FRACTIONS];
};
/* For products of that unit; stated[] NaN: not. `without`: a point that bears no witness, nor,
 * where the points are of several machines (origin.h), do others of its machine; NULL: all do. */
struct fraction fraction_of(const struct fraction_points *p, enum unit unit,
                            const double stated[FRACTIONS], const struct fraction_point *without);

#endif
