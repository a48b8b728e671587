/* settled.h - makes the compiler add each product to its sum before it computes many others. The
 * products of all rows together need more registers than the processor has. This file is for
 * x86-64 only. */
#pragma once

#include "kernels/cpu/vectors/vector.h"

/* Returns sum unchanged. The compiler must compute the value of sum before this point. */
INLINE vecu settled(vecu sum)
{
    __asm__("" : "+v"(sum));
    return sum;
}
