/* card.h - the nominal multiplication rate of a card, to compare with the measured rate. */
#pragma once

#include "kernels/ops.h"

/* The nominal rate is multiprocessors x highest clock (both from the driver) x operations of the
 * tensor units of one multiprocessor per cycle. */
struct card {
    int multiprocessors;
    double clock_hz, flops_per_cycle; /* bf16 with sums in fp32; a multiplication and an addition
                                       * are two */
};
/* Fills *c and returns 0. Returns -1 and sets *why to what is unknown. Opens the driver's library
 * if it exists. */
int card_read(const struct backend *b, struct card *c, const char **why);
double card_flops_per_s(const struct card *c);
