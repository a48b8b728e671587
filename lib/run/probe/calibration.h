/* calibration.h - measures how much likelihood a network loses when one part is quantized (the
 * losses of mix.h), and whether there are enough texts to choose formats by these losses.
 *
 * The cost of a text is the exact nll of an autoregressive model, or the bound of a diffusion model
 * over some masks, which are the same in every measurement. loss = (nats with the part quantized -
 * nats without) / tokens.
 *
 * Losses of parts are small compared with their scatter over texts, and the smallest of many sums
 * looks better on the texts that chose it than on others. So a choice by losses is used only if it
 * is better on texts that did not take part: half of the texts choose, the other half judge, and
 * then the halves swap.
 * Source: Stone 1974, "Cross-validatory choice and assessment of statistical predictions". */
#pragma once

#include "lib/base/cli/progress.h"
#include "lib/checkpoint/packing/mix.h"
#include "lib/decode/scored_text.h"
#include "lib/network/network.h"
#include "lib/stat/stat.h"

struct calibration {
    struct scored_text *text;
    size_t n, cap;
    size_t samples; /* masks per text of a diffusion model */
    uint64_t seed;
    double *lost;   /* [n][units][MIX_FORMATS] nats that a text loses (calibration_measure) */
    double *tokens; /* [n] scored tokens */
};

/* Reads up to `most` (0: all) records with a text or prompt_ids from the files (standard input if n
 * is 0). If a record has a reference, the reference is scored given the text. -1: a file is missing
 * or broken, or there is no record. */
int calibration_read(struct calibration *calibration, const char *const *files, size_t n,
                     int64_t most, const struct checkpoint *model,
                     const struct tokenizer *tokenizer, struct err *e);
void calibration_free(struct calibration *calibration);

/* Measures the losses of all units: scores each text once per unit and format. n: loaded from
 * `model` and not quantized; it is unchanged afterwards. *dense = nats per token without
 * quantization. Returns -1 with *e filled. */
int calibration_measure(struct calibration *calibration, struct network *n,
                        const struct checkpoint *model, struct mix_unit *units, double *dense,
                        struct progress *progress, struct err *e);
/* Chooses formats by mix_choose() if its choice from half of the texts loses less on the other half
 * than the choice of mix_raise(), at 95 %; else by mix_raise(). *gain = nats per token that
 * mix_choose() saves on the other halves, with a two-sided 90 % interval; 0 if both choose the same
 * formats. Returns the bytes of the chosen formats. */
double calibration_choose(const struct calibration *calibration, struct mix_unit *units,
                          size_t count, double budget, struct interval *gain);
