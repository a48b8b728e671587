/* sums.h - the file beside a work file that shows whether somebody changed it: line n of it is the
 * SHA-256 of lines 1..n of the work file, in 64 hex digits. A sum is written before its line, so a
 * killed process leaves one for every whole line.
 */
#ifndef RECORD_SUMS_H
#define RECORD_SUMS_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"

enum { SUMS_BYTES = 64 + 1 }; /* length of a sum with its line feed */

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
/* 1: the hash is the sum of lines 1..number. */
int sums_fit(const struct sums *s, const struct hash *h, int64_t number);
/* The sum of a hash. */
void sums_format(const struct hash *h, char sum[SUMS_BYTES + 1]);
/* The next line will end at this hash. -1: EXIT_IO. */
int sums_add(struct sums *s, const struct hash *h, struct err *e);
/* Keeps so many. -1: errno says why, as below. */
int sums_cut(struct sums *s, int64_t lines);
int sums_sync(const struct sums *s);
void sums_close(struct sums *s);

#endif
