/* inputs.h - makes the inputs of a batch: its prompts, with the times at which they come. */
#pragma once

#include "lib/run/generation_record.h"

/* Returns the inputs [n]; the caller frees them. With --arrival-rate the prompts of a timed batch
 * come one by one, the first at once. Warm-up batches begin with all prompts. The times depend on
 * the seed, the launch and the round of the plan, and not on the model: both models of a pair get
 * the same load. The n-th prompt that fits the context gets the n-th time. So a prompt that fits
 * only one model changes which prompt comes at a time, but not the times. */
struct generation_input *inputs_make(const struct run_plan *plan, const struct generation_place *at,
                                     const struct prompt *const *prompt, size_t n);
