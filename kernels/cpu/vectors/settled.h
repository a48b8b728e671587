/* settled.h - keeps the compiler from computing the products of all rows before it adds one of
 * them. All products together need more registers than there are. For x86-64. */
#pragma once

#include "kernels/cpu/vectors/vector.h"

/* Returns sum unchanged. The compiler must have added all products so far. */
INLINE vecu settled(vecu sum)
{
    __asm__("" : "+v"(sum));
    return sum;
}
