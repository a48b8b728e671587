/* batches.h - the batches of one point, merged from their requests. The last functions give the
 * arithmetic and memory traffic of batches as shares of a machine's ceilings. NaN: not known. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/stat/launch.h"

enum batches_member {
    BATCHES_LAUNCH, BATCHES_ROUND, BATCHES_ID, /* below 2^53; id < 0: a batch of its own */
    BATCHES_NS,         /* makespan: from the start of the batch to its last token */
    BATCHES_TO_EOS, BATCHES_SLOTS, /* tokens up to the stop id; all tokens */
    BATCHES_TEXT,       /* bytes of text up to the stop id */
    BATCHES_REQUESTS,   /* in a request: 1; in a batch: the number of its requests */
    BATCHES_FILLED,     /* the number of requests that the batch had; NaN: no limit is known */
    BATCHES_GOOD,       /* in a request: 1 if it keeps the limits of latency, else 0; in a batch:
                           the number of its requests that keep them */
    /* Device readings over the batch; every request of a batch has the same ones. */
    BATCHES_J, BATCHES_TICKS, /* joules by the energy counter; how often the counter changed */
    BATCHES_INTEGRAL_J,       /* joules as the integral of power readings */
    BATCHES_LOOKS, BATCHES_CAPPED, /* readings of the clocks; readings at the power cap */
    BATCHES_WHOLE,      /* 1: the energy counter misses no time (energy.h); else 0 */
    /* The least arithmetic and traffic (flops, bytes) of the batch and of its first pass, which
     * computes the prompts; the time of the first pass (ns). Every request has the same ones. */
    BATCHES_FLOPS, BATCHES_BYTES, BATCHES_PREFILL_FLOPS, BATCHES_PREFILL_BYTES, BATCHES_PREFILL_NS,
    BATCHES_IDLE_W,     /* idle power of its launch; not in a request */
    BATCHES_MEMBERS
};
struct batches_one { double of[BATCHES_IDLE_W]; };
struct batches { /* begins as zeroes */
    struct batches_one *row; /* [n]: merged; owned */
    double *idle_w;          /* [n_idle]; owned */
    struct batches_one last; /* the batch that still takes requests; not yet in row */
    int open;                /* 1: `last` is valid */
    size_t n, cap, n_idle, cap_idle;
};

/* Takes a request. Requests with the same launch, round and id become one batch. The makespan of a
 * batch is the largest of its requests; tokens, bytes and numbers of requests are summed. */
void batches_add(struct batches *batches, const struct batches_one *request);
/* To be called after the last request. Sorts by launch, round and id and merges. */
void batches_finish(struct batches *batches);
/* To be called after batches_finish(). Returns -1 (EXIT_BAD_DATA) if a batch has more requests than
 * BATCHES_FILLED. */
int batches_check(const struct batches *batches, struct err *e);
/* Sets BATCHES_IDLE_W of the next batch. Call after batches_finish(), once for each batch in
 * order. */
void batches_add_idle(struct batches *batches, double watts);
/* A member of batch i; NaN if i is out of range. */
double batches_get(const struct batches *batches, enum batches_member of, size_t i);
int64_t batches_launch(const struct batches *batches, size_t i);
void batches_free(struct batches *batches);

/* Each function writes samples for LAUNCH_RATIO to samples[n] (NULL: writes nothing) and returns
 * how many batches have the numbers.
 *   batches_shares   value = flops or bytes, weight = seconds * most. SHARE_PREFILL_FLOPS is about
 *                    the first pass, SHARE_DECODE_BYTES about all other passes. `most`: the flops
 *                    or bytes a second of the machine; 1 gives rates.
 *   batches_rates    value = the member `of`, weight = seconds of the makespan
 *   batches_capped   value = readings at the power cap, weight = all readings */
enum batches_share { SHARE_FLOPS, SHARE_BYTES, SHARE_PREFILL_FLOPS, SHARE_DECODE_BYTES };
size_t batches_shares(const struct batches *batches, enum batches_share share, double most,
                      struct launch_sample *samples);
size_t batches_rates(const struct batches *batches, enum batches_member of,
                     struct launch_sample *samples);
size_t batches_capped(const struct batches *batches, struct launch_sample *samples);
