/* watch.c - the thread that looks whether the wait at hand is still the one of a second ago. A wait
 * costs its thread a few plain operations on memory at either end.
 *
 * `changes` grows before `what` changes, and is read after it: whoever sees a new `what` sees new
 * `changes` too. So two looks that find something waited for and no change between them have seen
 * one and the same wait.
 */
#include "kernels/cuda/device/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

enum { PATIENCE = 10 }; /* times the longest wait so far */

struct watch {
    _Atomic(const char *) what;
    atomic_uint_fast64_t changes;

    int seconds;
    /* of watch_look: */
    uint_fast64_t seen;
    int lasted, longest; /* the wait under way, and those that ended well */

    pthread_t thread;
    int started, stop;
    pthread_mutex_t lock; /* of stop */
    pthread_cond_t wake;
};

int watch_seconds(const char *text)
{
    char *end;
    if (!text)
        return WATCH_SECONDS;
    if (*text < '0' || *text > '9')
        return -1;
    unsigned long n = strtoul(text, &end, 10);
    return *end || n > WATCH_SECONDS_MOST ? -1 : (int)n;
}

struct watch *watch_new(int seconds)
{
    pthread_condattr_t steady;
    if (!seconds)
        return NULL;
    struct watch *w = mem_zero(1, sizeof *w);
    w->seconds = seconds;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &steady);
    pthread_condattr_destroy(&steady);
    return w;
}

const char *watch_wait(struct watch *w, const char *what)
{
    if (!w)
        return NULL;
    const char *before = atomic_load_explicit(&w->what, memory_order_relaxed);
    uint_fast64_t changes = atomic_load_explicit(&w->changes, memory_order_relaxed);
    atomic_store_explicit(&w->changes, changes + 1, memory_order_relaxed); /* nobody else writes */
    atomic_store_explicit(&w->what, what, memory_order_release);
    return before;
}

int watch_look(struct watch *w)
{
    const char *what = atomic_load_explicit(&w->what, memory_order_acquire);
    uint_fast64_t changes = atomic_load_explicit(&w->changes, memory_order_relaxed);
    int same = what && changes == w->seen;
    if (!same && w->lasted > w->longest)
        w->longest = w->lasted;
    w->lasted = same ? w->lasted + 1 : 0;
    w->seen = changes;
    return w->lasted >= w->seconds && w->lasted / PATIENCE >= w->longest ? w->lasted : 0;
}

/* Waits a second, or less when the watch is over. */
static void sleep_a_second(struct watch *w)
{
    struct timespec until;
    int status = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    while (!w->stop && status != ETIMEDOUT)
        status = pthread_cond_timedwait(&w->wake, &w->lock, &until);
}

static void *watch_main(void *ctx)
{
    struct watch *w = ctx;
    char text[320];
    pthread_mutex_lock(&w->lock);
    for (int lasted = 0; !w->stop; lasted = watch_look(w)) {
        if (lasted) {
            const char *what = atomic_load_explicit(&w->what, memory_order_relaxed);
            snprintf(text, sizeof text, "%s: the device has not answered for %d s: it is lost, or "
                     "a kernel does not end; see nvidia-smi and the system's log, and run again "
                     "(CROSSOVER_WATCHDOG_S=N gives it N seconds, 0 all the time it wants)",
                     what ? what : "wait", lasted);
            err_machine(__FILE__, __LINE__, text);
        }
        sleep_a_second(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

void watch_start(struct watch *w)
{
    if (!w)
        return;
    if (pthread_create(&w->thread, NULL, watch_main, w))
        err_machine(__FILE__, __LINE__, "cannot create a thread");
    w->started = 1;
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = 1;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    if (w->started)
        pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
