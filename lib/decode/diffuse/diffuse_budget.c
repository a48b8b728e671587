/* diffuse_budget.c - how many answers each step of each block commits: by the pace, by a recorded
 * run, or, for rules that may commit nothing in a step, any number.
 */
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/decode/diffuse/diffuse_run.h"
#include "lib/setting/diffusion.h"

/* Fills the budgets of every canvas from the trace. */
static void replay_make(const struct diffuse_run *r)
{
    size_t each = r->blocks * r->block_steps;
    for (size_t i = 0; i < r->batch; i++) {
        r->host.state[i].pace = (int32_t)(i * each);
        commit_trace_budget(r->how->replay, r->in[i].key, r->blocks, r->host.budget + i * each);
    }
}

/* Steps of each block, for a rule with steps; a block beyond them gets the steps of the last. */
static size_t *shares_of(const struct diffuse *how)
{
    size_t blocks = how->gen_length / how->block_length;
    size_t *share = mem_zero(blocks, sizeof *share);
    if (diffusion_has_steps(how->rule))
        pace_blocks(how->steps, blocks, how->block_length,
                    diffuse_is_even(how) ? 1 : how->block_decay, share);
    return share;
}

void diffuse_budget_make(const struct diffuse_run *r)
{
    if (r->how->replay) {
        replay_make(r);
        return;
    }
    const struct diffuse *how = r->how;
    size_t *budget = mem_alloc(r->block_steps * sizeof *budget), *share = shares_of(how);
    size_t last = how->gen_length / how->block_length - 1;
    const int has_steps = diffusion_has_steps(how->rule);
    const int idles = unmask_has(how->rule, UNMASK_IDLES) != 0;
    for (size_t b = 0; b * r->block_steps < r->budgets; b++) {
        size_t steps = has_steps ? share[b < last ? b : last] : r->block_steps;
        pace_budget(has_steps ? how->pace : PACE_UNIFORM, how->block_length, steps, budget);
        for (size_t i = 0; i < r->block_steps; i++)
            r->host.budget[b * r->block_steps + i] = idles       ? 1
                                                     : i < steps ? (int32_t)budget[i]
                                                                 : 0;
    }
    free(share);
    free(budget);
}

size_t diffuse_budget_steps(const struct diffuse *how)
{
    if (how->replay)
        return how->replay->steps;
    if (!diffusion_has_steps(how->rule))
        return how->block_length;
    size_t *share = shares_of(how), most = 0;
    for (size_t b = 0; b < how->gen_length / how->block_length; b++)
        most = share[b] > most ? share[b] : most;
    free(share);
    return most;
}
