/* slowdown.h - predicts the slow-down of a run by offloaded layers (lib/network/offload.h), before
 * it begins.
 *
 *     compute_s = L t x                     one pass with all layers in memory
 *     stream_s  = bytes outside / bytes_per_s
 *     ratio     = sum max(compute_s, stream_s) / sum compute_s
 *
 * since a layer is read while others compute. The sums are over the two kinds of passes of a batch
 * (struct passes), weighted by their number. t and bytes_per_s are measured on the back end and the
 * store of the run: t with layers of that shape and precision and random weights, more of them than
 * the processor's caches hold; bytes_per_s with blocks written and read back. x is the cost model's
 * factor for the rest of a pass (cost.h): the head, and keys and values of a cache. */
#pragma once

#include "lib/base/cli/log.h"
#include "lib/decode/decoder.h"
#include "lib/network/network.h"

struct slowdown {
    int known;          /* 0: there was not enough memory to measure */
    size_t bytes, kv_bytes; /* bytes that a pass reads; how many are keys and values */
    double bytes_per_s;     /* of the store */
    double whole_s, most_s, whole_share; /* compute time of the two kinds of passes */
    double stream_s, compute_s, ratio;   /* of an average pass */
};
/* n: settled, with offloaded layers by n->wish; need, passes: memory and passes of the batch.
 * Allocates memory of the back end and frees it. -1: no store is possible (ops.store_open,
 * store_put). */
int slowdown_foresee(struct slowdown *slowdown, const struct network *n,
                     const struct memory_estimate *need, const struct passes *passes,
                     struct err *e);
/* Call when the network is loaded: takes the rate of its own store, and the ratio with it. */
void slowdown_settle(struct slowdown *slowdown, const struct network *n);
/* Prints one line. */
void slowdown_say(const struct slowdown *slowdown, const struct network *n, const struct log *log);
