/* think_run.h - a batch of texts at work: the data that think.c (memory, clock, passes) and
 * think_fit.c (latents), which it calls, share. */
#pragma once

#include "lib/latent/think.h"
#include "lib/network/cost.h"
#include "lib/network/forward.h"
#include "lib/network/kv.h"
#include "lib/network/latent.h"
#include "lib/train/posterior.h"

struct thought {           /* a text of the batch */
    size_t prompt, len, most; /* ids of the prompt; current; maximum */
    size_t held;           /* first ids whose keys and values the cache holds */
    size_t fitted;         /* ids at the last fit of z */
    size_t slot, ring;     /* position p is in slot + p % ring; with a state, ring is 1 */
    int live, met_stop;
    int32_t *ids;          /* [most] */
};

/* The fit of z (think_fit.c). Latents that are not fitted use only `state` and `used`. */
struct fitting {
    struct posterior state;
    struct parameters *values; /* values of the network in fp32 */
    struct backprop *backprop;
    struct train_batch texts;
    uint64_t *keys;        /* [batch] */
    double *bound;         /* [batch] one-draw estimate of -ELBO */
    uint64_t rounds;       /* fits so far */
    const float *used;     /* [L, batch, n, D] latents that the layers read; part of state */
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
    size_t *who;                  /* [batch] text of each answer */
    struct head_row *answer;      /* [batch] */
};

/* Positions up to `pos` that its row attends to; 0 with a mixer that recurs. */
static inline size_t think_seen(const struct thinking *thinking, size_t pos)
{
    const struct config *config = &thinking->n->config;
    return config_recurs(config) ? 0 : pos < config->window ? pos + 1 : config->window;
}

/* ---- think_fit.c ---- */

struct memory_estimate think_fit_estimate(const struct network *n, const struct think *how,
                                          const struct generation_input *in, size_t batch);
int think_fit_make(struct thinking *thinking); /* -1: no memory */
void think_fit_free(struct thinking *thinking);
/* Makes or refits the latents of all texts, and sends them to the layers. */
void think_fit(struct thinking *thinking);
