/* ceiling.h - the most that the host's threads can do, each figure from loops that do nothing else,
 * or a device by its own copy and products; the best of some passes.
 *
 * Passes of the host are a few milliseconds long: on a machine that does other things too, some run
 * undisturbed. On virtual machines rates follow what the neighbours do (between 48 and 78 GB/s were
 * seen on one machine) and which cores the host gives just now: two processors of ours that it
 * runs on one core make half of what they make on two (between 176 and 395 GFLOP/s), and nothing
 * that the system counts tells it. So the host's are medians of some loops, the best pass of each,
 * with the spread of these beside them, and ceiling_cores measures how it is.
 *
 * The roof over a kind of numbers is that of the quickest instruction that can multiply them, which
 * need not be the one made for them: fp32 holds every bf16 number and every int8 code.
 */
#ifndef RUN_PROBE_CEILING_H
#define RUN_PROBE_CEILING_H

#include <jansson.h>

#include "kernels/ops.h"
#include "kernels/peak.h"
#include "lib/base/err.h"
#include "lib/base/pool.h"

struct ceilings {
    size_t threads;                 /* of the host */
    double operations_per_s[UNITS]; /* 0: there is no instruction for the unit */
    double bytes_per_s;             /* read from memory; of a device: read and written, copying */
    size_t side[UNITS];             /* of a device: the products were side x side x side */
    /* Of the host: */
    const struct peak *own[UNITS];  /* the loop of the unit's own instruction; NULL: none */
    double own_per_s[UNITS];        /* what it makes */
    enum unit by[UNITS];            /* the unit whose instruction is the roof: itself, or another */
    double operations_spread[UNITS], bytes_spread; /* (largest - smallest) / median */
    double cores;                   /* ceiling_cores meanwhile, the median; not above 0: unknown */
};
/* What the back end runs on, whichever it is. -1 (EXIT_NO_DEVICE, EXIT_INTERNAL): no memory. */
int ceiling_measure(struct ceilings *c, struct backend *b, struct err *e);
/* The fields of a roofline record of one unit that is there; the caller's reference. */
json_t *ceiling_record(const struct ceilings *c, const struct backend *b, enum unit u);

/* ---- the parts ---- */

enum { CEILING_ARRAY_BYTES = 256 << 20 }; /* beyond most last-level caches */
struct ceiling_reader; /* memory to be read */
struct ceiling_reader *ceiling_reader_open(size_t bytes, struct err *e); /* NULL: no memory */
double ceiling_reader_bytes_per_s(struct ceiling_reader *r, struct pool *pool);
void ceiling_reader_close(struct ceiling_reader *r); /* NULL is fine */

void ceiling_host(struct ceilings *c, struct pool *pool, struct ceiling_reader *r);
/* How many times the fp32 arithmetic of one thread alone all of them make together, now: the
 * median of some pairs of passes, 0.1 s or less. NaN: one thread, or a processor without loop. */
double ceiling_cores(struct pool *pool);
/* 1: so few that processors share a core. Many threads are slower than one by lower clocks, too. */
int ceiling_shared(double cores, size_t threads);
/* From what each unit's own instruction makes, with its spread: the roofs. */
void ceiling_lift(struct ceilings *c);
/* Measures again, shortly: bandwidth as it is now, and the arithmetic of one unit, which only ever
 * raises its ceiling: what was reached once is possible. */
void ceiling_again(struct ceilings *c, struct pool *pool, struct ceiling_reader *r, enum unit u);

/* Products are the back end's own, which leaves large ones to the vendor's library; the int8 one is
 * LLM.int8(), with all that belongs to it. Changes b->act. -1: EXIT_NO_DEVICE. */
int ceiling_device(struct ceilings *c, struct backend *b, struct err *e);

#endif
