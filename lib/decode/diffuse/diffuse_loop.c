/* diffuse_loop.c - the data for the step after a pass (kernels/advance.h), on arrays of the back
 * end or of the host. With arrays of the host, the host itself can make a step; it does so for
 * drafts and before the clock. */
#include "lib/decode/diffuse/diffuse_run.h"

#include <string.h>

#include "lib/base/rng.h"

/* Points *l to the arrays of x and c. */
static void loop_on(struct canvas_loop *l, const struct index *x, const struct canvases *c)
{
    l->member = x->member;
    l->canvas = c->state;
    l->token = c->token;
    l->row_of = c->row_of;
    l->check_of = unmask_has(l->rule, UNMASK_REVISES | UNMASK_LINKED) ? c->check_of : NULL;
    l->slot = unmask_has(l->rule, UNMASK_KEEPS) ? c->slot : NULL;
    l->asked = c->asked;
    l->target = x->target;
    l->origin = c->origin;
    l->rows = x->rows;
    l->budget = c->budget;
}

struct head_query diffuse_query(const struct diffuse *how)
{
    return (struct head_query){.temperature = how->temperature, .gumbel = how->gumbel,
                               .seed = how->seed, .cfg_scale = how->cfg_scale,
                               .top_k = how->top_k, .top_p = how->top_p,
                               .drawn = (size_t)how->drawn};
}

void diffuse_loop_make(struct diffuse_run *r)
{
    const struct diffuse *how = r->how;
    struct canvas_loop *l = &r->plan.loop;
    memset(l, 0, sizeof *l); /* zeroes padding: its bytes are part of a key */
    l->rule = how->rule;
    loop_on(l, &r->work->device, &r->device);
    l->answer = r->work->answer;
    l->map = r->work->size.linked ? r->work->map : NULL;
    l->mean = r->work->mean;
    l->map_stride = r->work->size.slots;
    l->top = r->work->size.tops ? r->work->tops : NULL;
    l->gen_length = (int32_t)how->gen_length;
    l->block_length = (int32_t)how->block_length;
    l->block_steps = (int32_t)r->block_steps;
    l->block_pace = diffuse_is_even(how) ? 0 : (int32_t)r->block_steps;
    l->mask = (int32_t)r->n->config.mask;
    l->lag = r->n->config.logit_shift;
    l->seeds = r->n->config.seeds ? (int32_t)diffuse_mask_block(how, &r->n->config) : 0;
    l->from_end = r->n->config.attends_from_end;
    l->order = how->order;
    l->order_temperature = how->order_temperature;
    l->rounding = how->confidence;
    l->params = how->unmask;
    l->order_seed = rng_derive(how->seed, "random remasking");
    l->per_block = r->per_block;
    l->compares = unmask_has(how->rule, UNMASK_COMPARES) != 0;
    l->stop_at_eos = how->stop_at_eos;
    l->n_stop = generation_stops(&r->n->config, l->stop);
}

struct canvas_loop diffuse_loop_here(const struct diffuse_run *r)
{
    struct canvas_loop here = r->plan.loop;
    loop_on(&here, &r->work->host, &r->host);
    return here;
}
