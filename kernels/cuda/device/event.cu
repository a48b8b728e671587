/* event.cu - events of the device, timed on the clock of the host.
 *
 * CUDA gives the time between two events on the device's clock as a float of milliseconds, which is
 * exact to nanoseconds only over short times. So each event is measured from the last event that
 * was waited for, the base. The time of the base on the host's clock is measured when the back end
 * is opened and again from time to time (tie()), so that the two clocks cannot drift apart: an
 * event that is recorded on an idle device is done between two readings of the host's clock. The
 * device must be idle, and no event may be pending, because it would lie before the new base. A
 * measurement with a larger error than the possible drift is not used.
 *
 * Times never go back, and no event is later than the moment when the wait for it ended. */
#include <assert.h>
#include <stdlib.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/event.h"
#include "kernels/cuda/device/runtime.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

enum {
    EVENTS = 64,
    TIES = 4,
    TIE_AGAIN_NS = 1000000000,
    DRIFT = 10000 /* the clocks drift by at most 1 / DRIFT */
};

struct events {
    cudaEvent_t event[EVENTS]; /* event number i is event[i % EVENTS] */
    int64_t next;             /* number of the next event */
    int64_t asked;            /* number of the first event that may still be waited for */
    cudaEvent_t base;         /* done before all events that may still be waited for */
    int64_t base_ns;          /* time of `base` */
    int64_t tied_ns;          /* when base_ns was last set from the host's clock */
    int64_t apart_ns;         /* time between the two readings of the host's clock at that tie */
    cudaEvent_t spare, best;  /* used by tie() */
};

static void swap(cudaEvent_t *a, cudaEvent_t *b)
{
    cudaEvent_t kept = *a;
    *a = *b;
    *b = kept;
}

/* Records several events on an idle device. The event between the two closest readings of the clock
 * becomes the base. */
static void tie(struct backend *backend)
{
    struct events *events = device_of(backend)->events;
    int64_t closest = INT64_MAX, begin = 0;
    for (int i = 0; i < TIES; i++) {
        int64_t before = clock_ns();
        CHECK(cudaEventRecord(events->spare, device_stream(backend)));
        runtime_wait_event(backend, events->spare, "event");
        int64_t apart = clock_ns() - before;
        if (apart < closest) {
            closest = apart;
            begin = before;
            swap(&events->best, &events->spare);
        }
    }
    if (closest > events->apart_ns + (begin - events->tied_ns) / DRIFT)
        return;
    swap(&events->base, &events->best);
    events->base_ns = begin + closest / 2;
    events->tied_ns = begin;
    events->apart_ns = closest;
}

void event_open(struct backend *backend)
{
    struct events *events = (struct events *)mem_zero(1, sizeof *events);
    for (size_t i = 0; i < EVENTS; i++)
        CHECK(cudaEventCreate(&events->event[i]));
    CHECK(cudaEventCreate(&events->base));
    CHECK(cudaEventCreate(&events->spare));
    CHECK(cudaEventCreate(&events->best));
    events->apart_ns = INT64_MAX / 2; /* no tie yet: every measurement is better */
    device_of(backend)->events = events;
    tie(backend);
}

void event_close(struct backend *backend)
{
    struct events *events = device_of(backend)->events;
    for (size_t i = 0; i < EVENTS; i++)
        CHECK(cudaEventDestroy(events->event[i]));
    CHECK(cudaEventDestroy(events->base));
    CHECK(cudaEventDestroy(events->spare));
    CHECK(cudaEventDestroy(events->best));
    free(events);
}

int64_t cuda_event_record(struct backend *backend)
{
    struct events *events = device_of(backend)->events;
    CHECK(cudaEventRecord(events->event[events->next % EVENTS], device_stream(backend)));
    return events->next++;
}

/* 1 if the device has finished all its work. */
static int is_idle(struct backend *backend)
{
    cudaError_t status = cudaStreamQuery(device_stream(backend));
    if (status == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* cudaErrorNotReady is an answer, not an error to keep */
        return 0;
    }
    runtime_check(status, "cudaStreamQuery", __FILE__, __LINE__);
    return 1;
}

int64_t cuda_event_wait(struct backend *backend, int64_t number)
{
    struct events *events = device_of(backend)->events;
    cudaEvent_t *event = &events->event[number % EVENTS];
    float ms = 0;
    assert(number >= events->asked && number < events->next && events->next - number <= EVENTS);
    runtime_wait_event(backend, *event, "event");
    CHECK(cudaEventElapsedTime(&ms, events->base, *event));
    int64_t now = clock_ns(), at = events->base_ns + (int64_t)((double)ms * 1e6);
    at = at > now ? now : at < events->base_ns ? events->base_ns : at;
    swap(&events->base, event);
    events->base_ns = at;
    events->asked = number + 1;
    if (events->asked == events->next && now - events->tied_ns > TIE_AGAIN_NS && is_idle(backend))
        tie(backend);
    return at;
}
