/* int8_signed.h - int8 codes for processors that multiply signed bytes by signed bytes and add the
 * products to an int32. The level defines INT8_STEP. */
#pragma once

#include "kernels/cpu/vectors/vector.h"

/* The activations of a step are INT8_WORDS words of four codes. */
enum { INT8_WORDS = INT8_STEP / 4, INT8_BIAS = 0 };
typedef uint32_t int8_weights __attribute__((vector_size(LANES * INT8_STEP)));

INLINE void int8_words(uint32_t *out, const int8_t code[INT8_STEP])
{
    memcpy(out, code, INT8_STEP);
}

/* The codes at p of a step of LANES outputs. */
INLINE int8_weights int8_load(const void *p)
{
    int8_weights w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* Q4: the steps and words of int8. */
enum { Q4_STEP = INT8_STEP, Q4_WORDS = INT8_WORDS };
INLINE void q4_words(uint32_t *out, const int8_t code[Q4_STEP]) { int8_words(out, code); }
INLINE uint32_t q4_start(int low, int high) { return (uint32_t)(low + high); }

/* The sums as int32. */
INLINE veci q4_total(veci sum) { return sum; }
