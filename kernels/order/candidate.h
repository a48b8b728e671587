/* candidate.h - what an order ranks: the answer to a masked slot. An order is a function of it that
 * is larger the sooner the answer shall become final; of equals the lowest position comes first.
 */
#ifndef KERNELS_ORDER_CANDIDATE_H
#define KERNELS_ORDER_CANDIDATE_H

#include <math.h>

#include "kernels/ops.h"
#include "lib/base/philox.h"

struct candidate {
    const struct head_row *answer;
    double confidence;  /* exp(log_prob): near 1 floats tie where doubles do not. 0: suppressed */
    uint64_t seed, key; /* of the draw that an order may make */
};

#endif
