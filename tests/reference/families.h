/* families.h - the published samplers of the families of diffusion models, in double precision. */
#pragma once

#include <jansson.h>

#include "tests/reference/model.h"

/* {"op":"sample", "sampler":"mdlm"|"bd3lm"|"sdar"|"dream"|"fast"|"nemotron"|"joint"|"localleap"|
 * "d2f"|"stable"|"sched"|"less"|"s2d2"|"dawn"|"idlm", "gen_length", "block_length", "steps" (in
 * all; sdar, sched, less: of a block), "threshold" (nemotron, sdar, fast, stable, joint, localleap,
 * d2f, dawn), "part" (fast: slots filled together), "edit_threshold", "edit_passes" (joint),
 * "relaxed_threshold", "radius" (localleap), "open_share", "ready_share", "from_end" (d2f; 1:
 * blocks from the end of the prompt), "joined" (1: the prompt is one block), "high", "low", "rate",
 * "timesteps", "lag" (sched), "sure", "drift", "history" (less), "span", "cut" (s2d2; 1: the last
 * block ends with the answer), "sink", "edge", "induce", "low" (dawn), "most" (idlm: guesses),
 * "order":"confidence"|"margin"|"entropy", "top_p", "top_k" (dream), "mask"} ->
 * {"ids","min_logit_gap","min_confidence_gap"} as of op diffuse, "edits" of joint, "passes" of
 * idlm, and "min_router_gap", the smallest lead of a chosen group or expert of LLaDA2. A gap to the
 * threshold counts as a gap of confidence. The measure of `order` takes the place of the
 * confidence. All samplers run at temperature 0. */
json_t *answer_sample(struct model *m, const json_t *request);
