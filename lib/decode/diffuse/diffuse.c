/* diffuse.c - see diffuse.h.
 *
 *     canvas = prompt, then gen_length masks (and those that fill a block of the mask)
 *     for each block, for each of its steps:
 *         answers = a pass over the rows that the cache policy names; wanted: the masked slots up
 *                   to the end of the block
 *         score of an answer = given by the order (its probability, a random number...)
 *         commit the answers that the unmask rule picks; a committed slot never changes, except by
 *                   rules that revise: these may mask slots of the block again, or edit them
 *
 * kernels/advance.h handles the answers and makes the rows of the next pass; diffuse_describe.c
 * builds the passes; this file keeps counters and clocks. Each canvas goes through its blocks at
 * its own pace, and a finished one leaves the batch at the next description. A step that would
 * commit nothing (more steps than masks) is not run, because it would change nothing.
 *
 * As in the official code, an answer may be the mask id itself. Its slot then counts as masked and
 * competes again, also in later blocks. */
#include "lib/decode/diffuse/diffuse_run.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sample.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/order.h"
#include "lib/base/rng.h"
#include "lib/decode/loop.h"
#include "lib/network/pass.h"
#include "lib/setting/diffusion.h"

/* Number of slots that the rule remembers. */
static size_t slots_kept(const struct diffuse_run *r)
{
    return unmask_has(r->how->rule, UNMASK_KEEPS) ? r->ids : 0;
}

static struct canvases canvases_in(const struct diffuse_run *r, unsigned char *extra)
{
    const struct work_size *size = &r->work->size;
    struct canvas_state *state = (struct canvas_state *)(void *)extra;
    struct slot_kept *slot = (struct slot_kept *)(void *)(state + r->lanes);
    int32_t *token = (int32_t *)(slot + slots_kept(r)), *row_of = token + r->ids;
    int32_t *asked = row_of + r->ids, *origin = asked + size->wanted;
    int32_t *budget = origin + size->rows;
    return (struct canvases){state, slot, token, row_of, r->shadows ? budget + r->budgets : row_of,
                             asked, origin, budget};
}

/* Ids of a canvas: prompt, gen_length, and what fills the last block of the mask, because most
 * models were trained with whole blocks. */
static size_t length_of(const struct diffuse_run *r, const struct generation_input *in)
{
    const struct config *c = &r->n->config;
    size_t len = in->n + r->how->gen_length, m = diffuse_mask_block(r->how, c);
    size_t behind = len - (c->attends_from_end ? in->n : 0);
    const int fills = c->attends == MASK_BLOCK_CAUSAL && !c->attends_cut;
    return fills ? len + (m - behind % m) % m : len;
}

/* Most ids of a place: when inputs wait for places, those of the longest input. */
static size_t room_of(const struct diffuse_run *r, size_t place)
{
    size_t most = length_of(r, &r->in[place]);
    for (size_t i = 0; r->batch < r->inputs && i < r->inputs; i++)
        most = length_of(r, &r->in[i]) > most ? length_of(r, &r->in[i]) : most;
    return most;
}

static struct work_size size_of(const struct diffuse_run *r)
{
    const struct head_query query = diffuse_query(r->how);
    const size_t tops = unmask_has(r->how->rule, UNMASK_TOPS) != 0;
    size_t shadows = r->batch * r->shadows, rows = (r->guided ? 2 * r->ids : r->ids) + shadows;
    struct work_size s = {.rows = rows, .seqs = (r->guided ? 2 * r->lanes : r->lanes) + shadows,
                          .listed = rows + r->ids * r->shadows + shadows * r->shadows,
                          .wanted = r->lanes * order_max(r->most, r->least), .how = r->how->variant,
                          .cached = (size_t)r->policy->kept, .guided = (size_t)r->guided,
                          .chosen = (size_t)r->policy->outputs,
                          .logits = tops || sample_needs_logits(&query, r->n->config.vocab),
                          .tops = tops,
                          .linked = unmask_has(r->how->rule, UNMASK_LINKED) != 0,
                          .sifted = r->policy->slots != NULL,
                          .compared = unmask_has(r->how->rule, UNMASK_COMPARES) != 0};
    for (size_t i = 0; i < r->batch; i++) {
        size_t len = room_of(r, i);
        s.slots = len + r->shadows > s.slots ? len + r->shadows : s.slots;
    }
    s.extra = r->lanes * sizeof *r->host.state + slots_kept(r) * sizeof *r->host.slot +
              ((r->shadows ? 3 : 2) * r->ids + s.wanted + rows + r->budgets) *
                  sizeof *r->host.token;
    return s;
}

