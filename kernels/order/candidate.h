/* candidate.h - the input of an order: the answer about one masked slot. An order is a function
 * that gives a candidate a score. Slots with larger scores become final sooner; among equals the
 * lowest position comes first. */
#pragma once

#include <math.h>

#include "kernels/ops.h"
#include "lib/base/philox.h"

struct candidate {
    const struct head_row *answer;
    double confidence;  /* exp(log_prob) in double, because near 1 floats tie where doubles differ.
                         * 0: the token is suppressed (head_query.quiet) */
    uint64_t seed, key; /* seed and key of draws, for a random order */
};
