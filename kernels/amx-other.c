/* amx-other.c - see amx.h, for processors that are not x86-64: there is no AMX. */
#include "kernels/amx.h"

int amx_absent(void)
{
    return 1;
}

const char *amx_refused(void)
{
    return "the processor has no AMX";
}
