/* goal.h - reads and tests a goal of a run: LLaDA matches LLaMA on a task, by a metric, within a
 * margin. A point is tested by asgood_test() (lib/stat/asgood.h), on the prompts that the point and
 * its base both answered. */
#pragma once

#include "lib/analysis/claim/evidence.h"
#include "lib/stat/pooled.h"
#include "lib/stat/stat.h"

enum { GOALS_MAX = 8 };

struct goal {
    char *task, *metric; /* task NULL: all prompts; owned */
    struct pooled_kind kind;
    struct pooled_margin margin; /* absolute for shares, relative for perplexities */
};

/* Reads TASK:METRIC:MARGIN or, for all prompts, METRIC:MARGIN, separated by commas or spaces:
 * "sum:accuracy:0.05,judge_ppl:0.1". Returns the number of goals, or -1 (EXIT_BAD_USAGE). */
int goal_parse(const char *text, struct goal goal[GOALS_MAX], struct err *e);
void goal_free(struct goal *goal, int n);

/* The quality of a point, tested against the quality of its base. */
struct good {
    struct interval effect; /* a difference (shares) or a ratio (perplexities), level 1 - 2 alpha */
    double value, base;     /* quality of the point and of its base, same prompts; NaN: unknown */
    size_t prompts;
    int is_ratio;
    int shown;              /* 1: shown to be as good; 0: not shown; -1: not tested */
    int is_worse;           /* 1: shown to be worse by more than the margin */
    const char *reason;     /* why the point was not tested; static */
};
/* Tests a point against its base. alpha: the one-sided level, 0.025 for a single test. */
struct good goal_test(const struct goal *goal, const struct evidence *evidence, const char *base,
                      const char *point, double alpha);
