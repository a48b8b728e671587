/* observer.h - callbacks while a batch is generated. The callbacks run between two passes and
 * do not change the text.
 *
 * With `closely`, the changes of each pass are copied to the host and the next pass waits for the
 * callback, so times are not those of a normal run. Without it, only the end of each pass is
 * reported, at the cost of one call. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The changes of a pass to one answer; all pointers are borrowed until the call returns. */
struct observed {
    size_t input;             /* index of the answer in the batch */
    int64_t pass;             /* pass of this answer, from 1 */
    int64_t ns;               /* end of the pass, since the batch began */
    const int32_t *ids;       /* [n] current ids: all slots of a canvas, all tokens of a text */
    size_t n, readable;       /* slots; slots before the first that is not final */
    size_t commits, reopened;
    const int32_t *slot;      /* [commits] slots that got an id, ascending */
    const double *confidence; /* [commits] probability of the id; NaN: not computed */
    const int32_t *again;     /* [reopened] slots masked again, ascending */
};
struct observer {
    int closely;
    void (*changed)(void *ctx, const struct observed *observed); /* only if closely */
    void (*passed)(void *ctx); /* once for each pass, after `changed` and after the count */
    void *ctx;
};
