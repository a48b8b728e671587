/* selftest-worlds.h - simulates runs of two systems, or of a sweep and its rival, whose truth is
 * known, for test-selftest: cells of launches x prompts, as `times` records have them.
 *
 * A pair of launches takes two turns on a machine that may be disturbed: with a period of four
 * turns, over half of the run, or on one side alone. The simulations assume more than the
 * estimators do: launches may have heavy tails, and a prompt may be faster in one launch than in
 * another. */
#pragma once

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/analysis/points/meeting.h"
#include "lib/analysis/verdict/selftest.h"
#include "lib/base/rng.h"
#include "lib/record/rec.h"
#include "lib/stat/paired.h"
#include "lib/stat/ratio.h"

enum fault {
    SOUND,
    POOLED,  /* answers count as independent, as if each were a launch */
    BLOCKED, /* all launches of A come first, then all of B */
    RAW,     /* p values of a grid are not adjusted for each other */
    MEANS,   /* a mean within the margin counts as "as good", without a test */
    ABBA,    /* A and B begin in turn, not at random */
    KEPT,    /* disturbed cells count */
    FAULTS
};

static int holds(double lo, double hi, double truth)
{
    return lo <= truth && truth <= hi;
}

/* ---- two systems ---- */

enum { WORLD_LAUNCHES = 12, WORLD_PROMPTS = 20, WORLD_CELLS = WORLD_LAUNCHES * WORLD_PROMPTS };

/* Spreads are standard deviations of logarithms. */
struct world {
    size_t launches;
    double factor; /* time of B / time of A */
    double prompt; /* spread of this factor over prompts */
    double launch; /* spread of a turn */
    double both;   /* spread of a prompt within a launch, besides the noise of a cell */
    double cell;
    int heavy;     /* turns have heavy tails: t with 3 degrees of freedom */
    double period; /* added to turns 0, 3, 4, 7, ..., subtracted from the others */
    double load;   /* added in the second half of all turns, which is three times as noisy */
    double hit;    /* added to three in ten cells of B in one launch of two, drawn; such cells are
                    * marked as disturbed */
};

static double tailed(struct rng *r, int heavy)
{
    double z = rng_normal(r), square = 0;
    for (int k = 0; k < 3 && heavy; k++)
        square += pow(rng_normal(r), 2);
    return heavy ? z / sqrt(square / 3) : z;
}

/* Draws the logarithms of a turn's times. */
static void run_turn(struct rng *r, const struct world *w, size_t turn, double *out)
{
    int loaded = w->load > 0 && turn >= w->launches;
    double luck = w->launch * tailed(r, w->heavy) + (loaded ? w->load : 0);
    luck += turn % 4 == 1 || turn % 4 == 2 ? -w->period : w->period;
    for (size_t p = 0; p < WORLD_PROMPTS; p++)
        out[p] = luck + (loaded ? 3 : 1) * w->cell * rng_normal(r);
}

/* Draws a and b, [launches][WORLD_PROMPTS] each; NaN if a time is marked as disturbed. */
static void run_cells(uint64_t seed, const struct world *w, enum fault fault, double *a, double *b)
{
    struct rng r = {.seed = rng_derive(seed, "cells")};
    double own[WORLD_PROMPTS];
    for (size_t p = 0; p < WORLD_PROMPTS; p++)
        own[p] = log(w->factor) + w->prompt * rng_normal(&r);
    for (size_t l = 0; l < w->launches; l++) {
        size_t second = rng_below(&r, 2); /* 1: A has the second turn of the pair */
        second = fault == ABBA ? l % 2 : second;
        int blocked = fault == BLOCKED, is_hit = w->hit > 0 && rng_below(&r, 2);
        double *x = a + l * WORLD_PROMPTS, *y = b + l * WORLD_PROMPTS;
        run_turn(&r, w, blocked ? l : 2 * l + second, x);
        run_turn(&r, w, blocked ? w->launches + l : 2 * l + 1 - second, y);
        for (size_t p = 0; p < WORLD_PROMPTS; p++) {
            int marked = is_hit && rng_uniform(&r) < 0.3;
            y[p] += own[p] + w->both * rng_normal(&r) + (marked ? w->hit : 0);
            x[p] = exp(x[p]);
            y[p] = marked && fault != KEPT ? (double)NAN : exp(y[p]);
        }
    }
}

static struct ratio world_ratio(uint64_t seed, const struct world *w, enum fault fault)
{
    double a[WORLD_CELLS], b[WORLD_CELLS], work[2 * WORLD_CELLS + 2 * WORLD_PROMPTS];
    run_cells(seed, w, fault, a, b);
    struct paired_cells c = {w->launches, WORLD_PROMPTS, a, b};
    if (fault == POOLED)
        c = (struct paired_cells){w->launches * WORLD_PROMPTS, 1, a, b};
    return paired_ratio(&c, 0.95, work).ratio;
}

