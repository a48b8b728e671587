/* slowdown.h - predicts the slow-down of a run by offloaded layers (lib/network/offload.h), before
 * it begins.
 *
 *     compute_s = L t x                     one pass with all layers in memory
 *     stream_s  = offloaded bytes / bytes_per_s
 *     ratio     = sum max(compute_s, stream_s) / sum compute_s
 *
 * The maximum counts because a layer is read while others compute. The sums are over the two kinds
 * of passes of a batch (struct passes), weighted by their number. L is the number of layers, t the
 * time of a layer. t is measured on the back end of the run, with layers of that shape and
 * precision and random weights, more of them than the processor's caches hold. bytes_per_s is
 * measured on the store of the run, with blocks written and read back. x is the cost model's factor
 * for the rest of a pass (cost.h): the head, and keys and values of a cache. */
#pragma once

#include "lib/base/cli/log.h"
#include "lib/decode/decoder.h"
#include "lib/network/network.h"

struct slowdown {
    int known;          /* 0: there was not enough memory to measure */
    size_t bytes, kv_bytes; /* bytes that a pass reads; those of keys and values among them */
    double bytes_per_s;     /* of the store */
    double whole_s, most_s, whole_share; /* compute time of the two kinds of passes */
    double stream_s, compute_s, ratio;   /* of an average pass */
};
/* Measures and predicts. n: settled, with offloaded layers by n->wish; need, passes: memory and
 * passes of the batch. Allocates memory of the back end and frees it. Returns -1 if no store is
 * possible (ops.store_open, store_put). */
int slowdown_foresee(struct slowdown *slowdown, const struct network *n,
                     const struct memory_estimate *need, const struct passes *passes,
                     struct err *e);
/* Call when the network is loaded: replaces bytes_per_s by the rate of its own store, and computes
 * the ratio again. */
void slowdown_settle(struct slowdown *slowdown, const struct network *n);
/* Prints one line. */
void slowdown_say(const struct slowdown *slowdown, const struct network *n, const struct log *log);
