/* schedule.c - see schedule.h. A schedule is a table of budgets, made once a batch and read on
 * host and device alike; its sum is the block, so no step is left over and no slot. The remainder
 * goes to the earliest steps, as in LLaDA's get_num_transfer_tokens: early steps see the fewest
 * tokens, and still they commit the most. */
#include "lib/decode/schedule.h"

void schedule_uniform(size_t m, size_t steps, size_t *budget)
{
    for (size_t i = 0; i < steps; i++)
        budget[i] = m / steps + (i < m % steps);
}
