/* train_batch.c - memory of a batch; see train_batch.h. The function that fills a batch sets number
 * and length of the sequences, so one batch serves steps of different lengths. */
#include "lib/train/train_batch.h"

#include <stdlib.h>

#include "lib/base/mem.h"

struct train_batch train_batch_room(size_t rows)
{
    return (struct train_batch){.token = mem_zero(rows, sizeof(int32_t)),
                                .target = mem_zero(rows, sizeof(int32_t)),
                                .weight = mem_zero(rows, sizeof(float)),
                                .last = mem_zero(rows, sizeof(int32_t))};
}

void train_batch_free(struct train_batch *batch)
{
    free(batch->token);
    free(batch->target);
    free(batch->weight);
    free(batch->last);
}
