/* amx-other.c - amx.h for processors that are not x86-64, which have no AMX. The Makefile takes
 * this file or amx-x86.c, so that callers need not know the processor. */
#include "kernels/amx.h"

int amx_absent(void)
{
    return 1;
}

const char *amx_refused(void)
{
    return "the processor has no AMX";
}
