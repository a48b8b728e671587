/* broken.h - the broken records of an input, for the tools that read all records into memory. The
 * first ones are named with file and line, all of them are counted. */
#pragma once

#include <stdint.h>

#include "lib/base/cli/log.h"
#include "lib/record/rec.h"

struct broken { /* begins as zeroes */
    int64_t n;
    int unsound; /* 1: two different records have one place */
    char said[REC_BAD_SAID][sizeof(((struct err *)0)->text)]; /* messages of the first ones */
};
/* Puts `where` ("FILE:LINE") in front of the message of *bad, unless it stands there. */
void broken_place(struct err *bad, const char *where);
/* Notes a broken record. */
void broken_add(struct broken *broken, const struct err *bad, const char *where);
/* Logs the records. Returns the exit code: 0; 1 if there are any; 65 if two different records have
 * one place. */
int broken_verdict(const struct broken *broken, const struct log *log);
