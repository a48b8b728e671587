/* steptime.h - splits the time of a step into three parts that sum to 100 %:
 *
 *     architecture  the least time for the rows that are needed, each row once: the rows of the
 *                   prompt and of the committed tokens. The matrices are read in every pass
 *     algorithm     the least time that all other rows add: masks that stay masked, a prompt that
 *                   is computed again, wrong guesses
 *     system        the rest: how far the passes are from the ceilings of the machine
 *
 * The least time of an answer is max(flops / ceiling of flops a second, bytes / ceiling of bytes a
 * second). If reading the matrices takes longer than the arithmetic, further rows cost nothing and
 * the algorithm has no share. Source: Williams, Waterman, Patterson 2009 (roofline). */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"

/* A list with the members of a steptime record for each point of batch 1 for which `records` has
 * timed generation records and the ceilings (roofline records) of their machine. The caller's
 * reference. Records must be marked (source.h). NULL with *e (EXIT_BAD_DATA): the answers come from
 * several machines. Disturbed answers are counted and left out; if a point has only disturbed
 * answers, its parts are null. Intervals resample prompts with all their answers. */
json_t *steptime_of(const json_t *records, uint64_t seed, size_t draws, struct err *e);
