/* noninferior.h - sets the members of a comparison record that say whether a configuration is as
 * good as its base. The test is asgood_test() of lib/stat/asgood.h, as in claims and crossovers.
 * The margin is a loss that counts as none; it is declared before the data are seen. One-sided
 * p <= 2.5 % must show that the true loss is smaller than the margin. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/stat/asgood.h"

/* The default margin: 5 points of accuracy; for any other quality 5 % of the base's value. This
 * margin is mild. MLPerf Inference allows a model to lose 1 % of the accuracy of its reference; to
 * show that takes thousands of prompts. Source: mlcommons/inference_policies,
 * inference_rules.adoc. */
#define NONINFERIOR_MARGIN "5%,accuracy=0.05"

/* Sets these members:
 *   margin, margin_relative
 *   noninferior         true: shown to be as good; false: shown to be worse by more than the
 *                       margin; null: neither is shown
 *   p_noninferior       test.good
 *   prompts_to_decide   the fewest prompts at which the test would show one of the two, if the
 *                       effect and its spread stay as measured
 * The count is exact for right and wrong answers. For other qualities it is up to 3 % too large,
 * because it uses normal quantiles, while the test uses Student's t. n: prompts of the test. */
void noninferior_put(json_t *record, const struct pooled_margin *margin, struct asgood test,
                     size_t n);
