/* origin.h - which machine and which file a record is of, where several are read together. Records
 * do not say it themselves: the meta record before them does, or the parent record of the stream
 * that they were made of.
 */
#ifndef ANALYSIS_ORIGIN_H
#define ANALYSIS_ORIGIN_H

#include <jansson.h>

struct origin {
    char *machine; /* "AMD EPYC (Zen 5), 2 cores (668227795c92)"; owned; NULL: not said yet */
};
/* A copy of the record, marked with the machine and with the file of `where` ("FILE:LINE"); a meta
 * or parent record begins another machine. The caller's reference. */
json_t *origin_mark(struct origin *o, const json_t *record, const char *where);
void origin_free(struct origin *o);
/* Marks a record as another one is marked. */
void origin_copy(json_t *to, const json_t *from);

/* The machine of a marked record; NULL: it is not marked. Borrowed. */
const char *origin_machine(const json_t *record);
/* 1: both are of one machine, of one file, or neither is marked. */
int origin_same_machine(const json_t *a, const json_t *b);
int origin_same_file(const json_t *a, const json_t *b);

#endif
