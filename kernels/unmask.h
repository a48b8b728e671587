/* unmask.h - which answers of a denoising step become final.
 *
 * A rule sees the confidences of the masked positions, best first (of equals the lowest position),
 * and says how many of them to take. So a rule is one function here and one row of unmask_rules in
 * lib/decode/unmask.c, and runs on host and device alike.
 */
#ifndef KERNELS_UNMASK_H
#define KERNELS_UNMASK_H

#include <stddef.h>

#include "lib/base/device.h"

enum unmask { UNMASK_SCHEDULE, UNMASK_THRESHOLD, UNMASK_FACTOR };
struct unmask_params {
    double threshold, factor;
};

/* As many as the schedule says. Source: Nie et al. 2025, algorithm 5. */
HOST_DEVICE size_t unmask_schedule(size_t n, size_t budget)
{
    return budget < n ? budget : n;
}

/* Every position whose confidence reaches the threshold, and at least the best one.
 * Source: Wu et al., "Fast-dLLM", arXiv 2505.22618, algorithm 1. */
HOST_DEVICE size_t unmask_threshold(const double *best, size_t n, double threshold)
{
    size_t k = 0;
    while (k < n && best[k] >= threshold)
        k++;
    return k ? k : unmask_schedule(n, 1);
}

/* With c_1 >= c_2 >= ...: the j best, where j is the longest run whose c_j >= 1 - factor / (j + 1);
 * the first is always taken. factor 1 is the bound under which committing j tokens at once equals
 * committing them one by one. Source: Fast-dLLM, theorem 1 and its factor decoding. */
HOST_DEVICE size_t unmask_factor(const double *best, size_t n, double factor)
{
    size_t j = n > 0;
    while (j < n && !(best[j] < 1 - factor / (double)(j + 2)))
        j++;
    return j;
}

/* How many of the n best a step commits. budget: of the schedule for this step. */
HOST_DEVICE size_t unmask_count(enum unmask rule, const double *best, size_t n, size_t budget,
                                const struct unmask_params *p)
{
    if (rule == UNMASK_THRESHOLD)
        return unmask_threshold(best, n, p->threshold);
    if (rule == UNMASK_FACTOR)
        return unmask_factor(best, n, p->factor);
    return unmask_schedule(n, budget);
}

#endif
