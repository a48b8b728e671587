/* gguf.h - reads the header of a GGUF file and checks it before it is used.
 *
 * Format, little-endian: "GGUF", u32 version (2 or 3), u64 number of tensors, u64 number of keys,
 * the keys, the tensors, padding, the data. A key is: name, u32 type, value. A tensor is: name, u32
 * rank, u64 sizes (the innermost first), u32 format, u64 offset into the data. The data begin at
 * the next multiple of general.alignment (default 32). A text, such as a name, is its length as u64
 * and its bytes. Source: github.com/ggml-org/ggml, docs/gguf.md. */
#pragma once

#include <jansson.h>

#include "lib/checkpoint/tensor.h"

enum { GGUF_MAX_ENTRIES = 1 << 16, GGUF_MAX_ITEMS = 1 << 21, GGUF_MAX_NAME = 1024 };

/* 1: the name ends in ".gguf". */
int gguf_is(const char *path);
/* Parses the n bytes of the file `path`. *list has *count tensors in the order of the file; their
 * data point into bytes[] (caller frees names and list). *meta is an object of the keys (caller's).
 * Only the arrays of the tokenizer ("tokenizer.*") are kept, with at most GGUF_MAX_ITEMS items
 * together; other arrays are null. -1: EXIT_BAD_DATA, and nothing is left to free. */
int gguf_parse(const unsigned char *bytes, size_t n, const char *path, struct tensor **list,
               size_t *count, json_t **meta, struct err *e);
