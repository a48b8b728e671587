/* finding.h - the numbers of a run's answer, each computed once: for each goal the least step
 * count at which plain LLaDA is shown to be as good as plain LLaMA, the time that it then takes,
 * and the fastest other way that is shown to be as good; and beside the goals what vanilla
 * decoding, a large batch and memory cost. All sentences are made of these.
 *
 * As good as is a fixed sequence: from the most steps down, each at one-sided 2.5 %, to the first
 * that is not shown. Where the fastest of several is picked, its tests and intervals are at the
 * level divided by their number (Bonferroni).
 */
#ifndef ANALYSIS_CLAIM_FINDING_H
#define ANALYSIS_CLAIM_FINDING_H

#include "lib/analysis/claim/contender.h"
#include "lib/analysis/claim/goal.h"

/* How many times LLaMA's time LLaDA takes (of a rate: how many times its tokens a second). */
struct versus {
    struct interval x;        /* NaN: not known */
    enum ratio_verdict verdict;
    const char *reason;       /* of a NaN; static */
    const struct contender *llada, *llama; /* NULL: there is none */
    const char *task;         /* NULL: all prompts */
    double ns[2];             /* mean times of llada and llama in this session; NaN */
    size_t launches, prompts;
    size_t comparisons;       /* intervals that hold together; 0: nothing was compared */
};

struct tried { const struct contender *c; struct good good; };

enum finding_state {
    FINDING_FROM,      /* as good from some step count on */
    FINDING_NOT_SHOWN, /* not shown even with the most steps */
    FINDING_WORSE,     /* worse with the most steps */
    FINDING_UNTESTED   /* see reason */
};
struct finding {
    const struct goal *goal;
    struct tried *step; /* plain LLaDA, the most steps first; owned */
    size_t n_steps;
    enum finding_state state;
    const char *reason;             /* of an untested one; static */
    double at, below;               /* least count shown; largest not shown; NaN: none */
    const struct contender *timed;  /* that count, else the most steps; NULL */
    struct versus equal, rival;     /* timed against plain and against the fastest other LLaMA */
    struct tried *way; /* other ways of LLaDA; owned */
    size_t n_ways, n_shown;
    struct versus best;             /* the fastest shown one against plain LLaMA */
    int best_of;                    /* its place in way; -1: none */
};

struct memory_found { const char *metric; double llada, llama; const char *reason; };

struct findings {
    const struct evidence *evidence;
    struct contenders contenders, batched; /* batched: at the largest batch that both ran */
    struct finding v[GOALS_MAX];
    int n;
    enum pairs_clock clock;
    struct versus vanilla, grown, rate; /* grown: vanilla that looks no farther than it has to */
    double batch;            /* of rate; NaN */
    struct memory_found memory;
};

struct finding_plan {
    const struct goal *goal;
    int goals;
    const char *contract;
    double batch;
    int clock; /* a pairs_clock, or -1: wall where undisturbed, else of the processor */
};
/* All points are borrowed from the evidence and the goals. */
void finding_all(struct findings *f, const struct evidence *v, const struct finding_plan *plan);
void finding_free(struct findings *f);
/* `llada` against `llama` by the clock of f, where so many are looked at together; task NULL: all
 * prompts. */
struct versus finding_ratio(const struct findings *f, const struct contender *llada,
                            const struct contender *llama, const char *task, size_t of);
/* 1: the ratio is there and says faster, slower or the same. */
int finding_is_told(const struct versus *x);

/* ---- the self-test ---- */

enum selftest { SELFTEST_NONE, SELFTEST_PASSED, SELFTEST_DIFFERS, SELFTEST_WIDE, SELFTEST_MISSED };
/* 1: the check record of a model against itself is about this clock. Records that name no clock are
 * about elapsed time. */
int finding_selftest_is(const json_t *check, enum pairs_clock clock);
/* The worst of those of the clock. */
enum selftest finding_selftest(const struct evidence *v, enum pairs_clock clock);

#endif
