/* simultaneous.h - intervals of several systems that hold all at once. The fastest of N systems was
 * chosen by its luck too: its own 95 % interval misses the truth more often than once in 20 times.
 * An interval whose level counts all N may be read of whichever was chosen.
 *
 *     pairs_ratio(&pairs, llama, fastest, &of, simultaneous_level(0.95, methods))
 *
 * Source: Bonferroni; Dunn 1961 (JASA 56:52).
 */
#ifndef STAT_SIMULTANEOUS_H
#define STAT_SIMULTANEOUS_H

#include <stddef.h>

#include "lib/stat/paired.h"

/* The level of each of n intervals that all hold with `level`. n 0 counts as 1. */
double simultaneous_level(double level, size_t n);
/* The same ratio with the interval of that level; without an interval it stays as it is. */
struct ratio simultaneous_ratio(const struct paired *p, double level, size_t n);

#endif
