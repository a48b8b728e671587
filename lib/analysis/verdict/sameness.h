/* sameness.h - judges whether two runs give the same answers, id by id. The runs may be on two
 * devices, or be the timed and the scored answers of one run. */
#pragma once

#include <jansson.h>

/* A list with the members of a check record ("ids") for each model; the caller's reference. The
 * check counts the answers of `run` whose ids are equal to the ids of the answer of `base` to the
 * same prompt at the same point. If the model has only one point in `base`, the point of the answer
 * does not matter. The check passes if there are answers and the share of equal ones is at least
 * `least`. base, run: generation records, borrowed; warm-up and failed answers do not count. */
json_t *sameness_judge(const json_t *base, const json_t *run, double least);
