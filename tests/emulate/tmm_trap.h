/* tmm_trap.h - runs the code of level amx on an x86-64 processor without AMX. The emulation (tmm.h)
 * executes each instruction that traps, and AMX instructions directly after it. A trap takes some
 * microseconds. */
#pragma once

#include <stdlib.h>

#include "tests/emulate/tmm.h"
#include "tests/emulate/trap.h"

/* Executes an instruction. Returns 1 if it was an instruction of AMX. */
static inline int tmm_trap_run(const struct trap *t)
{
    char *at = (char *)(uintptr_t)t->address;
    int reg = (int)t->reg;
    if (t->opcode == 0x49 && t->in_memory) {
        struct tmm_config c;
        memcpy(&c, at + t->index, sizeof c);
        tmm_configure(&c);
    } else if (t->opcode == 0x49 && t->prefix == 3)
        tmm_zero(reg);
    else if (t->opcode == 0x49)
        tmm_release();
    else if (t->opcode == 0x4b && t->prefix == 3)
        tmm_load(reg, at, t->index);
    else if (t->opcode == 0x4b && t->prefix == 2)
        tmm_store(reg, at, t->index);
    else if (t->opcode == 0x5c && t->prefix == 2)
        tmm_bf16(reg, (int)t->rm, (int)t->third);
    else if (t->opcode == 0x5e && t->prefix == 3)
        tmm_int8(reg, (int)t->rm, (int)t->third);
    else
        return 0;
    return 1;
}

static inline void tmm_trap(int number, siginfo_t *info, void *context)
{
    struct trap t;
    int ran = 0;
    (void)number, (void)info;
    for (; trap_decode(&t, context) && t.map == 2 && tmm_trap_run(&t); ran = 1)
        trap_skip(&t, context);
    if (!ran)
        _Exit(EXIT_FAILURE);
}
