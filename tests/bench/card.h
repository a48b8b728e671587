/* card.h - what a card could multiply as estimated, to hold against what it was measured to do. */
#ifndef TESTS_BENCH_CARD_H
#define TESTS_BENCH_CARD_H

#include "kernels/ops.h"

/* Multiprocessors x their highest clock, as the driver tells them, x what the tensor units of one
 * do in a cycle. */
struct card {
    int multiprocessors;
    double clock_hz, flops_per_cycle; /* bf16 with sums in fp32; a multiplication and an addition
                                       * are two */
};
/* 0: *c is filled. -1: *why says what is not known. The driver's library is opened if it is here.
 */
int card_read(const struct backend *b, struct card *c, const char **why);
double card_flops_per_s(const struct card *c);

#endif
