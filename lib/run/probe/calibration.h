/* calibration.h - how much likelihood a network loses with one of its parts quantized: the measured
 * losses of mix.h, and whether texts are enough to choose by them.
 *
 * A text costs an autoregressive model its exact nll, a diffusion model the bound over some masks,
 * the same ones in every measurement. loss = (nats with the part quantized - nats without) /
 * tokens.
 *
 * Losses of parts are small beside their scatter from text to text, and the least of many sums
 * looks better on the texts that chose it than on others. So bits are taken from one part for
 * another only where that pays on texts that had no say: half of the texts choose, the other half
 * judge, and the halves change places.
 * Source: Stone 1974, "Cross-validatory choice and assessment of statistical predictions".
 */
#ifndef RUN_PROBE_CALIBRATION_H
#define RUN_PROBE_CALIBRATION_H

#include "lib/base/cli/progress.h"
#include "lib/checkpoint/mix.h"
#include "lib/decode/scored_text.h"
#include "lib/network/network.h"
#include "lib/stat/stat.h"

struct calibration {
    struct scored_text *text;
    size_t n, cap;
    size_t samples; /* masks a text, of a diffusion model */
    uint64_t seed;
    double *lost;   /* [n][units][MIX_FORMATS], of calibration_measure: nats that a text loses */
    double *tokens; /* [n] scored */
};

/* The first `most` records (0: all) with a text or prompt_ids of the files (standard input when n
 * is 0). With `reference` it is what is scored, given the text. -1: a file is missing or broken, or
 * has none. */
int calibration_read(struct calibration *c, const char *const *files, size_t n, int64_t most,
                     const struct checkpoint *model, const struct tokenizer *t, struct err *e);
void calibration_free(struct calibration *c);

/* Losses of all units, one network pass a text for each unit and format. n: loaded from `model`,
 * nothing of it quantized, and so again afterwards. *dense: nats a token as it is. -1: *e. */
int calibration_measure(struct calibration *c, struct network *n,
                        const struct checkpoint *model, struct mix_unit *units, double *dense,
                        struct progress *progress, struct err *e);
/* mix_choose, if what it chooses by half of the texts loses less on the others than what mix_raise
 * does, at 95 %; else mix_raise. *gain: what it gains there, nats a token, with its interval (90 %
 * on both sides); 0 where both choose the same. Returns the bytes as they do. */
double calibration_choose(const struct calibration *c, struct mix_unit *units, size_t count,
                          double budget, struct interval *gain);

#endif