static double world_covers(uint64_t seed, const struct world *w, enum fault fault)
{
    struct ratio r = world_ratio(seed, w, fault);
    return holds(r.lo, r.hi, w->factor);
}

static double world_differs(uint64_t seed, const struct world *w, enum fault fault)
{
    struct ratio r = world_ratio(seed, w, fault);
    enum ratio_verdict v = ratio_verdict(&r, RATIO_ZONE);
    return v == RATIO_ABOVE || v == RATIO_BELOW;
}

#define CROSSED .factor = 1.3, .prompt = 0.1, .launch = 0.03, .both = 0.04, .cell = 0.03

static double crossed_covers(uint64_t seed, enum fault fault)
{
    return world_covers(seed, &(struct world){.launches = 8, CROSSED}, fault);
}

static double few_cover(uint64_t seed, enum fault fault)
{
    return world_covers(seed, &(struct world){.launches = 5, CROSSED}, fault);
}

/* All spread is between launches. */
static double noisy_covers(uint64_t seed, enum fault fault)
{
    const struct world w = {.launches = 5, .factor = 1.3, .launch = 0.05, .cell = 0.03};
    return world_covers(seed, &w, fault);
}

static double heavy_covers(uint64_t seed, enum fault fault)
{
    return world_covers(seed, &(struct world){.launches = 8, CROSSED, .heavy = 1}, fault);
}

static double hit_covers(uint64_t seed, enum fault fault)
{
    return world_covers(seed, &(struct world){.launches = 8, CROSSED, .hit = 0.7}, fault);
}

static double loaded_covers(uint64_t seed, enum fault fault)
{
    return world_covers(seed, &(struct world){.launches = 8, CROSSED, .load = 0.3}, fault);
}

#define ALIKE .factor = 1, .launch = 0.02, .cell = 0.03

static double alike_differs(uint64_t seed, enum fault fault)
{
    return world_differs(seed, &(struct world){.launches = 8, ALIKE}, fault);
}

static double heavy_differs(uint64_t seed, enum fault fault)
{
    return world_differs(seed, &(struct world){.launches = 8, ALIKE, .heavy = 1}, fault);
}

static double step_differs(uint64_t seed, enum fault fault)
{
    return world_differs(seed, &(struct world){.launches = 12, ALIKE, .period = 0.03}, fault);
}

static double hit_differs(uint64_t seed, enum fault fault)
{
    return world_differs(seed, &(struct world){.launches = 8, ALIKE, .hit = 0.3}, fault);
}

static double loaded_differs(uint64_t seed, enum fault fault)
{
    return world_differs(seed, &(struct world){.launches = 8, ALIKE, .load = 0.3}, fault);
}

/* ---- the gate against slower builds ---- */

/* Returns 1 if `compare --gate 2%` calls the second build SLOWER. */
static double gate_closes(uint64_t seed, const struct world *w, enum fault fault)
{
    const struct ratio r = world_ratio(seed, w, fault);
    json_t *comparisons = json_pack("[{s:s, s:s, s:s, s:f, s:f, s:f, s:f}]", "effect", "ratio",
                                    "metric", "cpu_ns", "config", "new", "value", r.value, "lo",
                                    r.lo, "hi", r.hi, "p", r.p);
    json_t *checks = selftest_gate(comparisons, 0.02);
    const char *verdict = rec_text(json_array_get(checks, 0), "verdict");
    const double is_slower = verdict && !strcmp(verdict, "SLOWER");
    json_decref(comparisons);
    json_decref(checks);
    return is_slower;
}

/* Processor time of builds: the spread of launches is half a percent. */
#define BUILDS .launches = 12, .launch = 0.005, .cell = 0.02

static double slow_build_stopped(uint64_t seed, enum fault fault)
{
    return gate_closes(seed, &(struct world){.factor = 1.02, BUILDS}, fault);
}

static double equal_build_stopped(uint64_t seed, enum fault fault)
{
    return gate_closes(seed, &(struct world){.factor = 1, BUILDS}, fault);
}

static double noisy_build_stopped(uint64_t seed, enum fault fault)
{
    const struct world w = {.launches = 12, .factor = 1, .launch = 0.03, .cell = 0.02};
    return gate_closes(seed, &w, fault);
}

static double loaded_build_stopped(uint64_t seed, enum fault fault)
{
    return gate_closes(seed, &(struct world){.factor = 1, BUILDS, .load = 0.05}, fault);
}

/* ---- a sweep and its rival ---- */

enum { STEPS = 6, RIVAL = STEPS, POINTS = STEPS + 1, DRAWS = 200, PROMPTS_TESTED = 300 };
static const double steps[POINTS] = {8, 16, 32, 64, 128, 256, 0};

