/* diffuse_loop.c - fills the data for the step after a pass (kernels/advance.h), with arrays of the
 * back end or of the host. With arrays of the host, the host itself can make a step; it does so for
 * drafts, and to prepare passes before the clock. */
#include "lib/decode/diffuse/diffuse_run.h"

#include <string.h>

#include "lib/base/rng.h"

/* Points *loop to the arrays of index and canvases. */
static void loop_on(struct canvas_loop *loop, const struct index *index,
                    const struct canvases *canvases)
{
    loop->member = index->member;
    loop->canvas = canvases->state;
    loop->token = canvases->token;
    loop->row_of = canvases->row_of;
    loop->check_of = unmask_has(loop->rule, UNMASK_REVISES | UNMASK_LINKED) ? canvases->check_of
                                                                            : NULL;
    loop->slot = unmask_has(loop->rule, UNMASK_KEEPS) ? canvases->slot : NULL;
    loop->asked = canvases->asked;
    loop->target = index->target;
    loop->origin = canvases->origin;
    loop->rows = index->rows;
    loop->budget = canvases->budget;
}

struct head_query diffuse_query(const struct diffuse *how)
{
    return (struct head_query){.temperature = how->temperature, .gumbel = how->gumbel,
                               .seed = how->seed, .cfg_scale = how->cfg_scale,
                               .top_k = how->top_k, .top_p = how->top_p,
                               .drawn = (size_t)how->drawn};
}

void diffuse_loop_make(struct diffuse_run *run)
{
    const struct diffuse *how = run->how;
    struct canvas_loop *loop = &run->plan.loop;
    memset(loop, 0, sizeof *loop); /* zeroes padding: its bytes are part of a key */
    loop->rule = how->rule;
    loop_on(loop, &run->work->device, &run->device);
    loop->answer = run->work->answer;
    loop->map = run->work->size.linked ? run->work->map : NULL;
    loop->mean = run->work->mean;
    loop->map_stride = run->work->size.slots;
    loop->top = run->work->size.tops ? run->work->tops : NULL;
    loop->gen_length = (int32_t)how->gen_length;
    loop->block_length = (int32_t)how->block_length;
    loop->block_steps = (int32_t)run->block_steps;
    loop->block_pace = diffuse_is_even(how) ? 0 : (int32_t)run->block_steps;
    loop->mask = (int32_t)run->n->config.mask;
    loop->lag = run->n->config.logit_shift;
    loop->seeds = run->n->config.seeds ? (int32_t)diffuse_mask_block(how, &run->n->config) : 0;
    loop->from_end = run->n->config.attends_from_end;
    loop->order = how->order;
    loop->order_temperature = how->order_temperature;
    loop->rounding = how->confidence;
    loop->params = how->unmask;
    loop->order_seed = rng_derive(how->seed, "random remasking");
    loop->per_block = run->per_block;
    loop->compares = unmask_has(how->rule, UNMASK_COMPARES) != 0;
    loop->stop_at_eos = how->stop_at_eos;
    loop->n_stop = generation_stops(&run->n->config, loop->stop);
}

struct canvas_loop diffuse_loop_here(const struct diffuse_run *run)
{
    struct canvas_loop here = run->plan.loop;
    loop_on(&here, &run->work->host, &run->host);
    return here;
}
