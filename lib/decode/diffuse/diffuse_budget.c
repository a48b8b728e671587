/* diffuse_budget.c - makes the budgets: the number of answers that each step of each block commits,
 * by the pace. With a rule that may commit nothing in a step (trait UNMASK_IDLES), a block
 * continues after a step with budget 0. */
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/decode/diffuse/diffuse_run.h"
#include "lib/setting/diffusion.h"

/* Returns the steps of each block, by --steps and --block-decay; 0 for rules without steps. The
 * array is the caller's. */
static size_t *divide_steps(const struct diffuse *how)
{
    size_t blocks = how->gen_length / how->block_length;
    size_t *steps = mem_zero(blocks, sizeof *steps);
    if (unmask_paced(how->rule))
        pace_blocks(how->steps, blocks, how->block_length,
                    diffuse_is_even(how) ? 1 : how->block_decay, steps);
    return steps;
}

void diffuse_budget_make(const struct diffuse_run *run)
{
    const struct diffuse *how = run->how;
    size_t *budget = mem_alloc(run->block_steps * sizeof *budget), *steps_of = divide_steps(how);
    size_t last = how->gen_length / how->block_length - 1;
    const int has_steps = unmask_paced(how->rule);
    const int idles = unmask_has(how->rule, UNMASK_IDLES) != 0;
    for (size_t block = 0; block * run->block_steps < run->budgets; block++) {
        /* a prompt that ends inside a block adds a block, which has the steps of the last one */
        size_t steps = has_steps ? steps_of[block < last ? block : last] : run->block_steps;
        int32_t *to = run->host.budget + block * run->block_steps;
        pace_budget(has_steps ? how->pace : PACE_UNIFORM, how->block_length, steps, idles, budget);
        for (size_t i = 0; i < run->block_steps; i++)
            to[i] = i < steps ? (int32_t)budget[i] : 0;
    }
    free(steps_of);
    free(budget);
}

size_t diffuse_budget_steps(const struct diffuse *how)
{
    if (unmask_has(how->rule, UNMASK_CHECKS)) /* a draft and its check give one token or more */
        return 2 * how->block_length;
    if (unmask_has(how->rule, UNMASK_EDITS)) /* a mask may come back by an edit */
        return how->block_length + (size_t)how->unmask.edit_passes;
    if (!unmask_paced(how->rule))
        return how->block_length;
    size_t *steps = divide_steps(how), most = 0;
    for (size_t b = 0; b < how->gen_length / how->block_length; b++)
        most = steps[b] > most ? steps[b] : most;
    free(steps);
    return most;
}
