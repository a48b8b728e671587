/* runner.h - runs the plan of a generator process:
 *
 *     for each round, for each point of the plan:
 *         first time: warm-up batches            phase "cold" (the very first), "warmup"
 *         all prompts, `batch` at a time         phase "timed"
 *         (--admit continuous: one batch that prompts join when others leave)
 *
 * A batch that does not fit in memory is a result: its records have status oom, and the plots of
 * phase 5 show them. With --halve the batch is tried again as two halves, down to one prompt: for
 * users who want texts, not times. A halved batch keeps its point and has batch_halved; measure
 * counts it as oom, since a smaller batch ran. --halve is off by default, because every record may
 * be timed except records of the warm-up. */
#pragma once

#include "lib/run/job.h"

/* Runs the plan. Returns the exit code; e->code is set if there is a message. */
int runner_run(const struct job *job, struct err *e);
