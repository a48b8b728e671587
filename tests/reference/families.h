/* families.h - the published samplers of the families of diffusion models, in double precision. */
#pragma once

#include <jansson.h>

#include "tests/reference/model.h"

/* {"op":"sample", "sampler":"mdlm"|"bd3lm"|"sdar"|"dream"|"fast"|"nemotron"|"joint"|"localleap"|
 * "d2f"|"stable"|"sched"|"less"|"s2d2"|"dawn"|"idlm", "gen_length", "block_length", "steps" (of
 * the whole run; sdar, sched, less: of a block), "threshold" (nemotron, sdar, fast, stable, joint,
 * localleap, d2f, s2d2, dawn), "part" (fast: slots filled together), "edit_threshold",
 * "edit_passes" (joint), "relaxed_threshold", "radius" (localleap), "open_share", "ready_share",
 * "from_end" (d2f; 1: blocks from the end of the prompt), "joined" (1: the prompt is one block),
 * "high", "low", "rate", "timesteps", "lag" (sched), "sure", "drift", "history" (less), "span",
 * "cut" (s2d2; 1: the last block ends with the answer), "sink", "edge", "induce", "low" (dawn),
 * "most" (idlm: guesses), "order":"confidence"|"margin"|"entropy", "top_p",
 * "top_k" (dream), "mask"} ->
 * {"ids","min_logit_gap","min_confidence_gap","edits","passes","min_router_gap"}. The first three
 * mean the same as in op diffuse. "edits" counts the edits of joint, "passes" the passes of idlm.
 * "min_router_gap" is the smallest lead of a chosen group or expert of LLaDA2 over the next one.
 * "min_confidence_gap" includes the distances of confidences from the threshold. If "order" is
 * given, its measure replaces the confidence. All samplers run at temperature 0. */
json_t *answer_sample(struct model *m, const json_t *request);
