/* safetensors-header.h - parses and checks the JSON header of a safetensors file; private to
 * safetensors*.c. */
#pragma once

#include "lib/checkpoint/tensor.h"

/* A value takes up to 240 bytes of memory while the header is parsed. */
enum { HEADER_MAX_BYTES = 100000000, HEADER_MAX_NAME = 1024, HEADER_MAX_VALUES = 4000000 };

/* Parses text[0..n-1] of the file `where` whose data part is data[0..data_bytes-1]. On success
 * *list has *count tensors (caller frees names and list) in the order of their data, which they
 * cover without hole or overlap. -1: EXIT_BAD_DATA, and *list is NULL. */
int safetensors_header_parse(const char *text, size_t n, const char *where,
                             const unsigned char *data, size_t data_bytes, struct tensor **list,
                             size_t *count, struct err *e);
/* Frees the list of safetensors_header_parse. */
void safetensors_header_free(struct tensor *list, size_t count);
