/* resume.h - the work file of a run, from which a process resumes interrupted work.
 *
 * A tool that opens its output with rec_open_work (rec.h) writes each finished record to the
 * temporary file of the output. The next process with the same work reads these records, walks
 * through its work from the start, and takes over a record instead of computing it again.
 *
 * Two processes have the same work if their `meta` records agree in everything but the start time,
 * the path of the program and the options for messages on standard error. A last line without line
 * feed is cut off, and so are an `end` and a fatal error record. A damaged or changed line is
 * EXIT_BAD_DATA: .NAME.tmp.sha256 holds the SHA-256 of the file up to each line. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/base/out.h"

#define RESUME_OPTION(to)                                                                       \
    {"fresh", 0, OPT_FLAG, &(to),                                                               \
     .help = "with -o: start anew, even if an interrupted run can be continued", .rare = 1}
#define RESUME_NOTES                                                                               \
    "With -o FILE, finished records are kept in .FILE.tmp, however the process ends.\n"            \
    "The same command continues it. Its records are those of an uninterrupted run,\n"              \
    "except for times. With other options, model, machine or input it starts anew,\n"              \
    "and says so. A work file that was edited is refused.\n"

/* How a tool treats an existing work file. */
struct resume_wish {
    const struct log *log; /* prints how many records are kept, or why none is */
    int fresh;             /* 1: start anew */
    const char *whole;     /* why one process must write all records; NULL: several may */
};
struct resume; /* one work file, open for this process alone */

/* Opens the output and finds the records to keep. *resume NULL: there is no work file. */
int resume_open(struct resume **to, struct out *out, const struct common *common,
                const json_t *meta, const struct resume_wish *wish, struct err *e);
void resume_free(struct resume *resume);
/* resume_free() for a work file that is no longer needed. Returns the path of its sums, or NULL;
 * the caller frees it, and removes that file after the output was renamed or removed. */
char *resume_end(struct resume *resume);

/* In the functions below resume may be NULL: no work file, nothing kept. */
int resume_goes_on(const struct resume *resume);  /* 1: kept records are left to take over */
int resume_went_on(const struct resume *resume);  /* 1: some kept records were taken over */
int resume_is_lasting(const struct resume *resume); /* 1: another process may resume */
int64_t resume_left(const struct resume *resume); /* kept records that are not taken over yet */
const json_t *resume_next(const struct resume *resume); /* borrowed; NULL: none */
/* Returns -1; *e says why resume_next() is NULL though records are left: a read error, or a file
 * that changed. */
int resume_fail(const struct resume *resume, struct err *e);
void resume_take(struct resume *resume); /* takes over the next kept record */
/* Takes over the next kept record, which must be this line (with its line feed). Returns -1 with *e
 * filled if it is another one. */
int resume_match(struct resume *resume, const struct buf *line, struct err *e);
int resume_drop(struct resume *resume, struct err *e); /* cuts the other kept records off */
/* If no kept record is left, *hash (the caller's) becomes the hash of meta and the records that
 * were taken over. Later calls change nothing. Returns -1 if the file was changed since
 * resume_open(). */
int resume_hash(struct resume *resume, struct hash **hash, struct err *e);
/* Writes the sum of the next line, before that line is written. hash: of the file up to the end of
 * that line. */
int resume_seal(struct resume *resume, const struct hash *hash, struct err *e);
/* Syncs the files to disk, at most once a second. */
int resume_sync(struct resume *resume, struct err *e);
/* resume_mark() says that all records so far are good. resume_revert() cuts off the records since
 * the last mark. */
void resume_mark(struct resume *resume);
void resume_revert(struct resume *resume);
