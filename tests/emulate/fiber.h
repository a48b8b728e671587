/* fiber.h - threads that take turns on one processor, each with its own stack. */
#pragma once

#include <stddef.h>

#include "tests/emulate/sanitizers.h"

struct fiber {
    void (*run)(void);
    void *at;    /* the fiber's stack pointer while it does not run */
    void *stack; /* NULL: the stack of the thread that made the first switch */
    size_t bytes;
    void *fake;  /* state of AddressSanitizer */
    void *trace; /* state of ThreadSanitizer */
};

/* Makes *f a fiber. The first switch to it calls run(), which must never return. The stack of a
 * fiber lives as long as the process. */
void fiber_make(struct fiber *f, void (*run)(void));

extern struct fiber *fiber_coming; /* the last fiber that was switched to */

/* The core of fiber_switch(): pushes the registers that a function must keep, stores the stack
 * pointer in *mine, then pops the registers of the other stack. */
extern "C" void fiber_swap_stacks(void **mine, void *other) __attribute__((visibility("hidden")));
void fiber_leave(struct fiber *from, struct fiber *to);
void fiber_arrive();

/* Switches from `from`, the running fiber (or an empty one for the thread itself), to `to`. Returns
 * when another fiber switches back. Most of the time of emulated kernels is spent here. */
static inline void fiber_switch(struct fiber *from, struct fiber *to)
{
    fiber_coming = to;
    if (STACKS_ARE_WATCHED)
        fiber_leave(from, to);
    fiber_swap_stacks(&from->at, to->at);
    if (STACKS_ARE_WATCHED)
        fiber_arrive();
}
