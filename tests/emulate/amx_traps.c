/* amx_traps.c - replaces kernels/amx-x86.c: AMX is permitted on any x86-64 processor, because its
 * instructions trap and a handler executes them (trap.h). A tool linked with it runs level amx's
 * own code from end to end wherever the level below runs. */
#include "kernels/amx.h"
#include "tests/emulate/tmm_trap.h"

int amx_absent(void) { return 0; }

/* Threads start later and inherit the handler. */
const char *amx_refused(void)
{
    trap_install(tmm_trap);
    return 0;
}
