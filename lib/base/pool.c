/* pool.c - pthread pool; see pool.h. The caller is worker 0.
 *
 * Workers stand in a tree: w tells workers ARITY w + 1 .. ARITY w + ARITY what the loop is, and
 * they tell w when they and all below them are through. So no line is written by more than ARITY
 * others, there is no lock and no counter of all, and a loop begins and ends after about
 * log(threads) messages (tests/unit/test-pool-steps.c counts them).
 *
 * Each worker has a lane, its share of the loop. It takes half of what is left there, again and
 * again, and then helps others in the same way, near neighbours first and then ever farther ones: a
 * worker that the machine holds up, or whose memory is slower just now, leaves part of its lane to
 * those that are ready. The word of a lane says of which loop it is; of an older one, the lane is
 * still whole. Its owner looks at it in every loop, so none is older than by one.
 *
 * A forward pass starts hundreds of short loops in a row. A worker therefore spins for a while
 * before it sleeps. Where other processes want the processors, a spin takes time from the thread
 * that it waits for: after VAIN spins in a row without news the next SKIP waits sleep at once.
 * He who sleeps says so before he looks for the last time, he who has news tells
 * them before he looks for a sleeper; in a sequentially consistent order one of them sees the
 * other.
 */
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

/* For a test that counts: `line`, which other threads use too, is read or written next; the word of
 * a gate is waited for. */
#ifndef POOL_TOUCH
#define POOL_TOUCH(line) ((void)0)
#define POOL_AWAIT(gate, value) ((void)0)
#endif

/* Where one thread waits for a number. */
struct gate {
    atomic_uint word, asleep;
    unsigned vain, skip; /* the waiting thread's: spins in vain in a row; waits not to spin in */
};

struct job {
    pool_task *task; /* NULL: the pool ends */
    void *ctx;
    size_t n, grain, lanes; /* lanes: those that are not empty */
};

/* What belongs to a worker: a line for each direction of news, and one for its lane. */
struct seat {
    _Alignas(LINE) struct gate go; /* the number of the loop, told from above */
    struct job job;                /* that loop, written before its number */
    _Alignas(LINE) struct gate back; /* how often workers right below came back, in all loops */
    _Alignas(LINE) atomic_uint_fast64_t lane; /* loop << 32 | first index that nobody has taken */
};

