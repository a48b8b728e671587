/* filehash.h - SHA-256 of files, remembered for large ones.
 *
 * A launch is a fresh process, and hashing 16 GB of weights takes ten seconds. The hash of a large
 * file is therefore kept in $XDG_CACHE_HOME/crossover/sha256 (or ~/.cache), under its path, device,
 * inode, size, time of modification and time of change. The last of these moves with every write
 * and cannot be set back. A file that changed less than FILEHASH_AGE_S seconds ago is not kept:
 * another write could fall into the same tick of its clock.
 */
#ifndef RECORD_FILEHASH_H
#define RECORD_FILEHASH_H

#include <stddef.h>

#include "lib/base/err.h"

enum { FILEHASH_LARGE = 64 << 20, FILEHASH_AGE_S = 2 };

/* hex = the SHA-256 of a file. Returns 1: remembered; 0: computed, and remembered from now on when
 * it holds at least `large` bytes and there is a place for it; -1: EXIT_NO_INPUT, or EXIT_IO (also
 * when the file changed meanwhile). */
int filehash(const char *path, size_t large, char hex[65], struct err *e);
/* The same from the bytes, whatever is remembered of them: 0 or -1. */
int filehash_anew(const char *path, size_t large, char hex[65], struct err *e);

#endif
