/* host_monitor.h - measures the load of the host while a batch runs, so that disturbed times are
 * known: the pressure on the processors (Linux PSI: time in which some task waited for a
 * processor), time stolen by other guests of the machine, processor time of other processes,
 * involuntary switches of this process, thermal events. It also measures the energy of the
 * processors if their counters can be read (rapl.h). For tests, CROSSOVER_SYS names a folder that
 * replaces /sys. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/record/machine/rapl.h"

struct host_state { /* totals in seconds, and counts; NaN, -1: unknown */
    double now, pressure, stolen, busy, own; /* busy: the machine; own: this process */
    double joule; /* energy of the packages since host_monitor_open */
    int64_t preempted, throttled;
};
/* The load during a batch: shares of its time (NaN: unknown) and counts (-1: unknown). */
struct host_seen {
    double seconds, pressure, stolen, others;
    int64_t preempted, throttled;
    double begin_j, end_j; /* energy of the packages */
};
struct host_monitor {
    struct host_state begin;
    struct host_seen seen;
    struct rapl *rapl;  /* NULL: no energy; `unmetered` holds the reason */
    struct err unmetered;
};

/* Looks for energy counters. The other functions also work on a zeroed monitor. */
void host_monitor_open(struct host_monitor *monitor);
void host_monitor_close(struct host_monitor *monitor);

/* Call around a batch. */
void host_monitor_begin(struct host_monitor *monitor);
void host_monitor_end(struct host_monitor *monitor);
/* Why a batch is tainted: bits of enum host_taint. A share counts only if it exceeds its limit by
 * more than one tick of its clock. */
enum host_taint { HOST_PRESSURE = 1, HOST_STOLEN = 2, HOST_OTHERS = 4, HOST_PREEMPTED = 8,
                  HOST_THERMAL = 16 };
unsigned host_monitor_taints(const struct host_seen *seen);
/* Watches the host while this process is idle for ms milliseconds. Returns the members host, fit
 * and reasons of a `fitness` record; the caller's reference. */
json_t *host_monitor_look(struct host_monitor *monitor, int64_t ms);
/* Measures the energy while this process is idle for ms milliseconds. Returns the members of an
 * `idle` record without launch, model and device; the caller's reference. NULL: no energy counter,
 * or ms is 0. */
json_t *host_monitor_idle(struct host_monitor *monitor, const char *when, int64_t ms);
/* Sets `host` of a generation record and appends the taints to its list `tainted`. */
void host_monitor_put(const struct host_monitor *monitor, json_t *record);
