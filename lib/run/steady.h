/* steady.h - decides when a warm-up is over: when batch times have stopped falling and are not
 * rising.
 *
 * Times of equal batches are given in order. They are steady if the better of the last two is at
 * most 2 % below the best time before (no more gain) and at most 5 % above it (clocks are not
 * falling). The rule takes the better of two, so that one disturbed batch does not decide. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { STEADY_LEAST = 3 }; /* batches that are needed at least */

/* 1: batch times ns[0..n-1] have become steady. */
int steady_reached(const int64_t *ns, size_t n);
