/* ggml-blocks.h - values in the layout of a GGUF file.
 *
 * Source: the layouts that github.com/ggml-org/ggml documents (GGUF v3; block_q8_0, block_q4_0,
 * block_q6_K). Scales are IEEE half, everything is little-endian.
 *
 *   Q8_0   32 values   half d, 32 x int8 q                            x = d q
 *   Q4_0   32 values   half d, 16 x byte: q of value i low, i+16 high x = d (q - 8)
 *   Q6_K  256 values   128 x byte low four bits, 64 x byte high two bits, 16 x int8 s, half d
 *                      x = d s (q - 32), one s for every 16 values */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The numbers of the GGUF format. */
enum ggml_type { GGML_F32 = 0, GGML_Q4_0 = 2, GGML_Q8_0 = 8, GGML_Q6_K = 14, GGML_BF16 = 30 };

size_t ggml_block_values(enum ggml_type t);
size_t ggml_block_bytes(enum ggml_type t);
/* Fills out[n / values * bytes]. n is a multiple of the values of a block. */
void ggml_encode(enum ggml_type t, const float *x, size_t n, unsigned char *out);
