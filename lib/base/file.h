/* file.h - files that are read whole, with a limit, and questions about paths. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Reads a whole file of at most `limit` bytes into *b. -1: EXIT_NO_INPUT, EXIT_IO (also when it
 * changed meanwhile), or EXIT_BAD_DATA when it is larger. */
int file_read(const char *path, size_t limit, struct buf *b, struct err *e);

/* 1 when both names are the same existing file, else 0. */
int file_same(const char *a, const char *b);
int file_exists(const char *path);   /* any kind */
int file_is_folder(const char *path);
int file_is_regular(const char *path);
int file_in_memory(const char *path); /* on a file system that keeps its files in memory (tmpfs) */
/* Makes the folder and its parents. -1: EXIT_CANNOT_CREATE. */
int file_make_folder(const char *path, struct err *e);
/* The user's cache folder for `what`: $XDG_CACHE_HOME/crossover/WHAT, else ~/.cache/crossover/WHAT.
 * The caller's; NULL: there is none. It may have to be made. */
char *file_cache_folder(const char *what);
/* Takes an existing folder for this process until it ends or closes the descriptor that is
 * returned. -1: EXIT_BUSY when another process has it, EXIT_NO_INPUT. A file system without locks
 * grants them all. */
int file_lock_folder(const char *path, struct err *e);

#endif