/* Positions of the first block that belong to the prompt. */
static size_t shift_of(const struct diffuse_run *r, const struct generation_input *in)
{
    const struct config *c = &r->n->config;
    return c->attends == MASK_BLOCK_CAUSAL && !c->attends_from_end ? in->n % r->how->block_length
                                                                   : 0;
}

/* Starts the canvas of an input; its ids begin at `first`. */
static void begin(struct diffuse_run *r, size_t lane, size_t first,
                  const struct generation_input *in)
{
    size_t len = length_of(r, in);
    int32_t *token = r->host.token + first;
    r->host.state[lane] = (struct canvas_state){.key = in->key,
                                                .first = (int32_t)first, .prompt = (int32_t)in->n,
                                                .len = (int32_t)len,
                                                .shift = (int32_t)shift_of(r, in),
                                                .live = lane % r->drafts == 0};
    for (size_t k = 0; k < len; k++) {
        token[k] = k < in->n ? in->ids[k] : (int32_t)r->n->config.mask;
        r->cached[first + k] = -1;
    }
    if (slots_kept(r))
        memset(r->host.slot + first, 0, len * sizeof *r->host.slot);
}

static void canvases_make(struct diffuse_run *r)
{
    size_t first = 0;
    for (size_t i = 0; i < r->lanes; first += room_of(r, i / r->drafts), i++)
        begin(r, i, first, &r->in[i / r->drafts]);
    for (size_t i = 0; i < r->batch; i++)
        r->who[i] = r->admitted++;
}

/* Completes the answer of a place whose canvas has ended. */
static void leave(const struct diffuse_run *r, size_t place)
{
    const struct canvas_state *c = &r->host.state[place * r->drafts];
    struct generation *g = &r->out[r->who[place]];
    generation_take(g, r->host.token + c->first + c->prompt, g->bad ? 0 : (size_t)c->readable);
    generation_close(g, &r->n->config, 0);
}

/* Gives the places of finished canvases, whose ids are on the host, to waiting inputs. */
static void change_places(struct diffuse_run *r)
{
    for (size_t i = 0; i < r->batch && r->admitted < r->inputs; i++)
        if (!r->host.state[i].live) {
            leave(r, i);
            r->who[i] = r->admitted++;
            begin(r, i, (size_t)r->host.state[i].first, &r->in[r->who[i]]);
            r->out[r->who[i]].admit_ns = clock_ns() - r->trace->start_ns;
        }
}

/* Slots of canvas i in the cache. */
static size_t slots_of(const struct diffuse_run *r, size_t i)
{
    const struct diffuse *how = r->how;
    size_t len = room_of(r, i);
    if (!r->policy->kept)
        return 0;
    return r->policy->slots ? r->policy->slots(&how->kept, len, how->block_length)
                            : r->drafts * len;
}

