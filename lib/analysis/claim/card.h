/* card.h - the four numbers that stand beside the answer: the time of equal quality, tokens a
 * second at the largest batch, peak memory, and what one token a step costs.
 */
#ifndef ANALYSIS_CLAIM_CARD_H
#define ANALYSIS_CLAIM_CARD_H

#include "lib/analysis/claim/finding.h"

void card_all(json_t *list, const struct findings *f);

#endif