/* Everything that a meeting reads, in the form that pareto makes from records. */
struct sweep {
    struct point point[POINTS];
    struct points points;
    struct pairs_point times[POINTS];
    struct pairs pairs;
    struct costs costs;
    struct field field;
    double ns[POINTS][WORLD_CELLS];
};

static void make_points(struct sweep *s, size_t draws)
{
    static const char *const names[POINTS] = {"8", "16", "32", "64", "128", "256", "rival"};
    static char series[] = "sweep", alone[] = "rival";
    for (size_t i = 0; i < POINTS; i++)
        s->point[i] = (struct point){
            .id = names[i], .config = names[i], .workload = "", .prompts = "", .model = "",
            .device = "", .stack = "", .dtype = "", .quant = "", .contract = "",
            .series = i == RIVAL ? alone : series, .is_diffusion = i != RIVAL,
            .is_rival = i == RIVAL, .is_plain = 1, .batch = 1,
            .length = NAN, .steps = NAN, .passes = NAN, .rows = NAN,
            .work = POINTS_STEPS, .at = i == RIVAL ? (double)NAN : steps[i], .cost = 1,
            .cost_lo = NAN, .cost_hi = NAN};
    s->points = (struct points){.cost_metric = "e2e_ns", .v = s->point, .n = POINTS};
    s->pairs = (struct pairs){s->times, POINTS, POINTS};
    s->costs = (struct costs){&s->pairs, "e2e_ns", NULL, 0, 0.95, rng_derive(1, "launches"), draws};
}

/* truth[i]: the cost of point i. The points of a sweep share the random effects of their launches
 * and prompts, and each has some of its own. */
static void make_times(struct sweep *s, uint64_t seed, const double *truth, size_t launches,
                       enum fault fault)
{
    static const char *id[WORLD_CELLS], *task[WORLD_CELLS];
    static int64_t launch[WORLD_CELLS];
    static const char letters[] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0p\0q\0r\0s\0t";
    const struct world shared = {.launches = launches, .factor = 1, .prompt = 0.05, .launch = 0.02};
    const struct world own = {.launches = launches, .factor = 1, .prompt = 0.02, .launch = 0.01,
                              .cell = 0.02};
    double all[WORLD_CELLS], mine[WORLD_CELLS], unused[WORLD_CELLS];
    run_cells(rng_derive(seed, "shared"), &shared, SOUND, unused, all);
    for (size_t k = 0; k < WORLD_CELLS; k++)
        launch[k] = (int64_t)k;
    for (size_t p = 0; p < WORLD_PROMPTS; p++)
        id[p] = letters + 2 * p;
    for (size_t i = 0; i < POINTS; i++) {
        run_cells(rng_derive(seed, s->point[i].id), &own, SOUND, unused, mine);
        for (size_t k = 0; k < launches * WORLD_PROMPTS; k++)
            s->ns[i][k] = truth[i] * mine[k] * (i == RIVAL ? 1 : all[k]);
        int pooled = fault == POOLED;
        s->times[i] = (struct pairs_point){.point = s->point[i].id, .workload = "",
                                           .prompts = pooled ? 1 : WORLD_PROMPTS,
                                           .launches = pooled ? launches * WORLD_PROMPTS : launches,
                                           .id = id, .task = task, .launch = launch};
        s->times[i].ns[PAIRS_WALL] = s->ns[i];
    }
}

/* A number of a record: infinite if it is censored, NaN if it is null for another reason. */
static double number_of(const json_t *record, const char *key)
{
    char name[64];
    snprintf(name, sizeof name, "%s_censored", key);
    const char *side = json_string_value(json_object_get(record, name));
    const json_t *v = json_object_get(record, key);
    return json_is_number(v) ? json_number_value(v)
           : side            ? (*side == 'b' ? (double)-INFINITY : (double)INFINITY)
                             : (double)NAN;
}

/* The cost is 4 + 2 * steps, and the rival's is the cost at 50 steps, so X_lat is 50. */
static double lat_covers(uint64_t seed, size_t launches, enum fault fault)
{
    static struct sweep s;
    static double work[3 * DRAWS + 1];
    double truth[POINTS];
    for (size_t i = 0; i < POINTS; i++)
        truth[i] = 4 + 2 * (i == RIVAL ? 50 : steps[i]);
    make_points(&s, DRAWS);
    make_times(&s, seed, truth, launches, fault);
    field_open(&s.field, &s.points, 0, &s.costs, NULL, 0);
    struct meeting m = {.field = &s.field, .pair = {0, STEPS, RIVAL, NULL}};
    meeting_solve(&m, work);
    json_t *j = meeting_latency(&m);
    double held = holds(number_of(j, "lo"), number_of(j, "hi"), 50);
    json_decref(j);
    field_free(&s.field);
    return held;
}

