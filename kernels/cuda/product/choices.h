/* choices.h - a table of the library's fastest algorithm for each shape of a product. The table is
 * also stored in a file. Its first line names the library and version, each further line is a
 * shape:
 *
 *   cuBLASLt 130100
 *   type add align T N K ldy ldx ldw  eight words of the algorithm, in hexadecimal
 *
 * Fields are separated by tabs. T stands for all numbers of rows that gemm.cu rounds up to T. A
 * file is valid for any device of one kind, so machines can share it. A caller must let the library
 * check an algorithm from the file before it uses it. */
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
    int state;   /* 0: from the file, unchecked, or new; 1: the library's first proposal, to be
                  * timed; 2: timed; 3: a proposal that is not timed; -1: no algorithm exists */
    size_t rows; /* number of rows for which the choice was last checked */
    int used;    /* > 0: the algorithm has run, and the digest of the process includes it */
};
struct choices {
    struct gemm_choice *at;
    size_t n, room;
};

/* The file for a device and a version of the library, in an existing folder:
 * $XDG_CACHE_HOME/crossover/gemm-DEVICE-VERSION.tsv, or below ~/.cache. Returns NULL if there is no
 * such folder. The caller frees the result. */
char *choices_path(const char *device, size_t version);

/* Returns NULL if the table has no such key. */
struct gemm_choice *choices_find(const struct choices *choices, const uint64_t key[CHOICE_KEY]);
/* Adds an entry, zero except for the key. The pointer is valid until the next one is added. */
struct gemm_choice *choices_add(struct choices *choices, const uint64_t key[CHOICE_KEY]);
void choices_free(struct choices *choices);

/* A hash of key and algorithm. */
uint64_t choices_hash(const struct gemm_choice *choice);

/* Adds the entries of a file; a missing file has none. Returns -1 with EXIT_BAD_DATA if the file
 * has another form or belongs to another library; then nothing is added. */
int choices_read(struct choices *choices, const char *path, const char *library, struct err *e);
/* Writes the timed and the unchecked entries to a temporary file and renames it. A failure is
 * ignored. */
void choices_write(const struct choices *choices, const char *path, const char *library);

C_END
