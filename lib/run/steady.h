/* steady.h - when a warm-up is over: not after a number of batches, but when their times have
 * stopped falling and have not begun to rise.
 *
 * With the times of equal batches in the order they ran: the better of the last two is no more than
 * 2 % below the best before (nothing is gained any more) and no more than 5 % above it (clocks are
 * not falling). The better of two, so that a single disturbance decides nothing.
 */
#ifndef RUN_STEADY_H
#define RUN_STEADY_H

#include <stddef.h>
#include <stdint.h>

enum { STEADY_LEAST = 3 }; /* batches before which nothing is steady */

/* 1: steady after ns[0..n-1]. */
int steady_reached(const int64_t *ns, size_t n);

#endif