struct pool {
    size_t threads, arity;
    int oversubscribed; /* more threads than processors: never spin */
    pthread_t *handles; /* [threads - 1] */
    struct seat *seats; /* [threads] */
    _Alignas(LINE) unsigned loop; /* the caller's: the number of the last one, which may wrap */
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

/* Where a worker's lane begins, and that of the one before it ends. All that are not empty are
 * equally long, but for one index: the longest one says how long a loop takes. */
static size_t lane_begin(const struct pool *p, const struct job *j, size_t worker)
{
    size_t before = (j->lanes * worker + p->threads - 1) / p->threads;
    return j->n * before / j->lanes;
}

/* Takes half of what is left in a lane, rounded up, and all where half were less than a grain; 0:
 * nothing is left. */
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

static void run_lanes(struct pool *p, size_t worker, unsigned loop, const struct job *j)
{
    for (size_t far = 0; far < p->threads; far = far < NEAR ? far + 1 : 2 * far) {
        size_t owner = worker + far < p->threads ? worker + far : worker + far - p->threads;
        struct range all = {lane_begin(p, j, owner), lane_begin(p, j, owner + 1)}, part;
        while (take(&p->seats[owner].lane, all, j->grain, loop, &part))
            j->task(j->ctx, part.first, part.end, worker);
    }
}

/* ---- gates ---- */

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

/* 1 as soon as the gate has the value; 0 when it had not for some time. */
static inline int spin(const struct pool *p, struct gate *g, unsigned value)
{
    if (atomic_load(&g->word) == value)
        return 1;
    if (p->oversubscribed)
        return 0;
    if (g->skip) {
        g->skip--;
        return 0;
    }
    int64_t end = clock_ns() + SPIN_NS;
    do
        for (int i = 0; i < PAUSES; i++) {
            if (atomic_load(&g->word) == value) {
                g->vain = 0;
                return 1;
            }
            relax();
        }
    while (clock_ns() < end);
    g->skip = ++g->vain < VAIN ? 0 : SKIP;
    return 0;
}

static void futex(struct gate *g, int operation, unsigned value)
{
    syscall(SYS_futex, &g->word, operation, value, NULL, NULL, 0);
}

static void await(const struct pool *p, struct gate *g, unsigned value)
{
    unsigned now;
    POOL_AWAIT(g, value);
    if (spin(p, g, value))
        return;
    atomic_store(&g->asleep, 1);
    while ((now = atomic_load(&g->word)) != value)
        futex(g, FUTEX_WAIT_PRIVATE, now);
    atomic_store(&g->asleep, 0);
}

/* After the word was changed. */
static void wake(struct gate *g)
{
    if (atomic_load(&g->asleep))
        futex(g, FUTEX_WAKE_PRIVATE, 1);
}

/* ---- the tree ---- */

/* Right below a worker are workers first_below(w) .. first_below(w + 1) - 1. */
static size_t first_below(const struct pool *p, size_t worker)
{
    size_t first = p->arity * worker + 1;
    return first < p->threads ? first : p->threads;
}

/* What the gate `back` of a worker shows when all below it came back from the loop. */
static unsigned all_back(const struct pool *p, size_t worker, unsigned loop)
{
    return loop * (unsigned)(first_below(p, worker + 1) - first_below(p, worker));
}

static void send_below(struct pool *p, size_t worker, unsigned loop, const struct job *j)
{
    size_t first = first_below(p, worker), end = first_below(p, worker + 1);
    for (size_t i = first; i < end; i++) {
        POOL_TOUCH(&p->seats[i].go);
        p->seats[i].job = *j;
        atomic_store(&p->seats[i].go.word, loop);
    }
    for (size_t i = first; i < end; i++)
        wake(&p->seats[i].go);
}

/* Runs a loop together with all below, and returns when they are through. */
static void run_tree(struct pool *p, size_t worker, unsigned loop, const struct job *j)
{
    send_below(p, worker, loop, j);
    if (!j->task)
        return;
    run_lanes(p, worker, loop, j);
    if (first_below(p, worker) < p->threads)
        await(p, &p->seats[worker].back, all_back(p, worker, loop));
}

/* The last one below a worker wakes it. */
static void come_back(struct pool *p, size_t worker, unsigned loop)
{
    size_t above = (worker - 1) / p->arity;
    struct gate *back = &p->seats[above].back;
    POOL_TOUCH(back);
    if (atomic_fetch_add(&back->word, 1) + 1 == all_back(p, above, loop))
        wake(back);
}

static void *worker_main(void *arg)
{
    struct start s = *(struct start *)arg;
    struct seat *seat = &s.pool->seats[s.worker];
    free(arg);
    for (unsigned loop = 1;; loop++) {
        await(s.pool, &seat->go, loop);
        struct job j = seat->job;
        run_tree(s.pool, s.worker, loop, &j);
        if (!j.task)
            return NULL;
        come_back(s.pool, s.worker, loop);
    }
}

/* ---- threads ---- */

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
    p->arity = ARITY;
    p->handles = mem_zero(p->threads, sizeof *p->handles);
    p->seats = mem_aligned(p->threads * sizeof *p->seats);
    memset(p->seats, 0, p->threads * sizeof *p->seats);
    start_workers(p, &c, quota);
    cpus_free(&c);
    return p;
}

size_t pool_threads(const struct pool *p)
{
    return p->threads;
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
    assert(n <= UINT32_MAX);
    size_t grains = n / grain + (n % grain != 0);
    const struct job j = {task, ctx, n, grain, grains < p->threads ? grains : p->threads};
    run_tree(p, 0, ++p->loop, &j);
    atomic_store_explicit(&p->busy, 0, memory_order_release);
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    run_tree(p, 0, ++p->loop, &(struct job){.task = NULL});
    for (size_t i = 1; i < p->threads; i++)
        pthread_join(p->handles[i - 1], NULL);
    free(p->handles);
    free(p->seats);
    free(p);
}
