/* checkpoint-pages.c - brings the files of a checkpoint into the page cache before its matrices are
 * read. */
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/read_ahead.h"

void checkpoint_read_ahead(struct checkpoint *model)
{
    if (model->tensors)
        model->ahead = read_ahead_start(model->tensors, READ_AHEAD_BYTES);
}

void checkpoint_reached(const struct checkpoint *model, const struct weight *of)
{
    const struct tensor *raw = of ? checkpoint_tensor(model, of->role, of->layer) : NULL;
    if (raw || !of)
        read_ahead_reached(model->ahead, raw);
}
