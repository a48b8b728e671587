/* sameness.h - do two runs give the same answers, id by id? For two devices, and for the timed and
 * the scored answers of a run. */
#pragma once

#include <jansson.h>

/* A check record ("ids") for each model: how many answers of `run` have the ids of the answer of
 * `base` to the same prompt at the same point (where base has only one point: to the same prompt).
 * It passes if these are at least the share `least` of all, and there are any. Both hold generation
 * records, borrowed; warm-up and failed answers do not count. The caller's reference. */
json_t *sameness_judge(const json_t *base, const json_t *run, double least);