static double lat5_covers(uint64_t seed, enum fault fault)
{
    return lat_covers(seed, 5, fault);
}

static double lat8_covers(uint64_t seed, enum fault fault)
{
    return lat_covers(seed, 8, fault);
}

static double lat12_covers(uint64_t seed, enum fault fault)
{
    return lat_covers(seed, 12, fault);
}

/* Draws right or wrong answers, right[POINTS][PROMPTS_TESTED]. A prompt is hard or easy for all
 * points. */
static void answer(uint64_t seed, const double *share, double rival, double *right)
{
    struct rng r = {.seed = rng_derive(seed, "answers")};
    for (size_t k = 0; k < PROMPTS_TESTED; k++) {
        double hard = rng_uniform(&r);
        for (size_t i = 0; i < POINTS; i++) {
            double own = rng_uniform(&r), mixed = rng_uniform(&r) < 0.6 ? hard : own;
            right[i * PROMPTS_TESTED + k] = mixed < (i == RIVAL ? rival : share[i]);
        }
    }
}

/* Makes a board of right answers as measured, equal in every draw; the margin is 5 points. */
static void make_board(uint64_t seed, const double *share, struct field_board *b)
{
    static const struct field_quality quality = {
        {"accuracy", "accuracy", POOLED_BY_PROMPT, POOLED_PLAIN}, {0.05, 0}, 1};
    static double num[POINTS * PROMPTS_TESTED], den[POINTS * PROMPTS_TESTED], value[POINTS];
    static unsigned char has[POINTS];
    answer(seed, share, 0.85, num);
    for (size_t k = 0; k < POINTS * PROMPTS_TESTED; k++)
        den[k] = 1;
    for (size_t i = 0; i < POINTS; i++) {
        has[i] = 1;
        value[i] = stat_mean(num + i * PROMPTS_TESTED, PROMPTS_TESTED);
    }
    *b = (struct field_board){.quality = &quality, .binary = 1, .n = PROMPTS_TESTED, .has = has,
                              .num = num, .den = den, .value = value, .draw = value,
                              .good = value, .good_draw = value};
}

/* The record of X_q or X_par of a sweep with these shares of right answers and costs. */
static json_t *judge(uint64_t seed, const double *share, const double *cost, enum fault fault,
                     json_t *(*record)(const struct meeting *))
{
    static struct sweep s;
    static double work[4];
    struct field_board board;
    make_points(&s, 1);
    make_times(&s, seed, cost, 8, fault);
    make_board(seed, share, &board);
    field_open(&s.field, &s.points, 0, &s.costs, NULL, 0);
    struct meeting m = {.field = &s.field, .board = &board, .pair = {0, STEPS, RIVAL, NULL}};
    meeting_solve(&m, work);
    if (fault == MEANS)
        for (m.place.first = 0; m.place.first < STEPS; m.place.first++)
            if (board.value[m.place.first] >= board.value[RIVAL] - 0.05)
                break;
    json_t *j = record(&m);
    field_free(&s.field);
    return j;
}

/* The curve is straight in log2 steps between 16 and 32. It reaches the margin, 0.80, at 20 steps,
 * so 32 is the first measured step count that is as good. */
static const double at_20[STEPS] = {0.50, 0.77425, 0.85425, 0.86, 0.87, 0.87};
static const double costs_32[POINTS] = {0.25, 0.5, 1, 2, 4, 8, 1};

static double early_20(uint64_t seed, enum fault fault)
{
    json_t *j = judge(seed, at_20, costs_32, fault, meeting_quality);
    double early = number_of(j, "at") < 32;
    json_decref(j);
    return early;
}

static double quality_covers(uint64_t seed, enum fault fault)
{
    json_t *j = judge(seed, at_20, costs_32, fault, meeting_quality);
    double held = holds(number_of(j, "lo"), number_of(j, "hi"), 32);
    json_decref(j);
    return held;
}

static double estimate_covers(uint64_t seed, enum fault fault)
{
    json_t *j = judge(seed, at_20, costs_32, fault, meeting_quality);
    double held = holds(number_of(j, "est_lo"), number_of(j, "est_hi"), 20);
    json_decref(j);
    return held;
}

/* The sweep is as good from 32 steps on, and there it costs exactly as much as the rival. So X_par
 * is claimed only by chance. */
static double parity_claimed(uint64_t seed, enum fault fault)
{
    static const double share[STEPS] = {0.2, 0.4, 0.97, 0.97, 0.97, 0.97};
    json_t *j = judge(seed, share, costs_32, fault, meeting_parity);
    double claimed = json_is_true(json_object_get(j, "exists"));
    json_decref(j);
    return claimed;
}
