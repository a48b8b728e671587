/* observer.h - who looks on while a batch is generated. It is told of each pass between two passes,
 * and changes nothing in what is written.
 *
 * To look closely costs: what a pass changed is brought to the host and the next one waits for it,
 * so that times taken meanwhile are those of another program. Without `closely` only the end of
 * each pass is told, which costs a call.
 */
#ifndef DECODE_OBSERVER_H
#define DECODE_OBSERVER_H

#include <stddef.h>
#include <stdint.h>

/* What a pass changed of one answer; all of it borrowed until the call returns. */
struct observed {
    size_t input;             /* which of the batch */
    int64_t pass;             /* of this answer, from 1 */
    int64_t ns;               /* when it was done, since the batch began */
    const int32_t *ids;       /* [n] as they are now: all slots of a canvas, all tokens of a text */
    size_t n, readable;       /* slots; those before the first one that is not final */
    int32_t mask;             /* the id of a slot that is not final; -1: there are none */
    size_t commits, reopened;
    const int32_t *slot;      /* [commits] the slots that got an id, rising */
    const double *confidence; /* [commits] the model's probability of it; NaN: it was not asked */
    const int32_t *again;     /* [reopened] the slots that were masked again, rising */
};
struct observer {
    int closely;
    void (*changed)(void *ctx, const struct observed *o); /* closely alone: an answer in a pass */
    void (*passed)(void *ctx);                            /* then, once: the pass is accounted */
    void *ctx;
};

#endif
