/* file.h - reading whole files up to a size limit, and tests of paths. */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Appends a whole file to *text, which then may have at most `limit` bytes. Returns -1:
 * EXIT_NO_INPUT, EXIT_IO (also if the file changed during the read), or EXIT_BAD_DATA if the file
 * is too large. */
int file_read(const char *path, size_t limit, struct buf *text, struct err *e);

/* 1 when both names are the same existing file, else 0. */
int file_same(const char *a, const char *b);
int file_exists(const char *path);   /* any kind */
int file_is_folder(const char *path);
int file_is_regular(const char *path);
int file_in_memory(const char *path); /* 1: it is on a file system in memory (tmpfs, ramfs) */
/* Makes the folder and its parents. -1: EXIT_CANNOT_CREATE. */
int file_make_folder(const char *path, struct err *e);
/* The user's cache folder for `what`: $XDG_CACHE_HOME/crossover/WHAT, else ~/.cache/crossover/WHAT.
 * The text is the caller's. NULL: neither variable is an absolute path. The folder may not exist
 * yet. */
char *file_cache_folder(const char *what);
/* Where large temporary files go: $TMPDIR, else /var/tmp. */
const char *file_scratch_folder(void);
/* Locks an existing folder until the process ends or closes the returned descriptor. Returns -1:
 * EXIT_BUSY if another process holds the lock, EXIT_NO_INPUT if the folder cannot be opened. On a
 * file system without locks every process gets the lock. */
int file_lock_folder(const char *path, struct err *e);
