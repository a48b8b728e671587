/* pace.h - how many positions are committed at each step of a block, and how many steps each block
 * has. Every budget sums exactly to its total: shares are apportioned by largest remainders, each
 * between a minimum and a maximum.
 *
 * m masked positions in S steps:
 *     uniform    floor(m/S), plus 1 for the first (m mod S) steps
 *     cosine     shares cos(pi i / 2S) - cos(pi (i+1) / 2S) at step i: few at first, many at last
 *     front      shares that fall linearly from 1.5 to 0.5: many at first, few at last
 *     rounded    masks left * (1 - s/t), rounded to the nearest, ties to even; s = t - 1/S is the
 *                time after time t
 *     timesteps  the same, from t = 1 down to 0.001, rounded down; the last step takes all
 *
 * Source: uniform: get_num_transfer_tokens in generate.py of https://github.com/ML-GSAI/LLaDA;
 * cosine: Chang et al. 2022, "MaskGIT", arXiv 2202.04200, section 3.3; front: the adaptive
 * schedule of LLaDA GUI, whose rounding missed the sum. Largest remainders: Hamilton's
 * apportionment. rounded: core/samplers/utils.py and core/schedulers/alpha.py of
 * github.com/ZHZisZZ/dllm; timesteps: generation_utils.py of Dream (github.com/NVlabs/Fast-dLLM
 * has a copy). Both compute in float, and so does pace.c, because halves and whole numbers decide;
 * their steps without a token come last, unless the rule counts them. */
#pragma once

#include <stddef.h>

#include "lib/setting/words.h"

/* budget[0..steps-1] for `masked` positions; sums to it. Steps with a budget of 0 come
 * last: there are some if steps > masked, or if the formula of `rounded` or `timesteps` gives 0.
 * With `idles` these keep their places. */
void pace_budget(enum pace pace, size_t masked, size_t steps, int idles, size_t *budget);
/* pace_budget of the uniform pace. */
void pace_uniform(size_t m, size_t steps, size_t *budget);
/* share[0..blocks-1]: distributes `steps` >= blocks steps in proportion to decay^block. Shares sum
 * to steps; each is at least 1 and at most `most` (slots of a block), or at most the equal share
 * when that is larger. decay > 0; 1: the first (steps mod blocks) blocks have one more than the
 * others. */
void pace_blocks(size_t steps, size_t blocks, size_t most, double decay, size_t *share);
