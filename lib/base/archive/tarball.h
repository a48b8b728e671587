/* tarball.h - the members of a .tar.gz, one after the other, for who knows what must come next.
 *
 *     struct tarball *t = tarball_open("run.tar.gz", limit, &e);
 *     while (more) { tarball_find(t, "name", &e); tarball_read(t, block, n, &e) ... }
 *     tarball_end(t, &e);
 *     tarball_close(t);
 *
 * One gzip and one tar are taken off, none is guessed. Names are compared, never opened.
 */
#ifndef BASE_ARCHIVE_TARBALL_H
#define BASE_ARCHIVE_TARBALL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"

struct tarball;

/* NULL: EXIT_NO_INPUT, or EXIT_BAD_DATA when it is no gzip. It unpacks to `limit` bytes at most. */
struct tarball *tarball_open(const char *path, int64_t limit, struct err *e);
/* Goes to the next member, which has to be the regular file of that name. -1 (EXIT_BAD_DATA):
 * another one, a link, the end, or the archive is broken. */
int tarball_find(struct tarball *t, const char *name, struct err *e);
/* Bytes of that member, 0 at its end, -1: *e. */
ssize_t tarball_read(struct tarball *t, char *to, size_t n, struct err *e);
/* -1 unless there are no more members and nothing stands behind the archive. */
int tarball_end(struct tarball *t, struct err *e);
void tarball_close(struct tarball *t);

#endif
