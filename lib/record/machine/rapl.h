/* rapl.h - reads the energy of the processor packages in joules from their counters (RAPL): cores,
 * caches and the rest of the package; not memory, board or power supply. All processes on the
 * machine count.
 *
 * Source of the readings: powercap (package domains of intel-rapl, also on AMD), whose counters
 * wrap at max_energy_range_uj; a thread reads every 10 s, before a counter can wrap twice.
 * Otherwise the kernel's performance events (power/energy-pkg/). The counters change about every
 * millisecond and miss no energy. No setting is changed. Most systems let only root read either
 * source. Source: Linux, Documentation/power/powercap/powercap.rst; Haehnel et al. 2012
 * (GreenMetrics). */
#pragma once

#include "lib/base/err.h"

enum { RAPL_PACKAGES = 64, RAPL_LOOK_MS = 10000, RAPL_TICK_NS = 1000000 };

struct rapl;
/* Opens the counters. sys: "/sys", or a copy for tests. look_ms: milliseconds between two readings
 * of the thread. Returns NULL if there are no counters or this process may not read them; *e says
 * which. The caller's. */
struct rapl *rapl_open(const char *sys, long look_ms, struct err *e);
void rapl_close(struct rapl *rapl); /* NULL is fine */
/* Joules of all packages since rapl_open; NaN: rapl is NULL, or a counter cannot be read now. */
double rapl_joules(struct rapl *rapl);
/* "powercap" or "perf". */
const char *rapl_source(const struct rapl *rapl);
