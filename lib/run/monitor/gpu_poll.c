/* gpu_poll.c - see gpu_poll.h. The readings are a list in order of time, guarded by one lock, which
 * is never held during a call of the driver. A reading with more energy than the reading before is
 * a tick. */
#include "lib/run/monitor/gpu_poll.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

enum { READ_EVERY = 50 }; /* lists of processes take up to 11 ms */
static const int64_t TICK_WAIT_NS = 150000000; /* longer than any driver's tick */
static const int64_t LOOK_WAIT_NS = 2000000000; /* a stuck driver must not stop the run */

struct gpu_reading {
    int64_t ns;
    int tick;
    struct nvml_state at;
};

struct gpu_poll {
    struct nvml *nvml;
    int64_t period_ns;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news, wake; /* a reading was added; stop or resting has changed */
    int stop, resting, ticks;  /* ticks: the counter is known to tick */
    struct gpu_reading *v;
    size_t n, cap;
};

/* Waits until *c is signalled, at most until `deadline` of CLOCK_MONOTONIC. Returns 0 if woken. */
static int wait_until(struct gpu_poll *poll, pthread_cond_t *c, int64_t deadline)
{
    struct timespec time = {deadline / 1000000000, deadline % 1000000000};
    return pthread_cond_timedwait(c, &poll->lock, &time);
}

static int64_t monotonic_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* ---- the thread ---- */

static void add(struct gpu_poll *poll, struct gpu_reading reading)
{
    const struct nvml_state *last = poll->n ? &poll->v[poll->n - 1].at : NULL;
    reading.tick = last && last->energy_mj >= 0 && reading.at.energy_mj > last->energy_mj;
    poll->ticks |= reading.tick;
    MEM_GROW(poll->v, poll->n, poll->cap);
    poll->v[poll->n++] = reading;
    pthread_cond_broadcast(&poll->news);
}

static void *watch(void *ctx)
{
    struct gpu_poll *poll = ctx;
    pthread_mutex_lock(&poll->lock);
    for (int64_t i = 0, next = monotonic_ns(); !poll->stop; i++) {
        pthread_mutex_unlock(&poll->lock);
        struct gpu_reading reading = {.ns = clock_ns()};
        if (i % READ_EVERY)
            nvml_glance(poll->nvml, &reading.at);
        else
            nvml_read(poll->nvml, &reading.at);
        pthread_mutex_lock(&poll->lock);
        add(poll, reading);
        for (next += poll->period_ns; next < monotonic_ns();) /* late: skip readings */
            next += poll->period_ns;
        while (!poll->stop && (poll->resting ? !pthread_cond_wait(&poll->wake, &poll->lock)
                                             : wait_until(poll, &poll->wake, next) != ETIMEDOUT))
            continue;
    }
    pthread_mutex_unlock(&poll->lock);
    return NULL;
}

struct gpu_poll *gpu_poll_start(struct nvml *n, int64_t period_ns)
{
    if (!n)
        return NULL;
    struct gpu_poll *poll = mem_zero(1, sizeof *poll);
    pthread_condattr_t monotonic;
    sigset_t all, mine;
    *poll = (struct gpu_poll){.nvml = n, .period_ns = period_ns};
    pthread_mutex_init(&poll->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&poll->news, &monotonic);
    pthread_cond_init(&poll->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mine);
    int bad = pthread_create(&poll->thread, NULL, watch, poll);
    pthread_sigmask(SIG_SETMASK, &mine, NULL);
    if (!bad)
        return poll;
    free(poll);
    return NULL;
}

void gpu_poll_stop(struct gpu_poll *poll)
{
    if (!poll)
        return;
    pthread_mutex_lock(&poll->lock);
    poll->stop = 1;
    pthread_cond_signal(&poll->wake);
    pthread_mutex_unlock(&poll->lock);
    pthread_join(poll->thread, NULL);
    pthread_cond_destroy(&poll->wake);
    pthread_cond_destroy(&poll->news);
    pthread_mutex_destroy(&poll->lock);
    free(poll->v);
    free(poll);
}

void gpu_poll_rest(struct gpu_poll *poll, int resting)
{
    if (!poll)
        return;
    pthread_mutex_lock(&poll->lock);
    poll->resting = resting;
    pthread_cond_signal(&poll->wake);
    pthread_mutex_unlock(&poll->lock);
}

/* ---- the readings between two moments ---- */

static void widen(int64_t *least, int64_t *most, int64_t v)
{
    if (v < 0)
        return;
    if (least && (*least < 0 || v < *least))
        *least = v;
    if (most && v > *most)
        *most = v;
}

/* Adds one reading to the summary. */
static void take_reading(struct gpu_poll_seen *out, const struct nvml_state *at)
{
    out->samples++;
    if (at->reasons >= 0) {
        out->reasons = (out->reasons < 0 ? 0 : out->reasons) | at->reasons;
        out->capped = (out->capped < 0 ? 0 : out->capped) + !!(at->reasons & NVML_POWER_CAP);
    }
    widen(&out->sm_min_mhz, &out->sm_max_mhz, at->sm_mhz);
    widen(&out->memory_min_mhz, NULL, at->memory_mhz);
    widen(NULL, &out->temperature_max_c, at->temperature_c);
    widen(NULL, &out->used_peak_bytes, at->used_bytes);
    widen(NULL, &out->reserved_bytes, at->reserved_bytes);
    widen(NULL, &out->process_peak_bytes, at->process_bytes);
    widen(NULL, &out->foreign, at->foreign);
}

