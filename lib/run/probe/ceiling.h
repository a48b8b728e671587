/* ceiling.h - measures the largest rates of the machine: of the host's threads with loops that do
 * nothing else, of a device with its own copy and products. A rate is the best of several passes.
 *
 * Passes of the host take a few milliseconds, so some run undisturbed on a busy machine. On virtual
 * machines rates depend on the neighbours (48 to 78 GB/s were seen on one machine) and on the cores
 * that the host assigns: two processors on one core do half the arithmetic of two cores (176 to 395
 * GFLOP/s), and no system counter shows it. So a rate of the host is the median over several loops
 * of their best passes, with its spread, and ceiling_cores measures the cores.
 *
 * The ceiling of a number format is the rate of the fastest instruction that can multiply it, which
 * may be one for another format: fp32 holds every bf16 number and every int8 code. */
#pragma once

#include <jansson.h>

#include "kernels/ops.h"
#include "kernels/peak.h"
#include "lib/base/err.h"
#include "lib/base/pool.h"

struct ceilings {
    size_t threads;                 /* threads of the host */
    double operations_per_s[UNITS]; /* 0: no instruction for the unit; int4: none that is
                                     * faster than those of other units */
    double bytes_per_s;             /* read from memory; on a device read and written by a copy */
    size_t side[UNITS];             /* on a device: products of side x side x side */
    /* Only for the host: */
    const struct peak *own[UNITS];  /* loop of the unit's own instruction; NULL: none */
    double own_per_s[UNITS];        /* rate of that loop */
    enum unit by[UNITS];            /* unit whose instruction sets the ceiling */
    double operations_spread[UNITS], bytes_spread; /* (largest - smallest) / median */
    double cores;                   /* median of ceiling_cores() meanwhile; <= 0: unknown */
};
/* Measures the host or device of the back end. -1 (EXIT_NO_DEVICE, EXIT_INTERNAL): no memory. */
int ceiling_measure(struct ceilings *ceilings, struct backend *backend, struct err *e);
/* Returns the fields of the roofline record of one unit; the caller's reference. */
json_t *ceiling_record(const struct ceilings *ceilings, const struct backend *backend,
                       enum unit unit);

/* ---- parts of a measurement ---- */

enum { CEILING_ARRAY_BYTES = 256 << 20 }; /* more than most last-level caches */
struct ceiling_reader; /* an array in memory */
struct ceiling_reader *ceiling_reader_open(size_t bytes, struct err *e); /* NULL: no memory */
/* Makes the rates of a reader count processor time, as if no other program ran on these
 * processors. */
void ceiling_reader_by_processor(struct ceiling_reader *reader);
double ceiling_reader_bytes_per_s(struct ceiling_reader *reader, struct pool *pool);
void ceiling_reader_close(struct ceiling_reader *reader); /* NULL is fine */

/* Measures a host with the instructions that `level` may use (peak_at); NULL: with all. While a
 * spread is above 0.1, measures again, up to twice; the steadiest measurement of each rate
 * counts. */
void ceiling_host(struct ceilings *ceilings, struct pool *pool, const char *level,
                  struct ceiling_reader *reader);
/* Returns the rate of fp32 arithmetic of all threads together divided by the rate of one thread
 * alone: the median of pairs of passes, within 0.1 s. NaN: one thread, or no loop for this
 * processor. */
double ceiling_cores(struct pool *pool);
/* 1: `cores` is so small that processors share a core, allowing for lower clocks of many
 * threads. */
int ceiling_shared(double cores, size_t threads);
/* Returns ", unsteady" for messages if a spread is above 0.1, else "". */
const char *ceiling_remark(double spread);
/* Sets the ceilings from the rates of each unit's own instruction. */
void ceiling_lift(struct ceilings *ceilings);
/* `unit` if it has a ceiling, else the next of dtype_unit_instead() that has one, at last f32. */
enum unit ceiling_unit(const struct ceilings *ceilings, enum unit unit);
/* Measures again, briefly: the present bandwidth, and the arithmetic of ceiling_unit(unit). The
 * new rate of the arithmetic counts only if it is higher. */
void ceiling_again(struct ceilings *ceilings, struct pool *pool, struct ceiling_reader *reader,
                   enum unit unit);

/* Measures a device with copies and with the products of the back end. Large products run in the
 * vendor's library. The int8 rate is that of complete LLM.int8() products, with outliers in fp32.
 * Changes backend->act. Returns -1: EXIT_NO_DEVICE. */
int ceiling_device(struct ceilings *ceilings, struct backend *backend, struct err *e);
