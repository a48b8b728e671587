/* card.h - adds the claims for the four numbers beside the answer: time at equal quality, tokens a
 * second at the largest batch, peak memory, and the time with one token a step. */
#pragma once

#include "lib/analysis/claim/finding.h"

void card_all(json_t *list, const struct findings *findings);