/* Sets mean clock and power. A reading of power counts for the time since the reading before; the
 * power is NaN if readings do not cover the whole time. */
static void take_means(struct gpu_poll_seen *out, const struct gpu_reading *reading, size_t n,
                       int64_t begin, int64_t end)
{
    double mhz = 0, joule = 0;
    int64_t clocks = 0, covered = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t from = i ? reading[i - 1].ns : reading[i].ns,
                to = reading[i].ns < end ? reading[i].ns : end;
        if (reading[i].ns >= begin && reading[i].ns <= end && reading[i].at.sm_mhz >= 0) {
            mhz += (double)reading[i].at.sm_mhz;
            clocks++;
        }
        from = from > begin ? from : begin;
        if (to > from && reading[i].at.power_mw >= 0) {
            joule += (double)reading[i].at.power_mw * 1e-3 * (double)(to - from) * 1e-9;
            covered += to - from;
        }
    }
    out->sm_mean_mhz = clocks ? mhz / (double)clocks : (double)NAN;
    if (out->samples > 0 && covered == end - begin && covered > 0) {
        out->power_j = joule;
        out->power_mean_w = joule / ((double)covered * 1e-9);
    }
}

/* Returns the energy counter in J at a moment, interpolated between the ticks around it; NaN: there
 * is no tick before or after. */
static double energy_at(const struct gpu_reading *reading, size_t n, int64_t ns)
{
    const struct gpu_reading *before = NULL, *after = NULL;
    for (size_t i = 0; i < n && !after; i++)
        if (reading[i].tick && reading[i].ns <= ns)
            before = &reading[i];
        else if (reading[i].tick)
            after = &reading[i];
    if (!before || !after)
        return NAN;
    double part = (double)(ns - before->ns) / (double)(after->ns - before->ns);
    double gain = (double)(after->at.energy_mj - before->at.energy_mj);
    return ((double)before->at.energy_mj + part * gain) * 1e-3;
}

static void summarize(const struct gpu_reading *reading, size_t n, int64_t begin, int64_t end,
                      struct gpu_poll_seen *out)
{
    int64_t around = -1;
    out->samples = 0;
    for (size_t i = 0; i < n; i++) {
        int inside = reading[i].ns >= begin && reading[i].ns <= end;
        int next_to = i + 1 < n && reading[i].ns < begin && reading[i + 1].ns >= begin;
        next_to |= i > 0 && reading[i].ns > end && reading[i - 1].ns <= end;
        if (inside)
            take_reading(out, &reading[i].at);
        if ((inside || next_to) && reading[i].at.reasons >= 0)
            around = (around < 0 ? 0 : around) | reading[i].at.reasons;
    }
    out->around = around;
    take_means(out, reading, n, begin, end);
    out->energy_begin_j = energy_at(reading, n, begin);
    out->energy_end_j = energy_at(reading, n, end);
    for (size_t i = 0; i < n; i++)
        if (reading[i].at.energy_mj >= 0)
            out->energy_ticks = (out->energy_ticks < 0 ? 0 : out->energy_ticks) +
                                (reading[i].tick && reading[i].ns > begin && reading[i].ns <= end);
}

/* Drops readings before the last tick up to `end`. */
static void forget(struct gpu_poll *poll, int64_t end)
{
    size_t keep = 0;
    for (size_t i = 0; i < poll->n && poll->v[i].ns <= end; i++)
        if (poll->v[i].tick || !poll->ticks)
            keep = i;
    poll->n -= keep;
    memmove(poll->v, poll->v + keep, poll->n * sizeof *poll->v);
}

static int is_after(const struct gpu_poll *poll, int64_t ns, int tick)
{
    for (size_t i = poll->n; i-- && poll->v[i].ns > ns;)
        if (poll->v[i].tick || !tick)
            return 1;
    return 0;
}

/* Waits for a reading, or a tick, after `ns`; the lock is held. */
static void await(struct gpu_poll *poll, int64_t ns, int tick, int64_t most_ns)
{
    int64_t deadline = monotonic_ns() + most_ns;
    while (!is_after(poll, ns, tick) && !wait_until(poll, &poll->news, deadline))
        continue;
}

void gpu_poll_take(struct gpu_poll *poll, int64_t begin_ns, int64_t end_ns,
                   struct gpu_poll_seen *out)
{
    *out = (struct gpu_poll_seen){-1, -1, -1, -1, -1, -1, -1, -1, NAN, NAN, NAN, NAN, NAN, -1,
                                 -1, -1, -1, -1};
    assert(begin_ns <= end_ns);
    if (!poll)
        return;
    pthread_mutex_lock(&poll->lock);
    await(poll, end_ns, 0, LOOK_WAIT_NS);
    if (poll->ticks)
        await(poll, end_ns, 1, TICK_WAIT_NS);
    summarize(poll->v, poll->n, begin_ns, end_ns, out);
    forget(poll, end_ns);
    pthread_mutex_unlock(&poll->lock);
}

void gpu_poll_settle(struct gpu_poll *poll)
{
    if (!poll)
        return;
    pthread_mutex_lock(&poll->lock);
    if (!poll->ticks)
        await(poll, 0, 1, TICK_WAIT_NS);
    pthread_mutex_unlock(&poll->lock);
}
