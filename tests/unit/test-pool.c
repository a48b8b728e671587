/* test-pool.c - tests that every index runs once, in lanes of equal length, however long the
 * workers slept and however few processors there are; and the processors that quotas and cores
 * leave us. */
#include <stdatomic.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cpus.h"
#include "lib/base/mem.h"
#include "lib/base/clock.h"
#include "lib/base/pool.h"
#include "tests/files.h"
#include "tests/tap.h"

enum { N = 1000, MOST = 128 };

struct seen {
    size_t n, grain;
    atomic_size_t runs[N], calls[MOST];
    atomic_int odd; /* parts shorter than half a grain, or of a worker number that is too large */
};

static void note(void *ctx, size_t begin, size_t end, size_t worker)
{
    struct seen *s = ctx;
    if (worker >= MOST || begin >= end || (end - begin < s->grain / 2 && end - begin < s->n))
        s->odd = 1;
    s->calls[worker]++;
    for (size_t i = begin; i < end; i++)
        s->runs[i]++;
}

/* Runs a loop and returns 1 if it ran every index once, in parts that are not too short. */
static int loop_good(struct pool *p, size_t n, size_t grain)
{
    struct seen s = {.n = n, .grain = grain};
    pool_run(p, n, grain, note, &s);
    int good = !s.odd;
    for (size_t w = pool_threads(p); w < MOST; w++)
        good &= !s.calls[w];
    for (size_t i = 0; i < N; i++)
        good &= s.runs[i] == (i < n);
    return good;
}

static void test_parts(size_t threads)
{
    static const size_t sizes[] = {0, 1, 2, 3, 15, 16, 17, 64, 999, 1000}, grains[] = {1, 3, 16};
    struct pool *p = pool_new(threads);
    int good = pool_threads(p) == threads;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t g = 0; g < 3; g++)
            good &= loop_good(p, sizes[i], grains[g]);
    ok(good, "%zu threads: every index once, no part below half a grain", threads);
    usleep(3000); /* now the workers sleep */
    good = loop_good(p, N, 1);
    usleep(150); /* now the workers are about to sleep */
    ok(good && loop_good(p, N, 1), "%zu threads: and after a rest", threads);
    pool_free(p);
}

struct shares {
    size_t lanes;
    atomic_size_t begun, most; /* lanes that a thread has begun; the longest part */
};

/* Waits until all lanes have begun, so that no thread helps another. */
static void hold_own(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    struct shares *s = ctx;
    int64_t until = clock_ns() + 5000000000;
    s->begun++;
    while (s->begun < s->lanes && clock_ns() < until)
        usleep(100);
    size_t most = s->most;
    while (end - begin > most && !atomic_compare_exchange_weak(&s->most, &most, end - begin))
        ;
}

/* Heads of a decoded token, or panels of a matrix: a few grains that do not divide evenly. */
static void test_even(void)
{
    static const struct {
        size_t threads, n, grain, lanes, most;
    } of[] = {{2, 12, 4, 2, 6}, {2, 52, 16, 2, 26}, {2, 24, 16, 2, 12}, {3, 100, 30, 3, 34},
              {16, 40, 10, 4, 10}, {3, 11, 4, 3, 4}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct shares s = {.lanes = of[i].lanes};
        struct pool *p = pool_new(of[i].threads);
        pool_run(p, of[i].n, of[i].grain, hold_own, &s);
        ok(s.begun == s.lanes && s.most == of[i].most,
           "%zu indices, a grain of %zu, %zu threads: %zu lanes, the longest %zu", of[i].n,
           of[i].grain, of[i].threads, (size_t)s.begun, (size_t)s.most);
        pool_free(p);
    }
}

struct held {
    atomic_int first, others; /* indices of the thread that is held up, and of the other threads */
};

/* The thread that takes index 0 waits until other threads have done the rest. */
static void hold_up(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    struct held *h = ctx;
    int64_t until = clock_ns() + 5000000000;
    if (!begin) {
        h->first = (int)end;
        while (h->others < 100 - h->first && clock_ns() < until)
            usleep(100);
    } else {
        h->others += (int)(end - begin);
    }
}

/* The lane of a thread that is held up is taken over by other threads. */
static void test_help(void)
{
    struct held h = {0};
    struct pool *p = pool_new(2);
    pool_run(p, 100, 1, hold_up, &h);
    ok(h.first == 25 && h.others == 75, "a thread takes over the work of a late one");
    pool_free(p);
}

static void add(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    size_t *v = ctx;
    for (size_t i = begin; i < end; i++)
        v[i]++;
}

/* A loop reads what the previous loop wrote, also when another thread wrote it. */
static void swap_halves(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    size_t *v = ctx; /* [2][N]: the second half becomes the first, mirrored, plus one */
    for (size_t i = begin; i < end; i++)
        v[i] = v[N + (N - 1 - i)] + 1;
}

static void copy_back(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    size_t *v = ctx;
    for (size_t i = begin; i < end; i++)
        v[N + i] = v[i];
}

static void test_chain(size_t threads, size_t loops)
{
    struct pool *p = pool_new(threads);
    size_t *v = mem_zero(2 * N, sizeof *v), wrong = 0;
    for (size_t i = 0; i < loops; i++) {
        pool_run(p, N, 1, swap_halves, v);
        pool_run(p, N, 1, copy_back, v);
    }
    for (size_t i = 0; i < N; i++)
        wrong += v[i] != loops;
    ok(!wrong, "%zu threads, %zu loops: each sees what the one before wrote", threads, 2 * loops);
    free(v);
    pool_free(p);
}

