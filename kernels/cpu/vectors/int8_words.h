/* int8_words.h - int8 codes of activations for processors that multiply 16-bit pairs: four codes
 * k..k+3 are two 32-bit words, (k, k + 2) and (k + 1, k + 3) as int16. */
#ifndef KERNELS_CPU_VECTORS_INT8_WORDS_H
#define KERNELS_CPU_VECTORS_INT8_WORDS_H

#include "kernels/cpu/vectors/vector.h"

enum { INT8_WORDS = 2, INT8_BIAS = 0 };

typedef int16_t vecs __attribute__((vector_size(LANES * 4)));

/* Bytes 0 and 2, or 1 and 3, of each 32-bit lane, widened. */
INLINE vecs even_bytes(vecu w) { return (vecs)(w << 8) >> 8; }
INLINE vecs odd_bytes(vecu w) { return (vecs)w >> 8; }

INLINE void int8_words(uint32_t *out, const int8_t code[4])
{
    out[0] = (uint16_t)code[0] | (uint32_t)(uint16_t)code[2] << 16;
    out[1] = (uint16_t)code[1] | (uint32_t)(uint16_t)code[3] << 16;
}

#endif
