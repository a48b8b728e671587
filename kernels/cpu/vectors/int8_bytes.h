/* int8_bytes.h - int8 codes for processors with vpdpbusd, which multiplies four unsigned bytes by
 * four signed ones and adds the products to an int32. */
#pragma once

#include "kernels/cpu/vectors/settled.h"

/* A step is four codes of each output. Its activation codes k..k+3 are one 32-bit word of
 * unsigned bytes, code + INT8_BIAS, the form of the first factor of vpdpbusd. */
enum { INT8_STEP = 4, INT8_WORDS = 1, INT8_BIAS = 128, INT8_ROWS = 1 };
typedef vecu int8_weights;

INLINE void int8_words(uint32_t *out, const int8_t code[INT8_STEP])
{
    uint32_t word;
    memcpy(&word, code, 4);
    *out = word ^ 0x80808080u;
}

/* The codes at p of a step of LANES outputs. */
INLINE int8_weights int8_load(const void *p) { return load_bits(p); }

/* Q4: four activation codes are one word of signed bytes. */
enum { Q4_STEP = 4, Q4_WORDS = 1 };
INLINE void q4_words(uint32_t *out, const int8_t code[4]) { memcpy(out, code, 4); }
INLINE uint32_t q4_start(int low, int high) { return (uint32_t)(low + high); }

/* The sums as int32. */
INLINE veci q4_total(veci sum) { return sum; }
