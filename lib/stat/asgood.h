/* asgood.h - from how many steps on is a sweep as good as its rival? "As good" is a test: on the
 * same prompts the quality must be shown to be worse by less than a margin, declared before.
 *
 * The tests are one fixed sequence. They begin at the most steps and go down, each at one-sided
 * 2.5 %, and end at the first that fails. So the chance that any step count is falsely called as
 * good is at most 2.5 %, however many are tested. The same is done from the fewest steps up with
 * the opposite question, "worse by more than the margin": what both leave holds the true place
 * with 95 %, without any assumption on the curve between step counts.
 *
 * Right or wrong answers: Tango's score, less one prompt. Other qualities: Student's t on the
 * prompts' parts in the difference; of perplexities in that of their logarithms.
 *
 * Source: Maurer, Hothorn, Lehmacher 1995 (fixed sequences keep the level); Tango 1998 (Statistics
 * in Medicine 17:891); Piaggio et al. 2012 (non-inferiority, JAMA 308:2594).
 */
#ifndef STAT_ASGOOD_H
#define STAT_ASGOOD_H

#include <stddef.h>

#include "lib/stat/pooled.h"
#include "lib/stat/stat.h"

#define ASGOOD_FEW "too few prompts"
enum { ASGOOD_LEAST = 30 }; /* prompts; with fewer nothing is tested */

/* A quality of one system: its value is transform(sum of num / sum of den) over n prompts. */
struct asgood_side { const double *num, *den; };
struct asgood_kind {
    enum pooled_transform transform;
    int higher;  /* 1: more is better */
    int binary;  /* each prompt has a share of right answers, den is 1 */
};
/* P values; NaN: no test (fewer than ASGOOD_LEAST prompts, or no spread to judge by). */
struct asgood { double good; /* that it is worse by the margin or more */
                double worse; /* that it is worse by less */ };
/* work[2 * n]. */
struct asgood asgood_test(struct asgood_side own, struct asgood_side rival, size_t n,
                          const struct asgood_kind *kind, const struct pooled_margin *margin,
                          double *work);

/* The quotient of `own` less that of `rival`, before any transform, with the interval of the level
 * by the parts that the t test is made of. work[n]. */
struct interval asgood_difference(struct asgood_side own, struct asgood_side rival, size_t n,
                                  double level, double *work);

/* The tests of a sweep, steps ascending: places first..n-1 are shown to be as good (first n: none
 * is), places 0..worse-1 to be worse by more than the margin. */
struct asgood_place { size_t first, worse; };
struct asgood_place asgood_sequence(const struct asgood *tests, size_t n);

int asgood_is_shown(double p);

#endif
