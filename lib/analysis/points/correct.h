/* correct.h - joules of a right answer: joules of an answer / the share of answers that are right.
 * A fast method that errs more pays for its errors here.
 */
#ifndef ANALYSIS_POINTS_CORRECT_H
#define ANALYSIS_POINTS_CORRECT_H

#include <jansson.h>

#include "lib/analysis/points/points.h"

struct correct { json_t *costs; }; /* begins as zero: metric records, by their identity */

/* Keeps a metric record of joules an answer (energy_j_per_request); ignores all others. -1: the
 * record is malformed (points_check_cost). */
int correct_take(struct correct *c, const json_t *record, struct err *e);
/* The members of a metric record j_per_correct for each record that was kept. Accuracies are those
 * of `p`, after points_finish. The interval resamples launches and prompts; it is null if that of
 * the joules is. An array; the caller's reference. */
json_t *correct_records(const struct correct *c, const struct points *p, size_t draws,
                        uint64_t seed, double level);
void correct_free(struct correct *c);

#endif
