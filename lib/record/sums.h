/* sums.h - the file of sums beside a work file, which shows whether somebody changed the work file.
 * Line n of the sums is the SHA-256 of lines 1..n of the work file, in 64 hex digits. A sum is
 * written before its line, so a killed process leaves a sum for every whole line. */
#pragma once

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"

enum { SUMS_BYTES = 64 + 1 }; /* length of a sum with its line feed */

struct sums {
    char *path;
    int fd;        /* -1: no sums are kept; the functions below do nothing */
    int64_t lines; /* number of sums */
};

/* Opens the existing sums of the work file `work`, or creates their file. unwanted 1: removes that
 * file and keeps no sums. Returns -1: EXIT_CANNOT_CREATE. */
int sums_open(struct sums *sums, const char *work, int unwanted, struct err *e);
/* Adds line `number` to the hash of the lines before it, and compares the hash with the sum.
 * Returns 1 if the line is as it was written, 0 if it has no sum, -1 if it was changed. */
int sums_prove(const struct sums *sums, struct hash *hash, const struct buf *line, int64_t number);
/* 1: the hash is equal to the sum of lines 1..number. */
int sums_fit(const struct sums *sums, const struct hash *hash, int64_t number);
/* Writes the sum of a hash: 64 hex digits and a line feed. */
void sums_format(const struct hash *hash, char sum[SUMS_BYTES + 1]);
/* Appends the sum of the next line. hash: of the work file up to the end of that line. Returns -1:
 * EXIT_IO. */
int sums_add(struct sums *sums, const struct hash *hash, struct err *e);
/* Keeps only the first `lines` sums. Returns -1 with errno set. */
int sums_cut(struct sums *sums, int64_t lines);
/* Syncs the sums to disk. Returns -1 with errno set. */
int sums_sync(const struct sums *sums);
void sums_close(struct sums *sums);
