/* correct.h - what a right answer takes: joules or money an answer, over the share of answers that
 * are right. A method that answers faster and errs more pays for its errors here.
 */
#ifndef ANALYSIS_POINTS_CORRECT_H
#define ANALYSIS_POINTS_CORRECT_H

#include <jansson.h>

#include "lib/analysis/points/points.h"

struct correct { json_t *costs; }; /* begins as zero: metric records, by their identity */

/* Keeps a metric record of joules or money an answer; any other is none of ours. -1: it is no such
 * cost (points_check_cost). */
int correct_take(struct correct *c, const json_t *record, struct err *e);
/* The members of a metric record j_per_correct or cost_per_correct of each record that was kept;
 * accuracies are those of `p`, after points_finish. Launches and prompts are resampled; without an
 * interval of the cost there is none. An array; the caller's. */
json_t *correct_records(const struct correct *c, const struct points *p, size_t draws,
                        uint64_t seed, double level);
void correct_free(struct correct *c);

#endif
