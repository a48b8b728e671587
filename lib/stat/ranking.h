/* ranking.h - whether an order of systems by quality is the same in several places. A place is a
 * prompt template, a number of examples and a seed; each system answers the same prompts there.
 *
 * For each pair of systems and each place a test decides which system is better (asgood.h with
 * margin 0). All tests together hold `level` (Bonferroni). A pair is flipped if its first system is
 * shown to be better in one place and worse in another. With probability `level` no pair is wrongly
 * called flipped. The tests do not assume that places are independent, because places share their
 * prompts.
 *
 * A pair is the same if its systems are shown to differ by less than a margin in every place: each
 * is as good as the other (asgood.h, two one-sided tests). With probability (1 - level) / 2 or less
 * some pair is wrongly called the same. These tests are corrected for the number of pairs. They
 * need no correction for the number of places, because a pair that differs in one place is called
 * the same only if the test in that place errs.
 *
 * Source: Kendall 1938 (Biometrika 30:81); Gail, Simon 1985 (Biometrics 41:361) for effects that
 * change their sign; Shaffer 1980 (Annals of Statistics 8:1342) for directions; Berger 1982
 * (Technometrics 24:295) for claims that hold only if several tests pass; Schuirmann 1987 (Journal
 * of Pharmacokinetics and Biopharmaceutics 15:657) for two one-sided tests. */
#pragma once

#include <stddef.h>

#include "lib/stat/asgood.h"

/* num, den: [systems][places][prompts]. The quality of a system in a place is transform(sum num /
 * sum den). */
struct ranking {
    size_t systems, places, prompts; /* >= 2, >= 2, >= 1 */
    const double *num, *den;
    struct asgood_kind kind;
};
/* tau: the mean of Kendall's tau-a over all pairs of places, for the measured orders. [lo, hi]: the
 * least and the largest possible tau, if each pair of systems has the shown order where its test
 * decided, and any order elsewhere. lo = 1: all places are shown to have the same order. hi < 1: a
 * pair is flipped. flips: the number of flipped pairs. */
struct ranking_found { double tau, lo, hi; size_t flips; };

/* Sets shown[pairs][places], pairs in the order (0, 1), (0, 2), ... (1, 2), ...: 1 if the first
 * system of the pair is shown to be better, -1 if the second is, else 0. work[2 * prompts]. */
struct ranking_found ranking_find(const struct ranking *ranking, double level, signed char *shown,
                                  double *work);
/* 1: the systems i and j are shown to differ by less than the margin in every place. With fewer
 * than ASGOOD_LEAST prompts nothing is shown, nor for values that are not right or wrong answers
 * and that have no spread. work[2 * prompts]. */
int ranking_is_same(const struct ranking *ranking, size_t i, size_t j,
                    const struct pooled_margin *margin, double level, double *work);
/* The index of the pair (i, j), i < j, of n systems in shown[]. */
size_t ranking_pair(size_t n, size_t i, size_t j);
