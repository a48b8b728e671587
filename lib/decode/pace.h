/* pace.h - how many positions are committed at each step of a block, and how many steps each block
 * has. Every budget sums exactly to its total: shares are apportioned by largest remainders, each
 * between a minimum and a maximum.
 *
 * m masked positions in S steps, i = 0 .. S - 1:
 *     uniform    floor(m/S), plus 1 for the first (m mod S) steps
 *     cosine     shares cos(pi i / 2S) - cos(pi (i+1) / 2S) at step i: few at first, many at last
 *     front      shares that fall linearly from 1.5 to 0.5: many at first, few at last
 *     rounded    masks left * (1 - s/t), rounded to the nearest, ties to even. Step i leads from
 *                time t = (S - i)/S to time s = t - 1/S
 *     timesteps  as rounded, but time falls from 1 to 0.001, and the number is rounded down; the
 *                last step takes all masks left
 *
 * Source: uniform: get_num_transfer_tokens in generate.py of https://github.com/ML-GSAI/LLaDA;
 * cosine: Chang et al. 2022, "MaskGIT", arXiv 2202.04200, section 3.3; front: the adaptive schedule
 * of LLaDA GUI, whose rounding missed the sum. Largest remainders: Hamilton's apportionment.
 * rounded: core/samplers/utils.py and core/schedulers/alpha.py of github.com/ZHZisZZ/dllm;
 * timesteps: generation_utils.py of Dream (github.com/NVlabs/Fast-dLLM has a copy). Both programs
 * compute in float. pace.c does the same, because a tie or a whole number decides the rounding.
 * Steps without a token come last here, unless the rule counts them. */
#pragma once

#include <stddef.h>

#include "lib/setting/words.h"

/* Fills budget[0..steps-1], whose sum is `masked`. Some budgets are 0 if steps > masked, or if the
 * formula of `rounded` or `timesteps` gives 0. Steps with budget 0 come last; with idles 1 the
 * steps of these two formulas keep their places. */
void pace_budget(enum pace pace, size_t masked, size_t steps, int idles, size_t *budget);
/* pace_budget of the uniform pace. */
void pace_uniform(size_t m, size_t steps, size_t *budget);
/* Fills share[0..blocks-1]: distributes `steps` >= blocks steps in proportion to decay^block. The
 * sum of the shares is `steps`. Each share is at least 1, and at most `most` (slots of a block) or
 * steps / blocks rounded up, whichever is larger. decay > 0; with decay 1 the first (steps mod
 * blocks) blocks have one step more than the others. */
void pace_blocks(size_t steps, size_t blocks, size_t most, double decay, size_t *share);
