/* safetensors.h - opens safetensors files, checks them before their tensors are used, and writes
 * them. safetensors_open_file also opens GGUF files (gguf.h).
 *
 * Format: u64 little-endian header length N, JSON header, data. After a safetensors file is opened,
 * these rules hold: offsets cover the data without hole or overlap, shape x dtype = byte range,
 * file size = 8 + N + last end, no duplicate names. A folder may hold one model.safetensors, or the
 * shards that model.safetensors.index.json names. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/out.h"
#include "lib/checkpoint/tensor.h"

struct tensors; /* every tensor of a file or a sharded folder; the files stay mapped */

/* For messages: a command that makes model.safetensors from the PyTorch files of the current
 * folder. It clones each tensor in row-major order, because save_file() cannot write tensors that
 * share memory or are transposed. */
#define SAFETENSORS_FROM_PYTORCH                                                                   \
    "python3 -c \"import glob, torch, safetensors.torch as s; t = {}; "                            \
    "[t.update(torch.load(f, 'cpu', weights_only=True)) for f in glob.glob('pytorch_model*.bin')]" \
    "; s.save_file({k: v.clone(memory_format=torch.contiguous_format) for k, v in t.items()}, "    \
    "'model.safetensors')\""

/* NULL: EXIT_NO_INPUT, EXIT_BAD_DATA, EXIT_IO. */
struct tensors *safetensors_open_file(const char *path, struct err *e);
/* The keys of a file named .gguf (gguf.h); NULL for other sets. */
const json_t *safetensors_metadata(const struct tensors *set);
/* Opens model.safetensors of the folder, or the index and its shards. Errors: as
 * safetensors_open_file. */
struct tensors *safetensors_open_folder(const char *folder, struct err *e);
size_t safetensors_count(const struct tensors *set);
const struct tensor *safetensors_at(const struct tensors *set, size_t i);
const struct tensor *safetensors_find(const struct tensors *set, const char *name); /* NULL: none */
/* A text that describes harmless errors of the index (total_size, a name without a tensor). NULL:
 * there are none. The set owns the text. */
const char *safetensors_note(const struct tensors *set);
/* The number of files of the set, and the path of the i-th, for meta records. */
size_t safetensors_files(const struct tensors *set);
const char *safetensors_file(const struct tensors *set, size_t i);
/* The descriptor of the i-th file; the set closes it. *bytes = the size of the file. */
int safetensors_descriptor(const struct tensors *set, size_t i, size_t *bytes);
/* The place of a tensor of the set, or of a part of it: bytes from the beginning of the first file,
 * all files one after the other. For other tensors: the bytes of all files. */
size_t safetensors_place(const struct tensors *set, const struct tensor *tensor);
/* -1 (EXIT_IO, "changed while reading"): the size or time of a file changed since it was opened. */
int safetensors_unchanged(const struct tensors *set, struct err *e);
void safetensors_close(struct tensors *set);

/* Writes one file, with the tensors in the given order. metadata: an object of strings, borrowed,
 * or NULL. -1: EXIT_CANNOT_CREATE, EXIT_BUSY, EXIT_IO; EXIT_INTERNAL: the reader would refuse a
 * tensor or the header. */
int safetensors_write(const char *path, const struct tensor *list, size_t n, const json_t *metadata,
                  struct err *e);
/* safetensors_write() for data that do not fit in memory: opens the file and writes its header. The
 * caller then writes the bytes of every tensor to out->f, in order, and calls out_commit. */
int safetensors_begin(struct out *out, const char *path, const struct tensor *list, size_t n,
                  const json_t *metadata, struct err *e);
