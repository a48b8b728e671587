/* synth.h - makes models without files, for -m synth:NAME: a shape of a family with random weights.
 * Such a model needs the time and memory of a real model of this shape. Its texts have no
 * meaning. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/draw.h"
#include "lib/base/err.h"
#include "lib/checkpoint/config.h"

/* *config = the shape of that name in the tables of the families (family.h), for example
 * "llada-8b", "llama3.2-1b", "tiny-qwen3". -1: EXIT_BAD_USAGE, and the message lists the names. */
int synth_config(struct config *config, const char *name, struct err *e);

/* [DRAW_QUANTILES] floats, the caller's to free(): element i is the quantile of a normal
 * distribution with mean 0 and standard deviation 0.02 at probability (i + 1/2) / 65536. */
float *synth_table(void);
/* out[i], i < n: weights first + i of a matrix. */
void synth_floats(const struct draw *draw, size_t first, size_t n, float *out);
