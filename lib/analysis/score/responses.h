/* responses.h - generations that are held against what their prompts ask for: which of them count,
 * which configuration they belong to, and their scores, kept for its summary.
 *
 * Scored are timed records with status ok, each point, workload, id and seed once, up to the first
 * stop token. A prompt that was answered several times (other seeds) is one prompt: its scores are
 * the mean of its answers, each as often as it was given (`copies`).
 */
#ifndef ANALYSIS_SCORE_RESPONSES_H
#define ANALYSIS_SCORE_RESPONSES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/cli/log.h"
#include "lib/base/err.h"
#include "lib/base/places.h"

struct response_group { /* one configuration and workload */
    json_t *about;      /* what its records carry; owned */
    struct buf said;    /* the same as text: quality_said */
    double *v;          /* [n][width]: of answers, after responses_finish of prompts */
    uint32_t *prompt, *copies; /* [n]: which prompt each answers, and how often it was given */
    size_t n, cap;
    uint32_t at, times; /* prompt and copies of the response at hand */
    int64_t unscored;   /* random weights */
    double *sums;       /* responses_sums; NULL: not yet, or not any more */
    size_t whole;       /* the columns from here on are whole numbers: bootstrap_whole */
    unsigned char *met; /* [cap_met]: a bit for each place in `prompts` that it was scored at */
    size_t cap_met;
};
struct responses {
    const char *wanted; /* the field held against, "answer": set by the caller, as is width */
    size_t width;       /* numbers a response is scored with */
    struct response_group *group;
    size_t n, cap;
    struct places index;   /* point and workload: the place in group */
    struct places prompts; /* id and seed */
    struct places ids;     /* id alone */
    struct buf key;
    int64_t none, repeats, not_ok;
};
struct response {
    struct response_group *group; /* until the next responses_take */
    const char *text;
    const json_t *wanted;
    int random; /* weights are: there is no score, and perhaps no text */
};

/* 2: *of is to be scored; 1: passed over and counted; 0: no generation; -1: EXIT_BAD_DATA. */
int responses_take(struct responses *s, const json_t *record, struct response *of, struct err *e);
/* Room for the scores of a response: [width]. */
double *responses_keep(const struct responses *s, struct response_group *g);
/* How many wanted texts the response has: one, or those of a list. -1: one is no text. */
int64_t responses_wanted(const struct response *of, struct err *e);
const char *responses_wanted_at(const struct response *of, size_t i);
/* Makes one row of all answers to a prompt, puts the groups into the order of a report and says
 * what was passed over. */
void responses_finish(struct responses *s, const struct log *log);
void responses_free(struct responses *s);

/* The scores of a group added up: [RESPONSES_DRAWS][width] in each draw of its texts (stream
 * `seed`), and behind them once, as measured. Borrowed, until those of another group are asked for:
 * of groups in their order, because those with as many texts are drawn together. */
enum { RESPONSES_DRAWS = 2000 };
const double *responses_sums(struct responses *s, size_t group, uint64_t seed);
/* The summary of column `at`, a mean over texts, with a percentile bootstrap. */
json_t *responses_mean(const struct responses *s, const struct response_group *g,
                       const double *sums, size_t at, const char *metric);
/* Why a group has no value. */
const char *responses_why(const struct response_group *g);

#endif
