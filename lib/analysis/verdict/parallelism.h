/* parallelism.h - tokens per forward pass and accuracy under parallelism (lib/stat/aup.h) of the
 * sweeps of a run. Intervals resample prompts, the same ones for all points. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* Returns a list (the caller's reference) of the members of an aup record for each task and series
 * of points that has timed generation records and quality records of the metric accuracy
 * (borrowed). A point without a prompt that has both is left out and named in `unpaired`. A prompt
 * counts if every other point of the task has it. Tokens are counted up to the end of the text.
 * Forwards are all passes, with that of the prompt. */
json_t *parallelism_of(const json_t *records, uint64_t seed, size_t draws);
