/* manifest.h - the list of the files of a bundle, with their hashes, as `sha256sum -c` reads it.
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
/* -1 (EXIT_BAD_DATA): not a valid name, or MANIFEST_NAME itself. */
int manifest_check_name(const char *name, struct err *e);
/* Adds a file with an empty hash. -1: bad name, or more than MANIFEST_FILES files. */
int manifest_add(struct manifest *manifest, const char *name, struct err *e);
/* Sorts the names and drops repeats. */
void manifest_sort(struct manifest *manifest);
void manifest_print(const struct manifest *manifest, struct buf *text);
/* Reads what manifest_print wrote; the parser overwrites `text`. -1 (EXIT_BAD_DATA): not such a
 * text. */
int manifest_parse(struct manifest *manifest, struct buf *text, struct err *e);
