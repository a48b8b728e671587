/* think_run.h - a batch of texts at work: the data that think.c (memory, clock, passes) and
 * think_fit.c (latents), which it calls, share. */
#ifndef THINK_RUN_H
#define THINK_RUN_H

#include "lib/latent/think.h"
#include "lib/network/cost.h"
#include "lib/network/forward.h"
#include "lib/network/kv.h"
#include "lib/network/latent.h"
#include "lib/train/posterior.h"

struct thought {           /* a text of the batch */
    size_t prompt, len, most; /* ids of the prompt; so far; at most */
    size_t held;           /* whose keys and values the cache holds: the first ones */
    size_t fitted;         /* ids that z was last fitted to */
    size_t slot, ring;     /* position p lies in slot + p % ring; of a state the ring is 1 */
    int live, met_stop;
    int32_t *ids;          /* [most] */
};

/* What fits z (think_fit.c): prior and zero have the state alone. */
struct fitting {
    struct posterior state;
    struct parameters *values; /* of the network, in fp32 */
    struct backprop *backprop;
    struct train_batch texts;
    uint64_t *keys;        /* [batch] */
    double *bound;         /* [batch] one-draw estimate of -ELBO */
    uint64_t rounds;       /* fits so far */
    const float *used;     /* [L, batch, n, D] what the layers read: of state */
};

struct thinking {
    const struct network *n;
    const struct think *how;
    const struct generation_input *in;
    struct generation *out;
    struct batch_trace *trace;
    size_t batch;
    struct cost_model cost_model;
    struct thought *text;  /* [batch] */
    struct fitting fit;
    struct latents latents;
    struct kv kv;
    struct work *work;
    /* The next pass. */
    struct forward pass;
    int32_t *token, *pos, *slot;  /* [rows] */
    int32_t *slots;               /* [listed] */
    struct forward_seq *seqs;     /* [batch] */
    int32_t *wanted;              /* [batch] */
    uint64_t *key;                /* [batch] */
    size_t *who;                  /* [batch] whose answer */
    struct head_row *answer;      /* [batch] */
};

/* Positions before and at `pos` that its row attends to; 0 with a mixer that recurs. */
static inline size_t think_seen(const struct thinking *t, size_t pos)
{
    const struct config *c = &t->n->config;
    return config_recurs(c) ? 0 : pos < c->window ? pos + 1 : c->window;
}

/* ---- think_fit.c ---- */

struct memory_estimate think_fit_estimate(const struct network *n, const struct think *how,
                                          const struct generation_input *in, size_t batch);
int think_fit_make(struct thinking *t); /* -1: no memory */
void think_fit_free(struct thinking *t);
/* Makes the latents of all texts, or fits them anew, and sends them to the layers. */
void think_fit(struct thinking *t);

#endif
