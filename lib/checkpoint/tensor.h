/* tensor.h - a tensor of a file: name, dtype, shape, and its values in the mapped file. The
 * functions check sizes and widen values to fp32. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

enum { TENSOR_MAX_RANK = 8 };

struct tensor {
    char *name;          /* owned by the list that holds the tensor */
    char dtype[16];      /* "F32", "BF16", "F16", ... as in the file */
    size_t rank, shape[TENSOR_MAX_RANK];
    size_t bytes;
    const unsigned char *data; /* in the mapping, with any alignment: use memcpy */
};

/* Bits of one element of a dtype, 0: no such dtype. Source: safetensors tensor.rs, `Dtype`. */
unsigned tensor_dtype_bits(const char *dtype);
/* *bytes = elements of `shape` times the dtype's width. -1: overflow, rank or dimension too large,
 * or not a whole number of bytes; *why says which. */
int tensor_bytes(const char *dtype, const size_t *shape, size_t rank, size_t *bytes,
                 const char **why);
/* -1 (EXIT_BAD_DATA): the shape of the tensor differs from the one that config.json implies. */
int tensor_check_shape(const char *folder, const struct tensor *tensor, const size_t *want,
                       size_t rank, struct err *e);
/* Widens n values of a readable tensor to fp32, from value `first` on. A tensor with blocks: first
 * and n are multiples of its block. */
void tensor_floats(const struct tensor *tensor, size_t first, size_t n, float *out);

/* tensor-blocks.c: formats of GGUF files. */
/* The name of the format with number `id` in the file. A block of it has *values values in *bytes
 * bytes. NULL: this program does not read the format. */
const char *tensor_block_dtype(uint32_t id, size_t *values, size_t *bytes);
int tensor_is_readable(const char *dtype); /* 1: F32, F16, BF16, or a format with blocks */
int tensor_has_blocks(const char *dtype);
/* Widens whole blocks to fp32; `first` and n count values. */
void tensor_blocks(const struct tensor *tensor, size_t first, size_t n, float *out);
