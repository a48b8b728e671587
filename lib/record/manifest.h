/* manifest.h - the list of the files of a bundle, with their hashes, as `sha256sum -c` reads it.
 *
 *     # sealed by bundle; sha256sum -c reads it
 *     # outside HEX  PATH          what records were made from and what is not in the bundle
 *     HEX  NAME                    a file; names in order, each once
 *
 * A name is a path below one folder on any system: printable ASCII, no empty part, no "..". One
 * that is not is never accepted, so whoever opens names of a manifest stays below that folder.
 */
#ifndef RECORD_MANIFEST_H
#define RECORD_MANIFEST_H

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

void manifest_start(struct manifest *m);
void manifest_free(struct manifest *m);
/* -1 (EXIT_BAD_DATA): not a name as above, or MANIFEST_NAME itself. */
int manifest_check_name(const char *name, struct err *e);
/* Adds a file, its hash still empty. -1: its name, or more than MANIFEST_FILES. */
int manifest_add(struct manifest *m, const char *name, struct err *e);
/* Puts the names in order, each once. */
void manifest_sort(struct manifest *m);
void manifest_print(const struct manifest *m, struct buf *text);
/* Reads what manifest_print wrote; the text is changed. -1 (EXIT_BAD_DATA): another text. */
int manifest_parse(struct manifest *m, struct buf *text, struct err *e);

#endif
