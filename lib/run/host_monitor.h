/* host_monitor.h - what else the host did while a batch ran: a time that others took part in says
 * more about the moment than about the model. The pressure on the processors (Linux PSI: time in
 * which some task waited for one), time stolen by other guests of the machine, processor time of
 * other processes, involuntary switches of this one, thermal events.
 */
#ifndef RUN_HOST_MONITOR_H
#define RUN_HOST_MONITOR_H

#include <jansson.h>
#include <stdint.h>

struct host_state { /* seconds since the system began, and counts; NaN, -1: it does not tell */
    double now, pressure, stolen, busy, own;
    int64_t preempted, throttled;
};
/* Shares of the time that passed; NaN: not known. Counts; -1. */
struct host_seen {
    double seconds, pressure, stolen, others;
    int64_t preempted, throttled;
};
struct host_monitor { struct host_state begin; struct host_seen seen; };

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
/* Sets `host` of a generation record and appends the taints to its list `tainted`. */
void host_monitor_put(const struct host_monitor *h, json_t *record);

#endif
