/* explain.h - what a run would take, said before anything is loaded: --explain. */
#ifndef RUN_EXPLAIN_H
#define RUN_EXPLAIN_H

#include "lib/base/cli/log.h"
#include "lib/record/rec.h"
#include "lib/run/job.h"
#include "lib/run/prompts/promptset.h"

/* A record of kind `plan` and a line on standard error for each point: bytes by kind of its
 * neediest batch, whether that fits, how many of its prompts fit together, and how far a
 * quantization moves the weights. *n and *companion as in memory_fit.h. */
int explain_write(const struct job *job, const struct network *n, const struct network *companion,
                  const struct promptset *prompts, struct rec_writer *out, const struct log *log,
                  struct err *e);

#endif
