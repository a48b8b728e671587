/* pool.c - pthread pool; see pool.h. The caller is worker 0.
 *
 * The workers form a tree: worker w sends the loop to workers ARITY w + 1 .. ARITY w + ARITY, and
 * they report to w when they and all workers below them have finished. So at most ARITY workers
 * write to one cache line, there is no lock and no shared counter, and a loop starts and ends after
 * about log(threads) messages (tests/unit/test-pool-steps.c counts them).
 *
 * A lane is a worker's share of the loop. A worker takes half of the rest of its lane, again and
 * again. Then it takes from other lanes in the same way, near neighbours first: a worker that is
 * delayed loses part of its lane to workers that are ready. The word of a lane holds the number of
 * a loop. If that is the number of the loop before, nobody has taken from the lane in this loop. It
 * is never an older number, because the owner of the lane updates the word in every loop.
 *
 * A forward pass starts hundreds of short loops in a row, so a worker spins for a while before it
 * sleeps. On a busy machine a spin takes time from the thread that it waits for: after VAIN spins
 * in a row without success the next SKIP waits sleep at once.
 * A waiter sets `asleep` before its last check; a waker stores the value before it reads `asleep`.
 * In a sequentially consistent order at least one of them sees the other. */
#include "lib/base/pool.h"

#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/cpus.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

enum { SPIN_NS = 100000, PAUSES = 32, MAX_THREADS = 1024, LINE = 64, ARITY = 4, NEAR = 8,
       VAIN = 4, SKIP = 64 };

/* Hooks for a test that counts: the next statement reads or writes the shared cache line `line`, or
 * waits for the word of a gate. */
#ifndef POOL_TOUCH
#define POOL_TOUCH(line) ((void)0)
#define POOL_AWAIT(gate, value) ((void)0)
#endif

/* A word for which one thread waits until it has a value. */
struct gate {
    atomic_uint word, asleep;
    unsigned vain, skip; /* of the waiting thread: spins in a row that failed; next waits that sleep
                          * at once */
};

struct loop {
    pool_task *task; /* NULL: the pool ends */
    void *ctx;
    size_t n, grain, lanes; /* lanes: the lanes that are not empty */
};

/* The data of a worker: one cache line for each direction of messages, and one for its lane. */
struct seat {
    _Alignas(LINE) struct gate go; /* the number of the loop, written by the parent */
    struct loop loop;              /* the loop, written before the number in `go` */
    _Alignas(LINE) struct gate back; /* the number of reports of the children, over all loops */
    _Alignas(LINE) atomic_uint_fast64_t lane; /* loop << 32 | first free index */
};

struct pool {
    size_t threads, arity;
    int oversubscribed; /* more threads than processors: never spin */
    pthread_t *handles; /* [threads - 1] */
    struct seat *seats; /* [threads] */
    _Alignas(LINE) unsigned loop; /* the caller's: number of the last loop; it may wrap */
    atomic_int busy;              /* a loop runs */
};

struct start {
    struct pool *pool;
    size_t worker;
};

/* ---- lanes ---- */

struct range {
    size_t first, end;
};

/* Returns the first index of a worker's lane, which is the end of the lane before. Lanes that are
 * not empty differ by at most one index in length, because the longest lane decides how long the
 * loop takes. */
static size_t lane_begin(const struct pool *pool, const struct loop *j, size_t worker)
{
    size_t before = (j->lanes * worker + pool->threads - 1) / pool->threads;
    return j->n * before / j->lanes;
}

/* Takes half of the rest of a lane, rounded up, or the whole rest if half of it is less than a
 * grain. Returns 0 if nothing is left. */
static int take(atomic_uint_fast64_t *lane, struct range all, size_t grain, unsigned loop,
                struct range *part)
{
    POOL_TOUCH(lane);
    uint_fast64_t now = atomic_load_explicit(lane, memory_order_relaxed), rest;
    do {
        int is_new = now >> 32 != loop;
        part->first = is_new ? all.first : (size_t)(now & UINT32_MAX);
        if (part->first >= all.end && !is_new)
            return 0;
        size_t left = all.end - part->first;
        part->end = part->first + (left / 2 < grain ? left : left - left / 2);
        rest = (uint64_t)loop << 32 | part->end;
        POOL_TOUCH(lane);
    } while (!atomic_compare_exchange_weak_explicit(lane, &now, rest, memory_order_relaxed,
                                                    memory_order_relaxed));
    return part->first < part->end;
}