/* With more threads than processors the result is the same, and waiting threads do not spin. */
static void test_oversubscribed(void)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof all, &all);
    for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one);
    struct pool *p = pool_new(4);
    size_t v[64] = {0};
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < 200; i++)
        pool_run(p, 64, 1, add, v);
    getrusage(RUSAGE_SELF, &after);
    double us = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1e6 +
                (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec);
    ok(us < 40000 && v[0] == 200 && v[63] == 200,
       "4 threads on one processor: %.0f us of work in 200 loops", us);
    ok(loop_good(p, N, 1), "4 threads on one processor: every index once");
    pool_free(p);
    struct pool *d = pool_new(0);
    ok(pool_threads(d) == 1, "one processor: one thread, got %zu", pool_threads(d));
    pool_free(d);
    sched_setaffinity(0, sizeof all, &all);
}

static void nest(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)begin, (void)end, (void)worker;
    size_t v[64];
    pool_run(ctx, 64, 1, add, v);
}

static void test_nested(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        fclose(stderr);
        signal(SIGABRT, SIG_DFL);
        struct pool *p = pool_new(2);
        pool_run(p, 2, 1, nest, p);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "a loop inside a loop is refused");
}

static void test_mask(void)
{
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    struct pool *p = pool_new(0), *q = pool_new(0);
    sched_getaffinity(0, sizeof after, &after);
    ok(CPU_EQUAL(&before, &after), "the caller keeps its affinity mask");
    ok(pool_threads(p) == pool_threads(q), "a second pool has as many threads: %zu and %zu",
       pool_threads(p), pool_threads(q));
    pool_free(p);
    pool_free(q);
}

/* ---- the processors ---- */

static size_t quota(const char *groups)
{
    files_grow("proc/self/cgroup", groups);
    return cpus_quota(files_root);
}

static void test_quota(void)
{
    files_grow("sys/fs/cgroup/cpu.max", "max 100000\n");
    files_grow("sys/fs/cgroup/a/cpu.max", "350000 100000\n");
    files_grow("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    files_grow("sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
    ok(quota("0::/\n") == 0, "no quota");
    ok(quota("0::/a\n") == 4, "three and a half processors are four");
    ok(quota("0::/a/b/c\n") == 4, "a group above may be the tightest");
    ok(quota("0::/elsewhere/x\n") == 0, "a path that is not ours to see");
    files_grow("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    files_grow("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    files_grow("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000\n");
    files_grow("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    ok(quota("9:name=systemd:/\n4:cpuset:/box\n3:cpuacct,cpu:/box\n0::/\n") == 1,
       "version 1: half a processor is one");
    ok(quota("4:cpuset:/box\n3:cpu:/\n0::/\n") == 0, "version 1: no quota");
    ok(quota("") == 0 && quota("nonsense\n::\n0:\n") == 0, "nonsense is no quota");
    ok(cpus_quota("/no/such/folder") == 0, "nothing to read is no quota");
}

static void test_cores(void)
{
    struct cpus c;
    char *folder = mem_format("%s/topology", files_root);
    cpus_find(&c, folder);
    ok(c.n >= 1 && c.cores == c.n, "without topology a processor is a core: %zu", c.n);
    cpus_free(&c);
    for (size_t i = 0; i < CPU_SETSIZE; i++) { /* siblings 2i and 2i + 1, as some print them */
        char name[64], text[32];
        snprintf(name, sizeof name, "topology/cpu%zu/topology/thread_siblings_list", i);
        snprintf(text, sizeof text, i % 4 < 2 ? "%zu-%zu\n" : "%zu,%zu\n", i / 2 * 2,
                 i / 2 * 2 + 1);
        files_grow(name, text);
    }
    cpus_find(&c, folder);
    int good = 1;
    size_t sum = 0, want = 0;
    cpu_set_t mask;
    CPU_ZERO(&mask);
    sched_getaffinity(0, sizeof mask, &mask);
    for (size_t i = 0; i < CPU_SETSIZE; i += 2)
        want += CPU_ISSET(i, &mask) || CPU_ISSET(i + 1, &mask);
    for (size_t i = 0; i < c.cores; i++) {
        int n = CPU_COUNT(&c.core[i]);
        good &= n >= 1 && n <= 2;
        sum += (size_t)n;
    }
    ok(good && sum == c.n && c.cores == want,
       "%zu processors on %zu cores of two", c.n, c.cores);
    cpus_free(&c);
    free(folder);
}

static void test_keep(void)
{
    struct cpus all, left;
    cpu_set_t mask;
    CPU_ZERO(&mask);
    sched_getaffinity(0, sizeof mask, &mask);
    cpus_find(&all, "/sys/devices/system/cpu");
    cpus_keep(0, 1);
    cpus_keep(all.cores, 1);
    cpus_find(&left, "/sys/devices/system/cpu");
    ok(left.n == all.n, "no cores, or all of them: the mask stays");
    cpus_free(&left);
    cpus_keep(1, all.cores + 1);
    cpus_find(&left, "/sys/devices/system/cpu");
    ok(left.cores == 1 && CPU_EQUAL(&left.core[0], &all.core[1 % all.cores]),
       "one core is left: number %zu of %zu", 1 % all.cores, all.cores);
    cpus_free(&left);
    cpus_free(&all);
    sched_setaffinity(0, sizeof mask, &mask);
}

int main(void)
{
    test_even();
    test_help();
    files_begin();
    static const size_t counts[] = {1, 2, 3, 7, 16, MOST};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        test_parts(counts[i]);
    test_chain(2, 3000);
    test_chain(5, 100);
    test_oversubscribed();
    test_nested();
    test_mask();
    test_quota();
    test_cores();
    test_keep();
    files_end();
    return tap_done();
}
