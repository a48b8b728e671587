/* amx_traps.c - in place of kernels/amx-x86.c: AMX is permitted on any x86-64 processor, since its
 * instructions trap and are done by the handler (trap.h). A tool that is linked with it runs level
 * amx's own code from end to end wherever the level below it runs. */
#include "kernels/amx.h"
#include "tests/emulate/tmm_trap.h"

int amx_absent(void) { return 0; }

/* Threads come later, and all of them have the handler. */
const char *amx_refused(void)
{
    trap_install(tmm_trap);
    return 0;
}
