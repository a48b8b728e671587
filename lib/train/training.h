/* training.h - the loop of a training: batches, learning rate, records of the loss, saved states.
 *
 *     struct training t = {.how = &how, .config = &config, .trainer = trainer, ...};
 *     training_run(&t, &e); */
#pragma once

#include <jansson.h>

#include "lib/base/cli/log.h"
#include "lib/record/rec.h"
#include "lib/train/documents.h"
#include "lib/train/trainer.h"

struct training_how {
    int64_t steps, rows;      /* updates; tokens of a batch */
    int64_t min_len, max_len; /* tokens of a row; min_len: of a diffusion model only */
    int64_t report, save;     /* steps between two records, between two saves */
    int64_t loaders;          /* threads that prepare batches (loader.h) */
    double rate, warmup;      /* peak rate; steps to reach it. It then falls along a cosine to a
                               * twentieth of the peak */
    double decay, clip;       /* trainer_update() */
};

/* Everything is borrowed. */
struct training {
    const struct training_how *how;
    const struct config *config;
    struct backend *backend;
    struct trainer *trainer;              /* it may have steps behind it */
    const struct documents *corpus, *valid; /* valid without documents: no validation loss */
    const struct log *log;
    const char *progress;       /* when to show progress (progress.h) */
    struct rec_writer *records; /* one record of kind `train` every `report` steps */
    const json_t *about;        /* first members of each record */
    size_t planned_bytes;       /* member of each record */
    const char *state;          /* file of the saved state */
    const json_t *note;         /* note of the saved state (trainer_save()) */
    int saves;                  /* 0: another process saves the state */
};

/* Trains from the trainer's step to the last one. -1: EXIT_INTERNAL, a loss or gradient that is not
 * finite, or no thread; EXIT_IO, EXIT_CANNOT_CREATE. */
int training_run(const struct training *training, struct err *e);
