/* source.h - marks each record with its machine and its file, for tools that read records of
 * several machines or files together. A record does not name its machine: the meta record before it
 * does, or the parent record of the stream from which it was made. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

struct source {
    char *machine; /* of the next records: "AMD EPYC (Zen 5), 2 cores (668227795c92)"; NULL:
                      unknown so far; owned */
    char *first;   /* the machine of the first record that counts, for source_single(); owned */
};
/* A copy of the record, marked with its machine and with the file of `where` ("FILE:LINE"). A meta
 * or parent record sets the machine of the records after it. The caller's reference. */
json_t *source_mark(struct source *source, const json_t *record, const char *where);
/* Notes the machine of the next records: the machine of a meta record, or of a parent record whose
 * tool is a generator. A meta or end record without a machine makes the machine unknown. A record
 * counts if `counts` is 1. Returns -1 (EXIT_BAD_DATA) if this record counts and comes from another
 * machine than the first record that counts. An unknown machine is accepted. */
int source_single(struct source *source, const json_t *record, int counts, struct err *e);
void source_free(struct source *source);
/* 1: the metric depends on the machine, as times, rates and energy do; bytes and counts do not. */
int source_is_of_machine(const char *metric);
/* 1: a record of times, or of such a metric, that this engine measured. */
int source_is_measured(const json_t *record);
/* Copies the marks of the record `from` to the record `to`. */
void source_copy(json_t *to, const json_t *from);

/* The machine of a record; NULL: it is not marked. Borrowed. */
const char *source_machine(const json_t *record);
/* 1: both records have the same mark of their machine, or of their file; or neither has one. */
int source_same_machine(const json_t *a, const json_t *b);
int source_same_file(const json_t *a, const json_t *b);
