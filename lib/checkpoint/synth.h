/* synth.h - weights drawn instead of read, for -m synth:NAME; used by checkpoint.c alone. The
 * shapes are config_synth of config.h. */
#ifndef CHECKPOINT_SYNTH_H
#define CHECKPOINT_SYNTH_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/draw.h"
#include "lib/checkpoint/config.h"

/* [DRAW_QUANTILES] values of a normal with standard deviation 0.02: its quantiles at
 * (i + 1/2) / 65536. The caller's to free(). */
float *synth_table(void);
/* out[i], i < n: weights first + i of a matrix. */
void synth_floats(const struct draw *d, size_t first, size_t n, float *out);

#endif
