/* out.h - files that appear whole or not at all. */
#ifndef BASE_OUT_H
#define BASE_OUT_H

#include <stdio.h>

#include "lib/base/err.h"

/* An output. "-" is standard output, a device or a pipe is written as it is; any other path is
 * written as ".NAME.tmp" in the same folder, locked against a second writer, and renamed on commit.
 * What a killed process left under that name is written over. */
struct out {
    FILE *f;
    char *path, *temp; /* both NULL for standard output, temp for a device */
};
/* -1: EXIT_CANNOT_CREATE; EXIT_BUSY when another process writes it, which is named. */
int out_open(struct out *o, const char *path, struct err *e);
/* The same, but what is under the temporary name stays: it can be read through o->f, and what is
 * written to its descriptor comes behind it. */
int out_open_kept(struct out *o, const char *path, struct err *e);
/* Flushes, checks, syncs, renames. -1: EXIT_IO, and the temporary file is removed. */
int out_commit(struct out *o, struct err *e);
/* All three for a file whose bytes are there. */
int out_whole(const char *path, const void *bytes, size_t n, struct err *e);
/* Removes the temporary file. Safe after a commit. */
void out_abandon(struct out *o);
/* Closes the temporary file and leaves it to another process. */
void out_leave(struct out *o);

#endif
