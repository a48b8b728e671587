/* drafter.h - the model of --draft, which guesses for another one (lib/decode/autoregress.h); or
 * the same one in the format of --early-quant (lib/decode/diffuse.h). */
#ifndef RUN_DRAFTER_H
#define RUN_DRAFTER_H

#include "lib/run/job.h"
#include "lib/text/tokenizer.h"

struct drafter {
    struct checkpoint checkpoint;
    struct network network;
    int asked;      /* 1: there is such a model */
    int loaded;     /* 1: its weights are in the memory of the back end */
    enum dtype act; /* then, of its activations */
};
/* Opens it, if it was said. --draft: an autoregressive model whose ids mean what those of *c and
 * its tokenizer `own` (NULL: none) do. -1: EXIT_NO_INPUT, EXIT_BAD_DATA with what differs. */
int drafter_open(struct drafter *d, const struct job *job, const struct checkpoint *c,
                 const struct tokenizer *own, const struct log *log, struct err *e);
/* Settles or loads it as precisely as the flags of the job say, which is how the other one runs.
 * -1: as engine_settle and engine_load. */
int drafter_settle(const struct drafter *d, const struct job *job, struct backend *b,
                   struct network *n, struct err *e);
int drafter_load(struct drafter *d, const struct job *job, struct backend *b, struct err *e);
void drafter_unload(struct drafter *d);
/* After the other one was loaded. -1 (EXIT_BAD_USAGE): a back end computes in one format. */
int drafter_agrees(const struct drafter *d, const struct backend *b, struct err *e);
void drafter_close(struct drafter *d);
/* The network, where the point asks for its guesses; else NULL. */
const struct network *drafter_at(const struct drafter *d, const struct job *job,
                                 const struct settings *point);

#endif
