/* training.h - the training loop: batches, learning rate, records of the loss, saved states.
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
    int64_t min_len, max_len; /* tokens of a sequence; only a diffusion model uses min_len */
    int64_t report, save;     /* steps between two records, between two saves */
    int64_t loaders;          /* threads that prepare batches (loader.h) */
    double rate, warmup;      /* peak learning rate; steps until the peak. Then the rate falls along
                               * a cosine to a twentieth of the peak */
    double decay, clip;       /* see parameters_update() */
};

/* Everything is borrowed. */
struct training {
    const struct training_how *how;
    const struct config *config;
    struct backend *backend;
    struct trainer *trainer;              /* may be restored, with trainer_step() > 0 */
    const struct documents *corpus, *valid; /* valid without documents: no validation loss */
    const struct log *log;
    const char *progress;       /* auto, always or never (progress.h) */
    struct rec_writer *records; /* one record of kind `train` every `report` steps */
    const json_t *about;        /* first members of each record */
    size_t planned_bytes;       /* written into each record */
    const char *state;          /* path of the saved state */
    const json_t *note;         /* note of the saved state (trainer_save()) */
    int saves;                  /* 0: another process saves the state */
};

/* Trains from step trainer_step() to how->steps. -1: EXIT_INTERNAL (a loss or gradient is not
 * finite, or no thread could be started), EXIT_BAD_DATA (no step is left), EXIT_IO,
 * EXIT_CANNOT_CREATE. */
int training_run(const struct training *training, struct err *e);
