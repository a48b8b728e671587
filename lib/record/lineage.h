/* lineage.h - finds inputs that are missing: it collects the hashes of files and streams, and the
 * hashes that streams name as their inputs.
 *
 * `meta` and `end` records name each input as {path, sha256}. The hash is that of a file, or, for a
 * stream of records, the hash in its `end`. The hash of an altered file differs from the hash that
 * the streams made from it name.
 *
 *     struct lineage *l = lineage_new();
 *     lineage_file(l, hex);                                     for every file
 *     lineage_add(l, "metrics.ndjson", bytes, n, &e) ...        for every file of records
 *     lineage_end(l, "metrics.ndjson", &e);
 *     json_t *missing = lineage_missing(l); */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"

struct lineage;

struct lineage *lineage_new(void);
/* Adds the SHA-256 of a file that is present. */
void lineage_file(struct lineage *lineage, const char hex[65]);
/* Takes the next bytes of a file of records. Returns -1 (EXIT_BAD_DATA) for a line of more than 64
 * MiB, for a `meta`, `parent` or `end` that is not JSON, for a `meta` before the `end` of the last
 * stream, and for an `end` without `meta` or with another hash than its stream. */
int lineage_add(struct lineage *lineage, const char *name, const char *bytes, size_t n,
                struct err *e);
/* Ends the file; the next lineage_add() begins another file. Returns -1 if the stream of the file
 * has no `end`. */
int lineage_end(struct lineage *lineage, const char *name, struct err *e);
/* Returns the inputs that are named but not present: hash -> {path, where: the stream that names
 * the input}, sorted. Borrowed from lineage until the next call. */
const json_t *lineage_missing(struct lineage *lineage);
void lineage_free(struct lineage *lineage);
