/* calibration.h - how much likelihood a network loses with one of its parts quantized: the measured
 * losses of mix.h.
 *
 * A text costs an autoregressive model its exact nll, a diffusion model the bound over some masks,
 * the same ones in every measurement. loss = (nats with the part quantized - nats without) /
 * tokens.
 */
#ifndef RUN_CALIBRATION_H
#define RUN_CALIBRATION_H

#include "lib/base/progress.h"
#include "lib/checkpoint/mix.h"
#include "lib/decode/scored_text.h"
#include "lib/network/network.h"

struct calibration {
    struct scored_text *text;
    size_t n, cap;
    size_t samples; /* masks a text, of a diffusion model */
    uint64_t seed;
};

/* The first `most` records (0: all) with a text or prompt_ids of the files (standard input when n
 * is 0). With `reference` it is what is scored, given the text. -1: a file is missing or broken, or
 * has none. */
int calibration_read(struct calibration *c, const char *const *files, size_t n, int64_t most,
                     const struct checkpoint *model, const struct tokenizer *t, struct err *e);
void calibration_free(struct calibration *c);

/* nats a token over all texts. -1: *e. */
int calibration_score(const struct calibration *c, const struct network *n, double *nats,
                      struct err *e);
/* Losses of all units, one network pass a text for each unit and format. n: loaded from `model`,
 * nothing of it quantized, and so again afterwards. *dense: nats a token as it is. -1: *e. */
int calibration_measure(const struct calibration *c, struct network *n,
                        const struct checkpoint *model, struct mix_unit *units, double *dense,
                        struct progress *progress, struct err *e);

#endif
