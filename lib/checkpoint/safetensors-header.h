/* safetensors-header.h - parses and checks the JSON header of a safetensors file; private to
 * safetensors*.c. */
#pragma once

#include "lib/checkpoint/tensor.h"

/* HEADER_MAX_VALUES limits memory: a JSON value takes up to 240 bytes while the header is
 * parsed. */
enum { HEADER_MAX_BYTES = 100000000, HEADER_MAX_NAME = 1024, HEADER_MAX_VALUES = 4000000 };

/* Parses text[0..n-1], the header of the file `where`; data[0..data_bytes-1] is the data part of
 * the file. On success *list has *count tensors in the order of their data, and they cover the data
 * without hole or overlap; free the list with safetensors_header_free. -1: EXIT_BAD_DATA, and *list
 * is NULL. */
int safetensors_header_parse(const char *text, size_t n, const char *where,
                             const unsigned char *data, size_t data_bytes, struct tensor **list,
                             size_t *count, struct err *e);
/* Frees the list of safetensors_header_parse. */
void safetensors_header_free(struct tensor *list, size_t count);
