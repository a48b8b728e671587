/* schedule.h - how many positions are committed at each step of a block, and how many steps each
 * block has. Every budget sums to what is asked for, exactly: shares are apportioned by largest
 * remainders, each between a least and a most.
 *
 *     uniform  n[i] = floor(m/S), plus 1 for the first (m mod S) steps
 *     cosine   in shares cos(pi i / 2S) - cos(pi (i+1) / 2S): few at first, many at last
 *     front    in shares that fall linearly from 1.5 to 0.5: many at first, few at last
 *
 * Source: uniform: get_num_transfer_tokens in generate.py of https://github.com/ML-GSAI/LLaDA;
 * cosine: Chang et al. 2022, "MaskGIT", arXiv 2202.04200, section 3.3; front: the adaptive schedule
 * of LLaDA GUI, whose rounding missed the sum. Largest remainders: Hamilton's apportionment.
 */
#ifndef DECODE_SCHEDULE_H
#define DECODE_SCHEDULE_H

#include <stddef.h>

#include "lib/setting/words.h"

/* budget[0..steps-1] for m masked positions; sums to m. Steps beyond m get 0, those before at least
 * 1. */
void schedule_budget(enum pace pace, size_t m, size_t steps, size_t *budget);
/* schedule_budget of the uniform pace. */
void schedule_uniform(size_t m, size_t steps, size_t *budget);
/* share[0..blocks-1] of `steps` >= blocks steps in proportion to decay^block; sums to steps, each
 * at least 1 and at most `most` (of a block's slots), or what all alike would have, when that is
 * more. decay > 0; 1: the first (steps mod blocks) blocks have one more than the others. */
void schedule_blocks(size_t steps, size_t blocks, size_t most, double decay, size_t *share);

#endif
