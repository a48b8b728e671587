/* amx-other.c - see amx.h, for processors that are not x86-64: they have no AMX, so there is nobody
 * to ask. The Makefile takes this file or amx-x86.c, so that nobody above has to know which
 * processor it is built for.
 */
#include "kernels/amx.h"

int amx_absent(void)
{
    return 1;
}

const char *amx_refused(void)
{
    return "the processor has no AMX";
}
