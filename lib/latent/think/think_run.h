/* think_run.h - a batch of texts at work: the data that think.c (memory, clock, passes) and
 * think_fit.c (latents) share. think.c calls think_fit.c. */
#pragma once

#include "lib/latent/think.h"
#include "lib/network/cost.h"
#include "lib/network/forward.h"
#include "lib/network/kv.h"
#include "lib/network/latent.h"
#include "lib/train/posterior.h"

struct thought {           /* a text of the batch */
    size_t prompt, len, most; /* number of ids: of the prompt; now; at most */
    size_t held;           /* the cache has keys and values of the first `held` ids */
    size_t fitted;         /* number of ids at the last fit of z */
    size_t slot, ring;     /* position p is in slot + p % ring; with time mixing, ring is 1 */
    int live, met_stop;    /* live 1: the answer is not complete; met_stop 1: a stop id ended it */
    int32_t *ids;          /* [most] */
};

/* The latents of a batch (think_fit.c). values, backprop and texts exist only if latents are
 * fitted. */
struct fitting {
    struct posterior state;
    struct parameters *values; /* values of the network in fp32 */
    struct backprop *backprop;
    struct train_batch texts;
    uint64_t *keys;        /* [batch] */
    double *bound;         /* [batch] one-draw estimate of -ELBO */
    uint64_t rounds;       /* fits so far */
    const float *used;     /* [L, batch, n, D] latents that the layers read: an array of `state` */
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
    size_t *who;                  /* [batch] number of the text of each answer */
    struct head_row *answer;      /* [batch] */
};

/* The number of positions that the row at `pos` attends to, with its own; 0 with time mixing. */
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
