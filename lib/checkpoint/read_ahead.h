/* read_ahead.h - a thread that brings the files of a checkpoint into the page cache before they are
 * needed. The disk then works while a tokenizer is built and while matrices are packed. */
#pragma once

#include "lib/checkpoint/tensor.h"

struct tensors;
struct read_ahead;

/* A value for `most`: so few bytes that they stay in the page cache until they are packed. */
#define READ_AHEAD_BYTES ((size_t)256 << 20)

/* Starts to read the files of the set in order, to about `most` bytes beyond the tensor that
 * read_ahead_reached() named. Returns NULL if no thread can be started; the calls below take NULL
 * and then do nothing. The set must outlive the thread. */
struct read_ahead *read_ahead_start(const struct tensors *set, size_t most);
/* The caller is about to read this tensor. The thread continues at the tensor, unless it has read
 * the beginning of the tensor already. NULL: the caller reads no more tensors; the thread ends. */
void read_ahead_reached(struct read_ahead *ahead, const struct tensor *tensor);
void read_ahead_stop(struct read_ahead *ahead);
