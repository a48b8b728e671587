/* tarball.h - the members of a .tar.gz in a known order.
 *
 *     struct tarball *t = tarball_open("run.tar.gz", limit, &e);
 *     while (more) { tarball_find(t, "name", &e); tarball_read(t, block, n, &e) ... }
 *     tarball_end(t, &e);
 *     tarball_close(t);
 *
 * The file must be one gzip around one tar. Names are compared, never opened. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"

struct tarball;

/* NULL: EXIT_NO_INPUT, or EXIT_BAD_DATA when it is not a gzip file. limit: most unpacked bytes. */
struct tarball *tarball_open(const char *path, int64_t limit, struct err *e);
/* Moves to the next member. -1 (EXIT_BAD_DATA): it is not a regular file of that name, there is
 * none, or the archive is broken. */
int tarball_find(struct tarball *tarball, const char *name, struct err *e);
/* Bytes of that member, 0 at its end, -1: *e. */
ssize_t tarball_read(struct tarball *tarball, char *to, size_t n, struct err *e);
/* -1 unless this is the end: no more members, and no bytes after the archive. */
int tarball_end(struct tarball *tarball, struct err *e);
void tarball_close(struct tarball *tarball);
