/* sums.h - the file beside a work file that shows whether somebody changed it: line n of it is the
 * SHA-256 of lines 1..n of the work file, in 64 hex digits. A sum is written before its line, so a
 * killed process leaves one for every whole line. */
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

/* Opens the existing sums of the work file `work`, or creates the file. unwanted: removes it and
 * keeps no sums. -1: EXIT_CANNOT_CREATE. */
int sums_open(struct sums *sums, const char *work, int unwanted, struct err *e);
/* Adds a line to the hash of the lines before it, and compares. 1: the line is as written; 0: it
 * has no sum; -1: it was changed. */
int sums_prove(const struct sums *sums, struct hash *hash, const struct buf *line, int64_t number);
/* 1: the hash is the sum of lines 1..number. */
int sums_fit(const struct sums *sums, const struct hash *hash, int64_t number);
/* The sum of a hash. */
void sums_format(const struct hash *hash, char sum[SUMS_BYTES + 1]);
/* Appends the sum of the next line, from the hash up to its end. -1: EXIT_IO. */
int sums_add(struct sums *sums, const struct hash *hash, struct err *e);
/* Keeps the first `lines` sums. -1: errno is set; likewise below. */
int sums_cut(struct sums *sums, int64_t lines);
int sums_sync(const struct sums *sums);
void sums_close(struct sums *sums);
