/* doubts.c - see doubts.h. A disturbed batch is run again, so a few disturbed batches raise no
 * doubt. If more than a tenth of the launches or batches were disturbed, the quiet ones are a
 * selection, which is a doubt. The test for drift calls one in twenty steady points drifting, so
 * only more than a quarter of the points is a doubt. Points that do not compete with the headline
 * raise no doubt. */
#include "lib/analysis/verdict/doubts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

static int is_not(const json_t *record, const char *key, const char *wanted)
{
    const char *got = rec_text(record, key);
    return got && strcmp(got, wanted);
}

int doubts_is_failed(const json_t *check)
{
    const json_t *pass = json_object_get(check, "pass");
    return json_is_boolean(pass) ? json_is_false(pass)
                                 : is_not(check, "verdict", "SAME") ||
                                       is_not(check, "handicap", "FOUND");
}

/* Counts the results of `measure --verify` for the answers of a point. */
static void count_answers(struct doubts_fitness *fitness, const json_t *record)
{
    double prompts = rec_number(record, "prompts");
    int drawn = about_is_drawn(record),
        random = json_is_true(json_object_get(record, "weights_random"));
    fitness->unlike += !drawn && json_is_false(json_object_get(record, "deterministic"));
    fitness->cached += rec_number(record, "repeat_ratio") < 0.9;
    fitness->alike += !random && prompts > 3 &&
                      rec_number(record, "distinct_ratio") * prompts < 1.5;
}

/* 1: the point competes with the points of the headline. */
static int competes(const json_t *record, const json_t *headline)
{
    const char *contract = rec_text(headline, "contract");
    double batch = rec_number(headline, "batch"), length = rec_number(headline, "gen_length");
    double of = rec_number(record, "batch"), long_of = about_length(record);
    return !(contract && is_not(record, "contract", contract)) && !(of < batch) && !(of > batch) &&
           !(long_of < length) && !(long_of > length);
}

static void count_cores(struct doubts_fitness *fitness, const json_t *look)
{
    const double share = rec_number(look, "effective_cores") / rec_number(look, "threads");
    if (!(share > 0 && share < 10))
        return;
    fitness->share_least = fitness->share_most > 0 ? fmin(fitness->share_least, share) : share;
    fitness->share_most = fmax(fitness->share_most, share);
}

int doubts_cores_moved(const struct doubts_fitness *fitness)
{
    return fitness->share_least < 0.75 * fitness->share_most;
}

struct doubts_fitness doubts_count(const struct runset *set, const json_t *headline)
{
    struct doubts_fitness fitness = {0};
    const char *cost = rec_text(headline, "cost_metric");
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "fitness"), i, record) {
        int launch = json_object_get(record, "launch") != NULL;
        fitness.launches += launch;
        fitness.unfit += launch && json_is_false(json_object_get(record, "fit"));
        count_cores(&fitness, record);
    }
    json_array_foreach(runset_kind(set, "metric"), i, record) {
        if (is_not(record, "metric", cost ? cost : "e2e_ns") || !competes(record, headline))
            continue;
        int disturbed = json_is_true(json_object_get(record, "disturbed"));
        int64_t tainted = rec_int(record, "tainted", 0), timed = rec_int(record, "timed", 0);
        fitness.points++;
        fitness.disturbed += disturbed;
        fitness.tainted += tainted;
        fitness.batches += disturbed ? tainted : tainted + timed;
        fitness.cold += json_is_false(json_object_get(record, "warmup_steady"));
        fitness.drifts += json_is_false(json_object_get(record, "steady"));
        count_answers(&fitness, record);
    }
    return fitness;
}

__attribute__((format(printf, 2, 3))) static void add(struct doubts *doubts, const char *format,
                                                      ...)
{
    char text[2000];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    MEM_GROW(doubts->v, doubts->n, doubts->cap);
    doubts->v[doubts->n++] = mem_text(text);
}

static void add_checks(struct doubts *doubts, const struct runset *set)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "check"), i, record) {
        const char *text = rec_text(record, "text"), *name = rec_text(record, "check");
        if (!doubts_is_failed(record))
            continue;
        char *clean = display_cleaned(text ? text : name ? name : "", 600);
        add(doubts, "A self-test did not pass: %s.", clean);
        free(clean);
    }
}

static void add_answers(struct doubts *doubts, const struct doubts_fitness *fitness)
{
    if (fitness->unlike)
        add(doubts,
            "At %lld of %lld points repeats of a prompt gave other tokens, although sampling is "
            "off.",
            (long long)fitness->unlike, (long long)fitness->points);
    if (fitness->alike)
        add(doubts, "At %lld of %lld points all prompts have the same answer; the prompts may be "
                    "ignored.",
            (long long)fitness->alike, (long long)fitness->points);
    if (fitness->cached)
        add(doubts, "At %lld of %lld points repeats take less than 0.9 of the time of the first "
                    "answers: something is cached between them.",
            (long long)fitness->cached, (long long)fitness->points);
}

void doubts_find(struct doubts *doubts, const struct runset *set, const json_t *headline)
{
    struct doubts_fitness fitness = doubts_count(set, headline);
    add_checks(doubts, set);
    if (fitness.disturbed)
        add(doubts,
            "At %lld of %lld points other work ran on the machine in every timed batch: their "
            "values have no intervals.",
            (long long)fitness.disturbed, (long long)fitness.points);
    else if (10 * fitness.tainted > fitness.batches)
        add(doubts,
            "%.0f %% of the timed answers were disturbed by other work on the machine and left "
            "out.",
            100 * (double)fitness.tainted / (double)fitness.batches);
    if (10 * fitness.unfit > fitness.launches)
        add(doubts, "The machine was not quiet before %lld of %lld launches.",
            (long long)fitness.unfit, (long long)fitness.launches);
    if (fitness.cold)
        add(doubts, "At %lld of %lld points a warm-up ended before its times were steady.",
            (long long)fitness.cold, (long long)fitness.points);
    if (4 * fitness.drifts > fitness.points)
        add(doubts, "Times drift over the batches of %lld of %lld points.",
            (long long)fitness.drifts, (long long)fitness.points);
    add_answers(doubts, &fitness);
}

void doubts_free(struct doubts *doubts)
{
    for (size_t i = 0; i < doubts->n; i++)
        free(doubts->v[i]);
    free(doubts->v);
    *doubts = (struct doubts){0};
}
