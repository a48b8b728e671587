/* test-resident.c - the peak of the resident set begins anew, and where the system cannot do that,
 * it must say so; huge pages are counted; memory is spread over nodes where that is asked for. */
#include "lib/base/resident.h"

#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/ops.h"
#include "lib/base/nodes.h"
#include "tests/tap.h"

enum { MIB = 1 << 20 };

/* Fills so many bytes, a page at a time, and gives them back. */
static void fill(size_t bytes)
{
    const int how = PROT_READ | PROT_WRITE, what = MAP_PRIVATE | MAP_ANONYMOUS;
    unsigned char *p = mmap(NULL, bytes, how, what, -1, 0);
    if (p == MAP_FAILED)
        abort();
    memset(p, 1, bytes);
    munmap(p, bytes);
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

/* The policy of the page at `p`; -1: the system does not tell. */
static int policy_at(void *p)
{
    int policy = -1;
    long bad = syscall(SYS_get_mempolicy, &policy, NULL, 0ul, p, (unsigned long)MPOL_F_ADDR);
    return bad ? -1 : policy;
}

static void test_nodes(struct backend *b)
{
    void *here = b->ops->alloc(b, 4 * MIB, MEMORY_WEIGHTS);
    int told = policy_at(here);
    b->interleave = 1;
    void *weights = b->ops->alloc(b, 4 * MIB, MEMORY_WEIGHTS);
    void *cache = b->ops->alloc(b, 4 * MIB, MEMORY_KV);
    ok(nodes_count() >= 1, "%zu memory nodes", nodes_count());
    ok(told < 0 ? !b->interleave
                : told == MPOL_DEFAULT && policy_at(weights) == MPOL_INTERLEAVE &&
                      policy_at(cache) == MPOL_DEFAULT && b->interleave,
       "weights lie on all nodes in turn when asked for, the rest where it is used: %s",
       told < 0 ? "refused, and that is said" : "they do");
    b->ops->free(b, here);
    b->ops->free(b, weights);
    b->ops->free(b, cache);
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
    test_nodes(b);
    backend_close(b);
    return tap_done();
}
