/* noninferior.h - is a configuration as good as its base, but for a loss that counts as none? An
 * interval that reaches into equality proves nothing: it does so the sooner, the fewer prompts
 * there are. So a loss is declared before the data are seen, the margin, and the whole interval has
 * to lie above it.
 *
 * Source: Piaggio et al. 2012 (CONSORT for non-inferiority, JAMA 308:2594); for shares of right
 * answers Tango 1998 (Statistics in Medicine 17:891).
 */
#ifndef ANALYSIS_VERDICT_NONINFERIOR_H
#define ANALYSIS_VERDICT_NONINFERIOR_H

#include <jansson.h>
#include <stddef.h>

#include "lib/stat/pooled.h"
#include "lib/stat/proportion.h"

/* 5 points of accuracy; of any other quality 5 % of the base's value. A choice, and a mild one:
 * MLPerf Inference allows a model 1 % of the accuracy of its reference, which takes thousands of
 * prompts to show. Source: mlcommons/inference_policies, inference_rules.adoc. */
#define NONINFERIOR_MARGIN "5%,accuracy=0.05"

/* Sets margin, noninferior (true: the 95 % interval is better than the loss; false: worse; null: it
 * holds it), p_noninferior (one-sided, against that loss) and prompts_to_decide of an effect v over
 * n prompts on a base of that value. k says which way is better (higher 0 or 1) and whether the
 * effect is a ratio (perplexities) or a difference. pairs NULL: it was resampled, and its error is
 * what the interval says. */
void noninferior_put(json_t *r, const struct pooled_kind *k, const struct pooled_margin *margin,
                     double base, struct interval v, size_t n,
                     const struct proportion_pairs *pairs);

#endif
