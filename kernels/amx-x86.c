/* amx-x86.c - amx.h for x86-64. CPUID names the abilities of the processor, XCR0 the registers that
 * the system saves when it switches threads, and arch_prctl asks Linux for permission. */
#include <cpuid.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/amx.h"

/* Numbers of the Linux interface: ARCH_REQ_XCOMP_PERM, and the number of the state component that
 * holds the tiles. */
enum { ASK_PERMISSION = 0x1023, TILES = 18 };

static int has_osxsave(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_OSXSAVE;
}

/* The lower half of XCR0: a bit for each state component that the system saves. Bits 17 and 18 are
 * the components of AMX. */
static uint32_t kept(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

int amx_absent(void)
{
    const unsigned bf16 = 1u << 22, tile = 1u << 24, int8 = 1u << 25, all = bf16 | tile | int8;
    unsigned a, b, c, d = 0;
    return !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & all) != all;
}

const char *amx_refused(void)
{
    const uint32_t both = 3u << 17;
    if (amx_absent())
        return "the processor has no AMX";
    if (!has_osxsave() || (kept() & both) != both)
        return "the system does not keep the state of AMX (XCR0)";
    if (syscall(SYS_arch_prctl, ASK_PERMISSION, TILES))
        return "the kernel does not permit AMX (arch_prctl ARCH_REQ_XCOMP_PERM): Linux 5.16 or "
               "later is needed, and a container that lets it through";
    return 0;
}
