/* selftest.h - judges the self-test. Phase 3 runs each model as itself, as a twin, and as a
 * slow twin that computes about one pass in twenty twice. The verdict must be SAME for the twin and
 * SLOWER for the slow twin, by elapsed time and by processor time. */
#pragma once

#include <jansson.h>

/* The fields of one check record for each clock and model, from comparison records whose settings
 * are "twin" and "slow" (compare --by model --base self; borrowed). `pass`: both verdicts are as
 * expected. factor: how much slower the slow twin is, 1.05. The caller's reference. */
json_t *selftest_judge(const json_t *comparisons, double factor);

/* The fields of one check record for each ratio of times in comparison records (borrowed). verdict:
 * SLOWER if the ratio is above 1 + limit / 2 and differs from 1 with p below 0.001; UNDECIDED
 * (`pass` null) if half its interval is wider than limit / 2 and does not lie above; else NOT
 * SLOWER. Processor time decides where it is recorded. The caller's reference. */
json_t *selftest_gate(const json_t *comparisons, double limit);