static void run_lanes(struct pool *pool, size_t worker, unsigned loop, const struct loop *j)
{
    for (size_t far = 0; far < pool->threads; far = far < NEAR ? far + 1 : 2 * far) {
        size_t owner = worker + far < pool->threads ? worker + far : worker + far - pool->threads;
        struct range all = {lane_begin(pool, j, owner), lane_begin(pool, j, owner + 1)}, part;
        while (take(&pool->seats[owner].lane, all, j->grain, loop, &part))
            j->task(j->ctx, part.first, part.end, worker);
    }
}

/* ---- gates ---- */

/* The pause hint for a spin loop, on processors that have one. */
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

/* Spins until the gate has the value. Returns 1 then, or 0 after SPIN_NS without the value. */
static inline int spin(const struct pool *pool, struct gate *gate, unsigned value)
{
    if (atomic_load(&gate->word) == value)
        return 1;
    if (pool->oversubscribed)
        return 0;
    if (gate->skip) {
        gate->skip--;
        return 0;
    }
    int64_t end = clock_ns() + SPIN_NS;
    do
        for (int i = 0; i < PAUSES; i++) {
            if (atomic_load(&gate->word) == value) {
                gate->vain = 0;
                return 1;
            }
            relax();
        }
    while (clock_ns() < end);
    gate->skip = ++gate->vain < VAIN ? 0 : SKIP;
    return 0;
}

static void futex(struct gate *gate, int operation, unsigned value)
{
    syscall(SYS_futex, &gate->word, operation, value, NULL, NULL, 0);
}

static void await(const struct pool *pool, struct gate *gate, unsigned value)
{
    unsigned now;
    POOL_AWAIT(gate, value);
    if (spin(pool, gate, value))
        return;
    atomic_store(&gate->asleep, 1);
    while ((now = atomic_load(&gate->word)) != value)
        futex(gate, FUTEX_WAIT_PRIVATE, now);
    atomic_store(&gate->asleep, 0);
}

/* Wakes the sleeper after the word was changed. */
static void wake(struct gate *gate)
{
    if (atomic_load(&gate->asleep))
        futex(gate, FUTEX_WAKE_PRIVATE, 1);
}

/* ---- the tree ---- */

/* Children of a worker in the tree: first_below(w) .. first_below(w + 1) - 1. */
static size_t first_below(const struct pool *pool, size_t worker)
{
    size_t first = pool->arity * worker + 1;
    return first < pool->threads ? first : pool->threads;
}

/* Value of the gate `back` when all children have reported this loop. */
static unsigned all_back(const struct pool *pool, size_t worker, unsigned loop)
{
    return loop * (unsigned)(first_below(pool, worker + 1) - first_below(pool, worker));
}

static void send_below(struct pool *pool, size_t worker, unsigned loop, const struct loop *j)
{
    size_t first = first_below(pool, worker), end = first_below(pool, worker + 1);
    for (size_t i = first; i < end; i++) {
        POOL_TOUCH(&pool->seats[i].go);
        pool->seats[i].loop = *j;
        atomic_store(&pool->seats[i].go.word, loop);
    }
    for (size_t i = first; i < end; i++)
        wake(&pool->seats[i].go);
}

/* Runs a loop together with all workers below, and returns when they have finished. */
static void run_tree(struct pool *pool, size_t worker, unsigned loop, const struct loop *j)
{
    send_below(pool, worker, loop, j);
    if (!j->task)
        return;
    run_lanes(pool, worker, loop, j);
    if (first_below(pool, worker) < pool->threads)
        await(pool, &pool->seats[worker].back, all_back(pool, worker, loop));
}

/* Reports to the parent; the last child wakes it. */
static void come_back(struct pool *pool, size_t worker, unsigned loop)
{
    size_t above = (worker - 1) / pool->arity;
    struct gate *back = &pool->seats[above].back;
    POOL_TOUCH(back);
    if (atomic_fetch_add(&back->word, 1) + 1 == all_back(pool, above, loop))
        wake(back);
}

