/* The peak of the resident set begins anew. Where the system cannot do that, it must say so. */
#include "lib/base/resident.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/tap.h"

/* Fills so many bytes, a page at a time, and gives them back. */
static void fill(size_t bytes)
{
    unsigned char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        abort();
    memset(p, 1, bytes);
    munmap(p, bytes);
}

int main(void)
{
    enum { MIB = 1 << 20 };
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
    return tap_done();
}
