/* pick.h - finds the fastest of several ways to do one work, by the device's clock. */
#pragma once

#include "kernels/cuda/device/runtime.h"

/* The ways are 0 .. n-1. run() enqueues way i, or returns -1 if it cannot run. */
struct pick {
    size_t n;
    int (*run)(void *ctx, size_t i);
    void *ctx;
};

/* Bytes of zeros that pick_fastest() needs to empty the L2 cache. */
size_t pick_bytes(const struct backend *backend);

/* Returns the fastest way; pick->n: none can run. Each way runs twice; the PICK_FINALISTS best ways
 * run PICK_ROUNDS times more. Before each timed run the L2 cache is emptied by reading pick_bytes()
 * bytes of `zeros`, because in a pass the weights are not in that cache. zeros NULL: the cache is
 * left as it is. */
enum { PICK_FINALISTS = 6, PICK_ROUNDS = 5 };
size_t pick_fastest(const struct backend *backend, const struct pick *pick, const void *zeros);
