/* amx_traps.c - replaces kernels/amx-x86.c. AMX is then permitted on any x86-64 processor, because
 * its instructions trap and a handler executes them (trap.h). A tool linked with this file runs the
 * code of level amx from end to end on every processor that has the level below. */
#include "kernels/amx.h"
#include "tests/emulate/tmm_trap.h"

int amx_absent(void) { return 0; }

/* Threads start later and inherit the handler. */
const char *amx_refused(void)
{
    trap_install(tmm_trap);
    return 0;
}