static struct work_size run_count(struct diffuse_run *r)
{
    const struct diffuse *how = r->how;
    size_t shifted = 0;
    r->drafts = how->draft > 1 ? how->draft : 1;
    r->lanes = r->batch * r->drafts;
    for (size_t i = 0; i < r->inputs; i++)
        r->most = order_max(r->most, length_of(r, &r->in[i]) - r->in[i].n);
    for (size_t i = 0; i < r->batch; i++) {
        r->ids += r->drafts * room_of(r, i);
        if (unmask_has(how->rule, UNMASK_LINKED)) /* which asks about all ids */
            r->most = order_max(r->most, room_of(r, i));
        if (how->head_rows == HEAD_ROWS_CANVAS)
            r->least = order_max(r->least, room_of(r, i));
    }
    if (how->head_rows == HEAD_ROWS_BLOCK)
        r->least = how->block_length;
    for (size_t i = 0; i < r->inputs; i++)
        shifted |= shift_of(r, &r->in[i]);
    r->policy = cache_policies[how->cache];
    r->shadows = unmask_has(how->rule, UNMASK_SHADOWS) ? how->block_length : 0;
    r->per_block = r->policy->per_block || r->n->config.two_ways ||
                   how->suffix.kind != SUFFIX_ALL || r->shadows > 0 ||
                   how->unmask.threshold_decay > 0; /* it counts masked slots after the block */
    r->guided = how->cfg_scale > 0;
    r->blocks = how->gen_length / how->block_length + (shifted > 0);
    r->block_steps = diffuse_budget_steps(how);
    r->budgets = diffuse_is_even(how) ? r->block_steps : r->blocks * r->block_steps;
    for (size_t i = 0; i < r->batch; i++)
        r->slots += slots_of(r, i);
    r->slots += r->guided ? r->slots : r->policy->kept ? r->batch * r->shadows : 0;
    return size_of(r);
}

/* -1: no memory. */
static int cache_make(struct diffuse_run *r)
{
    size_t first = 0;
    r->slot = mem_alloc(r->batch * sizeof *r->slot);
    for (size_t i = 0; i < r->batch; first += slots_of(r, i++))
        r->slot[i] = (int32_t)first;
    if (!r->policy->kept)
        return 0;
    r->kv = &r->cache;
    return kv_make(r->kv, r->n, r->slots) ||
                   (r->policy->outputs && kv_keep_outputs(r->kv, r->n))
               ? -1
               : 0;
}

/* -1: memory of the back end short. */
static int run_make(struct diffuse_run *r, struct memory_estimate *need)
{
    const struct work_size size = run_count(r);
    *need = estimate_of(r->n, &size, r->slots);
    r->part.row = mem_alloc(size.slots * sizeof *r->part.row);
    r->part.key = mem_alloc(size.slots * sizeof *r->part.key);
    r->who = mem_zero(r->batch, sizeof *r->who);
    r->span = mem_zero(r->lanes, sizeof *r->span);
    r->shade = mem_zero(r->batch, sizeof *r->shade);
    r->cached = mem_alloc(r->ids * sizeof *r->cached);
    r->suffix_seed = rng_derive(r->how->seed, "suffix dropout");
    diffuse_draft_make(r);
    if (cache_make(r))
        return -1;
    r->work = work_make(r->n, &size);
    if (!r->work)
        return -1;
    r->host = canvases_in(r, r->work->host.extra);
    r->device = canvases_in(r, r->work->device.extra);
    canvases_make(r);
    diffuse_budget_make(r);
    const struct index *x = &r->work->host;
    r->n_ban = diffuse_banned(r->how, &r->n->config, x->ban);
    r->n_quiet = diffuse_quiet(r->how, &r->n->config, x->quiet);
    diffuse_loop_make(r);
    if (r->how->observer && r->how->observer->closely)
        r->sight = diffuse_observe_make(r);
    pass_write(r->n, r->work); /* describe() starts from these states */
    return 0;
}

static void run_free(struct diffuse_run *r)
{
    free(r->part.row);
    free(r->part.key);
    free(r->who);
    free(r->span);
    diffuse_observe_free(r->sight);
    free(r->shade);
    free(r->slot);
    diffuse_draft_free(r);
    free(r->cached);
    work_free(r->work, r->n);
    if (r->kv)
        kv_free(r->kv, r->n);
}

