/* amx.h - tests whether this process may use AMX. The processor must have AMX, the system must save
 * its registers, and the kernel must give permission. A process must ask for permission because
 * tiles make the state of a thread 8 KB larger.
 *
 * Source: Linux, Documentation/arch/x86/xstate.rst; Intel Software Developer's Manual, volume 1,
 * 13.3 and 18. */
#pragma once

#include "lib/base/linkage.h"

C_BEGIN

/* Returns NULL if this process may use AMX, else the reason in words. The first call asks for
 * permission; call it before any thread is started. */
const char *amx_refused(void);
/* 1: the processor has no AMX. 0: the processor has AMX, and amx_refused() may name a setting that
 * must change. */
int amx_absent(void);

static inline int amx_permitted(void)
{
    return !amx_refused();
}

C_END
