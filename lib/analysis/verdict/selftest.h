/* selftest.h - judges the self-test. Phase 3 runs each model as itself, as a twin, and as a
 * slow twin that computes about one pass in twenty twice. The verdict must be SAME for the twin and
 * SLOWER for the slow twin, by elapsed time and by processor time. */
#pragma once

#include <jansson.h>

/* The fields of one check record for each clock and model, from comparison records whose settings
 * are "twin" and "slow" (compare --by model --base self; borrowed). `pass`: both verdicts are as
 * expected. factor: how much slower the slow twin is, 1.05. The caller's reference. */
json_t *selftest_judge(const json_t *comparisons, double factor);
