/* event.cu - events of the device, timed on the clock of the host.
 *
 * The time between two CUDA events comes from the device's clock as a float of milliseconds, which
 * is exact to nanoseconds only over short times. So each event is measured from the last event that
 * was waited for, the base. The base's time on the host's clock is measured at open and again from
 * time to time: an event recorded on an idle device is done between two readings of the host's
 * clock. This needs an idle device without a pending event, which would lie before the new base. So
 * the two clocks cannot drift apart. A reading that took longer than the possible drift is not
 * used.
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
    cudaEvent_t event[EVENTS]; /* event i is number i % EVENTS of these */
    int64_t next;             /* the next event's number */
    int64_t asked;            /* number of the first event that may still be waited for */
    cudaEvent_t base;         /* done before all events that may still be waited for */
    int64_t base_ns;          /* time of `base` */
    int64_t tied_ns;          /* when base_ns was last set from the host's clock */
    int64_t apart_ns;         /* time between the two clock readings around it */
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
static void tie(struct backend *b)
{
    struct events *m = device_of(b)->events;
    int64_t closest = INT64_MAX, begin = 0;
    for (int i = 0; i < TIES; i++) {
        int64_t before = clock_ns();
        CHECK(cudaEventRecord(m->spare, device_stream(b)));
        runtime_wait_event(b, m->spare, "event");
        int64_t apart = clock_ns() - before;
        if (apart < closest) {
            closest = apart;
            begin = before;
            swap(&m->best, &m->spare);
        }
    }
    if (closest > m->apart_ns + (begin - m->tied_ns) / DRIFT)
        return;
    swap(&m->base, &m->best);
    m->base_ns = begin + closest / 2;
    m->tied_ns = begin;
    m->apart_ns = closest;
}

void event_open(struct backend *b)
{
    struct events *m = (struct events *)mem_zero(1, sizeof *m);
    for (size_t i = 0; i < EVENTS; i++)
        CHECK(cudaEventCreate(&m->event[i]));
    CHECK(cudaEventCreate(&m->base));
    CHECK(cudaEventCreate(&m->spare));
    CHECK(cudaEventCreate(&m->best));
    m->apart_ns = INT64_MAX / 2; /* no tie yet: any is better */
    device_of(b)->events = m;
    tie(b);
}

void event_close(struct backend *b)
{
    struct events *m = device_of(b)->events;
    for (size_t i = 0; i < EVENTS; i++)
        CHECK(cudaEventDestroy(m->event[i]));
    CHECK(cudaEventDestroy(m->base));
    CHECK(cudaEventDestroy(m->spare));
    CHECK(cudaEventDestroy(m->best));
    free(m);
}

int64_t cuda_event_record(struct backend *b)
{
    struct events *m = device_of(b)->events;
    CHECK(cudaEventRecord(m->event[m->next % EVENTS], device_stream(b)));
    return m->next++;
}

/* 1 if the device has finished all its work. */
static int is_idle(struct backend *b)
{
    cudaError_t status = cudaStreamQuery(device_stream(b));
    if (status == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* cudaErrorNotReady is an answer, not an error to keep */
        return 0;
    }
    runtime_check(status, "cudaStreamQuery", __FILE__, __LINE__);
    return 1;
}

int64_t cuda_event_wait(struct backend *b, int64_t number)
{
    struct events *m = device_of(b)->events;
    cudaEvent_t *event = &m->event[number % EVENTS];
    float ms = 0;
    assert(number >= m->asked && number < m->next && m->next - number <= EVENTS);
    runtime_wait_event(b, *event, "event");
    CHECK(cudaEventElapsedTime(&ms, m->base, *event));
    int64_t now = clock_ns(), at = m->base_ns + (int64_t)((double)ms * 1e6);
    at = at > now ? now : at < m->base_ns ? m->base_ns : at;
    swap(&m->base, event);
    m->base_ns = at;
    m->asked = number + 1;
    if (m->asked == m->next && now - m->tied_ns > TIE_AGAIN_NS && is_idle(b))
        tie(b);
    return at;
}
