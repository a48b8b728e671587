/* runner.h - runs the plan of a generator process:
 *
 *     for each round, for each point of the plan:
 *         first time: warm-up batches            phase "cold" (the very first), "warmup"
 *         all prompts, `batch` at a time         phase "timed"
 *         (--admit continuous: as one batch, which they join as others leave it)
 *
 * A batch that memory is short for is a result: records with status oom, which phase 5 draws as
 * such. Who wants the texts and not the times says --halve: then it is tried again as two halves,
 * down to one prompt. A halved batch keeps the point that was asked for and says batch_halved;
 * measure counts it as oom there, since what ran is another, smaller batch. It is off by default
 * because every record but those of the warm-up is one that may be timed.
 */
#ifndef RUN_RUNNER_H
#define RUN_RUNNER_H

#include "lib/run/job.h"

/* Runs the plan. Returns the exit code; e->code is set when there is something to say. */
int runner_run(const struct job *job, struct err *e);

#endif
