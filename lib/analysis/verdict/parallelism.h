/* parallelism.h - computes tokens per forward pass and accuracy under parallelism (lib/stat/aup.h)
 * for the sweeps of a run. Intervals resample prompts, the same ones for all points. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* A list with the members of an aup record for each task, set of prompts (`workload`) and series of
 * points that has timed generation records and quality records of the metric accuracy (`records`,
 * borrowed). The caller's reference. If no prompt of a point has both kinds of records, the point
 * is left out and named in `unpaired`. A prompt counts if all other points of the set have it.
 * Tokens are counted up to the end of the text. Forward passes are all passes, the pass of the
 * prompt included. */
json_t *parallelism_of(const json_t *records, uint64_t seed, size_t draws);
