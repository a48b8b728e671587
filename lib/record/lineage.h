/* lineage.h - which records were made from which: the hashes that streams have and the hashes that
 * they name.
 *
 * `meta` and `end` records name what was read as {path, sha256}: of a file, or of a stream, that is
 * the hash in its own `end`. A file that was altered has another hash than its children name.
 *
 *     struct lineage *l = lineage_new();
 *     lineage_file(l, hex);                                     of every file
 *     lineage_add(l, "metrics.ndjson", bytes, n, &e) ...        of every file of records, in pieces
 *     lineage_end(l, "metrics.ndjson", &e);
 *     json_t *missing = lineage_missing(l);
 */
#ifndef RECORD_LINEAGE_H
#define RECORD_LINEAGE_H

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"

struct lineage;

struct lineage *lineage_new(void);
/* A file with this SHA-256 is there. */
void lineage_file(struct lineage *l, const char hex[65]);
/* The next bytes of a file of records. -1 (EXIT_BAD_DATA): a line of more than 64 MiB, a `meta`,
 * `parent` or `end` that is no JSON, an `end` whose hash is not that of its stream. */
int lineage_add(struct lineage *l, const char *name, const char *bytes, size_t n, struct err *e);
/* It ended; the next lineage_add begins another one. -1: its stream has no `end`. */
int lineage_end(struct lineage *l, const char *name, struct err *e);
/* What was named and is not there: hash -> {path, where: the stream that names it}, sorted.
 * Borrowed from l, renewed by the next call. */
const json_t *lineage_missing(struct lineage *l);
void lineage_free(struct lineage *l);

#endif
