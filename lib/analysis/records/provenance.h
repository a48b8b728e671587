/* provenance.h - the machine and the file of a record, where records of several are read together.
 * A record does not name them itself: the meta record before it does, or the parent record of the
 * stream that it was made from.
 */
#ifndef ANALYSIS_RECORDS_PROVENANCE_H
#define ANALYSIS_RECORDS_PROVENANCE_H

#include <jansson.h>

struct provenance {
    char *machine; /* "AMD EPYC (Zen 5), 2 cores (668227795c92)"; owned; NULL: not said yet */
};
/* A copy of the record, marked with the machine and with the file of `where` ("FILE:LINE"); a meta
 * or parent record begins another machine. The caller's reference. */
json_t *provenance_mark(struct provenance *o, const json_t *record, const char *where);
void provenance_free(struct provenance *o);
/* Marks a record as another one is marked. */
void provenance_copy(json_t *to, const json_t *from);

/* The machine of a marked record; NULL: it is not marked. Borrowed. */
const char *provenance_machine(const json_t *record);
/* 1: both are of one machine, of one file, or neither is marked. */
int provenance_same_machine(const json_t *a, const json_t *b);
int provenance_same_file(const json_t *a, const json_t *b);

#endif
