/* orders.h - the orders in which the answers of a denoising step are considered. An order is one
 * file in this folder and one row here. Option names and choices are made from these rows
 * (lib/setting/system_llada.c); host and device compile the same source. */
#pragma once

#include "kernels/order/confidence.h"
#include "kernels/order/entropy.h"
#include "kernels/order/left_to_right.h"
#include "kernels/order/margin.h"
#include "kernels/order/random.h"

/* ORDER(enumerator, name): the orders that depend on the network's answers. */
#define ORDERS_OF_ANSWERS(ORDER) \
    ORDER(CONFIDENCE, confidence) \
    ORDER(MARGIN, margin) \
    ORDER(ENTROPY, entropy) \
    ORDER(LEFT_TO_RIGHT, left_to_right)
/* All orders. The random order is LLaDA's option --remasking random. */
#define ORDERS(ORDER) ORDERS_OF_ANSWERS(ORDER) ORDER(RANDOM, random)

#define ORDER_ENUMERATOR(ENUM, name) ORDER_##ENUM,
enum order { ORDERS(ORDER_ENUMERATOR) ORDER_COUNT };
#undef ORDER_ENUMERATOR

#define ORDER_CASE(ENUM, name) \
    case ORDER_##ENUM: return order_##name(c);
HOST_DEVICE double order_score(enum order order, const struct candidate *c)
{
    switch (order) {
        ORDERS(ORDER_CASE)
    case ORDER_COUNT: break;
    }
    return 0;
}
#undef ORDER_CASE
