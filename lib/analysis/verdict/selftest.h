/* selftest.h - judges the self-test, and a gate against slower builds. In the self-test, phase 3
 * runs each model as itself, as a twin, and as a slow twin that computes about one pass in twenty
 * twice. The verdict must be SAME for the twin and SLOWER for the slow twin, by elapsed time and by
 * processor time. */
#pragma once

#include <jansson.h>

/* A list with the fields of one check record for each clock and model, from comparison records
 * whose settings are "twin" and "slow" (compare --by model --base self; borrowed). `pass` is true
 * if both verdicts are as expected. factor: how much slower the slow twin is, 1.05. The caller's
 * reference. */
json_t *selftest_judge(const json_t *comparisons, double factor);

/* A list with the fields of one check record for each ratio of times in comparison records
 * (borrowed); the caller's reference. limit: the slow-down to find, 0.02. Processor time decides if
 * it was recorded, else elapsed time. The verdict is:
 *   SLOWER       the ratio differs from 1 with p below 0.001 and is above 1 + limit / 2
 *   UNDECIDED    there is no interval, or half of it is wider than limit / 2 and the interval does
 *                not lie above 1 + limit / 2; `pass` is null
 *   NOT SLOWER   otherwise */
json_t *selftest_gate(const json_t *comparisons, double limit);
