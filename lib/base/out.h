/* out.h - output files that appear complete or not at all. */
#pragma once

#include <stdio.h>

#include "lib/base/err.h"

/* An output. "-" is standard output; a device or a pipe is written directly. Any other path is
 * written as ".NAME.tmp" in the same folder, locked against a second writer, and renamed on commit.
 * A temporary file that a killed process left is overwritten. */
struct out {
    FILE *f;
    char *path, *temp; /* NULL for standard output; for a device or a pipe only temp is NULL */
};
/* Returns -1: EXIT_CANNOT_CREATE, EXIT_IO, or EXIT_BUSY if another process writes this output; *e
 * has the id of that process if the system tells it. */
int out_open(struct out *out, const char *path, struct err *e);
/* out_open(), but an existing temporary file keeps its contents: out->f reads them, and writes to
 * its descriptor append. */
int out_open_kept(struct out *out, const char *path, struct err *e);
/* Flushes, checks, syncs, renames. -1: EXIT_IO, and the temporary file is removed. */
int out_commit(struct out *out, struct err *e);
/* Writes n bytes as a whole output: opens it, writes and commits. */
int out_whole(const char *path, const void *bytes, size_t n, struct err *e);
/* Removes the temporary file. Safe after a commit. */
void out_abandon(struct out *out);
/* Closes the temporary file and keeps it for another process. */
void out_leave(struct out *out);
