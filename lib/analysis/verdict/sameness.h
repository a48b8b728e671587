/* sameness.h - whether two runs give the same answers, id by id: runs on two devices, or the timed
 * and the scored answers of one run. */
#pragma once

#include <jansson.h>

/* Returns a check record ("ids") for each model (the caller's reference): how many answers of `run`
 * have the same ids as the answer of `base` to the same prompt at the same point. If base has only
 * one point, the prompt alone decides. The check passes if the share of such answers is at least
 * `least` and there are answers. Both arguments hold generation records (borrowed); warm-up and
 * failed answers do not count. */
json_t *sameness_judge(const json_t *base, const json_t *run, double least);