/* ---- a pass ---- */

/* Copies the ids of all canvases to the host, unless the host makes them. */
static void read_ids(struct diffuse_run *r)
{
    struct backend *b = r->n->backend;
    if (r->drafts > 1)
        return;
    b->ops->read(b, r->host.token, r->device.token, r->ids * sizeof *r->host.token);
    if (unmask_has(r->how->rule, UNMASK_KEEPS))
        b->ops->read(b, r->host.slot, r->device.slot, r->ids * sizeof *r->host.slot);
}

static size_t describe(void *ctx)
{
    struct diffuse_run *r = ctx;
    read_ids(r);
    change_places(r);
    return diffuse_describe(r);
}

static void enqueue(void *ctx)
{
    struct diffuse_run *r = ctx;
    struct backend *b = r->n->backend;
    if (r->sight)
        diffuse_observe_before(r);
    b->ops->run(b, &r->plan, sizeof r->plan, diffuse_pass, r);
}

/* ---- results of a pass ---- */

/* Rows of the lanes of canvas i; counts its drafts. */
static int64_t count_rows(const struct diffuse_run *r, size_t i, struct generation *g)
{
    int64_t rows = 0;
    for (size_t k = i * r->drafts; k < (i + 1) * r->drafts; k++)
        if (r->host.state[k].live) {
            rows += (int64_t)r->span[k].rows;
            g->drafted_steps += k % r->drafts > 0;
        }
    return rows;
}

/* Records that a pass took canvas i `steps` steps further; `state` as for settle. */
static void account(const struct diffuse_run *r, size_t i, const struct canvas_state *state,
                    size_t steps, int64_t ns)
{
    size_t lane = i * r->drafts;
    const struct canvas_state *was = &r->host.state[lane], *now = &state[lane + steps - 1];
    struct generation *g = &r->out[r->who[i]];
    int64_t rows = count_rows(r, i, g), shadows = (int64_t)r->shade[i].rows;
    int32_t written = 0;
    for (size_t k = 0; k < steps; k++)
        written += state[lane + k].written;
    ns -= g->admit_ns;
    generation_step(g, ns);
    generation_commit(g, now->bad ? 0 : written);
    g->e2e_ns = ns;
    g->denoise_steps++;
    g->accepted_steps += (int64_t)steps - 1;
    g->canvas_positions += rows;
    g->rows += r->guided ? 2 * rows : rows + shadows;
    g->bad = now->bad;
    if (g->bad)
        return;
    if (written && !g->first_commit_ns)
        g->first_commit_ns = ns;
    g->committed_tokens += written - now->remasked;
    g->remasked_tokens += now->remasked;
    g->edited_tokens += now->edited;
    if (was->block == 0 && now->block > 0)
        g->first_block_ns = ns;
    if (now->readable > was->readable)
        generation_emit(g, ns, now->readable - was->readable);
}

/* Counts the work of the pass that is settled now, by the states before it. Finished canvases were
 * still in it; a pass in which all had finished is after the end of the clock. */
static void count(const struct diffuse_run *r)
{
    struct extent x = {0};
    int live = 0;
    size_t capacity = r->plan.loop.capacity, twins = r->guided ? 2 : 1;
    size_t heads = twins + r->work->size.compared; /* rows of the head per answer */
    for (size_t i = 0; i < r->plan.loop.parts; i++) {
        size_t part = (size_t)r->work->host.member[i];
        const struct canvas_state *c = &r->host.state[part];
        cost_join(&x, (double)twins, &r->span[part]);
        if (r->shadows)
            cost_join(&x, 1, &r->shade[part]);
        live |= c->live;
        double answers = (double)(c->stalled ? capacity : (size_t)c->wanted) * (c->live ? 1 : 0);
        x.wanted += (double)heads * answers;
        x.compared += (double)r->work->size.compared * answers;
    }
    if (live)
        cost_add(&r->trace->cost, cost_of(&r->cost_model, &x));
}

