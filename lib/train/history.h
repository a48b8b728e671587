/* history.h - what made the weights of a checkpoint: FOLDER/training.ndjson, a line for each
 * training, oldest first, those of the checkpoint that it began with included:
 *     {"model":"llada-demo","arch":"llada","steps":5000,"rows":10240000}
 * `rows` are tokens that went through the network and back; null where a beginning did not say. The
 * sum over the lines is what the weights have cost, and what two contestants are compared by. */
#ifndef TRAIN_HISTORY_H
#define TRAIN_HISTORY_H

#include <stdint.h>

#include "lib/base/err.h"

#define HISTORY "training.ndjson"

struct history_line { const char *model, *arch; int64_t steps, rows; };

/* Writes FOLDER/training.ndjson: the lines of the checkpoint in the folder `from` (NULL: from
 * nothing; it may be FOLDER itself), then the line of this training. -1: 65, 73, 74. */
int history_write(const char *folder, const char *from, const struct history_line *of,
                  struct err *e);

#endif
