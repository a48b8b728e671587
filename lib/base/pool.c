/* pool.c - pthread pool; see pool.h. The caller is worker 0.
 *
 * Each worker has a lane, its share of the loop. It takes half of what is left there, again and
 * again, and then helps the others in the same way: a worker that the machine holds up, or whose
 * memory is slower just now, leaves part of its lane to those that are ready.
 *
 * A forward pass starts hundreds of short loops in a row. A worker therefore spins for a while
 * before it sleeps, and the caller takes the lock only when someone sleeps. Both sides follow one
 * pattern: he who sleeps says so before he looks for the last time, he who has news tells them
 * before he looks for sleepers; in a sequentially consistent order one of them sees the other.
 */
#include "lib/base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/cpus.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

enum { SPIN_NS = 100000, PAUSES = 32, MAX_THREADS = 1024, LINE = 64 };

/* Grains that nobody has taken yet: first << 32 | end. */
struct lane {
    _Alignas(LINE) atomic_uint_fast64_t left;
};

struct pool {
    /* one cache line: what a worker needs to begin */
    _Alignas(LINE) atomic_uint_fast64_t ticket; /* grows by one per loop; workers wait for it */
    pool_task *task;
    void *ctx;
    size_t n, grain, threads;
    int stop;

    _Alignas(LINE) atomic_size_t running; /* workers that have not finished this loop */

    _Alignas(LINE) atomic_size_t sleepers; /* workers that wait for `wake` */
    atomic_int caller_sleeps;              /* the caller waits for `done` */
    atomic_int busy;                       /* a loop runs */
    int oversubscribed;                           /* more threads than processors: never spin */
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    pthread_t *handles; /* [threads - 1] */
    struct lane *lanes; /* [threads] */
};

struct start {
    struct pool *pool;
    size_t worker;
};

static void cut_lanes(struct pool *p)
{
    size_t grains = (p->n + p->grain - 1) / p->grain;
    assert(grains <= UINT32_MAX);
    for (size_t w = 0; w < p->threads; w++)
        atomic_store_explicit(&p->lanes[w].left,
                              (uint64_t)(grains * w / p->threads) << 32 |
                                  grains * (w + 1) / p->threads,
                              memory_order_relaxed);
}

/* Takes half of what is left in a lane, rounded up; 0: nothing is. */
static int take(struct lane *lane, size_t *first, size_t *end)
{
    uint_fast64_t left = atomic_load_explicit(&lane->left, memory_order_relaxed), rest;
    do {
        *first = (size_t)(left >> 32);
        size_t last = (size_t)(left & UINT32_MAX);
        if (*first >= last)
            return 0;
        *end = *first + (last - *first + 1) / 2;
        rest = (uint64_t)*end << 32 | last;
    } while (!atomic_compare_exchange_weak_explicit(&lane->left, &left, rest, memory_order_relaxed,
                                                    memory_order_relaxed));
    return 1;
}

static void run_lanes(struct pool *p, size_t worker)
{
    for (size_t i = 0; i < p->threads; i++) {
        size_t first, end;
        while (take(&p->lanes[(worker + i) % p->threads], &first, &end))
            p->task(p->ctx, first * p->grain, end * p->grain < p->n ? end * p->grain : p->n,
                    worker);
    }
}

/* What a processor wants to be told in a loop that waits, where there is such a thing. */
static inline void relax(void)
{
#ifdef __has_builtin
#if __has_builtin(__builtin_ia32_pause)
    __builtin_ia32_pause();
#elif __has_builtin(__builtin_arm_yield)
    __builtin_arm_yield();
#endif
#endif
}

static int has_ticket(struct pool *p, uint_fast64_t seen)
{
    return atomic_load(&p->ticket) != seen;
}

static int all_done(struct pool *p, uint_fast64_t unused)
{
    (void)unused;
    return !atomic_load(&p->running);
}

/* 1 as soon as ready(); 0 when it was not for some time. */
static inline int spin(struct pool *p, int (*ready)(struct pool *, uint_fast64_t),
                       uint_fast64_t seen)
{
    if (ready(p, seen))
        return 1;
    if (p->oversubscribed)
        return 0;
    int64_t end = clock_ns() + SPIN_NS;
    do
        for (int i = 0; i < PAUSES; i++) {
            if (ready(p, seen))
                return 1;
            relax();
        }
    while (clock_ns() < end);
    return 0;
}

