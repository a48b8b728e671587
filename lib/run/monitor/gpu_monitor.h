/* gpu_monitor.h - reads the GPU during each batch, and while it is idle before the first batch and
 * after the last one. Without a GPU or its driver's library there are no readings and no cost. */
#pragma once

#include <jansson.h>

#include "lib/base/rng.h"
#include "lib/run/monitor/gpu_poll.h"
#include "lib/decode/generation.h"

enum { GPU_MONITOR_PERIOD_NS = 20000000 }; /* between two readings */
/* Least ticks of the energy counter for a measurement: one tick more or less is then 1 %. */
enum { GPU_MONITOR_TICKS = 100 };

struct gpu_monitor {
    int gpu;                        /* 1: the run is on a GPU; 0: on the host */
    struct nvml *nvml;              /* NULL: no driver library */
    struct gpu_poll *poll;
    struct rng pause;
    struct nvml_state begin, end;   /* just before and after the batch */
    struct gpu_poll_seen seen;       /* during the batch */
    int64_t batch_ns;               /* time of the batch; 0: it did not fit in memory */
    int resident_reset;             /* 0: the peak resident set was reset before the batch */
    int64_t resident_peak;          /* peak resident set in the batch, for a host; -1: unknown */
};
/* Opens the GPU. address: its PCI address; "": no GPU. own: number of processes that take turns on
 * the GPU, or 1. seed: of the pauses between batches. */
void gpu_monitor_open(struct gpu_monitor *monitor, const char *address, size_t own, uint64_t seed);
void gpu_monitor_close(struct gpu_monitor *monitor);

/* Returns the number of other processes that are using the GPU; -1: no GPU, or unknown. */
int64_t gpu_monitor_foreign(const struct gpu_monitor *monitor);

/* Call around a batch. gpu_monitor_begin pauses at random, up to 100 ms and up to a tenth of the
 * batch before, so that equal batches do not keep in step with the driver's sensor. gpu_monitor_end
 * takes the readings of exactly batch_ns, and may wait for a tick of the energy counter. */
void gpu_monitor_begin(struct gpu_monitor *monitor);
void gpu_monitor_end(struct gpu_monitor *monitor, const struct batch_trace *trace);
/* Watches the idle GPU for ms milliseconds. Returns the fields of an `idle` record without launch,
 * model and device (caller's reference). NULL: no readings, or ms is 0. */
json_t *gpu_monitor_idle(struct gpu_monitor *monitor, const char *when, int64_t ms);

/* 1: the readings make the batch `tainted`. */
int gpu_monitor_tainted(const struct gpu_monitor *monitor);
/* Sets `gpu` and `tainted` of a generation record; without a GPU, `gpu` is null. */
void gpu_monitor_put(const struct gpu_monitor *monitor, json_t *record);
/* Returns 1 if requested <= allocated <= reserved <= process, else 0. The last comparison is for
 * GPUs only, because a host counts only touched pages of a process. Returns -1 if the memory of
 * this process is unknown. */
int gpu_monitor_layers(const struct gpu_monitor *monitor, const struct memory *memory);
/* Sets device_peak_bytes, process_peak_bytes and layers_hold of a memory object. The peaks leave
 * out the `idle` bytes of a network that the batch did not use. */
void gpu_monitor_put_memory(const struct gpu_monitor *monitor, const struct memory *host,
                            size_t idle, json_t *memory);
