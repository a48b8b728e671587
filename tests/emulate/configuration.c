/* configuration.c - does LDTILECFG see the whole configuration that kernels/cpu/tmm.h gives it?
 * Built and run by tests/tiles.sh at several levels of optimization. Compilers have been seen to
 * drop stores into a configuration whose reader they take for one of 8 bytes; -DLOST plants what
 * comes of that.
 *
 * A processor with AMX says with STTILECFG what it was given. Elsewhere the instruction traps, and
 * the handler reads the 64 bytes where the processor would have, and goes on behind it. Exit 0: all
 * is seen; 1: not.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "kernels/amx.h"
#include "kernels/cpu/tmm.h"

static struct tmm_config seen;

/* Registers in the order in which instructions number them. */
static const int registers[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};

/* The memory operand of a VEX instruction of three bytes of prefix, its opcode, ModRM...; *length
 * is that of all. */
static uint64_t operand(const unsigned char *at, const greg_t *reg, size_t *length)
{
    const unsigned mod = at[4] >> 6, rm = at[4] & 7, x = ~at[1] >> 3 & 8, b = ~at[1] >> 2 & 8;
    uint64_t address = 0;
    size_t n = 5;
    int8_t near;
    int32_t far;
    unsigned base = rm;
    if (rm == 4) {
        unsigned sib = at[n++], index = (sib >> 3 & 7) | x;
        base = sib & 7;
        if (index != 4)
            address += (uint64_t)reg[registers[index]] << (sib >> 6);
    }
    int none = mod == 0 && base == 5; /* relative to the next instruction, or absolute */
    if (!none)
        address += (uint64_t)reg[registers[base | b]];
    if (mod == 1) {
        memcpy(&near, at + n, 1);
        address += (uint64_t)near;
        n += 1;
    } else if (mod == 2 || none) {
        memcpy(&far, at + n, 4);
        address += (uint64_t)far;
        n += 4;
    }
    if (none && rm == 5)
        address += (uint64_t)(uintptr_t)at + n;
    *length = n;
    return address;
}

static void trapped(int number, siginfo_t *info, void *context)
{
    greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)(uintptr_t)reg[REG_RIP];
    size_t length = 5;
    (void)number, (void)info;
    if (at[0] != 0xc4 || (at[1] & 0x1f) != 2 || at[3] != 0x49)
        _Exit(2); /* not one of ours */
    if (at[4] >> 6 != 3) { /* LDTILECFG; else TILERELEASE */
        const void *from = (const void *)(uintptr_t)operand(at, reg, &length);
        memcpy(&seen, from, sizeof seen);
    }
    reg[REG_RIP] += (greg_t)length;
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
    struct sigaction on_trap = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    size_t most = argc > 1 ? (size_t)atoi(argv[1]) : TMM_ROWS; /* unknown to the compiler */
    int good = 1;
    if (amx_refused())
        sigaction(SIGILL, &on_trap, NULL);
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
