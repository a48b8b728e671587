/* left_to_right.h - answers in the order of their slots: of equals the lowest position comes first.
 * What an autoregressive model does, with a canvas. */
#ifndef KERNELS_ORDER_LEFT_TO_RIGHT_H
#define KERNELS_ORDER_LEFT_TO_RIGHT_H

#include "kernels/order/candidate.h"

HOST_DEVICE double order_left_to_right(const struct candidate *c)
{
    return c->confidence > 0 ? 0 : -HUGE_VAL;
}

#endif
