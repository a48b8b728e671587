/* judges.h - checks that the values of a metric come from one judge. Each judge has its own
 * scale, so values of two judges must not be compared or put on one front.
 *
 * score-ppl and score-bert write `judge_sha256` into each quality record. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/record/rec.h"

/* Takes the next record of `in`. *seen: the judges so far; NULL at first, the caller's reference.
 * Returns -1 (EXIT_BAD_DATA) if another judge, or another layer of an encoder, scored the same
 * metric of the same task. The message has both judges or both layers, and where each was read. A
 * record without a named judge is accepted. */
int judges_check(json_t **seen, const json_t *record, struct rec_reader *in, struct err *e);
