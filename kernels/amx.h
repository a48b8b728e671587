/* amx.h - whether this process may use AMX: the processor has it, the system keeps its state, and
 * the kernel has given permission, which a process must ask for since the tiles make a thread's
 * state 8 KB larger.
 *
 * Source: Linux, Documentation/arch/x86/xstate.rst; Intel Software Developer's Manual, volume 1,
 * 13.3 and 18.
 */
#ifndef KERNELS_AMX_H
#define KERNELS_AMX_H

#ifdef __cplusplus
extern "C" {
#endif

/* NULL: this process may use it. Else why not, for people; the first call asks for permission, and
 * should come before there are threads. */
const char *amx_refused(void);
/* 1: the processor has no AMX, so there is nothing that could be mended. */
int amx_absent(void);

static inline int amx_permitted(void)
{
    return !amx_refused();
}

#ifdef __cplusplus
}
#endif

#endif
