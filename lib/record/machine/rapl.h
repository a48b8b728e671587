/* rapl.h - joules that the packages of the processor have taken, by its own counters (RAPL): cores,
 * caches and what else is in the package; not the memory, the board, the supply. Whatever ran
 * meanwhile is in them, ours or not.
 *
 * Read through powercap (package domains of intel-rapl, also on AMD), whose counters begin anew at
 * max_energy_range_uj: a thread looks every 10 s, before one can do so twice. Else through the
 * kernel's performance events (power/energy-pkg/). The counters change about every millisecond and
 * miss nothing. Nothing is ever set. Most systems let only root read either.
 * Source: Linux, Documentation/power/powercap/powercap.rst; Haehnel et al. 2012 (GreenMetrics).
 */
#ifndef RECORD_MACHINE_RAPL_H
#define RECORD_MACHINE_RAPL_H

#include "lib/base/err.h"

enum { RAPL_PACKAGES = 64, RAPL_LOOK_MS = 10000, RAPL_TICK_NS = 1000000 };

struct rapl;
/* sys: "/sys", or a tree like it. NULL: there are no counters, or none that we may read; *e says
 * which. look_ms: from one look for counters that began anew to the next. The caller's. */
struct rapl *rapl_open(const char *sys, long look_ms, struct err *e);
void rapl_close(struct rapl *r); /* NULL is fine */
/* Joules since it was opened, of all packages; NaN: r is NULL, or a counter cannot be read now. */
double rapl_joules(struct rapl *r);
/* "powercap" or "perf". */
const char *rapl_source(const struct rapl *r);

#endif
