/* trap.h - decodes the instructions of AMX on an x86-64 processor without AMX. They trap (SIGILL);
 * the handler executes them and continues after them. A trap takes some microseconds, but the very
 * code of level amx runs, with its own sizes. */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

/* An instruction with a VEX prefix of three bytes, an opcode and ModRM. */
struct trap {
    unsigned map, prefix, opcode; /* prefix: 0, or 2 for F3, 3 for F2 */
    unsigned reg, rm, third;      /* operands; third: the operand in the prefix */
    int in_memory;                /* 1: rm is memory, at address + index */
    uint64_t address, index;      /* base and displacement; index times its scale */
    size_t length;
};

/* Fills the memory operand of t from ModRM on. */
static inline void trap_operand(struct trap *t, const unsigned char *at, const greg_t *reg)
{
    /* in the order of the numbers that instructions have for registers */
    static const int registers[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                      REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                      REG_R12, REG_R13, REG_R14, REG_R15};
    const unsigned mod = at[4] >> 6, x = ~(unsigned)at[1] >> 3 & 8, b = ~(unsigned)at[1] >> 2 & 8;
    unsigned base = t->rm;
    size_t n = 5;
    int8_t near = 0;
    int32_t far = 0;
    if (t->rm == 4) {
        unsigned sib = at[n++], index = (sib >> 3 & 7) | x;
        base = sib & 7;
        if (index != 4)
            t->index = (uint64_t)reg[registers[index]] << (sib >> 6);
    }
    int none = mod == 0 && base == 5; /* relative to the next instruction, or absolute */
    if (!none)
        t->address = (uint64_t)reg[registers[base | b]];
    if (mod == 1)
        memcpy(&near, at + n++, sizeof near);
    if (mod == 2 || none) {
        memcpy(&far, at + n, sizeof far);
        n += sizeof far;
    }
    t->address += (uint64_t)near + (uint64_t)far;
    if (none && t->rm == 5)
        t->address += (uint64_t)(uintptr_t)at + n;
    t->length = n;
}

/* Decodes the instruction of a context. Returns 0 if it is of another kind. */
static inline int trap_decode(struct trap *t, const ucontext_t *context)
{
    const greg_t *reg = context->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)(uintptr_t)reg[REG_RIP];
    if (at[0] != 0xc4)
        return 0;
    *t = (struct trap){.map = at[1] & 0x1f,
                       .prefix = at[2] & 3,
                       .opcode = at[3],
                       .reg = at[4] >> 3 & 7,
                       .rm = at[4] & 7,
                       .third = ~(unsigned)at[2] >> 3 & 15,
                       .in_memory = at[4] >> 6 != 3,
                       .length = 5};
    if (t->in_memory)
        trap_operand(t, at, reg);
    return 1;
}

/* Continues after the instruction. */
static inline void trap_skip(const struct trap *t, ucontext_t *context)
{
    context->uc_mcontext.gregs[REG_RIP] += (greg_t)t->length;
}

static inline void trap_install(void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction on_trap = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &on_trap, NULL);
}
