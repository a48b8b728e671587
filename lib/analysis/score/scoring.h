/* scoring.h - the main loop of the tools that score responses. It reads generation records, writes
 * the qualities of each response, then the summaries of each configuration.
 *
 * A tool sets the members of struct scoring that stand before `log`, partly from its options, and
 * calls scoring_run(). */
#pragma once

#include "lib/analysis/score/responses.h"
#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/base/cli/progress.h"
#include "lib/record/rec.h"
#include "lib/analysis/records/take.h"

enum { SCORING_WIDTH = 32 };

struct scoring {
    const char *const *metric; /* the names of the first `metrics` numbers of a response */
    size_t metrics;
    int whole;         /* 1: these numbers are integers in records */
    void *ctx;         /* first argument of the functions below */
    int (*load)(void *ctx, struct err *e); /* called before the output is opened; NULL: none */
    /* Sets v[responses.width], the numbers of a response. It is not called for answers of random
     * weights. 1: the response has no value, for the reason `why`; -1: *e */
    int (*score)(void *ctx, const json_t *record, const struct response *of, double *v,
                 struct err *e);
    const char *why;
    /* Writes the summaries of responses.group[group] to `out`. -1: *e */
    int (*summarize)(void *ctx, size_t group, struct err *e);
    struct responses responses; /* the tool sets wanted, width (at most SCORING_WIDTH) and also */
    struct common common;
    int64_t max_failed;

    struct log log;
    struct rec_writer out;
    struct take seen;
    struct progress progress;
};

/* Runs the tool and returns its exit code; -1: *e. The input files are argv[first..argc-1]. */
int scoring_run(struct scoring *scoring, const char *tool, int argc, char **argv, int first,
                struct err *e);
/* Writes a summary of each metric by responses_mean(), from the sums of responses_sums(). -1:
 * *e. */
int scoring_means(struct scoring *scoring, const struct response_group *group, const double *sums,
                  struct err *e);
