/* doubts.c - see doubts.h. A disturbed batch is run again, so a few disturbed batches raise no
 * doubt. More than a tenth of the launches or batches is a doubt, because the quiet ones were
 * selected. The test calls one in twenty steady points drifting, so more than a quarter is a doubt.
 * Points outside the headline raise no doubt. */
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

static int is_not(const json_t *r, const char *key, const char *wanted)
{
    const char *got = rec_text(r, key);
    return got && strcmp(got, wanted);
}

int doubts_is_failed(const json_t *check)
{
    const json_t *pass = json_object_get(check, "pass");
    return json_is_boolean(pass) ? json_is_false(pass)
                                 : is_not(check, "verdict", "SAME") ||
                                       is_not(check, "handicap", "FOUND");
}

/* Counts what `measure --verify` found in the answers of a point. */
static void count_answers(struct doubts_fitness *f, const json_t *r)
{
    double prompts = rec_number(r, "prompts");
    int drawn = about_is_drawn(r), random = json_is_true(json_object_get(r, "weights_random"));
    f->unlike += !drawn && json_is_false(json_object_get(r, "deterministic"));
    f->cached += rec_number(r, "repeat_ratio") < 0.9;
    f->alike += !random && prompts > 3 && rec_number(r, "distinct_ratio") * prompts < 1.5;
}

/* 1: the point competes with the points of the headline. */
static int competes(const json_t *r, const json_t *headline)
{
    const char *contract = rec_text(headline, "contract");
    double batch = rec_number(headline, "batch"), length = rec_number(headline, "gen_length");
    double of = rec_number(r, "batch"), long_of = about_length(r);
    return !(contract && is_not(r, "contract", contract)) && !(of < batch) && !(of > batch) &&
           !(long_of < length) && !(long_of > length);
}

static void count_cores(struct doubts_fitness *f, const json_t *look)
{
    const double share = rec_number(look, "effective_cores") / rec_number(look, "threads");
    if (!(share > 0 && share < 10))
        return;
    f->share_least = f->share_most > 0 ? fmin(f->share_least, share) : share;
    f->share_most = fmax(f->share_most, share);
}

int doubts_cores_moved(const struct doubts_fitness *f)
{
    return f->share_least < 0.75 * f->share_most;
}

struct doubts_fitness doubts_count(const struct runset *s, const json_t *headline)
{
    struct doubts_fitness f = {0};
    const char *cost = rec_text(headline, "cost_metric");
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "fitness"), i, r) {
        int launch = json_object_get(r, "launch") != NULL;
        f.launches += launch;
        f.unfit += launch && json_is_false(json_object_get(r, "fit"));
        count_cores(&f, r);
    }
    json_array_foreach(runset_kind(s, "metric"), i, r) {
        if (is_not(r, "metric", cost ? cost : "e2e_ns") || !competes(r, headline))
            continue;
        int disturbed = json_is_true(json_object_get(r, "disturbed"));
        int64_t tainted = rec_int(r, "tainted", 0), timed = rec_int(r, "timed", 0);
        f.points++;
        f.disturbed += disturbed;
        f.tainted += tainted;
        f.batches += disturbed ? tainted : tainted + timed;
        f.cold += json_is_false(json_object_get(r, "warmup_steady"));
        f.drifts += json_is_false(json_object_get(r, "steady"));
        count_answers(&f, r);
    }
    return f;
}

__attribute__((format(printf, 2, 3))) static void add(struct doubts *d, const char *format, ...)
{
    char text[2000];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    MEM_GROW(d->v, d->n, d->cap);
    d->v[d->n++] = mem_text(text);
}

static void add_checks(struct doubts *d, const struct runset *s)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "check"), i, r) {
        const char *text = rec_text(r, "text"), *name = rec_text(r, "check");
        if (!doubts_is_failed(r))
            continue;
        char *clean = display_cleaned(text ? text : name ? name : "", 600);
        add(d, "A self-test did not pass: %s.", clean);
        free(clean);
    }
}

static void add_answers(struct doubts *d, const struct doubts_fitness *f)
{
    if (f->unlike)
        add(d, "At %lld of %lld points repeats of a prompt gave other tokens, although sampling is "
               "off.", (long long)f->unlike, (long long)f->points);
    if (f->alike)
        add(d, "At %lld of %lld points all prompts have the same answer; the prompts may be "
               "ignored.",
            (long long)f->alike, (long long)f->points);
    if (f->cached)
        add(d, "At %lld of %lld points repeats take less than 0.9 of the time of the first "
               "answers: something is cached between them.",
            (long long)f->cached, (long long)f->points);
}

void doubts_find(struct doubts *d, const struct runset *s, const json_t *headline)
{
    struct doubts_fitness f = doubts_count(s, headline);
    add_checks(d, s);
    if (f.disturbed)
        add(d, "At %lld of %lld points other work ran on the machine in every timed batch: their "
               "values have no intervals.",
            (long long)f.disturbed, (long long)f.points);
    else if (10 * f.tainted > f.batches)
        add(d, "%.0f %% of the timed answers were disturbed by other work on the machine and left "
               "out.",
            100 * (double)f.tainted / (double)f.batches);
    if (10 * f.unfit > f.launches)
        add(d, "The machine was not fit to measure before %lld of %lld launches.",
            (long long)f.unfit, (long long)f.launches);
    if (f.cold)
        add(d, "At %lld of %lld points a warm-up ended before its times were steady.",
            (long long)f.cold, (long long)f.points);
    if (4 * f.drifts > f.points)
        add(d, "Times drift over the batches of %lld of %lld points.", (long long)f.drifts,
            (long long)f.points);
    add_answers(d, &f);
}

void doubts_free(struct doubts *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->v[i]);
    free(d->v);
    *d = (struct doubts){0};
}
