/* quick-run.h - the parser at work, for the two files of quick.h. */
#ifndef RECORD_QUICK_RUN_H
#define RECORD_QUICK_RUN_H

#include <jansson.h>

#include "lib/base/buf.h"

struct quick_last;

enum { QUICK_KEY = 128 }; /* a name is shorter */

struct quick {
    const char *begin, *p, *end;
    int depth;
    struct buf text;  /* a text without its escapes */
    json_t **numbers; /* [QUICK_NUMBERS], met before; or NULL */
    /* Called for each member of the outermost object, at its value; `at`: where it begins, `all`:
     * the members before. 0: it is to be read; 1: it was; -1: it is not ordinary. Or NULL. */
    int (*note)(struct quick *q, const char *at, const char *name, const json_t *all);
    struct quick_last *to; /* of note */
};

void quick_skip_space(struct quick *q);
int quick_next_is(struct quick *q, char c); /* 1: c is next, behind white space; it is passed */
json_t *quick_value(struct quick *q);       /* NULL: it is not ordinary */
json_t *quick_whole(struct quick *q);       /* an object, all of the bytes */

#endif
