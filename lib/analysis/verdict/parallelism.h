/* parallelism.h - tokens per forward pass and accuracy under parallelism (lib/stat/aup.h) of the
 * sweeps of a run. Intervals resample prompts, the same ones for all points. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* A list with the members of an aup record for each series of points that has timed generation
 * records and quality records of the metric accuracy (all borrowed); the caller's reference. Only
 * prompts count that every point has. Tokens are those up to the end of the text, forwards all
 * passes, that of the prompt too. */
json_t *parallelism_of(const json_t *records, uint64_t seed, size_t draws);
