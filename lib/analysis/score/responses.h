/* responses.h - selects the generations that are scored against the references of their prompts,
 * groups them by configuration, and keeps their scores for the summary of the configuration.
 *
 * Timed records with status ok are scored, up to the first stop token. Each point, workload, id and
 * seed is scored once. Several answers to one prompt (other seeds) count as one prompt. The score
 * of a prompt is the mean over its answers, each weighted by `copies`. */
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
    double *v;          /* [n][width]: scores of answers; after responses_finish(): of prompts */
    uint32_t *prompt, *copies; /* [n]: the prompt of each answer; how often the answer was given */
    size_t n, cap;
    uint32_t at, times; /* prompt and copies of the current response */
    int64_t unscored;   /* answers of random weights */
    unsigned char *met; /* [cap_met]: a bit for each place in `prompts`; 1: already scored */
    size_t cap_met;
};
struct responses {
    const char *wanted; /* field with the reference ("answer"); set by the caller */
    size_t width;       /* number of scores of a response; set by the caller */
    json_t *also;       /* fields for all quality records, such as the judge; borrowed; NULL */
    struct response_group *group;
    size_t n, cap;
    struct places index;   /* point and workload -> place in group */
    struct places prompts; /* id and seed */
    struct places ids;     /* id alone */
    struct buf key;
    int64_t none, repeats, not_ok; /* skipped records: no reference; scored before; not timed, or
                                      status not ok */
};
struct response {
    struct response_group *group; /* valid until the next responses_take */
    const char *text;
    const json_t *wanted; /* the reference or references; borrowed from the record */
    int random; /* 1: random weights: there is no score, and perhaps no text */
};

/* Takes a record. 2: *of is set and must be scored; 1: the record is skipped and counted; 0: it is
 * not a generation; -1: EXIT_BAD_DATA. */
int responses_take(struct responses *responses, const json_t *record, struct response *of,
                   struct err *e);
/* Adds a row for the current response and returns it; the caller writes its scores there
 * [width]. */
double *responses_keep(const struct responses *responses, struct response_group *group);
/* The number of references of the response. -1: there is none, or one is not a text. */
int64_t responses_wanted(const struct response *of, struct err *e);
/* Reference i of the response; borrowed. */
const char *responses_wanted_at(const struct response *of, size_t i);
/* Averages the answers of each prompt, sorts the groups and warns about skipped records. */
void responses_finish(struct responses *responses, const struct log *log);
void responses_free(struct responses *responses);

/* Sums of the scores of a group: a row [width] for each of RESPONSES_DRAWS draws of its prompts
 * (stream `seed`), then a row as measured. The caller frees. */
enum { RESPONSES_DRAWS = 2000 };
double *responses_sums(const struct responses *responses, const struct response_group *group,
                       uint64_t seed);
/* The summary record of score number `at`: the mean over prompts with a percentile bootstrap
 * interval, from the sums of responses_sums(). */
json_t *responses_mean(const struct responses *responses, const struct response_group *group,
                       const double *sums, size_t at, const char *metric);
/* The reason why a group has no value. */
const char *responses_why(const struct response_group *group);
