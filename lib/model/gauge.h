/* gauge.h - the GPU of a run as its instruments show it: over each batch, and idle before the first
 * batch and after the last one. Without a GPU, or without its driver's library, nothing is shown
 * and nothing costs anything.
 */
#ifndef MODEL_GAUGE_H
#define MODEL_GAUGE_H

#include <jansson.h>

#include "lib/base/rng.h"
#include "lib/io/sampler.h"
#include "lib/model/generation.h"

enum { GAUGE_PERIOD_NS = 20000000 }; /* from one look to the next */
/* Fewer ticks of the energy counter than this are no measurement: a tick more or less is 1 %. */
enum { GAUGE_TICKS = 100 };

struct gauge {
    int gpu;                        /* 0: the run is on the host */
    struct nvml *nvml;              /* NULL: the driver does not tell */
    struct sampler *sampler;
    struct rng pause;
    struct nvml_state begin, end;   /* just before and after the batch at hand */
    struct sampler_seen seen;       /* during it */
    int64_t batch_ns;               /* its makespan; 0: memory was short */
};
/* address: of the GPU; "": none. seed: of the pauses between batches. */
void gauge_open(struct gauge *g, const char *address, uint64_t seed);
void gauge_close(struct gauge *g);

/* Around a batch. gauge_begin pauses for up to 100 ms and up to a tenth of the batch before, at
 * random, so that batches of one length do not march in step with the driver's sensor; gauge_end
 * looks at exactly the time that batch_ns spans, and may wait for the tick of the counter. */
void gauge_begin(struct gauge *g);
void gauge_end(struct gauge *g, const struct batch_trace *trace);
/* Watches the GPU do nothing for ms milliseconds. The fields of an `idle` record but for launch,
 * model and device (caller's reference). NULL: no instruments, or ms is 0. */
json_t *gauge_idle(struct gauge *g, const char *when, int64_t ms);

/* Sets `gpu` and `tainted` of a generation record; gpu null without one. */
void gauge_put(const struct gauge *g, json_t *record);
/* 1: requested <= allocated <= reserved <= process, the last on a GPU alone (a host counts only the
 * pages that were touched). 0: not so. -1: the driver does not tell what this process holds. */
int gauge_layers(const struct gauge *g, const struct memory *m);
/* Sets device_peak_bytes, process_peak_bytes and layers_hold of a memory object. */
void gauge_put_memory(const struct gauge *g, const struct memory *m, json_t *memory);

#endif
