/* take.h - the reading loop of the tools that reduce records: bad lines become error records and
 * the stream goes on, kinds that nobody knows pass through, failures are counted, and no record
 * counts twice (repeats.h).
 */
#ifndef RECORD_TAKE_H
#define RECORD_TAKE_H

#include "lib/base/cli/log.h"
#include "lib/record/rec.h"

/* The option that they all have, for their tables. */
#define TAKE_OPTION(to)                                                                            \
    {"max-failed", 0, OPT_INT, &(to), 0, 1e15, .arg = "N",                                         \
     .help = "exit with 0 if at most N records failed (0); more: 1; no good record, or a "         \
             "cut input: 65", .rare = 1}

struct take {
    int64_t taken;  /* records that the tool used */
    int64_t failed; /* error records met, malformed lines and records */
    int64_t bad;    /* the malformed ones among them */
    int64_t unable; /* among them too: sound, but too much for this tool or its memory */
    int unsound;    /* the input as a whole is: cut, edited, or two answers in one place */
    int64_t repeats; /* identical records that came again and were left out */
    int anew;        /* the caller's: places begin anew with each meta or parent record, for tools
                      * that read several machines together */
    const char *also; /* the caller's: a kind that it takes and others pass; NULL: none */
};
/* One record (borrowed): 1 used, 0 not of interest, -1 malformed (*e filled, EXIT_BAD_DATA) or too
 * much for this tool (EXIT_FAILED_RECORDS); after any other code the tool ends. */
typedef int take_fn(void *ctx, const json_t *record, struct err *e);

/* Reads to the end or until `limit` records (0: all) were used. A malformed one is written to `out`
 * as an error record (rec_bad), and the first REC_BAD_SAID of them are said in `log`, whatever its
 * level. -1: nothing more can be read or written. */
int take_all(struct take *t, struct rec_reader *in, struct rec_writer *out, const struct log *log,
             int64_t limit, take_fn *fn, void *ctx, struct err *e);

/* Notes the repeats. Exit code after --max-failed: 0; 1, some records failed; 65, none is sound, or
 * the input as a whole is not. */
int take_verdict(const struct take *t, const struct log *log, int64_t max_failed);

#endif
