/* commits.h - writes the trace of --trace: one record of kind `commit` for each pass and prompt
 * that changed a slot, in a stream of its own. */
#pragma once

#include <jansson.h>

#include "lib/decode/observer.h"
#include "lib/record/rec.h"

struct commits {
    struct rec_writer out;
    int writing;
    struct err err;      /* the first failed write */
};

/* Opens the stream at `path`, with the options of the run. extra: members of its meta record;
 * borrowed. */
int commits_open(struct commits *commits, const struct common *of_run, const char *path,
                 const char *tool, int argc, char **argv, json_t *extra, struct err *e);
/* Writes a record if the pass changed a slot. about: config, point, block_length, slot_count and
 * batch_id for the record; borrowed. */
void commits_put(struct commits *commits, const char *id, json_t *about,
                 const struct observed *observed);
/* -1: a write has failed; *e = commits->err. */
int commits_check(const struct commits *commits, struct err *e);
/* status: as for rec_close; NULL: discards the stream. */
int commits_close(struct commits *commits, const char *status, struct err *e);
