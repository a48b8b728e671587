/* fastest.h - chooses the fastest of several ways to do the same work: plain decoding and others,
 * such as several lengths of a draft. Then the chosen way is compared with another system.
 *
 * Rule: the choice takes the least ratio to the plain way over all launches. Every interval of a
 * cost against the chosen way has the level ratio_level(level, of). `of` counts all ways that have
 * a ratio, the plain one included.
 *
 * Reason: noise takes part in the choice, so the chosen way looks faster than it is. With intervals
 * for `of` comparisons, all `of` ratios are inside their intervals at once, so the ratio of the
 * chosen way is too. The plain way counts because it competes. If all ways are equal, another way
 * than plain is chosen with probability (of - 1) / of. The interval may lie above the truth in at
 * most 2.5 % of such runs. With two equal ways (10,000 simulated runs) it does so in 2.3 % of them;
 * if the plain way did not count, in 4.5 %. Each such run calls LLaDA slower than it is
 * (tests/unit/test-fastest.c).
 *
 * Exception: if the launches of LLaDA do not spread, nearly all noise takes part in the choice.
 * Then the bound of the test is 3 %: the interval of its 8 launches is itself a little narrow.
 *
 * Another rule would choose on half of the launches and measure on the other half. Then an
 * interval would need at least 10 launches, not 5 (LAUNCH_LEAST).
 *
 * The interval is valid, but the mean time of the chosen way is too low. No sentence may give this
 * time without the interval. */
#pragma once

#include <stddef.h>

struct fastest {
    size_t at; /* the index of the chosen way; n: the plain one */
    size_t of; /* ways with a ratio, the plain one included; 1: there is no other */
};
/* ratio[n]: cost of each other way / cost of the plain way, from pairs; NaN: it has no pairs. If
 * ratios are equal, the first is chosen. To be chosen, a way must beat the plain one. */
struct fastest fastest_choose(const double *ratio, size_t n);
