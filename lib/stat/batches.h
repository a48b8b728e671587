/* batches.h - the batches of one point, merged from their requests and kept small (column.h), and
 * what they come to as shares of a machine. Of what is not known a number is NaN.
 */
#ifndef STAT_BATCHES_H
#define STAT_BATCHES_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/column.h"
#include "lib/stat/launch.h"

enum batches_member {
    BATCHES_LAUNCH, BATCHES_ROUND, BATCHES_ID, /* below 2^53; id < 0: a batch of its own */
    BATCHES_NS,         /* makespan */
    BATCHES_TO_EOS, BATCHES_SLOTS, /* tokens up to the stop id, and all */
    BATCHES_TEXT,       /* bytes of text up to the stop id */
    BATCHES_REQUESTS,   /* 1; merged: how many */
    /* Of the device, over the batch; the same in all its requests. */
    BATCHES_J, BATCHES_TICKS, /* by its counter, and how often that changed */
    BATCHES_INTEGRAL_J,       /* by power readings */
    BATCHES_LOOKS, BATCHES_CAPPED, /* at the clocks, and those under the power cap */
    BATCHES_WHOLE,      /* 1: the counter misses nothing: ticks alone say what it is worth; 0 */
    /* What the batch had to do at least, and its first pass, which holds the prompts; likewise. */
    BATCHES_FLOPS, BATCHES_BYTES, BATCHES_PREFILL_FLOPS, BATCHES_PREFILL_BYTES, BATCHES_PREFILL_NS,
    BATCHES_IDLE_W,     /* of its launch: power with nothing to do; no request has it */
    BATCHES_MEMBERS
};
struct batches_one { double of[BATCHES_IDLE_W]; };
struct batches { /* begins as zeroes */
    struct column of[BATCHES_MEMBERS];
    struct batches_one last; /* still open: most requests of a batch come one after another */
    int open;
    size_t n; /* merged */
};

/* Takes a request. Those of a batch (launch, round, id) become one: its makespan counts once (the
 * largest), its tokens, bytes and requests are added. */
void batches_add(struct batches *b, const struct batches_one *request);
/* After the last one: in order of launch, round and id, each batch once. */
void batches_finish(struct batches *b);
/* After batches_finish, for each batch in turn. */
void batches_add_idle(struct batches *b, double watts);
double batches_get(const struct batches *b, enum batches_member of, size_t i); /* i < b->n */
int64_t batches_launch(const struct batches *b, size_t i);
void batches_free(struct batches *b);

/* Shares of what a machine can do: the flops or bytes of batches over their time, those of the
 * first passes alone, or of all others, as samples for LAUNCH_RATIO: work / (seconds * most).
 * most 1: rates. samples[n], or NULL; returns how many are known. */
enum batches_share { SHARE_FLOPS, SHARE_BYTES, SHARE_PREFILL_FLOPS, SHARE_DECODE_BYTES };
size_t batches_shares(const struct batches *b, enum batches_share share, double most,
                      struct launch_sample *samples);
/* A number a second of the makespan, likewise; and the looks under the power cap of all looks. */
size_t batches_rates(const struct batches *b, enum batches_member of,
                     struct launch_sample *samples);
size_t batches_capped(const struct batches *b, struct launch_sample *samples);

#endif
