/* file.h - files that appear whole or not at all, and files that are read with a limit. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "lib/base/buf.h"
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
/* Removes the temporary file. Safe after a commit. */
void out_abandon(struct out *o);
/* Closes the temporary file and leaves it to another process. */
void out_leave(struct out *o);

/* Reads a whole file of at most `limit` bytes into *b. -1: EXIT_NO_INPUT, EXIT_IO (also when it
 * changed meanwhile), or EXIT_BAD_DATA when it is larger. */
int file_read(const char *path, size_t limit, struct buf *b, struct err *e);

/* 1 when both names are the same existing file, else 0. */
int file_same(const char *a, const char *b);
int file_exists(const char *path);   /* any kind */
int file_is_folder(const char *path);
int file_is_regular(const char *path);
/* Makes the folder and its parents. -1: EXIT_CANNOT_CREATE. */
int file_make_folder(const char *path, struct err *e);
/* Takes an existing folder for this process until it ends or closes the descriptor that is
 * returned. -1: EXIT_BUSY when another process has it, EXIT_NO_INPUT. A file system without locks
 * grants them all. */
int file_lock_folder(const char *path, struct err *e);

#endif
