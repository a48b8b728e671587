/* configuration.c - tests whether LDTILECFG sees the whole configuration that kernels/cpu/amx/tmm.h
 * gives it. tests/tiles.sh builds and runs this program at several levels of optimization. Some
 * compilers dropped stores into a configuration, because they took its reader for one of 8 bytes;
 * -DLOST plants this fault.
 *
 * A processor with AMX returns the configuration by STTILECFG. On other processors the instruction
 * traps, and the handler reads the 64 bytes that the processor would read, and continues after it.
 * Exit 0: all bytes were seen; 1: some were not. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/amx.h"
#include "kernels/cpu/amx/tmm.h"
#include "tests/emulate/trap.h"

static struct tmm_config seen;

static void trapped(int number, siginfo_t *info, void *context)
{
    struct trap t;
    (void)number, (void)info;
    if (!trap_decode(&t, context) || t.map != 2 || t.opcode != 0x49)
        _Exit(2); /* not an instruction of AMX */
    if (t.in_memory) /* LDTILECFG; else TILERELEASE */
        memcpy(&seen, (const void *)(uintptr_t)(t.address + t.index), sizeof seen);
    trap_skip(&t, context);
}

static void configure(size_t rows, size_t width)
{
    struct tmm_config c = tmm_shape(rows, width);
#ifdef LOST
    memset((char *)&c + 8, 0, sizeof c - 8);
#endif
    tmm_configure(&c);
    if (!amx_refused())
        __asm__ volatile("sttilecfg %0" : "=m"(seen) : : "memory");
    tmm_release();
}

int main(int argc, char **argv)
{
    size_t most = argc > 1 ? (size_t)atoi(argv[1]) : TMM_ROWS; /* unknown to the compiler */
    int good = 1;
    if (amx_refused())
        trap_install(trapped);
    for (size_t rows = 1; rows <= most; rows++) {
        memset(&seen, 0xff, sizeof seen);
        configure(rows, TMM_BYTES);
        good &= seen.palette == 1 && !seen.start_row;
        for (int t = 0; t < TMM_TILES; t++)
            good &= seen.bytes[t] == TMM_BYTES && seen.rows[t] == (t < 6 ? rows : TMM_ROWS);
    }
    printf("%s: the configuration arrives %s\n", amx_refused() ? "by a trap" : "on AMX",
           good ? "whole" : "in part");
    return !good;
}
