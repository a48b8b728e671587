/* conclusion.h - the findings of a run as records of kind claim: question, answer, certainty,
 * cards, sections, figures, crossings, ratios, qualities, and hashes of the answers. The page,
 * `make all` and `make replicate` print these and compute nothing. */
#pragma once

#include "lib/analysis/claim/finding.h"

/* The members of each claim, as an array in the order of the page. The caller's reference. */
json_t *conclusion_of(const struct findings *findings, const struct finding_plan *plan);
