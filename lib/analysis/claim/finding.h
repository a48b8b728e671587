/* finding.h - computes the numbers behind the answer of a run, each once. For each goal there is
 * the least step count at which plain LLaDA is shown to match plain LLaMA, the time at that count,
 * and the fastest other method that is shown to match. Further numbers are about vanilla decoding,
 * a large batch, and memory. All sentences are made from these numbers.
 *
 * "As good" is shown by a fixed sequence of tests (asgood.h): from the most steps down, each at
 * one-sided 2.5 %, to the first test that fails. Where the fastest of several methods is selected,
 * the error rate of each test and interval is divided by the number of methods (Bonferroni). The
 * fastest way of LLaMA is chosen by the rule of fastest.h. */
#pragma once

#include "lib/analysis/claim/contender.h"
#include "lib/analysis/claim/goal.h"

/* Time of LLaDA / time of LLaMA. In findings.rate: tokens a second of LLaDA / of LLaMA. */
struct versus {
    struct interval x;        /* NaN: unknown */
    enum ratio_verdict verdict;
    const char *reason;       /* why x is NaN; static */
    const struct contender *llada, *llama; /* NULL: none */
    const char *task;         /* NULL: all prompts */
    struct interval ns[2];    /* mean times of llada and of llama, ns, each with an interval over
                                 launches (pairs_time()); NaN: unknown */
    size_t launches, prompts;
    size_t comparisons;       /* number of intervals that hold together; 0: not compared */
};

/* A point and its test against plain LLaMA. */
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
    const char *reason;             /* why the goal is untested; static */
    double at, below;               /* least step count shown to match; largest not shown; NaN */
    const struct contender *timed;  /* the point with `at` steps, else with the most; NULL: none */
    struct versus equal, rival;     /* `timed` against plain LLaMA; against a faster LLaMA method */
    const struct contender **among; /* the ways of LLaMA that the fastest is chosen from, the plain
                                     * one last; owned */
    size_t n_among;                 /* 0: no other way than the plain one */
    struct tried *way; /* other methods of LLaDA; owned */
    size_t n_ways, n_shown;         /* n_shown: how many of `way` are shown to match */
    struct versus best;             /* the fastest of `way` shown to match, against plain LLaMA */
    int best_of;                    /* the index of that method in `way`; -1: none */
};

struct memory_found { const char *metric; double llada, llama; const char *reason; };

struct findings {
    const struct evidence *evidence;
    struct contenders contenders, batched; /* batched: at the batch size of `rate` */
    struct finding v[GOALS_MAX];
    int n;
    enum pairs_clock clock;
    struct versus vanilla, grown, rate; /* vanilla: one token a step; grown: with suffix `grow`;
                                           rate: at the largest batch size that both have */
    double batch;            /* batch size of `rate`; NaN: none */
    struct memory_found memory;
};

struct finding_plan {
    const struct goal *goal;
    int goals;
    const char *contract;
    double batch;
    int clock; /* a pairs_clock; -1: wall time, or on a CPU processor time if wall time fails */
};
/* Computes all findings. Their pointers are borrowed from the evidence and the goals. */
void finding_all(struct findings *findings, const struct evidence *evidence,
                 const struct finding_plan *plan);
void finding_free(struct findings *findings);
/* The ratio llada / llama by the clock of the findings. Its interval is one of `of` intervals that
 * hold together. task NULL: all prompts. */
struct versus finding_ratio(const struct findings *findings, const struct contender *llada,
                            const struct contender *llama, const char *task, size_t of);
/* 1: the ratio is known, and its verdict is faster, slower or the same. */
int finding_is_decided(const struct versus *versus);

/* ---- the self-test ---- */

/* 1: the record is a self-test by this clock. A record without a metric used wall time. */
int finding_selftest_is(const json_t *check, enum pairs_clock clock);
/* Why the last failed self-test by this clock failed; static. NULL: none failed. After a failure
 * each ratio of times by this clock is unknown, for this reason unless it has another one. */
const char *finding_selftest(const struct evidence *evidence, enum pairs_clock clock);
