/* gpu_monitor.h - the GPU of a run as its instruments show it: over each batch, and idle before the
 * first batch and after the last one. Without a GPU, or without its driver's library, nothing is
 * shown and nothing costs anything.
 */
#ifndef RUN_MONITOR_GPU_MONITOR_H
#define RUN_MONITOR_GPU_MONITOR_H

#include <jansson.h>

#include "lib/base/rng.h"
#include "lib/run/monitor/gpu_poll.h"
#include "lib/decode/generation.h"

enum { GPU_MONITOR_PERIOD_NS = 20000000 }; /* from one reading to the next */
/* Fewer ticks of the energy counter than this are no measurement: a tick more or less is 1 %. */
enum { GPU_MONITOR_TICKS = 100 };

struct gpu_monitor {
    int gpu;                        /* 0: the run is on the host */
    struct nvml *nvml;              /* NULL: the driver does not tell */
    struct gpu_poll *poll;
    struct rng pause;
    struct nvml_state begin, end;   /* just before and after the batch at hand */
    struct gpu_poll_seen seen;       /* during it */
    int64_t batch_ns;               /* its makespan; 0: memory was short */
    int resident_reset;             /* 0: the system counts the resident set from the batch on */
    int64_t resident_peak;          /* of a host, in the batch; -1: the system does not tell */
};
/* address: of the GPU; "": none. seed: of the pauses between batches. */
void gpu_monitor_open(struct gpu_monitor *g, const char *address, uint64_t seed);
void gpu_monitor_close(struct gpu_monitor *g);

/* Other processes that compute on the GPU now; -1: none is watched, or the driver does not tell. */
int64_t gpu_monitor_foreign(const struct gpu_monitor *g);

/* Around a batch. gpu_monitor_begin pauses for up to 100 ms and up to a tenth of the batch before,
 * at random, so that batches of one length do not march in step with the driver's sensor;
 * gpu_monitor_end reads exactly the time that batch_ns spans, and may wait for the tick of the
 * counter. */
void gpu_monitor_begin(struct gpu_monitor *g);
void gpu_monitor_end(struct gpu_monitor *g, const struct batch_trace *trace);
/* Watches the GPU do nothing for ms milliseconds. The fields of an `idle` record but for launch,
 * model and device (caller's reference). NULL: no instruments, or ms is 0. */
json_t *gpu_monitor_idle(struct gpu_monitor *g, const char *when, int64_t ms);

/* 1: the batch is tainted by what the card met. */
int gpu_monitor_tainted(const struct gpu_monitor *g);
/* Sets `gpu` and `tainted` of a generation record; gpu null without one. */
void gpu_monitor_put(const struct gpu_monitor *g, json_t *record);
/* 1: requested <= allocated <= reserved <= process, the last on a GPU alone (a host counts only the
 * pages that were touched). 0: not so. -1: the driver does not tell what this process holds. */
int gpu_monitor_layers(const struct gpu_monitor *g, const struct memory *m);
/* Sets device_peak_bytes, process_peak_bytes and layers_hold of a memory object. */
void gpu_monitor_put_memory(const struct gpu_monitor *g, const struct memory *m, json_t *memory);

#endif
