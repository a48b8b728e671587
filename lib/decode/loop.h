/* loop.h - the loop over the passes of a batch, several of them in flight.
 *
 *     describe(), then prepare() and open() if not NULL; then the clock begins
 *     until describe() returns 0:
 *         enqueue up to ops.depth passes, each followed by a copy of the states of all parts
 *         when the copy of the oldest pass arrives: settle()
 *         if settle() returns 1, the contents of the passes change: wait for those in flight,
 *         submit none, and describe() again
 *
 * With depth 1, or with an observer that looks closely, the loop is: describe() if needed, run one
 * pass, settle(). */
#pragma once

#include "lib/decode/generation.h"
#include "lib/decode/observer.h"

struct loop {
    struct backend *backend;
    const volatile sig_atomic_t *stop; /* non-zero: stop after the pass; may be NULL */
    const struct observer *observer;   /* called after each settled pass; may be NULL */
    const void *state; /* memory of the back end: the states after a pass, for settle() */
    size_t bytes;      /* of `state` */
    /* Describes and sends up to N passes; none is in flight. Returns N, or 0 when all parts are
     * finished. */
    size_t (*describe)(void *ctx);
    /* Prepares (ops.prepare) the passes to come; leaves all state as describe() left it. NULL: the
     * first pass of each kind includes the preparation in its time. */
    void (*prepare)(void *ctx);
    int changing; /* 1: inputs join others that are at work. Then passes that were not prepared are
                   * not recorded, because to record one takes the time of several passes */
    /* Takes away the inputs that come after the clock begins, and describes again; returns as
     * describe(). NULL: all inputs are there. */
    size_t (*open)(void *ctx);
    /* Enqueues a pass and the step that follows it on the back end. */
    void (*enqueue)(void *ctx);
    /* Takes the result of a pass that ended at `now`, ns since the batch began: `state`, a copy on
     * the host. Returns 1 if describe() is needed again. */
    int (*settle)(void *ctx, const void *state, int64_t now);
    void *ctx;
};
/* Runs the loop; sets start_ns, start_cpu_ns and interrupted. The clock begins when all data are in
 * memory of the back end. Returns -1 if there is no memory for the copies; no pass has run then. */
int loop_run(const struct loop *loop, struct batch_trace *trace);
/* Sleeps until due_ns, ns since the batch began. If *stop becomes non-zero before that, sets
 * trace->interrupted and returns -1. */
int loop_sleep(int64_t due_ns, const volatile sig_atomic_t *stop, struct batch_trace *trace);
