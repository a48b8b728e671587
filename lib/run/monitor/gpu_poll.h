/* gpu_poll.h - a thread that reads a GPU every few milliseconds, so that what is said of a piece
 * of work was seen while it ran, not before or after on an idle card.
 *
 * The thread sleeps between its readings, is bound to no processor and takes no signals. A reading
 * is six calls of the driver's library; every READ_EVERY-th one also asks for processes.
 *
 * Energy. The driver's counter ticks every 20 to 100 ms. Its value at a moment is read off the line
 * between the tick before and the tick after it, so gpu_poll_take waits for the tick that follows.
 */
#ifndef RUN_MONITOR_GPU_POLL_H
#define RUN_MONITOR_GPU_POLL_H

#include <stdint.h>

#include "lib/record/machine/nvml.h"

struct gpu_poll;
/* NULL: n is, or there is no thread to be had. n is borrowed and must outlive the result. */
struct gpu_poll *gpu_poll_start(struct nvml *n, int64_t period_ns);
void gpu_poll_stop(struct gpu_poll *s); /* NULL is fine */

/* What was seen between two moments. -1 and NaN: no reading fell between them, or the driver does
 * not say. */
struct gpu_poll_seen {
    int64_t samples;                 /* readings; -1: there is no poll */
    int64_t reasons;                 /* bits of all readings together (nvml.h) */
    int64_t around;                  /* the same with the readings just before and just after */
    int64_t capped;                  /* readings under the power cap */
    int64_t sm_min_mhz, sm_max_mhz, memory_min_mhz, temperature_max_c;
    double sm_mean_mhz;
    double power_mean_w, power_j;    /* mean over the time; its integral */
    double energy_begin_j, energy_end_j; /* of the counter, at the two moments */
    int64_t energy_ticks;            /* of the counter, between them */
    int64_t used_peak_bytes, reserved_bytes, process_peak_bytes, foreign;
};
/* Waits until it has looked after end_ns, and at most 150 ms for the tick after it; forgets what
 * was before end_ns. Times are of clock_ns(); takes must not overlap. s NULL: nothing was seen. */
void gpu_poll_take(struct gpu_poll *s, int64_t begin_ns, int64_t end_ns, struct gpu_poll_seen *out);
/* Waits for a first tick of the counter, at most 150 ms. */
void gpu_poll_settle(struct gpu_poll *s);

#endif
