/* filehash.h - SHA-256 of files, cached for large ones.
 *
 * A launch is a fresh process, and hashing 16 GB of weights takes ten seconds. The hash of a large
 * file is therefore cached in $XDG_CACHE_HOME/crossover/sha256 (or ~/.cache), under its path,
 * device, inode, size, time of modification and time of change. Every write moves the time of
 * change, and no user can set it back. A file that changed less than FILEHASH_AGE_S seconds ago is
 * not cached: another write could fall into the same tick of the clock. */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"

enum { FILEHASH_LARGE = 64 << 20, FILEHASH_AGE_S = 2 };

/* hex = the SHA-256 of a file. Returns 1 if it came from the cache. Returns 0 if it was computed;
 * it is then cached if the file has at least `large` bytes and the cache can be written. Returns
 * -1: EXIT_NO_INPUT, or EXIT_IO (also if the file changed during the read). */
int filehash(const char *path, size_t large, char hex[65], struct err *e);
/* filehash() that does not read the cache, but still writes it. Returns 0 or -1. */
int filehash_anew(const char *path, size_t large, char hex[65], struct err *e);
