/* source.h - the machine and the file of a record, where records of several are read together.
 * A record does not name them itself: the meta record before it does, or the parent record of the
 * stream that it was made from. */
#pragma once

#include <jansson.h>

struct source {
    char *machine; /* "AMD EPYC (Zen 5), 2 cores (668227795c92)"; owned; NULL: unknown so far */
};
/* A copy of the record, marked with its machine and with the file of `where` ("FILE:LINE"). A meta
 * or parent record sets the machine of the records after it. The caller's reference. */
json_t *source_mark(struct source *source, const json_t *record, const char *where);
void source_free(struct source *source);
/* Copies the marks of a record to another. */
void source_copy(json_t *to, const json_t *from);

/* The machine of a record; NULL: it is not marked. Borrowed. */
const char *source_machine(const json_t *record);
/* 1: the same machine, or the same file, or neither is marked. */
int source_same_machine(const json_t *a, const json_t *b);
int source_same_file(const json_t *a, const json_t *b);
