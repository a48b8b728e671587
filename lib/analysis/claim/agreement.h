/* agreement.h - do two runs state the same? Claims are compared by name, key and task.
 *
 *   sentences    word by word; step counts have to be equal, other numbers agree as ratios do
 *   ratios       each value lies in its own interval; the intervals overlap, or the values are
 *                within a factor of 1.1 (the same kind of machine) or 2 (another)
 *   qualities    the intervals overlap; equal where the answers are the same ids
 *   step counts  the brackets overlap; equal where the answers are the same ids
 *   memory       within 2 % on the same kind of machine, else not compared
 *   token ids    equal where device, instruction set and number formats are
 *
 * A claim that either run leaves undecided, or that one of them lacks, is not compared.
 */
#ifndef ANALYSIS_CLAIM_AGREEMENT_H
#define ANALYSIS_CLAIM_AGREEMENT_H

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"

struct agreement {
    int64_t agreed, differed, skipped;  /* claims */
    int64_t times, times_compared;      /* ratios of times that are stored, and compared */
};

/* The claims of a file ("-": standard input) as an array. *edited: 1 when the stream is not as it
 * was written. NULL: there are none (EXIT_BAD_DATA), or it cannot be read. The caller's
 * reference. */
json_t *agreement_read(const char *path, int *edited, struct err *e);
/* A check record for each stored claim that can be compared in principle, the last one the summary.
 * The caller's reference. */
json_t *agreement_of(const json_t *was, const json_t *now, struct agreement *sum);

#endif
