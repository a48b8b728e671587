/* steptime.h - the time of a step in three parts that sum to 100 %:
 *
 *     architecture  the least time of the rows that are needed: those of the prompt once and of
 *                   each committed token once, beside reading the matrices in every pass
 *     algorithm     the further least time of all other rows: masks that stay masked, a prompt that
 *                   is computed again, wrong guesses
 *     system        the rest: how far the passes are from the ceilings of the machine
 *
 * The least time of work is max(flops / ceiling, bytes / ceiling) of each answer. Where reading the
 * matrices takes longer than the arithmetic, further rows are free and the algorithm has no share.
 * Source: Williams, Waterman, Patterson 2009 (roofline). */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"

/* A list with the members of a steptime record for each point of batch 1 that has timed generation
 * records, with ceilings (roofline records) of its machine; the caller's reference. Records are
 * marked (source.h); answers of several machines are refused: NULL, *e (EXIT_BAD_DATA). Disturbed
 * answers are counted and left out: a point that has no others has null parts. Intervals resample
 * prompts with all their answers. */
json_t *steptime_of(const json_t *records, uint64_t seed, size_t draws, struct err *e);
