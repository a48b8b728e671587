/* asgood.h - the test for "as good as", and from which step count on a sweep passes it. On the same
 * prompts, the loss of quality must be shown to be smaller than a margin that was declared before.
 *
 * A sweep is one fixed sequence of tests. It begins at the most steps and goes down, each test at
 * one-sided 2.5 %, and ends at the first test that fails. So the chance that any step count is
 * falsely called as good is at most 2.5 %, however many are tested. The same sequence from the
 * fewest steps up tests the opposite, "worse by more than the margin". The step counts that neither
 * decides hold the true place with 95 %, without any assumption on the curve between them.
 *
 * Source: Maurer, Hothorn, Lehmacher 1995 (fixed sequences keep the level); Tango 1998 (Statistics
 * in Medicine 17:891); Piaggio et al. 2012 (non-inferiority, JAMA 308:2594). */
#pragma once

#include <stddef.h>

#include "lib/stat/pooled.h"
#include "lib/stat/stat.h"

#define ASGOOD_FEW "too few prompts"
enum { ASGOOD_LEAST = 30 }; /* prompts; with fewer there is no test */

/* A quality of one system: transform(sum num / sum den) over n prompts. */
struct asgood_side { const double *num, *den; };
struct asgood_kind {
    enum pooled_transform transform;
    int higher;  /* 1: more is better */
    int binary;  /* right or wrong: num is the share of right answers of a prompt, den is 1 */
};
/* One-sided p values; NaN: no test (fewer than ASGOOD_LEAST prompts, or no spread). */
struct asgood { double good; /* of the hypothesis: worse by the margin or more */
                double worse; /* of the hypothesis: worse by less than the margin */ };
/* Binary: Tango's score statistic, less one prompt on either side (the score alone errs 3 times in
 * 100 at its limit). Else: t = (a - limit) / se with n - 1 degrees of freedom, a and b the
 * quotients of the sums, se from the parts of the prompts (num_i - a den_i) / mean den in a - slope
 * b; of perplexities all of this on logarithms. work[2 * n]. */
struct asgood asgood_test(struct asgood_side own, struct asgood_side rival, size_t n,
                          const struct asgood_kind *kind, const struct pooled_margin *margin,
                          double *work);

/* Quotient of `own` - quotient of `rival`, before any transform, with Student's interval of `level`
 * over the same parts. work[n]. */
struct interval asgood_difference(struct asgood_side own, struct asgood_side rival, size_t n,
                                  double level, double *work);

/* The tests of a sweep, by ascending steps: tests first..n-1 are shown to be as good (first = n:
 * none), tests 0..worse-1 to be worse by more than the margin. */
struct asgood_place { size_t first, worse; };
struct asgood_place asgood_sequence(const struct asgood *tests, size_t n);

int asgood_is_shown(double p); /* p <= 2.5 %; NaN: 0 */
