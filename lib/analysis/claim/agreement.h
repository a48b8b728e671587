/* agreement.h - compares the claims of two runs. Claims with the same name, key, task and quality
 * metric are compared; they agree under these rules:
 *
 *   sentences    the words and step counts are equal; other numbers agree as ratios do
 *   ratios       each value lies in its own interval; the intervals overlap, or the values differ
 *                by a factor of at most 1.1 (same kind of machine) or 2 (another machine)
 *   qualities    the intervals overlap; if the token ids are equal, the values are equal
 *   step counts  the brackets overlap; if the token ids are equal, the counts are equal
 *   memory       the values differ by at most 2 %; compared on the same kind of machine only
 *   token ids    the hashes are equal; compared on the same device, instruction set and number
 *                formats only
 *
 * A claim that one run lacks or leaves undecided is not compared. */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct agreement {
    int64_t agreed, differed, skipped;  /* numbers of claims */
    int64_t times, times_compared;      /* stored ratios of times; how many were compared */
};

/* Compares the claims `was` of a stored run with the claims `now` of another run (arrays of claim
 * records). Returns a list with the fields of a check record for each stored claim, then of a
 * summary. Claims that are never compared (question, certainty, method) have no check record. Sets
 * *sum. The caller's reference. */
json_t *agreement_of(const json_t *was, const json_t *now, struct agreement *sum);
