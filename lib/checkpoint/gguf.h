/* gguf.h - the header of a GGUF file, checked before it is used.
 *
 * Format, little-endian: "GGUF", u32 version (2 or 3), u64 tensors, u64 keys; each key a text, u32
 * type, value; each tensor a text, u32 rank, u64 sizes (the innermost first), u32 format, u64
 * offset into the data, which begin at the next multiple of general.alignment (32). A text is u64
 * bytes and the bytes. Source: github.com/ggml-org/ggml, docs/gguf.md. */
#pragma once

#include <jansson.h>

#include "lib/checkpoint/tensor.h"

enum { GGUF_MAX_ENTRIES = 1 << 16, GGUF_MAX_ITEMS = 1 << 21, GGUF_MAX_NAME = 1024 };

/* 1: the name ends in ".gguf". */
int gguf_is(const char *path);
/* Parses the n bytes of the file `path`. *list has *count tensors in the order of the file, with
 * data inside it (caller frees names and list); *meta is an object of the keys (caller's), where an
 * array is kept if it is one of the tokenizer, else null; at most GGUF_MAX_ITEMS items are kept.
 * -1: EXIT_BAD_DATA, and nothing is left. */
int gguf_parse(const unsigned char *bytes, size_t n, const char *path, struct tensor **list,
               size_t *count, json_t **meta, struct err *e);
