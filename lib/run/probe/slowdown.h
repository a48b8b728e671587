/* slowdown.h - how much slower a run is for the layers that it keeps outside memory
 * (lib/network/offload.h), told before it begins.
 *
 *     compute_s = L t x                     of a pass with all layers in memory
 *     stream_s  = bytes outside / bytes_per_s
 *     ratio     = sum max(compute_s, stream_s) / sum compute_s
 *
 * since a layer is read while others compute; the sums are over the two kinds of passes of a batch
 * (struct passes), each as often as it comes. Measured, on the back end and the store of the run,
 * are t, of layers of that shape and precision with drawn weights, as many as no cache of the
 * processor holds, and the store, by blocks written and read back. x is by cost.h what the pass
 * does besides: the head, and keys and values of a cache.
 */
#ifndef RUN_PROBE_SLOWDOWN_H
#define RUN_PROBE_SLOWDOWN_H

#include "lib/base/cli/log.h"
#include "lib/decode/decoder.h"
#include "lib/network/network.h"

struct slowdown {
    int known;          /* 0: there was no memory to find out */
    size_t bytes, kv_bytes; /* that a pass reads; of these keys and values */
    double bytes_per_s;     /* of the store */
    double whole_s, most_s, whole_share; /* what the two kinds of passes compute for */
    double stream_s, compute_s, ratio;   /* of a pass, on the average */
};
/* n: settled, its layers outside by n->wish; need: of the batch whose passes p are. Takes memory of
 * the back end and gives it back. -1: there can be no store (as ops.store_open and store_put). */
int slowdown_foresee(struct slowdown *s, const struct network *n,
                     const struct memory_estimate *need, const struct passes *p, struct err *e);
/* The network is loaded, so its own store is known: the rate and the ratio are of that. */
void slowdown_settle(struct slowdown *s, const struct network *n);
/* One line. */
void slowdown_say(const struct slowdown *s, const struct network *n, const struct log *log);

#endif
