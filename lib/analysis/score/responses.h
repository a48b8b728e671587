/* responses.h - generations that are scored against the references of their prompts: which of them
 * count, their configuration, and their scores, kept for its summary.
 *
 * Scored are timed records with status ok, each point, workload, id and seed once, up to the first
 * stop token. Several answers to one prompt (other seeds) count as one prompt: its score is the
 * mean of its answers, each weighted by `copies`. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/cli/log.h"
#include "lib/base/err.h"
#include "lib/base/places.h"

struct response_group { /* one configuration and workload */
    json_t *about;      /* the settings of its records; owned */
    double *v;          /* [n][width]: scores of answers; after responses_finish of prompts */
    uint32_t *prompt, *copies; /* [n]: the prompt of each answer; how often the answer was given */
    size_t n, cap;
    uint32_t at, times; /* prompt and copies of the current response */
    int64_t unscored;   /* answers of random weights */
    unsigned char *met; /* [cap_met]: one bit for each place in `prompts`: already scored */
    size_t cap_met;
};
struct responses {
    const char *wanted; /* field with the reference ("answer"); set by the caller */
    size_t width;       /* scores of a response; set by the caller */
    json_t *also;       /* fields of all quality records, as the judge; the caller's, or NULL */
    struct response_group *group;
    size_t n, cap;
    struct places index;   /* point and workload -> place in group */
    struct places prompts; /* id and seed */
    struct places ids;     /* id alone */
    struct buf key;
    int64_t none, repeats, not_ok;
};
struct response {
    struct response_group *group; /* valid until the next responses_take */
    const char *text;
    const json_t *wanted;
    int random; /* 1: random weights: no score, and perhaps no text */
};

/* 2: *of is to be scored; 1: skipped and counted; 0: not a generation; -1: EXIT_BAD_DATA. */
int responses_take(struct responses *responses, const json_t *record, struct response *of,
                   struct err *e);
/* The place [width] for the scores of the current response. */
double *responses_keep(const struct responses *responses, struct response_group *group);
/* The number of references of the response. -1: one of them is not a text. */
int64_t responses_wanted(const struct response *of, struct err *e);
const char *responses_wanted_at(const struct response *of, size_t i);
/* Averages the answers of each prompt, sorts the groups and warns about skipped records. */
void responses_finish(struct responses *responses, const struct log *log);
void responses_free(struct responses *responses);

/* Sums of the scores of a group: [RESPONSES_DRAWS][width] for each draw of its texts (stream
 * `seed`), then one row as measured. The caller frees. */
enum { RESPONSES_DRAWS = 2000 };
double *responses_sums(const struct responses *responses, const struct response_group *group,
                       uint64_t seed);
/* The summary record of column `at`: mean over texts with a percentile bootstrap interval. */
json_t *responses_mean(const struct responses *responses, const struct response_group *group,
                       const double *sums, size_t at, const char *metric);
/* The reason why a group has no value. */
const char *responses_why(const struct response_group *group);
