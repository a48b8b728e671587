/* sums.h - the file beside a work file by which each of its lines is known again: line n of it is
 * of lines 1..n of the other
 *
 *     SHA-256, in 64 digits | its state, in 64 digits (hash.h) | their bytes, in 16 hex digits
 *
 * From any of its states hashing can go on, so several threads prove one file; a state that the
 * bytes before it do not lead to is found by the thread that hashes these.
 * A sum is written before its line, so a process that is killed leaves one for every whole line.
 */
#ifndef RECORD_SUMS_H
#define RECORD_SUMS_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"

enum { SUMS_BYTES = 64 + 1 + 64 + 1 + 16 + 1 }; /* of a sum, with its line feed */

struct sums {
    char *path;
    int fd;        /* -1: none are kept, and what follows does nothing */
    int64_t lines; /* that have a sum, or are about to */
};

/* The sums of the work file `work`, as they are there. unwanted: none; those of others go.
 * -1: EXIT_CANNOT_CREATE. */
int sums_open(struct sums *s, const char *work, int unwanted, struct err *e);
/* Adds a line to the hash of those before it: 1, it is what was written as that line; 0: there is
 * no sum that could say; -1: it is something else. */
int sums_prove(const struct sums *s, struct hash *h, const struct buf *line, int64_t number);
int64_t sums_count(const struct sums *s); /* that are in the file */
/* 1: the hash is the sum of lines 1..number. */
int sums_fit(const struct sums *s, const struct hash *h, int64_t number);
/* The hash of lines 1..number of the work file that is open as fd, by its state and the bytes of
 * the block that was begun; the caller's. NULL: there is none, or the sum is not its own. */
struct hash *sums_hash(const struct sums *s, int64_t number, int fd);
/* The sum that hash has. */
void sums_format(const struct hash *h, char sum[SUMS_BYTES + 1]);
/* The next line will end at this hash. -1: EXIT_IO. */
int sums_add(struct sums *s, const struct hash *h, struct err *e);
/* Keeps so many. -1: errno says why, as below. */
int sums_cut(struct sums *s, int64_t lines);
int sums_sync(const struct sums *s);
void sums_close(struct sums *s);

#endif
