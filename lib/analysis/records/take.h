/* take.h - the reading loop of the tools that reduce records. A bad line becomes an error record,
 * and reading continues; unknown kinds pass through; failures are counted; repeated records are
 * left out (repeats.h). */
#pragma once

#include "lib/base/cli/log.h"
#include "lib/record/rec.h"

/* The option --max-failed, which all these tools have, for their tables of options. */
#define TAKE_OPTION(to)                                                                         \
    {"max-failed", 0, OPT_INT, &(to), 0, 1e15, .arg = "N",                                      \
     .help = "exit 0 if at most N records failed (0), else 1; exit 65 if no record is good or "  \
             "the input was cut",                                                                \
     .rare = 1}

struct take {
    int64_t taken;  /* records that the tool used */
    int64_t failed; /* error records of the input, and bad lines and records */
    int64_t bad;    /* bad lines and records: malformed or unable */
    int64_t unable; /* valid records that are too large for this tool or its memory */
    int unsound;    /* 1: the input was cut or edited, or has two answers in one place */
    int64_t repeats; /* repeated records that were left out */
    /* Set by the caller: */
    int per_run;      /* 1: the same record in two runs is not a repeat (a meta or parent record
                       * begins a run), for tools that read several machines */
    const char *also; /* one more kind that this tool takes; NULL: none */
};
/* Takes one record (borrowed). Returns 1 if the record was used, 0 if the tool does not need it, -1
 * with *e filled: EXIT_BAD_DATA if it is malformed, EXIT_FAILED_RECORDS if it is too large for this
 * tool; any other code ends the tool. */
typedef int take_fn(void *ctx, const json_t *record, struct err *e);

/* Reads to the end or until `limit` records (0: all) were used. A malformed record is written to
 * `out` as an error record (rec_bad). The first REC_BAD_SAID of these are also logged, at every log
 * level. Returns -1 if nothing more can be read or written, or if a point has two origins
 * (identity.h). */
int take_all(struct take *take, struct rec_reader *in, struct rec_writer *out,
             const struct log *log, int64_t limit, take_fn *fn, void *ctx, struct err *e);

/* Logs the number of repeats. Returns the exit code by --max-failed: 0; 1 if some records failed;
 * 65 if no record is good, or if the input was cut or edited. */
int take_verdict(const struct take *take, const struct log *log, int64_t max_failed);
