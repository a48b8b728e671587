/* ahead.h - a thread that reads the files of a checkpoint into the page cache, in the order of their
 * bytes. The disk then works while a tokenizer is built and while matrices are packed. */
#pragma once

#include "lib/checkpoint/tensor.h"

struct tensors;
struct ahead;

/* For `most`: the page cache keeps so much of a file in use, even where memory is short. */
#define AHEAD_BYTES ((size_t)256 << 20)

/* Starts to read the files of the set, up to `most` bytes beyond the place that ahead_reached()
 * named last. Returns NULL if no thread can be started; the calls below take NULL and then do
 * nothing. The set must outlive the thread. */
struct ahead *ahead_start(const struct tensors *set, size_t most);
/* The caller is about to read this tensor of the set. NULL: it reads no more; the thread ends. */
void ahead_reached(struct ahead *ahead, const struct tensor *tensor);
void ahead_stop(struct ahead *ahead);
