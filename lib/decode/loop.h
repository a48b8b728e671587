/* loop.h - a generator's passes, several of them in flight.
 *
 *     describe(), then prepare(), if there is one; then the clock begins
 *     until describe() says that nobody is left:
 *         up to ops.depth passes are enqueued, each followed by a copy of the states of all parts
 *         the oldest one's copy arrives: settle() takes it in
 *         when that changes who or what is in the passes: those in flight are retired, nothing is
 *         submitted, and describe() describes anew
 *
 * On a back end of depth 1, and for an observer that looks closely, this is: describe when needed,
 * run a pass, look.
 */
#ifndef DECODE_LOOP_H
#define DECODE_LOOP_H

#include "lib/decode/generation.h"
#include "lib/decode/observer.h"

struct loop {
    struct backend *backend;
    const volatile sig_atomic_t *stop; /* non-zero: leave after the pass; may be NULL */
    const struct observer *observer;   /* told of each pass that was settled; may be NULL */
    const void *state; /* memory of the back end: what a pass leaves and settle() is given */
    size_t bytes;
    /* Describes and sends the first of up to N passes, nothing being under way. Returns N, or 0:
     * nobody is left. */
    size_t (*describe)(void *ctx);
    /* Prepares (ops.prepare) the passes that will come, and leaves all as describe() left it. NULL:
     * what is done once only falls into the time of the first pass that needs it. */
    void (*prepare)(void *ctx);
    /* Enqueues a pass and what follows it on the back end. */
    void (*enqueue)(void *ctx);
    /* A pass was done at `now` (since the batch began) and left `state`. 1: describe again. */
    int (*settle)(void *ctx, const void *state, int64_t now);
    void *ctx;
};
/* Sets start_ns and interrupted. The clock begins when all is in the memory of the back end. -1: no
 * memory for the copies, nothing has run. */
int loop_run(const struct loop *l, struct batch_trace *trace);

#endif
