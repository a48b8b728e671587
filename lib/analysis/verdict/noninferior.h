/* noninferior.h - the members of a comparison record that say whether a configuration is as good
 * as its base. The test is asgood_test() of lib/stat/asgood.h, as in claims and crossovers. The
 * margin, a loss that counts as none, is declared before the data are seen; one-sided p <= 2.5 %
 * must show that the true loss is smaller. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/stat/asgood.h"

/* The default margin: 5 points of accuracy; for any other quality 5 % of the base's value. This is
 * mild: MLPerf Inference allows a model 1 % of the accuracy of its reference, which takes thousands
 * of prompts to show. Source: mlcommons/inference_policies, inference_rules.adoc. */
#define NONINFERIOR_MARGIN "5%,accuracy=0.05"

/* Sets margin, margin_relative, noninferior (true: shown to be as good; false: shown to be worse by
 * more than the margin; null: neither), p_noninferior (test.good) and prompts_to_decide: the fewest
 * prompts at which the test shows one of both, if the effect and its spread stay. The count is
 * exact for right and wrong answers. For other qualities it is up to 3 % too large, because it uses
 * normal quantiles and the test Student's t. n: prompts of the test. */
void noninferior_put(json_t *record, const struct pooled_margin *margin, struct asgood test,
                     size_t n);