static void wait_ticket(struct pool *p, uint_fast64_t seen)
{
    if (spin(p, has_ticket, seen))
        return;
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (!has_ticket(p, seen))
        pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
}

/* The last worker to finish wakes the caller. */
static void finish(struct pool *p)
{
    if (atomic_fetch_sub(&p->running, 1) != 1 || !atomic_load(&p->caller_sleeps))
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg)
{
    struct start s = *(struct start *)arg;
    free(arg);
    for (uint_fast64_t seen = 0;; seen++) {
        wait_ticket(s.pool, seen);
        if (s.pool->stop)
            return NULL;
        run_lanes(s.pool, s.worker);
        finish(s.pool);
    }
}

/* Starts a worker, bound to `core` unless that is NULL. A system that forbids the binding runs it
 * anywhere. */
static void start_worker(struct pool *p, size_t worker, const cpu_set_t *core)
{
    struct start *s = mem_alloc(sizeof *s);
    *s = (struct start){p, worker};
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (core)
        pthread_attr_setaffinity_np(&attr, sizeof *core, core);
    pthread_t *handle = &p->handles[worker - 1];
    if (pthread_create(handle, &attr, worker_main, s) &&
        pthread_create(handle, NULL, worker_main, s))
        err_machine(__FILE__, __LINE__, "cannot create a thread");
    pthread_attr_destroy(&attr);
}

/* Moves the caller to a core. It is not kept there: its mask is also that of threads and processes
 * that it will start, and of the next pool. */
static void move_to(const cpu_set_t *core)
{
    cpu_set_t mask;
    if (!sched_getaffinity(0, sizeof mask, &mask) && !sched_setaffinity(0, sizeof *core, core))
        sched_setaffinity(0, sizeof mask, &mask);
}

/* Threads are bound only when they fill all cores that we have: with fewer, two processes of ours
 * would choose the same cores and leave others idle. */
static void start_workers(struct pool *p, const struct cpus *c, size_t quota)
{
    int bind = c->core && p->threads > 1 && p->threads == c->cores && (!quota || quota >= c->cores);
    p->oversubscribed = p->threads > c->n;
    for (size_t i = 1; i < p->threads; i++)
        start_worker(p, i, bind ? &c->core[i] : NULL);
    if (bind)
        move_to(&c->core[0]);
}

struct pool *pool_new(size_t threads)
{
    struct cpus c;
    cpus_find(&c, "/sys/devices/system/cpu");
    size_t quota = cpus_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    struct pool *p = mem_aligned(sizeof *p);
    memset(p, 0, sizeof *p);
    p->threads = threads ? threads : quota && quota < c.cores ? quota : c.cores;
    if (p->threads > MAX_THREADS)
        p->threads = MAX_THREADS;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    p->handles = mem_zero(p->threads, sizeof *p->handles);
    p->lanes = mem_aligned(p->threads * sizeof *p->lanes);
    start_workers(p, &c, quota);
    cpus_free(&c);
    return p;
}

size_t pool_threads(const struct pool *p)
{
    return p->threads;
}

/* Publishes the loop (or the end) that the fields of *p describe. */
static void announce(struct pool *p)
{
    atomic_fetch_add(&p->ticket, 1);
    if (!atomic_load(&p->sleepers))
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static void wait_done(struct pool *p)
{
    if (spin(p, all_done, 0))
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_sleeps, 1);
    while (!all_done(p, 0))
        pthread_cond_wait(&p->done, &p->lock);
    atomic_store(&p->caller_sleeps, 0);
    pthread_mutex_unlock(&p->lock);
}

void pool_run(struct pool *p, size_t n, size_t grain, pool_task *task, void *ctx)
{
    grain = grain ? grain : 1;
    if (p->threads == 1 || n <= grain) {
        if (n)
            task(ctx, 0, n, 0);
        return;
    }
    int busy = atomic_exchange(&p->busy, 1);
    assert(!busy && "pool_run inside a task, or from two threads");
    p->n = n;
    p->grain = grain;
    p->task = task;
    p->ctx = ctx;
    cut_lanes(p);
    atomic_store_explicit(&p->running, p->threads - 1, memory_order_relaxed);
    announce(p);
    run_lanes(p, 0);
    wait_done(p);
    atomic_store_explicit(&p->busy, 0, memory_order_release);
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    p->stop = 1;
    announce(p);
    for (size_t i = 1; i < p->threads; i++)
        pthread_join(p->handles[i - 1], NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->done);
    free(p->handles);
    free(p->lanes);
    free(p);
}
