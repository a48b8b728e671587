/* commits.h - a stream of its own with what each pass made final (--trace): records of kind
 * `commit`, one for each pass and prompt that changed a slot. */
#ifndef RUN_WATCH_COMMITS_H
#define RUN_WATCH_COMMITS_H

#include <jansson.h>

#include "lib/decode/observer.h"
#include "lib/record/rec.h"

struct commits {
    struct rec_writer out;
    int writing;
    struct err err;      /* the first thing that could not be written */
};

/* Writes to `path`, else as the records of the run; `extra` of their meta is borrowed. */
int commits_open(struct commits *c, const struct common *of_run, const char *path,
                 const char *tool, int argc, char **argv, json_t *extra, struct err *e);
/* `about`: config, point, block_length and slot_count of the record, borrowed. */
void commits_put(struct commits *c, const char *id, json_t *about, const struct observed *o);
/* -1: c->err is due, and is *e now. */
int commits_check(const struct commits *c, struct err *e);
/* status as of rec_close; NULL: the stream is dropped. */
int commits_close(struct commits *c, const char *status, struct err *e);

#endif
