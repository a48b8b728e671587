/* history.h - the training history of a checkpoint: FOLDER/training.ndjson, one line per training,
 * oldest first, including the trainings of the checkpoint that it started from:
 *     {"model":"llada-demo","arch":"llada","steps":5000,"rows":10240000}
 * `rows` counts the tokens of all forward and backward passes; null when it is unknown. The sum
 * over the lines is the training cost by which two contestants are compared. */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"

#define HISTORY "training.ndjson"

struct history_line { const char *model, *arch; int64_t steps, rows; };

/* Writes FOLDER/training.ndjson: the lines of the checkpoint in folder `from` (NULL: none; it may
 * be FOLDER itself), then the line of this training. -1: EXIT_BAD_DATA, EXIT_CANNOT_CREATE,
 * EXIT_IO. */
int history_write(const char *folder, const char *from, const struct history_line *of,
                  struct err *e);
