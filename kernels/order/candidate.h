/* candidate.h - the input of an order: the answer about a masked slot. An order is a function of
 * it: larger values become final sooner; among equals the lowest position comes first. */
#pragma once

#include <math.h>

#include "kernels/ops.h"
#include "lib/base/philox.h"

struct candidate {
    const struct head_row *answer;
    double confidence;  /* exp(log_prob): near 1, floats tie where doubles differ. 0: suppressed */
    uint64_t seed, key; /* for an order that draws */
};
