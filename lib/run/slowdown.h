/* slowdown.h - how much slower a run is for the layers that it keeps outside memory
 * (lib/network/offload.h), told before it begins.
 *
 *     compute_s = L t + t_head              of a pass over so many rows with all layers in memory
 *     stream_s  = bytes outside / bytes_per_s
 *     ratio     = max(1, stream_s / compute_s)
 *
 * since a layer is read while others compute. All three are measured, on the back end and the store
 * of the run: t of one layer of that shape and precision with drawn weights, with the head's share
 * of its operations added, and the store by blocks written and read back.
 */
#ifndef RUN_SLOWDOWN_H
#define RUN_SLOWDOWN_H

#include "lib/base/log.h"
#include "lib/network/cost.h"
#include "lib/network/network.h"

struct slowdown {
    int known;          /* 0: there was no memory to find out */
    double bytes_per_s; /* of the store */
    double stream_s, compute_s, ratio;
};
/* n: settled, its layers outside by n->wish; x: rows and answers of a pass. Takes memory of the
 * back end and gives it back. -1: there can be no store (as ops.store_open and store_put). */
int slowdown_foresee(struct slowdown *s, const struct network *n, const struct extent *x,
                     struct err *e);
/* The network is loaded, so its own store is known: the rate and the ratio are of that. */
void slowdown_settle(struct slowdown *s, const struct network *n);
/* One line. */
void slowdown_say(const struct slowdown *s, const struct network *n, const struct log *log);

#endif
