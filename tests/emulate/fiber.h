/* fiber.h - threads that take turns on one processor, each with a stack of its own. */
#ifndef TESTS_EMULATE_FIBER_H
#define TESTS_EMULATE_FIBER_H

#include <stddef.h>

#include "tests/emulate/sanitizers.h"

struct fiber {
    void (*run)(void);
    void *at;    /* its stack pointer while it does not run */
    void *stack; /* NULL: the stack of the thread that made the first switch */
    size_t bytes;
    void *fake;  /* AddressSanitizer's */
    void *trace; /* ThreadSanitizer's */
};

/* Makes *f a fiber that calls run() when it is switched to for the first time; run() never returns.
 * Its stack lives as long as the process. */
void fiber_make(struct fiber *f, void (*run)(void));

extern struct fiber *fiber_coming; /* the last one that was switched to */

/* What fiber_switch() is made of. Registers that a function must keep are pushed, the stack pointer
 * goes to *mine, and those of the other stack are popped. */
extern "C" void fiber_swap_stacks(void **mine, void *other) __attribute__((visibility("hidden")));
void fiber_leave(struct fiber *from, struct fiber *to);
void fiber_arrive();

/* Leaves `from`, the fiber that runs (or an empty one for the thread itself), for `to`. Returns
 * when somebody switches back. Most of what kernels take is this. */
static inline void fiber_switch(struct fiber *from, struct fiber *to)
{
    fiber_coming = to;
    if (STACKS_ARE_WATCHED)
        fiber_leave(from, to);
    fiber_swap_stacks(&from->at, to->at);
    if (STACKS_ARE_WATCHED)
        fiber_arrive();
}

#endif
