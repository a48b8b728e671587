/* choices.h - the fastest algorithm of the library for each shape: a table that is also stored in a
 * file: the library with its version, then one line a shape.
 *
 *   cuBLASLt 130100
 *   type add align T N K ldy ldx ldw  eight words of the algorithm, in hexadecimal
 *
 * Fields are separated by tabs. T stands for all numbers of rows that are rounded up to it. A file
 * holds for any device of its kind, so machines can share one. A caller must let the library check
 * an algorithm from the file before it uses it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/linkage.h"

C_BEGIN

enum { CHOICE_KEY = 9, CHOICE_WORDS = 8 };
struct gemm_choice {
    uint64_t key[CHOICE_KEY];
    uint64_t algo[CHOICE_WORDS];
    int state;   /* 0: from the file, unchecked; 1: first guess; 2: timed; 3: a guess that was not
                  * timed; -1: none exists */
    size_t rows; /* rows with which it was last checked, among those that share it */
    int used;    /* 1: it has run, and the digest of the process counts it */
};
struct choices {
    struct gemm_choice *at;
    size_t n, room;
};

/* The file for a device and a version of the library, in an existing folder:
 * $XDG_CACHE_HOME/crossover/gemm-DEVICE-VERSION.tsv, or below ~/.cache. NULL: there is no place.
 * The caller frees it. */
char *choices_path(const char *device, size_t version);

/* NULL: the table has no such key. */
struct gemm_choice *choices_find(const struct choices *choices, const uint64_t key[CHOICE_KEY]);
/* Adds an entry, zero except for the key. The pointer is valid until the next one is added. */
struct gemm_choice *choices_add(struct choices *choices, const uint64_t key[CHOICE_KEY]);
void choices_free(struct choices *choices);

/* A hash of key and algorithm. */
uint64_t choices_hash(const struct gemm_choice *choice);

/* Adds the lines of a file; a missing file has none. -1: EXIT_BAD_DATA if it has another form or is
 * another library's; then nothing is added. */
int choices_read(struct choices *choices, const char *path, const char *library, struct err *e);
/* Writes all entries to a temporary file and renames it. A failure is ignored. */
void choices_write(const struct choices *choices, const char *path, const char *library);

C_END
