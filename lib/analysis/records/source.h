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
/* Follows the machines of a stream: its meta record, then the parent records of generators. -1
 * (EXIT_BAD_DATA): the record counts (1), and its machine is not that of the first record that
 * counts. An unknown machine is accepted. */
int source_single(struct source *source, const json_t *record, int counts, struct err *e);
void source_free(struct source *source);
/* Copies the marks of the record `from` to the record `to`. */
void source_copy(json_t *to, const json_t *from);

/* The machine of a record; NULL: it is not marked. Borrowed. */
const char *source_machine(const json_t *record);
/* 1: both records have the same mark of their machine, or of their file; or neither has one. */
int source_same_machine(const json_t *a, const json_t *b);
int source_same_file(const json_t *a, const json_t *b);
