/* conclusion.h - turns the findings of a run into records of kind claim: question, answer,
 * certainty, cards, sections, figures, crossings, ratios, qualities, and hashes of the answers. The
 * page, `make all` and `make replicate` print these claims and compute nothing. */
#pragma once

#include "lib/analysis/claim/finding.h"

/* An array with the members of each claim, in the order of the page. The caller's reference. */
json_t *conclusion_of(const struct findings *findings, const struct finding_plan *plan);
