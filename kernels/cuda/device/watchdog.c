/* watchdog.c - the thread that checks whether the current wait is the same as one second ago.
 * Starting and ending a wait costs the waiting thread a few plain memory operations.
 *
 * `changes` grows before `what` changes and is read after it, so a reader that sees a new `what`
 * also sees the new `changes`. Two looks that find a wait and the same `changes` have seen the same
 * wait. */
#include "kernels/cuda/device/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

enum { PATIENCE = 10 }; /* factor of the longest wait so far */

struct watchdog {
    _Atomic(const char *) what;
    atomic_uint_fast64_t changes;

    int seconds;
    /* used by watchdog_look: */
    uint_fast64_t seen;
    int lasted, longest; /* seconds of the current wait, and of the longest that ended well */

    pthread_t thread;
    int started, stop;
    pthread_mutex_t lock; /* guards stop */
    pthread_cond_t wake;
};

int watchdog_seconds(const char *text)
{
    char *end;
    if (!text)
        return WATCHDOG_SECONDS;
    if (*text < '0' || *text > '9')
        return -1;
    unsigned long n = strtoul(text, &end, 10);
    return *end || n > WATCHDOG_SECONDS_MOST ? -1 : (int)n;
}

struct watchdog *watchdog_new(int seconds)
{
    pthread_condattr_t steady;
    if (!seconds)
        return NULL;
    struct watchdog *w = mem_zero(1, sizeof *w);
    w->seconds = seconds;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &steady);
    pthread_condattr_destroy(&steady);
    return w;
}

const char *watchdog_wait(struct watchdog *w, const char *what)
{
    if (!w)
        return NULL;
    const char *before = atomic_load_explicit(&w->what, memory_order_relaxed);
    uint_fast64_t changes = atomic_load_explicit(&w->changes, memory_order_relaxed);
    atomic_store_explicit(&w->changes, changes + 1, memory_order_relaxed); /* this thread is the
                                                                            * only writer */
    atomic_store_explicit(&w->what, what, memory_order_release);
    return before;
}

int watchdog_look(struct watchdog *w)
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

/* Waits a second, or less if the watchdog is stopped. */
static void sleep_a_second(struct watchdog *w)
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
    struct watchdog *w = ctx;
    char text[320];
    pthread_mutex_lock(&w->lock);
    for (int lasted = 0; !w->stop; lasted = watchdog_look(w)) {
        if (lasted) {
            const char *what = atomic_load_explicit(&w->what, memory_order_relaxed);
            snprintf(text, sizeof text, "%s: the device has not answered for %d s: it is lost, or "
                     "a kernel does not end; see nvidia-smi and the system's log, and run again "
                     "(CROSSOVER_WATCHDOG_S=N sets the limit to N seconds; 0: no limit)",
                     what ? what : "wait", lasted);
            err_machine(__FILE__, __LINE__, text);
        }
        sleep_a_second(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

void watchdog_start(struct watchdog *w)
{
    if (!w)
        return;
    if (pthread_create(&w->thread, NULL, watch_main, w))
        err_machine(__FILE__, __LINE__, "cannot create a thread");
    w->started = 1;
}

void watchdog_free(struct watchdog *w)
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
