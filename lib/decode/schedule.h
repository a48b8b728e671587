/* schedule.h - how many positions are committed at each step of a block.
 * n[i] = floor(m/S), plus 1 for the first (m mod S) steps.
 * Source: get_num_transfer_tokens in generate.py of https://github.com/ML-GSAI/LLaDA. */
#ifndef DECODE_SCHEDULE_H
#define DECODE_SCHEDULE_H

#include <stddef.h>

/* budget[0..steps-1] for m masked positions; sums to m. Steps beyond m get 0. */
void schedule_uniform(size_t m, size_t steps, size_t *budget);

#endif
