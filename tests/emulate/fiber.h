/* fiber.h - threads that take turns on one processor, each with a stack of its own. */
#ifndef TESTS_EMULATE_FIBER_H
#define TESTS_EMULATE_FIBER_H

#include <stddef.h>

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
/* Leaves `from`, the fiber that runs (or an empty one for the thread itself), for `to`. Returns
 * when somebody switches back. */
void fiber_switch(struct fiber *from, struct fiber *to);

#endif
