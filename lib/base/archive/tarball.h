/* tarball.h - reads the members of a .tar.gz, whose names and order the caller knows.
 *
 *     struct tarball *t = tarball_open("run.tar.gz", limit, &e);
 *     while (more) { tarball_find(t, "name", &e); tarball_read(t, block, n, &e) ... }
 *     tarball_end(t, &e);
 *     tarball_close(t);
 *
 * The file must be one gzip around one tar. Names of members are only compared: no file of that
 * name is opened. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"

struct tarball;

/* NULL: EXIT_NO_INPUT, or EXIT_BAD_DATA when it is not a gzip file. limit: most unpacked bytes. */
struct tarball *tarball_open(const char *path, int64_t limit, struct err *e);
/* Moves to the next member. Returns -1 (EXIT_BAD_DATA) if there is no next member, if it is not a
 * regular file of that name, or if the archive is broken. */
int tarball_find(struct tarball *tarball, const char *name, struct err *e);
/* Reads at most n bytes of the member that tarball_find() found. Returns their number, 0 at the end
 * of the member, -1 with *e filled. */
ssize_t tarball_read(struct tarball *tarball, char *to, size_t n, struct err *e);
/* Call after the last member. Returns -1 if another member follows, or if the rest of the gzip data
 * is broken. */
int tarball_end(struct tarball *tarball, struct err *e);
void tarball_close(struct tarball *tarball);
