/* tensor.h - a tensor of a file: name, dtype, shape, and its values in the mapped file. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

enum { TENSOR_MAX_RANK = 8 };

struct tensor {
    char *name;          /* owned by the set */
    char dtype[16];      /* "F32", "BF16", "F16", ... as in the file */
    size_t rank, shape[TENSOR_MAX_RANK];
    size_t bytes;
    const unsigned char *data; /* in the mapping, with any alignment: use memcpy */
};

/* Bits of one element of a dtype, 0: no such dtype. Source: safetensors tensor.rs, `Dtype`. */
unsigned tensor_dtype_bits(const char *dtype);
/* Elements of `shape` times the dtype's width, in whole bytes. -1: overflow, rank or dimension too
 * large, or a fraction of a byte; *why says which. */
int tensor_bytes(const char *dtype, const size_t *shape, size_t rank, size_t *bytes,
                 const char **why);
/* -1 (EXIT_BAD_DATA): the shape of the tensor differs from the one that config.json implies. */
int tensor_check_shape(const char *folder, const struct tensor *tensor, const size_t *want,
                       size_t rank, struct err *e);
/* Widens n values of a readable tensor, from value `first` on; of one with blocks, whole rows. */
void tensor_floats(const struct tensor *tensor, size_t first, size_t n, float *out);

/* tensor-blocks.c: formats of GGUF files. */
/* The name of a format by its number in the file, and what a block is. NULL: not read here. */
const char *tensor_block_dtype(uint32_t id, size_t *values, size_t *bytes);
int tensor_is_readable(const char *dtype); /* 1: F32, F16, BF16, or a format with blocks */
int tensor_has_blocks(const char *dtype);
/* Widens whole blocks; first and n in values. */
void tensor_blocks(const struct tensor *tensor, size_t first, size_t n, float *out);
