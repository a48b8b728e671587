/* history.h - the training history of a checkpoint: FOLDER/training.ndjson, one line per training,
 * oldest first, including the trainings of the checkpoint from which this training started:
 *     {"model":"llada-demo","arch":"llada","steps":5000,"rows":10240000}
 * `rows` counts the tokens of all forward and backward passes (null: unknown). The sum of `rows`
 * over the lines is the training cost by which two contestants are compared. */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"

#define HISTORY "training.ndjson"

struct history_line { const char *model, *arch; int64_t steps, rows; };

/* Writes FOLDER/training.ndjson: the lines of the checkpoint in folder `from`, then the line *of.
 * from NULL: no earlier lines; `from` may be FOLDER. -1: EXIT_BAD_DATA, EXIT_CANNOT_CREATE,
 * EXIT_IO. */
int history_write(const char *folder, const char *from, const struct history_line *of,
                  struct err *e);
