/* proportion.h - shares of right answers, of two configurations on the same prompts. What both get
 * right or both get wrong says nothing about their difference; what only one gets right does. */
#ifndef STAT_PROPORTION_H
#define STAT_PROPORTION_H

#include <stddef.h>

#include "lib/stat/stat.h"

/* 1: every num is 0 or 1 and every den 1, so the values are right or wrong, once a prompt. */
int proportion_is(const double *num, const double *den, size_t n);

/* Of n prompts: how many only the first gets right, and how many only the second. */
struct proportion_pairs { double first, second, n; };
struct proportion_pairs proportion_count(const double *first, const double *second, size_t n);

/* McNemar's test, exact and two-sided: how probable it is that of first + second fair coins the
 * heads are as uneven as this, or more. 1 when there are none.
 * Source: McNemar 1947; the exact form: Fay 2010 (Biostatistics 11:373). */
double proportion_mcnemar(const struct proportion_pairs *p);

/* Share of the second less share of the first, with Tango's score interval: it keeps its level for
 * small n and few differences, where resampling would say that there is no doubt at all.
 * Source: Tango 1998 (Statistics in Medicine 17:891). */
struct interval proportion_difference(const struct proportion_pairs *p, double level);

#endif
