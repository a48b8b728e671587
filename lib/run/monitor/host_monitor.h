/* host_monitor.h - what the host did while a batch ran. What else it did: a time that others took
 * part in says more about the moment than about the model. The pressure on the processors (Linux
 * PSI: time in which some task waited for one), time stolen by other guests of the machine,
 * processor time of other processes, involuntary switches of this one, thermal events. And the
 * joules that its processors took, where we may read their counters (rapl.h); CROSSOVER_SYS names a
 * folder to be read for them in place of /sys, for tests.
 */
#ifndef RUN_MONITOR_HOST_MONITOR_H
#define RUN_MONITOR_HOST_MONITOR_H

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/record/machine/rapl.h"

struct host_state { /* seconds since the system began, and counts; NaN, -1: it does not tell */
    double now, pressure, stolen, busy, own;
    double joule; /* of the packages, since host_monitor_open */
    int64_t preempted, throttled;
};
/* Shares of the time that passed; NaN: not known. Counts; -1. */
struct host_seen {
    double seconds, pressure, stolen, others;
    int64_t preempted, throttled;
    double begin_j, end_j; /* of the packages */
};
struct host_monitor {
    struct host_state begin;
    struct host_seen seen;
    struct rapl *rapl;  /* NULL: no joules, `unmetered` says why */
    struct err unmetered;
};

/* Looks for counters of energy. All else works on a monitor that is zero, too. */
void host_monitor_open(struct host_monitor *h);
void host_monitor_close(struct host_monitor *h);

/* Around a batch. */
void host_monitor_begin(struct host_monitor *h);
void host_monitor_end(struct host_monitor *h);
/* Why the batch does not count: bits of enum host_taint. A share must be above its limit for long
 * enough that the tick of its clock cannot make it. */
enum host_taint { HOST_PRESSURE = 1, HOST_STOLEN = 2, HOST_OTHERS = 4, HOST_PREEMPTED = 8,
                  HOST_THERMAL = 16 };
unsigned host_monitor_taints(const struct host_seen *seen);
/* Watches the host while this process does nothing for ms milliseconds: the members host, fit and
 * reasons of a `fitness` record. The caller's reference. */
json_t *host_monitor_look(struct host_monitor *h, int64_t ms);
/* The same for joules: the members of an `idle` record but for launch, model and device. The
 * caller's reference; NULL: there is no counter of energy, or ms is 0. */
json_t *host_monitor_idle(struct host_monitor *h, const char *when, int64_t ms);
/* Sets `host` of a generation record and appends the taints to its list `tainted`. */
void host_monitor_put(const struct host_monitor *h, json_t *record);

#endif
