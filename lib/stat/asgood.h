/* asgood.h - the test for "as good as", and from which step count on a sweep passes this test. Both
 * systems answer the same prompts. The loss of quality must be shown to be smaller than a margin
 * that was declared before the data were seen.
 *
 * A sweep is one fixed sequence of tests. It begins at the most steps and goes down, each test at
 * one-sided 2.5 %, and ends at the first test that fails. So the chance that any step count is
 * falsely called as good is at most 2.5 %, however many are tested. A second sequence goes from the
 * fewest steps up and tests the opposite, "worse by more than the margin". The step counts that
 * neither sequence decides contain the true place with 95 %, without any assumption on the curve.
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
    int binary;  /* 1: answers are right or wrong: num is a prompt's share of right ones, den 1 */
};
/* One-sided p values; NaN: no test (fewer than ASGOOD_LEAST prompts, or no spread). */
struct asgood { double good; /* p of the hypothesis "worse by the margin or more" */
                double worse; /* p of the hypothesis "worse by less than the margin" */ };
/* Tests whether `own` is as good as `rival` within the margin.
 *   binary   Tango's score statistic, less one prompt on either side. (The score alone errs 3 times
 *            in 100 at its limit.)
 *   other    t = (a - limit) / se with n - 1 degrees of freedom. a and b are the quotients
 *            sum num / sum den of `own` and of `rival`. limit is the worst a that is as good as b;
 *            slope is d limit / d b. Prompt i adds (num_i - a den_i) / mean den to a, likewise to
 *            b; se is the standard error of the mean of these parts of a - slope b.
 * For perplexities a, b and limit are logarithms. work[2 * n]. */
struct asgood asgood_test(struct asgood_side own, struct asgood_side rival, size_t n,
                          const struct asgood_kind *kind, const struct pooled_margin *margin,
                          double *work);

/* Quotient of `own` - quotient of `rival`, before any transform, with Student's interval of `level`
 * over the parts that asgood_test() uses. work[n]. */
struct interval asgood_difference(struct asgood_side own, struct asgood_side rival, size_t n,
                                  double level, double *work);

/* The result of the tests of a sweep, which ascend by steps. Tests first..n-1 are shown to be as
 * good (first = n: none is). Tests 0..worse-1 are shown to be worse by more than the margin. */
struct asgood_place { size_t first, worse; };
struct asgood_place asgood_sequence(const struct asgood *tests, size_t n);

int asgood_is_shown(double p); /* p <= 2.5 %; NaN: 0 */
