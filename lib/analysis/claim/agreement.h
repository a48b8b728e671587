/* agreement.h - compares the claims of two runs, by name, key and task.
 *
 *   sentences    word by word; step counts must be equal, other numbers agree as ratios do
 *   ratios       each value lies in its own interval; the intervals overlap, or the values differ
 *                by a factor of at most 1.1 (the same kind of machine) or 2 (another)
 *   qualities    the intervals overlap; equal if the token ids are equal
 *   step counts  the brackets overlap; equal if the token ids are equal
 *   memory       within 2 % on the same kind of machine, else not compared
 *   token ids    equal on the same device, instruction set and number formats
 *
 * A claim that one run lacks or leaves undecided is not compared. */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct agreement {
    int64_t agreed, differed, skipped;  /* claims */
    int64_t times, times_compared;      /* stored ratios of times; those compared */
};

/* Compares the claims of a stored run with those of another one (arrays of claim records): the
 * fields of a check record for each stored claim that can be compared in principle, then of a
 * summary. The caller's reference. */
json_t *agreement_of(const json_t *was, const json_t *now, struct agreement *sum);
