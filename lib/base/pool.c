/* pool.c - pthread pool; see pool.h. The caller is worker 0. Workers spin for some tens of
 * microseconds before they sleep, because a forward pass dispatches hundreds of small loops in a
 * row. */
#include "lib/base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

enum { SPINS = 100000, MAX_THREADS = 1024 };

struct pool {
    size_t threads;
    pthread_t *handles; /* [threads - 1] */
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    atomic_uint_fast64_t ticket; /* grows by one per loop; workers wait for it to change */
    atomic_size_t running;       /* workers that have not finished this loop */
    int stop;
    pool_task *task;
    void *ctx;
    size_t n, grain;
};

struct start {
    struct pool *pool;
    size_t worker;
};

static void run_part(struct pool *p, size_t worker)
{
    size_t grains = (p->n + p->grain - 1) / p->grain;
    size_t begin = grains * worker / p->threads * p->grain;
    size_t end = grains * (worker + 1) / p->threads * p->grain;
    if (end > p->n)
        end = p->n;
    if (begin < end)
        p->task(p->ctx, begin, end, worker);
}

static void wait_ticket(struct pool *p, uint_fast64_t seen)
{
    for (int i = 0; i < SPINS; i++)
        if (atomic_load_explicit(&p->ticket, memory_order_acquire) != seen)
            return;
    pthread_mutex_lock(&p->lock);
    while (atomic_load_explicit(&p->ticket, memory_order_acquire) == seen)
        pthread_cond_wait(&p->wake, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg)
{
    struct start s = *(struct start *)arg;
    free(arg);
    struct pool *p = s.pool;
    for (uint_fast64_t seen = 0;; seen++) {
        wait_ticket(p, seen);
        if (p->stop)
            return NULL;
        run_part(p, s.worker);
        if (atomic_fetch_sub_explicit(&p->running, 1, memory_order_acq_rel) == 1) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->done);
            pthread_mutex_unlock(&p->lock);
        }
    }
}

/* CPUs granted by the cgroup's quota, rounded up; 0 when there is no quota. */
static size_t cgroup_quota(void)
{
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
    double quota = 0, period = 0;
    int got = f ? fscanf(f, "%lf %lf", &quota, &period) : 0;
    if (f)
        fclose(f);
    return got == 2 && quota > 0 && period > 0 ? (size_t)((quota + period - 1) / period) : 0;
}

static size_t default_threads(void)
{
    cpu_set_t set;
    size_t n = sched_getaffinity(0, sizeof set, &set) ? 1 : (size_t)CPU_COUNT(&set);
    size_t quota = cgroup_quota();
    return quota && quota < n ? quota : n ? n : 1;
}

struct pool *pool_new(size_t threads)
{
    struct pool *p = mem_zero(1, sizeof *p);
    p->threads = threads ? threads : default_threads();
    if (p->threads > MAX_THREADS)
        p->threads = MAX_THREADS;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    p->handles = mem_zero(p->threads, sizeof *p->handles);
    for (size_t i = 1; i < p->threads; i++) {
        struct start *s = mem_alloc(sizeof *s);
        *s = (struct start){p, i};
        if (pthread_create(&p->handles[i - 1], NULL, worker_main, s))
            err_machine(__FILE__, __LINE__, "cannot create a thread");
    }
    return p;
}

size_t pool_threads(const struct pool *p)
{
    return p->threads;
}

static void announce(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add_explicit(&p->ticket, 1, memory_order_release);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

void pool_run(struct pool *p, size_t n, size_t grain, pool_task *task, void *ctx)
{
    p->n = n;
    p->grain = grain ? grain : 1;
    p->task = task;
    p->ctx = ctx;
    if (p->threads == 1 || n <= p->grain) {
        if (n)
            task(ctx, 0, n, 0);
        return;
    }
    atomic_store_explicit(&p->running, p->threads - 1, memory_order_release);
    announce(p);
    run_part(p, 0);
    for (int i = 0; i < SPINS && atomic_load_explicit(&p->running, memory_order_acquire); i++)
        ;
    pthread_mutex_lock(&p->lock);
    while (atomic_load_explicit(&p->running, memory_order_acquire))
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
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
    free(p);
}
