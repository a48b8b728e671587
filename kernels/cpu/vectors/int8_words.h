/* int8_words.h - int8 codes for processors that multiply 16-bit pairs and add the two products.
 *
 * vpmaddubsw multiplies four codes of an output, not two. But it adds two products in 16 bits, and
 * two products of int8 codes fill these. vpmaddwd by ones must then widen the sum, which is again
 * one multiplication for two codes. */
#pragma once

#include "kernels/cpu/vectors/settled.h"

/* A step is INT8_STEP consecutive codes of each output. The activations of a step are INT8_WORDS
 * words of 32 bits: the pair k, k + 1 as int16. */
enum { INT8_STEP = 2, INT8_WORDS = 1, INT8_BIAS = 0, INT8_ROWS = 1 };

typedef int16_t vecs __attribute__((vector_size(LANES * 4)));
typedef vecs int8_weights;

INLINE void int8_words(uint32_t *out, const int8_t code[INT8_STEP])
{
    *out = (uint16_t)code[0] | (uint32_t)(uint16_t)code[1] << 16;
}

/* Q4: four activation codes are one word of signed bytes. Sums are pairs of int16, of k and k + 1
 * and of k + 2 and k + 3 of every four. */
enum { Q4_STEP = 4, Q4_WORDS = 1 };

INLINE void q4_words(uint32_t *out, const int8_t code[4]) { memcpy(out, code, 4); }

INLINE uint32_t q4_start(int low, int high)
{
    return (uint16_t)low | (uint32_t)(uint16_t)high << 16;
}
