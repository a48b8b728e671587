/* plain_bf16.h - bf16 primitives in plain C, for an isa_*.h without instructions for them. */
#pragma once

#include "kernels/cpu/vectors/vector.h"

/* sum += even(a) * even(b) + odd(a) * odd(b), lane by lane, over bf16 pairs. */
INLINE vec dot_bf16(vec sum, vecu a, vecu b)
{
    sum += odd_of(a) * odd_of(b);
    return sum + even_of(a) * even_of(b);
}

/* Lanes rounded to bf16. */
INLINE vech bf16_narrow(vec x) { return __builtin_convertvector(bf16_round(x) >> 16, vech); }
