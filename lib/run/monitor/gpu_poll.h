/* gpu_poll.h - a thread that reads a GPU every few milliseconds, so that readings belong to the
 * work that ran, not to the idle card before or after it.
 *
 * The thread sleeps between readings, is bound to no processor and blocks all signals. A reading
 * makes six calls of the driver's library; every READ_EVERY-th reading also lists processes.
 *
 * Energy: the driver's counter ticks every 20 to 100 ms. Its value at a moment is interpolated
 * between the ticks before and after, so gpu_poll_take waits for the tick after the end. */
#pragma once

#include <stdint.h>

#include "lib/record/machine/nvml.h"

struct gpu_poll;
/* Starts the thread. Returns NULL if n is NULL or no thread can be started. n is borrowed and must
 * outlive the result. */
struct gpu_poll *gpu_poll_start(struct nvml *n, int64_t period_ns);
void gpu_poll_stop(struct gpu_poll *poll); /* NULL is fine */
/* resting 1: stops readings until the call with 0. For the time in which another process is timed
 * on this machine, since a reading costs a few milliseconds of a processor. poll NULL is fine. */
void gpu_poll_rest(struct gpu_poll *poll, int resting);

/* Readings between two moments. A value is -1 or NaN if there was no reading, or if the driver does
 * not report it. */
struct gpu_poll_seen {
    int64_t samples;                 /* number of readings; -1: no thread */
    int64_t reasons;                 /* union of the bits of all readings (nvml.h) */
    int64_t around;                  /* `reasons`, with the readings just before and after */
    int64_t capped;                  /* readings at the power cap */
    int64_t sm_min_mhz, sm_max_mhz, memory_min_mhz, temperature_max_c;
    double sm_mean_mhz;
    double power_mean_w, power_j;    /* mean power over the time; integral of the power */
    double energy_begin_j, energy_end_j; /* counter at the two moments */
    int64_t energy_ticks;            /* ticks of the counter between them */
    int64_t used_peak_bytes, reserved_bytes, process_peak_bytes, foreign;
};
/* *out = the readings from begin_ns to end_ns (clock_ns()). Waits for a reading after end_ns, and
 * up to 150 ms for the next tick; drops older readings. Intervals must not overlap. poll NULL: no
 * readings. */
void gpu_poll_take(struct gpu_poll *poll, int64_t begin_ns, int64_t end_ns,
                   struct gpu_poll_seen *out);
/* Waits up to 150 ms for a first tick of the counter. */
void gpu_poll_settle(struct gpu_poll *poll);