static int settle(void *ctx, const void *state, int64_t ns)
{
    struct diffuse_run *r = ctx;
    const struct canvas_state *now = state;
    int stale = r->drafts > 1, any_live = 0;
    size_t most = 0;
    count(r);
    diffuse_draft_read(r);
    if (r->sight) {
        diffuse_observe_after(r);
        read_ids(r);
    }
    for (size_t i = 0; i < r->batch; i++) {
        const struct canvas_state *was = &r->host.state[i * r->drafts];
        int waits = was->live && !(r->span[i * r->drafts].rows > 0);
        any_live |= waits;
        if (!was->live || waits)
            continue;
        size_t steps = diffuse_draft_steps(r, now, i);
        const struct canvas_state *is = &now[i * r->drafts + steps - 1];
        if (!was->stalled) /* a stalled canvas made no step */
            account(r, i, now, steps, ns);
        if (!was->stalled && r->sight && !is->bad)
            diffuse_observe(r, i, is, steps, ns);
        any_live |= is->live;
        stale |= !is->live || is->stalled;
        size_t needed = is->live ? diffuse_needs(r, is, (size_t)is->wanted) : 0;
        most = needed > most ? needed : most;
        diffuse_draft_follow(r, now, i, steps);
    }
    if (r->drafts == 1)
        memcpy(r->host.state, now, r->batch * sizeof *now);
    return stale || !any_live || diffuse_capacity(r, most) < r->plan.loop.capacity;
}

static void finish(struct diffuse_run *r)
{
    const double experts = work_experts(r->work, r->n); /* the passes counted them */
    read_ids(r);
    cost_add(&r->trace->cost, (struct cost){0, experts * r->cost_model.expert_bytes});
    for (size_t i = 0; i < r->batch; i++)
        if (!r->host.state[i * r->drafts].live)
            leave(r, i);
}

static void prepare(void *ctx)
{
    struct diffuse_run *r = ctx;
    diffuse_prepare(r);
    work_forget_experts(r->work, r->n); /* which preparation read */
}

static struct diffuse_run run_of(const struct network *n, const struct diffuse *how,
                         const struct generation_input *in, size_t inputs)
{
    size_t places = how->alive && how->alive < inputs ? how->alive : inputs;
    return (struct diffuse_run){
        .n = n, .how = how, .in = in, .inputs = inputs, .batch = places};
}

struct memory_estimate diffuse_estimate(const struct network *n, const struct diffuse *how,
                           const struct generation_input *in, size_t batch)
{
    struct diffuse_run r = run_of(n, how, in, batch);
    const struct work_size size = run_count(&r);
    return estimate_of(n, &size, r.slots);
}

void diffuse(const struct network *n, const struct diffuse *how,
             const struct generation_input *in, size_t batch, struct generation *out,
             struct batch_trace *trace)
{
    struct diffuse_run r = run_of(n, how, in, batch);
    r.out = out;
    r.trace = trace;
    r.cost_model = cost_model_of(n);
    generation_batch_begin(trace);
    int short_of_memory = run_make(&r, &trace->estimate);
    if (!short_of_memory) {
        const struct loop loop = {.backend = n->backend, .stop = how->stop,
                                  .observer = how->observer, .state = r.device.state,
                                  .bytes = r.lanes * sizeof *r.device.state, .describe = describe,
                                  .prepare = how->prepare ? prepare : NULL,
                                  .enqueue = enqueue, .settle = settle, .ctx = &r};
        short_of_memory = loop_run(&loop, trace);
    }
    if (!short_of_memory)
        finish(&r);
    generation_batch_end(n->backend, short_of_memory, out, batch, trace);
    run_free(&r);
}
