/* proportion.h - shares of right answers, of two configurations on the same prompts. What both get
 * right or both get wrong says nothing about their difference; what only one gets right does.
 *
 * The prompt is the unit. One that was answered several times (other seeds) has the share of its
 * answers that are right: of all numbers 0..1 of one mean those that are 0 or 1 vary most, so
 * intervals made for these are never too narrow for shares. */
#ifndef STAT_PROPORTION_H
#define STAT_PROPORTION_H

#include <stddef.h>

#include "lib/stat/stat.h"

/* Of n prompts: by how much the first is right more often, and the second, added up over the
 * prompts where it is; and at how many prompts. */
struct proportion_pairs { double first, second, n, at_first, at_second; };
struct proportion_pairs proportion_count(const double *first, const double *second, size_t n);

/* McNemar's test, exact and two-sided: how probable it is that of as many fair coins as prompts
 * differ the heads are as uneven as this, or more. 1 when there are none. Of shares: the sign test.
 * Source: McNemar 1947; the exact form: Fay 2010 (Biostatistics 11:373). */
double proportion_mcnemar(const struct proportion_pairs *p);

/* Share of the second less share of the first, with Tango's score interval: it keeps its level for
 * small n and few differences, where resampling would say that there is no doubt at all.
 * Source: Tango 1998 (Statistics in Medicine 17:891). */
struct interval proportion_difference(const struct proportion_pairs *p, double level);
/* By how many standard errors that difference lies above d, by the same test. It grows as the root
 * of n. */
double proportion_above(const struct proportion_pairs *p, double d);

#endif
