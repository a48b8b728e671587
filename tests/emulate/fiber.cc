/* fiber.cc - switches stacks in assembly, and reports each switch to the sanitizers. */
#include "tests/emulate/fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

[[noreturn]] static void fail(const char *what)
{
    fprintf(stderr, "emulate: %s\n", what);
    abort();
}

/* fiber_swap_stacks() pushes FRAME words; word ENTRY of them is its return address. */
#if defined __x86_64__
enum { FRAME = 8, ENTRY = 6 };
asm(R"(
        .text
        .globl  fiber_swap_stacks
        .hidden fiber_swap_stacks
        .type   fiber_swap_stacks, @function
fiber_swap_stacks:
        pushq   %rbp
        pushq   %rbx
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        ret
        .size   fiber_swap_stacks, .-fiber_swap_stacks
)");
#elif defined __aarch64__
enum { FRAME = 20, ENTRY = 11 };
asm(R"(
        .text
        .globl  fiber_swap_stacks
        .hidden fiber_swap_stacks
        .type   fiber_swap_stacks, %function
fiber_swap_stacks:
        stp     x19, x20, [sp, #-160]!
        stp     x21, x22, [sp, #16]
        stp     x23, x24, [sp, #32]
        stp     x25, x26, [sp, #48]
        stp     x27, x28, [sp, #64]
        stp     x29, x30, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mov     x9, sp
        str     x9, [x0]
        mov     sp, x1
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     x29, x30, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        ldp     x19, x20, [sp], #160
        ret
        .size   fiber_swap_stacks, .-fiber_swap_stacks
)");
#else
#error "fiber_swap_stacks: a dozen lines for this processor are missing"
#endif

static const size_t STACK = 256 << 10;
/* Stacks begin at each cache line of a page in turn. If all began at the same one, the stacks of a
 * block would compete for a few cache sets. */
static const size_t LINE = 64, LINES = 64;
struct fiber *fiber_coming;
static struct fiber *leaving;

/* Runs first on the stack of `coming`. */
void fiber_arrive()
{
    const void *bottom = nullptr;
    size_t bytes = 0;
    sanitizer_arrive(fiber_coming->fake, &bottom, &bytes);
    if (!leaving->bytes) {
        leaving->stack = const_cast<void *>(bottom);
        leaving->bytes = bytes;
    }
}

static void first_steps()
{
    if (STACKS_ARE_WATCHED)
        fiber_arrive();
    fiber_coming->run();
    fail("a fiber has returned");
}

void fiber_make(struct fiber *f, void (*run)(void))
{
    size_t guard = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void *all = mmap(nullptr, guard + STACK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED || mprotect(all, guard, PROT_NONE))
        fail("no memory for the stack of a thread");
    *f = {};
    f->stack = static_cast<char *>(all) + guard;
    f->bytes = STACK;
    f->trace = sanitizer_thread_new();
    static size_t made;
    char *end = static_cast<char *>(f->stack) + STACK - made++ % LINES * LINE;
    void **top = reinterpret_cast<void **>(end);
    top[ENTRY - FRAME] = reinterpret_cast<void *>(first_steps);
    f->at = top - FRAME;
    f->run = run;
}

void fiber_leave(struct fiber *from, struct fiber *to)
{
    leaving = from;
    if (!from->trace)
        from->trace = sanitizer_thread_now();
    sanitizer_leave(&from->fake, to->stack, to->bytes);
    sanitizer_thread_go(to->trace);
}
