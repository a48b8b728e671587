/* manifest.h - the list of the files of a bundle and their hashes, in the form of `sha256sum -c`.
 *
 *     # sealed by bundle; sha256sum -c reads it
 *     # outside HEX  PATH          an input of the records that is not in the bundle
 *     HEX  NAME                    a file; names ascend, each once
 *
 * A name is a path below one folder on any system: printable ASCII, no empty part, no "..". Other
 * names are refused, so a program that opens names of a manifest stays below that folder. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

#define MANIFEST_NAME "MANIFEST.sha256"
enum { MANIFEST_FILES = 100000, MANIFEST_BYTES = 64 << 20 };

struct manifest_file {
    char *name;
    char hex[65];
};
struct manifest {
    struct manifest_file *v;
    size_t n, cap;
    json_t *outside; /* hash -> path */
};

void manifest_start(struct manifest *manifest);
void manifest_free(struct manifest *manifest);
/* Returns -1 (EXIT_BAD_DATA) if the name is not valid, or is MANIFEST_NAME itself. */
int manifest_check_name(const char *name, struct err *e);
/* Adds a file with an empty hash. Returns -1 for a bad name, or for more than MANIFEST_FILES
 * files. */
int manifest_add(struct manifest *manifest, const char *name, struct err *e);
/* Sorts the names and drops repeats. */
void manifest_sort(struct manifest *manifest);
void manifest_print(const struct manifest *manifest, struct buf *text);
/* Reads a text that manifest_print() wrote; overwrites `text`. Returns -1 (EXIT_BAD_DATA) if it is
 * no such text. */
int manifest_parse(struct manifest *manifest, struct buf *text, struct err *e);
