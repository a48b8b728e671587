/* resume.h - the work file of a run: what an interrupted process leaves to the next one.
 *
 * A tool that opens its output with rec_open_work (rec.h) writes each record to the temporary file
 * beside it, whole or not at all. The next process with the same work finds them there. It goes
 * through its own work from the start and, instead of doing a piece again, takes over its records.
 *
 * Same work: the `meta` records agree in all but the start and how much is said on standard error.
 * A last line without line feed is cut off, and so are an `end` and the fatal error record with
 * which a process died. A damaged line before the last is EXIT_BAD_DATA, for nobody knows what it
 * was, and so is one that was changed since it was written: .NAME.tmp.sha256 holds the running
 * SHA-256 after each line.
 */
#ifndef RECORD_RESUME_H
#define RECORD_RESUME_H

#include <jansson.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/base/out.h"
#include "lib/record/kept.h"

#define RESUME_OPTION(to)                                                                          \
    {"fresh", 0, OPT_FLAG, &(to),                                                                  \
     .help = "with -o: start anew, even if an interrupted run can be continued", .rare = 1}
#define RESUME_NOTES                                                                               \
    "With -o FILE what is finished outlives the process in .FILE.tmp, however it\n"             \
    "ends; the same command goes on behind it, with the records of a run that was not\n"        \
    "interrupted, but for times. With other words, model, machine or input it starts\n"         \
    "anew, and says so; a work file that was changed by hand is refused.\n"

/* What a tool wants of a work file that is there. */
struct resume_wish {
    const struct log *log; /* told what is kept, or why nothing is */
    int fresh;             /* 1: start anew */
    const char *whole;     /* why the records must all be of one process, or NULL: they need not */
};
struct resume; /* one work file, open for this process alone */

/* Opens the output and finds what can be kept. *r NULL: there is no work file. */
int resume_open(struct resume **r, struct out *o, const struct common *c, const json_t *meta,
                const struct resume_wish *wish, struct err *e);
void resume_free(struct resume *r);
/* resume_free when nobody goes on. The file to remove once the output has its name, or is gone; the
 * caller's, or NULL. */
char *resume_end(struct resume *r);

/* In all that follows r may be NULL: no work file, nothing kept. */
int resume_goes_on(const struct resume *r);  /* 1: records are kept, after their meta */
int resume_went_on(const struct resume *r);  /* 1: some were taken over */
int resume_is_lasting(const struct resume *r); /* 1: another process may go on */
int64_t resume_left(const struct resume *r); /* records that were kept and not taken over */
const struct kept *resume_next(struct resume *r); /* the next of them, borrowed; NULL: none */
void resume_take(struct resume *r); /* takes it over */
/* The next kept record must be this line (with its line feed). Takes it over. */
int resume_match(struct resume *r, const struct buf *line, struct err *e);
int resume_drop(struct resume *r, struct err *e); /* cuts off those that are left */
/* When none is left: *h, the caller's, becomes the hash of meta and all that was taken over. Later
 * calls change nothing. */
int resume_hash(struct resume *r, struct hash **h, struct err *e);
/* Before a line is written: the hash up to its end, so that the next process can prove it. */
int resume_seal(struct resume *r, const struct hash *h, struct err *e);
/* What was written is on the medium, if the last time is a second ago. */
int resume_sync(struct resume *r, struct err *e);
/* What was written up to here is known to be good / what came since is not, and is cut off. */
void resume_mark(struct resume *r);
void resume_revert(struct resume *r);

#endif
