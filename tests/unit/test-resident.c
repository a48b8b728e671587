/* test-resident.c - tests that the peak of the resident set can be reset, or that an error says
 * that the system cannot; that huge pages are counted; and that free memory is the least that the
 * machine and the control groups leave. */
#include "lib/base/resident.h"

#include <sys/stat.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/ops.h"
#include "tests/files.h"
#include "tests/tap.h"

enum { MIB = 1 << 20 };

/* Fills `bytes` bytes, a page at a time, and frees them. */
static void fill(size_t bytes)
{
    const int how = PROT_READ | PROT_WRITE, what = MAP_PRIVATE | MAP_ANONYMOUS;
    unsigned char *p = mmap(NULL, bytes, how, what, -1, 0);
    if (p == MAP_FAILED)
        abort();
    memset(p, 1, bytes);
    munmap(p, bytes);
}

/* ---- free memory, of a machine that is made of files ---- */

static void is_room(int64_t available, int64_t total, const char *what)
{
    int64_t a = -7, t = -7;
    int bad = resident_room(files_root, &a, &t);
    ok(available < 0 ? bad : !bad && a == available && t == total, "%s: %lld of %lld", what,
       (long long)a, (long long)t);
}

static void test_room(void)
{
    int64_t a, t;
    files_begin();
    is_room(-1, -1, "a system that tells nothing");
    files_grow("proc/meminfo", "MemTotal:  4000 kB\nMemFree: 10 kB\n");
    is_room(-1, -1, "an old one");
    files_grow("proc/meminfo", "MemTotal:  4000 kB\nMemFree: 10 kB\nMemAvailable:   3000 kB\n");
    is_room(3000 * 1024, 4000 * 1024, "without control groups");
    files_grow("proc/self/cgroup", "1:cpu:/x\n0::/a/b\n");
    files_grow("sys/fs/cgroup/a/b/memory.max", "max\n");
    files_grow("sys/fs/cgroup/a/b/memory.current", "77\n");
    is_room(3000 * 1024, 4000 * 1024, "a group without a limit");
    files_grow("sys/fs/cgroup/a/memory.max", "1000000\n");
    files_grow("sys/fs/cgroup/a/memory.current", "700000\n");
    is_room(300000, 1000000, "the limit of the group above it");
    files_grow("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 200000\n");
    is_room(500000, 1000000, "memory that caches files counts as free");
    files_grow("sys/fs/cgroup/a/b/memory.max", "90000\n");
    files_grow("sys/fs/cgroup/a/b/memory.current", "100000\n");
    is_room(0, 90000, "a group that has too much already");
    files_grow("proc/self/cgroup", "0::/\n");
    is_room(3000 * 1024, 4000 * 1024, "the root of the groups");
    files_grow("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/c/d\n0::/\n");
    files_grow("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    files_grow("sys/fs/cgroup/memory/memory.usage_in_bytes", "900000\n");
    is_room(3000 * 1024, 4000 * 1024, "version 1, without a limit");
    files_grow("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "800000\n");
    files_grow("sys/fs/cgroup/memory/c/memory.usage_in_bytes", "700000\n");
    files_grow("sys/fs/cgroup/memory/c/memory.stat",
               "inactive_file 5\ntotal_inactive_file 60000\n");
    is_room(160000, 800000, "version 1, the limit of the group above ours");
    files_grow("proc/self/cgroup", "4:hugetlb,memoryless:/c/d\n");
    is_room(3000 * 1024, 4000 * 1024, "no controller of memory");
    ok(!resident_room("", &a, &t) ? a > 0 && a <= t : 1, "this machine: %lld of %lld",
       (long long)a, (long long)t);
}

/* A back end asks for huge pages; whether there are any is the system's choice. */
static void test_huge(struct backend *b)
{
    int64_t before = resident_huge();
    void *p = b->ops->alloc(b, 64 * MIB, MEMORY_KV);
    int64_t after = resident_huge();
    b->ops->free(b, p);
    int64_t end = resident_huge();
    ok(before < 0 ? after < 0 : after >= before && end <= after && after - before <= 66 * MIB,
       "huge pages of a block of 64 MiB: %lld MiB", (long long)(after - before) / MIB);
}

int main(void)
{
    int can = !resident_reset();
    int64_t before = resident_peak();
    fill(64 * MIB);
    int64_t large = resident_peak();
    int again = !resident_reset();
    fill(8 * MIB);
    int64_t small = resident_peak();
    ok(can == again, "resets are possible, or not: %s", can ? "they are" : "they are not");
    ok(before < 0 || large >= before + 60 * MIB || !can, "a peak counts what was filled: %lld",
       (long long)(large - before));
    ok(!can || (small > 0 && small <= large - 40 * MIB && small >= before),
       "after a reset it is that of what came later: %lld", (long long)(large - small));
    struct err e = {0};
    struct backend *b = backend_open("cpu", NULL, 2, 0, &e);
    test_huge(b);
    backend_close(b);
    test_room();
    files_end();
    return tap_done();
}
