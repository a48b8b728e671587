/* finding.h - the numbers behind the answer of a run, each computed once. For each goal: the least
 * step count at which plain LLaDA is shown to match plain LLaMA, its time, and the fastest other
 * method that is shown to match. Further: vanilla decoding, a large batch, memory. All sentences
 * are made from these numbers.
 *
 * "As good" is a fixed sequence of tests (asgood.h): from the most steps down, each at one-sided
 * 2.5 %, to the first that is not shown. If the fastest of several is selected, tests and
 * intervals are at the level divided by their number (Bonferroni). */
#pragma once

#include "lib/analysis/claim/contender.h"
#include "lib/analysis/claim/goal.h"

/* Time of LLaDA / time of LLaMA (of a rate: tokens a second of LLaDA / of LLaMA). */
struct versus {
    struct interval x;        /* NaN: unknown */
    enum ratio_verdict verdict;
    const char *reason;       /* why x is NaN; static */
    const struct contender *llada, *llama; /* NULL: none */
    const char *task;         /* NULL: all prompts */
    double ns[2];             /* mean times of llada and llama; NaN */
    size_t launches, prompts;
    size_t comparisons;       /* intervals that hold together; 0: not compared */
};

struct tried { const struct contender *c; struct good good; };

enum finding_state {
    FINDING_FROM,      /* matches from a step count on */
    FINDING_NOT_SHOWN, /* a match is not shown, even with the most steps */
    FINDING_WORSE,     /* worse than the margin, even with the most steps */
    FINDING_UNTESTED   /* see `reason` */
};
struct finding {
    const struct goal *goal;
    struct tried *step; /* plain LLaDA, the most steps first; owned */
    size_t n_steps;
    enum finding_state state;
    const char *reason;             /* why it is untested; static */
    double at, below;               /* least step count shown to match; largest not shown; NaN */
    const struct contender *timed;  /* the point at that count, else with the most steps; NULL */
    struct versus equal, rival;     /* `timed` against plain LLaMA; against the fastest other */
    struct tried *way; /* other methods of LLaDA; owned */
    size_t n_ways, n_shown;
    struct versus best;             /* the fastest method shown to match, against plain LLaMA */
    int best_of;                    /* its index in `way`; -1: none */
};

struct memory_found { const char *metric; double llada, llama; const char *reason; };

struct findings {
    const struct evidence *evidence;
    struct contenders contenders, batched; /* batched: at the largest common batch */
    struct finding v[GOALS_MAX];
    int n;
    enum pairs_clock clock;
    struct versus vanilla, grown, rate; /* vanilla: one token a step; grown: with suffix `grow` */
    double batch;            /* batch size of `rate`; NaN */
    struct memory_found memory;
};

struct finding_plan {
    const struct goal *goal;
    int goals;
    const char *contract;
    double batch;
    int clock; /* a pairs_clock; -1: wall time if undisturbed, else processor time */
};
/* Computes all findings; pointers are borrowed from the evidence and the goals. */
void finding_all(struct findings *findings, const struct evidence *evidence,
                 const struct finding_plan *plan);
void finding_free(struct findings *findings);
/* llada / llama by the clock of findings, as one of `of` intervals that hold together; task NULL:
 * all prompts. */
struct versus finding_ratio(const struct findings *findings, const struct contender *llada,
                            const struct contender *llama, const char *task, size_t of);
/* 1: the ratio is known, and its verdict is faster, slower or the same. */
int finding_is_decided(const struct versus *versus);

/* ---- the self-test ---- */

enum selftest { SELFTEST_NONE, SELFTEST_PASSED, SELFTEST_DIFFERS, SELFTEST_WIDE, SELFTEST_MISSED };
/* 1: the record is a self-test by this clock. A record without a metric is by wall time. */
int finding_selftest_is(const json_t *check, enum pairs_clock clock);
/* The worst self-test by the clock. */
enum selftest finding_selftest(const struct evidence *evidence, enum pairs_clock clock);