static void *worker_main(void *arg)
{
    struct start start = *(struct start *)arg;
    struct seat *seat = &start.pool->seats[start.worker];
    free(arg);
    for (unsigned loop = 1;; loop++) {
        await(start.pool, &seat->go, loop);
        struct loop j = seat->loop;
        run_tree(start.pool, start.worker, loop, &j);
        if (!j.task)
            return NULL;
        come_back(start.pool, start.worker, loop);
    }
}

/* ---- threads ---- */

/* Starts a worker, bound to `core` unless that is NULL. If the system refuses the binding, the
 * worker runs on any core. */
static void start_worker(struct pool *pool, size_t worker, const cpu_set_t *core)
{
    struct start *start = mem_alloc(sizeof *start);
    *start = (struct start){pool, worker};
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (core)
        pthread_attr_setaffinity_np(&attr, sizeof *core, core);
    pthread_t *handle = &pool->handles[worker - 1];
    if (pthread_create(handle, &attr, worker_main, start) &&
        pthread_create(handle, NULL, worker_main, start))
        err_machine(__FILE__, __LINE__, "cannot create a thread");
    pthread_attr_destroy(&attr);
}

/* Moves the caller to a core without binding it: threads, processes and pools that it starts later
 * inherit its mask. */
static void move_to(const cpu_set_t *core)
{
    cpu_set_t mask;
    if (!sched_getaffinity(0, sizeof mask, &mask) && !sched_setaffinity(0, sizeof *core, core))
        sched_setaffinity(0, sizeof mask, &mask);
}

/* Threads are bound only when they fill all cores of this process: with fewer, two such processes
 * would choose the same cores and leave others idle. */
static void start_workers(struct pool *pool, const struct cpus *cpus, size_t quota)
{
    int bind = cpus->core && pool->threads > 1 && pool->threads == cpus->cores &&
               (!quota || quota >= cpus->cores);
    pool->oversubscribed = pool->threads > cpus->n;
    for (size_t i = 1; i < pool->threads; i++)
        start_worker(pool, i, bind ? &cpus->core[i] : NULL);
    if (bind)
        move_to(&cpus->core[0]);
}

struct pool *pool_new(size_t threads)
{
    struct cpus cpus;
    cpus_find(&cpus, "/sys/devices/system/cpu");
    size_t quota = cpus_quota("");
    struct pool *pool = mem_aligned(sizeof *pool);
    memset(pool, 0, sizeof *pool);
    pool->threads = threads ? threads : quota && quota < cpus.cores ? quota : cpus.cores;
    if (pool->threads > MAX_THREADS)
        pool->threads = MAX_THREADS;
    pool->arity = ARITY;
    pool->handles = mem_zero(pool->threads, sizeof *pool->handles);
    pool->seats = mem_aligned(pool->threads * sizeof *pool->seats);
    memset(pool->seats, 0, pool->threads * sizeof *pool->seats);
    start_workers(pool, &cpus, quota);
    cpus_free(&cpus);
    return pool;
}

size_t pool_threads(const struct pool *pool)
{
    return pool->threads;
}

void pool_run(struct pool *pool, size_t n, size_t grain, pool_task *task, void *ctx)
{
    grain = grain ? grain : 1;
    if (pool->threads == 1 || n <= grain) {
        if (n)
            task(ctx, 0, n, 0);
        return;
    }
    int busy = atomic_exchange(&pool->busy, 1);
    assert(!busy && "pool_run inside a task, or from two threads");
    assert(n <= UINT32_MAX);
    size_t grains = n / grain + (n % grain != 0);
    const struct loop j = {task, ctx, n, grain, grains < pool->threads ? grains : pool->threads};
    run_tree(pool, 0, ++pool->loop, &j);
    atomic_store_explicit(&pool->busy, 0, memory_order_release);
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    run_tree(pool, 0, ++pool->loop, &(struct loop){.task = NULL});
    for (size_t i = 1; i < pool->threads; i++)
        pthread_join(pool->handles[i - 1], NULL);
    free(pool->handles);
    free(pool->seats);
    free(pool);
}
