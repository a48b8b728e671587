/* explain.h - --explain: tells the memory that a run needs, before anything is loaded. */
#pragma once

#include "lib/base/cli/log.h"
#include "lib/record/rec.h"
#include "lib/run/job.h"
#include "lib/run/prompts/promptset.h"

/* Writes for each point a record of kind `plan` and a line on standard error: the bytes by kind of
 * its largest batch, whether it fits, how many prompts fit together, and the error that a
 * quantization adds to the weights. *n and *companion as in memory_fit.h. */
int explain_write(const struct job *job, const struct network *n, const struct network *companion,
                  const struct promptset *prompts, struct rec_writer *out, const struct log *log,
                  struct err *e);
