/* watchdog.c - the thread that checks whether the current wait is the same as one second ago.
 * Starting and ending a wait costs the waiting thread a few plain memory operations.
 *
 * `changes` counts changes of `what`. It grows before `what` changes and is read after `what`, so a
 * reader that sees a new `what` also sees the new `changes`. So if two looks in a row find a wait
 * and an equal `changes`, it is one wait. */
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
    struct watchdog *watchdog = mem_zero(1, sizeof *watchdog);
    watchdog->seconds = seconds;
    pthread_mutex_init(&watchdog->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&watchdog->wake, &steady);
    pthread_condattr_destroy(&steady);
    return watchdog;
}

const char *watchdog_wait(struct watchdog *watchdog, const char *what)
{
    if (!watchdog)
        return NULL;
    const char *before = atomic_load_explicit(&watchdog->what, memory_order_relaxed);
    uint_fast64_t changes = atomic_load_explicit(&watchdog->changes, memory_order_relaxed);
    atomic_store_explicit(&watchdog->changes, changes + 1,
                          memory_order_relaxed); /* no atomic addition: this thread is the only
                                                  * writer */
    atomic_store_explicit(&watchdog->what, what, memory_order_release);
    return before;
}

int watchdog_look(struct watchdog *watchdog)
{
    const char *what = atomic_load_explicit(&watchdog->what, memory_order_acquire);
    uint_fast64_t changes = atomic_load_explicit(&watchdog->changes, memory_order_relaxed);
    int same = what && changes == watchdog->seen;
    if (!same && watchdog->lasted > watchdog->longest)
        watchdog->longest = watchdog->lasted;
    watchdog->lasted = same ? watchdog->lasted + 1 : 0;
    watchdog->seen = changes;
    return watchdog->lasted >= watchdog->seconds && watchdog->lasted / PATIENCE >= watchdog->longest
               ? watchdog->lasted
               : 0;
}

/* Waits a second, or less if the watchdog is stopped. */
static void sleep_a_second(struct watchdog *watchdog)
{
    struct timespec until;
    int status = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    while (!watchdog->stop && status != ETIMEDOUT)
        status = pthread_cond_timedwait(&watchdog->wake, &watchdog->lock, &until);
}

static void *watch_main(void *ctx)
{
    struct watchdog *watchdog = ctx;
    char text[320];
    pthread_mutex_lock(&watchdog->lock);
    for (int lasted = 0; !watchdog->stop; lasted = watchdog_look(watchdog)) {
        if (lasted) {
            const char *what = atomic_load_explicit(&watchdog->what, memory_order_relaxed);
            snprintf(text, sizeof text, "%s: the device has not answered for %d s: it is lost, or "
                     "a kernel does not end; see nvidia-smi and the system's log, and run again "
                     "(CROSSOVER_WATCHDOG_S=N sets the limit to N seconds; 0: no limit)",
                     what ? what : "wait", lasted);
            err_machine(__FILE__, __LINE__, text);
        }
        sleep_a_second(watchdog);
    }
    pthread_mutex_unlock(&watchdog->lock);
    return NULL;
}

void watchdog_start(struct watchdog *watchdog)
{
    if (!watchdog)
        return;
    if (pthread_create(&watchdog->thread, NULL, watch_main, watchdog))
        err_machine(__FILE__, __LINE__, "cannot create a thread");
    watchdog->started = 1;
}

void watchdog_free(struct watchdog *watchdog)
{
    if (!watchdog)
        return;
    pthread_mutex_lock(&watchdog->lock);
    watchdog->stop = 1;
    pthread_cond_signal(&watchdog->wake);
    pthread_mutex_unlock(&watchdog->lock);
    if (watchdog->started)
        pthread_join(watchdog->thread, NULL);
    pthread_cond_destroy(&watchdog->wake);
    pthread_mutex_destroy(&watchdog->lock);
    free(watchdog);
}
