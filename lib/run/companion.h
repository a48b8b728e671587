/* companion.h - the second network of a run: the --draft model, which guesses tokens
 * (lib/decode/autoregress.h). */
#pragma once

#include "lib/run/job.h"
#include "lib/text/tokenizer.h"

struct companion {
    struct checkpoint checkpoint;
    struct network network;
    int asked;      /* 1: the options ask for a companion */
    int loaded;     /* 1: its weights are in the memory of the back end */
    enum dtype act; /* format of its activations, once loaded */
    struct memory memory; /* memory that the companion uses, once loaded */
};
/* Opens the companion if the options ask for one. A --draft model must be autoregressive, and its
 * ids must mean the same tokens as those of *model with the tokenizer `own` (NULL: none). A drafter
 * that reads layers of *model (config.taps) has no tokenizer; its sizes must fit *model. Returns
 * -1: EXIT_NO_INPUT, EXIT_BAD_USAGE, EXIT_BAD_DATA with the difference. */
int companion_open(struct companion *companion, const struct job *job,
                   const struct checkpoint *model, const struct tokenizer *own,
                   const struct log *log, struct err *e);
/* Settle the companion as *n, or load it, in the formats that the flags of the job set for both
 * models. Return as engine_settle() and engine_load(). */
int companion_settle(const struct companion *companion, const struct job *job,
                     struct backend *backend, struct network *n, struct err *e);
int companion_load(struct companion *companion, const struct job *job, struct backend *backend,
                   struct err *e);
void companion_unload(struct companion *companion);
/* Call after both models are loaded. Returns -1 (EXIT_BAD_USAGE) if their activations have
 * different formats. */
int companion_agrees(const struct companion *companion, const struct backend *backend,
                     struct err *e);
void companion_close(struct companion *companion);
/* Returns the memory of the companion if it is loaded and the point does not use it, else NULL. */
const struct memory *companion_idle(const struct companion *companion, const struct job *job,
                                    const struct settings *point);
/* Returns the companion if the point uses it, else NULL. */
const struct network *companion_at(const struct companion *companion, const struct job *job,
                                   const struct settings *point);
