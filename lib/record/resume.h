/* resume.h - the work file of a run: what an interrupted process leaves to the next one.
 *
 * A tool that opens its output with rec_open_work writes each record to the temporary file beside
 * it, whole or not at all. The next process with the same work finds them there. It goes through
 * its own work from the start and, instead of doing a piece again, takes over the records of it:
 *
 *     rec_kept(&w), rec_keep(&w, &e)     one that cannot be made again (it has times)
 *     rec_write, rec_error, rec_pass     one that can: it must be the same, byte for byte, and is
 *                                        not written twice
 *
 * Same work: the `meta` records agree in all but the start and how much is said on standard error.
 * A last line without line feed is cut off, and so are an `end` and the fatal error record with
 * which a process died. A damaged line before the last is EXIT_BAD_DATA: nobody knows what it was.
 */
#ifndef RECORD_RESUME_H
#define RECORD_RESUME_H

#include "lib/base/buf.h"
#include "lib/base/log.h"
#include "lib/base/out.h"
#include "lib/record/rec.h"

#define RESUME_OPTION(to)                                                                       \
    {"fresh", 0, OPT_FLAG, &(to),                                                               \
     .help = "with -o: start anew, whatever an interrupted process left"}
#define RESUME_NOTES                                                                            \
    "With -o FILE what is finished outlives the process in .FILE.tmp, however it ends; the same\n" \
    "command goes on behind it, with the records of a run that was not interrupted, but for\n"   \
    "times. With other words, model, machine or input it starts anew, and says so.\n"

/* What a tool wants of a work file that is there. */
struct rec_wish {
    const struct log *log; /* told what is kept, or why nothing is */
    int fresh;             /* 1: start anew */
    const char *whole;     /* why the records must all be of one process, or NULL: they need not */
};
/* rec_open with a work file. Without one (standard output, a device) it is rec_open. A process that
 * dies in err_machine leaves {"kind":"error", ..., "fatal":true} in the file, synced. */
int rec_open_work(struct rec_writer *w, const struct common *c, const struct rec_wish *wish,
                  const char *tool, int argc, char **argv, json_t *extra, struct err *e);

int64_t rec_kept_left(const struct rec_writer *w);  /* records that were kept and not taken over */
const json_t *rec_kept(struct rec_writer *w);       /* the next of them, borrowed; NULL: none */
/* rec_kept, if that is of this kind and has the id of the record `of`; else NULL. */
const json_t *rec_kept_of(struct rec_writer *w, const char *kind, const json_t *of);
int rec_keep(struct rec_writer *w, struct err *e);  /* takes it over */
int rec_drop_kept(struct rec_writer *w, struct err *e); /* cuts off those that are left */
/* 1: what rec_abandon leaves can be resumed. */
int rec_lasts(const struct rec_writer *w);
/* After a batch: what was written is on the medium, if the last time is a second ago. */
int rec_sync(struct rec_writer *w, struct err *e);
/* What was written up to here is known to be good / what came since is not, and is cut off. */
void rec_mark(struct rec_writer *w);
void rec_revert(struct rec_writer *w);
/* A number as it is read back from a record. */
double rec_as_written(double value);
/* [{path, sha256}], or NULL: one is no regular file (or there is none: standard input). -1: *e. */
int rec_inputs(const char *const *paths, size_t n, json_t **list, struct err *e);

/* ---- for rec.c ---- */

/* Opens the output and finds what can be kept. *r NULL: there is no work file. */
int resume_open(struct resume **r, struct out *o, const struct common *c, const json_t *meta,
                const struct rec_wish *wish, struct err *e);
int resume_goes_on(const struct resume *r);              /* 1: records are kept, after their meta */
int resume_went_on(const struct resume *r); /* 1: some were taken over */
void resume_add_meta(const struct resume *r, struct hash *h); /* the line of that meta */
/* The next kept record must be this line (with its line feed). Takes it over. */
int resume_match(struct resume *r, const struct buf *line, struct err *e);
void resume_free(struct resume *r);

#endif
