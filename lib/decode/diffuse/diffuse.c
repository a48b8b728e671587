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

static struct canvases canvases_in(const struct diffuse_run *run, unsigned char *extra)
{
    const struct work_size *size = &run->work->size;
    struct canvas_state *state = (struct canvas_state *)(void *)extra;
    struct slot_kept *slot = (struct slot_kept *)(void *)(state + run->lanes);
    int32_t *token = (int32_t *)(slot + diffuse_slots_kept(run)), *row_of = token + run->ids;
    int32_t *asked = row_of + run->ids, *origin = asked + size->wanted;
    int32_t *budget = origin + size->rows;
    return (struct canvases){state, slot, token, row_of,
                             run->shadows ? budget + run->budgets : row_of, asked, origin, budget};
}

/* Returns the most ids of a place; if any input may take it, the ids of the longest input. */
static size_t room_of(const struct diffuse_run *run, size_t place)
{
    size_t most = diffuse_length(run, &run->in[place]);
    for (size_t i = 0; run->changing && i < run->inputs; i++)
        most = diffuse_length(run, &run->in[i]) > most ? diffuse_length(run, &run->in[i]) : most;
    return most;
}

static struct work_size size_of(const struct diffuse_run *run)
{
    const struct head_query query = diffuse_query(run->how);
    const size_t tops = unmask_has(run->how->rule, UNMASK_TOPS) != 0;
    size_t shadows = run->batch * run->shadows,
           rows = (run->guided ? 2 * run->ids : run->ids) + shadows;
    struct work_size size = {.rows = rows,
                             .seqs = (run->guided ? 2 * run->lanes : run->lanes) + shadows,
                             .listed = rows + run->ids * run->shadows + shadows * run->shadows,
                             .wanted = run->lanes * order_max(run->most, run->least),
                             .how = run->how->variant, .cached = (size_t)run->policy->kept,
                             .guided = (size_t)run->guided, .chosen = (size_t)run->policy->outputs,
                             .logits = tops || sample_needs_logits(&query, run->n->config.vocab),
                             .tops = tops, .linked = unmask_has(run->how->rule, UNMASK_LINKED) != 0,
                             .sifted = run->policy->slots != NULL,
                             .compared = unmask_has(run->how->rule, UNMASK_COMPARES) != 0};
    for (size_t i = 0; i < run->batch; i++) {
        size_t len = room_of(run, i);
        size.slots = len + run->shadows > size.slots ? len + run->shadows : size.slots;
    }
    size.extra = run->lanes * sizeof *run->host.state +
                 diffuse_slots_kept(run) * sizeof *run->host.slot +
                 ((run->shadows ? 3 : 2) * run->ids + size.wanted + rows + run->budgets) *
                  sizeof *run->host.token;
    return size;
}

static void canvases_make(struct diffuse_run *run)
{
    size_t first = 0;
    for (size_t i = 0; i < run->lanes; first += room_of(run, i / run->drafts), i++)
        diffuse_begin(run, i, first, &run->in[i / run->drafts]);
    for (size_t i = 0; i < run->batch; i++)
        run->who[i] = run->admitted++;
}

/* Completes the answer of a place whose canvas has ended, if the place has an input. */
static void leave(const struct diffuse_run *run, size_t place)
{
    if (run->who[place] == run->inputs)
        return;
    const struct canvas_state *canvas = &run->host.state[place * run->drafts];
    struct generation *generation = &run->out[run->who[place]];
    generation_take(generation, run->host.token + canvas->first + canvas->prompt,
                    generation->bad ? 0 : (size_t)canvas->readable);
    generation_close(generation, &run->n->config, 0);
}

/* 1: an input waits for a place at `now`, ns since the batch began. */
static int comes(const struct diffuse_run *run, int64_t now)
{
    return run->admitted < run->inputs &&
           (!run->how->arrivals || run->in[run->admitted].due_ns <= now);
}

static size_t count_taken(const struct diffuse_run *run)
{
    size_t n = 0;
    for (size_t i = 0; i < run->batch; i++)
        n += run->host.state[i * run->drafts].live != 0;
    return n;
}

/* Gives free places to waiting inputs. The ids of finished canvases are on the host. */
static void change_places(struct diffuse_run *run)
{
    const int64_t now = clock_ns() - run->trace->start_ns;
    for (size_t i = 0; i < run->batch && comes(run, now); i++)
        if (!run->host.state[i].live) {
            leave(run, i);
            run->who[i] = run->admitted++;
            const struct generation_input *in = &run->in[run->who[i]];
            diffuse_begin(run, i, (size_t)run->host.state[i].first, in);
            generation_join(&run->out[run->who[i]], in, run->how->arrivals, now);
        }
}

/* Returns the number of slots of canvas i in the cache. */
static size_t slots_of(const struct diffuse_run *run, size_t i)
{
    const struct diffuse *how = run->how;
    size_t len = room_of(run, i);
    if (!run->policy->kept)
        return 0;
    return run->policy->slots ? run->policy->slots(&how->kept, len, how->block_length)
                              : run->drafts * len;
}

static struct work_size run_count(struct diffuse_run *run)
{
    const struct diffuse *how = run->how;
    size_t shifted = 0;
    run->drafts = how->draft > 1 ? how->draft : 1;
    run->lanes = run->batch * run->drafts;
    for (size_t i = 0; i < run->inputs; i++)
        run->most = order_max(run->most, diffuse_length(run, &run->in[i]) - run->in[i].n);
    for (size_t i = 0; i < run->batch; i++) {
        run->ids += run->drafts * room_of(run, i);
        if (unmask_has(how->rule, UNMASK_LINKED)) /* such a rule asks about all ids */
            run->most = order_max(run->most, room_of(run, i));
        if (how->head_rows == HEAD_ROWS_CANVAS)
            run->least = order_max(run->least, room_of(run, i));
    }
    if (how->head_rows == HEAD_ROWS_BLOCK)
        run->least = how->block_length;
    for (size_t i = 0; i < run->inputs; i++)
        shifted |= diffuse_shift(run, &run->in[i]);
    run->policy = cache_policies[how->cache];
    run->shadows = unmask_has(how->rule, UNMASK_SHADOWS) ? how->block_length : 0;
    run->per_block = run->policy->per_block || run->n->config.two_ways ||
                     how->suffix.kind != SUFFIX_ALL || run->shadows > 0 ||
                     how->unmask.threshold_decay > 0; /* it counts masked slots after the block */
    run->guided = how->cfg_scale > 0;
    run->blocks = how->gen_length / how->block_length + (shifted > 0);
    run->block_steps = diffuse_budget_steps(how);
    run->budgets = diffuse_is_even(how) ? run->block_steps : run->blocks * run->block_steps;
    for (size_t i = 0; i < run->batch; i++)
        run->slots += slots_of(run, i);
    run->slots += run->guided ? run->slots : run->policy->kept ? run->batch * run->shadows : 0;
    return size_of(run);
}

/* -1: no memory. */
static int cache_make(struct diffuse_run *run)
{
    size_t first = 0;
    run->slot = mem_alloc(run->batch * sizeof *run->slot);
    for (size_t i = 0; i < run->batch; first += slots_of(run, i++))
        run->slot[i] = (int32_t)first;
    if (!run->policy->kept)
        return 0;
    run->kv = &run->cache;
    return kv_make(run->kv, run->n, run->slots) ||
                   (run->policy->outputs && kv_keep_outputs(run->kv, run->n))
               ? -1
               : 0;
}

/* Fails if the back end has too little memory. */
static int run_make(struct diffuse_run *run, struct memory_estimate *need)
{
    const struct work_size size = run_count(run);
    *need = estimate_of(run->n, &size, run->slots);
    run->part.row = mem_alloc(size.slots * sizeof *run->part.row);
    run->part.key = mem_alloc(size.slots * sizeof *run->part.key);
    run->who = mem_zero(run->batch, sizeof *run->who);
    run->span = mem_zero(run->lanes, sizeof *run->span);
    run->shade = mem_zero(run->batch, sizeof *run->shade);
    run->cached = mem_alloc(run->ids * sizeof *run->cached);
    run->suffix_seed = rng_derive(run->how->seed, "suffix dropout");
    diffuse_draft_make(run);
    if (cache_make(run))
        return -1;
    run->work = work_make(run->n, &size);
    if (!run->work)
        return -1;
    run->host = canvases_in(run, run->work->host.extra);
    run->device = canvases_in(run, run->work->device.extra);
    canvases_make(run);
    diffuse_budget_make(run);
    const struct index *index = &run->work->host;
    run->n_ban = diffuse_banned(run->how, &run->n->config, index->ban);
    run->n_quiet = diffuse_quiet(run->how, &run->n->config, index->quiet);
    diffuse_loop_make(run);
    if (run->how->observer && run->how->observer->closely)
        run->sight = diffuse_observe_make(run);
    pass_write(run->n, run->work); /* describe() starts from these states */
    return 0;
}

static void run_free(struct diffuse_run *run)
{
    free(run->part.row);
    free(run->part.key);
    free(run->who);
    free(run->span);
    diffuse_observe_free(run->sight);
    free(run->shade);
    free(run->slot);
    diffuse_draft_free(run);
    free(run->cached);
    work_free(run->work, run->n);
    if (run->kv)
        kv_free(run->kv, run->n);
}

/* ---- a pass ---- */

/* Copies the ids of all canvases to the host, unless the host makes them. */
static void read_ids(struct diffuse_run *run)
{
    struct backend *backend = run->n->backend;
    if (run->drafts > 1)
        return;
    backend->ops->read(backend, run->host.token, run->device.token,
                       run->ids * sizeof *run->host.token);
    if (unmask_has(run->how->rule, UNMASK_KEEPS))
        backend->ops->read(backend, run->host.slot, run->device.slot,
                           run->ids * sizeof *run->host.slot);
}

static size_t describe(void *ctx)
{
    struct diffuse_run *run = ctx;
    read_ids(run);
    change_places(run);
    if (!count_taken(run) && run->admitted < run->inputs) {
        if (loop_sleep(run->in[run->admitted].due_ns, run->how->stop, run->trace))
            return 0;
        change_places(run);
    }
    return diffuse_describe(run);
}

/* Empties the places of inputs that come later. Until now all places were taken, to prepare passes
 * of a full batch. diffuse_begin() also forgets what the cache held for these passes. */
static size_t open_places(void *ctx)
{
    struct diffuse_run *run = ctx;
    run->admitted = 0;
    for (size_t i = 0; i < run->batch; i++) {
        const int there = run->in[i].due_ns <= 0;
        diffuse_begin(run, i, (size_t)run->host.state[i].first, &run->in[i]);
        run->host.state[i].live = there;
        run->who[i] = there ? i : run->inputs;
        run->admitted += (size_t)there;
    }
    return diffuse_describe(run);
}

static void enqueue(void *ctx)
{
    struct diffuse_run *run = ctx;
    struct backend *backend = run->n->backend;
    if (run->sight)
        diffuse_observe_before(run);
    backend->ops->run(backend, &run->plan, sizeof run->plan, diffuse_pass, run);
}

/* ---- results of a pass ---- */

/* Returns the rows of the lanes of canvas i, and counts the drafts of the canvas. */
static int64_t count_rows(const struct diffuse_run *run, size_t i, struct generation *generation)
{
    int64_t rows = 0;
    for (size_t k = i * run->drafts; k < (i + 1) * run->drafts; k++)
        if (run->host.state[k].live) {
            rows += (int64_t)run->span[k].rows;
            generation->drafted_steps += k % run->drafts > 0;
        }
    return rows;
}

/* Records that a pass took canvas i `steps` steps further; `state` as for settle. */
static void account(const struct diffuse_run *run, size_t i, const struct canvas_state *state,
                    size_t steps, int64_t ns)
{
    size_t lane = i * run->drafts;
    const struct canvas_state *was = &run->host.state[lane], *now = &state[lane + steps - 1];
    struct generation *generation = &run->out[run->who[i]];
    int64_t rows = count_rows(run, i, generation), shadows = (int64_t)run->shade[i].rows;
    int32_t written = 0;
    for (size_t k = 0; k < steps; k++)
        written += state[lane + k].written;
    ns -= generation->admit_ns;
    generation_step(generation, ns);
    generation_commit(generation, now->bad ? 0 : written);
    generation->e2e_ns = ns;
    generation->denoise_steps++;
    generation->accepted_steps += (int64_t)steps - 1;
    generation->canvas_positions += rows;
    generation->rows += run->guided ? 2 * rows : rows + shadows;
    generation->bad = now->bad;
    if (generation->bad)
        return;
    if (written && !generation->first_commit_ns)
        generation->first_commit_ns = ns;
    generation->committed_tokens += written - now->remasked;
    generation->remasked_tokens += now->remasked;
    generation->edited_tokens += now->edited;
    if (was->block == 0 && now->block > 0)
        generation->first_block_ns = ns;
    if (now->readable > was->readable)
        generation_emit(generation, ns, now->readable - was->readable);
}

/* Counts the work of the settled pass, by the states before it. Finished canvases were still in the
 * pass. A pass in which all had finished came after the end of the clock, so it does not count. */
static void count(const struct diffuse_run *run)
{
    struct extent extent = {0};
    int live = 0;
    size_t capacity = run->plan.loop.capacity, twins = run->guided ? 2 : 1;
    size_t heads = twins + run->work->size.compared; /* rows of the head per answer */
    for (size_t i = 0; i < run->plan.loop.parts; i++) {
        size_t part = (size_t)run->work->host.member[i];
        const struct canvas_state *canvas = &run->host.state[part];
        cost_join(&extent, (double)twins, &run->span[part]);
        if (run->shadows)
            cost_join(&extent, 1, &run->shade[part]);
        live |= canvas->live;
        double answers = (double)(canvas->stalled ? capacity : (size_t)canvas->wanted) *
                         (canvas->live ? 1 : 0);
        extent.wanted += (double)heads * answers;
        extent.compared += (double)run->work->size.compared * answers;
    }
    if (live)
        cost_add(&run->trace->cost, cost_of(&run->cost_model, &extent));
}

static int settle(void *ctx, const void *state, int64_t ns)
{
    struct diffuse_run *run = ctx;
    const struct canvas_state *now = state;
    int stale = run->drafts > 1, any_live = 0;
    size_t most = 0;
    count(run);
    diffuse_draft_read(run);
    if (run->sight) {
        diffuse_observe_after(run);
        read_ids(run);
    }
    for (size_t i = 0; i < run->batch; i++) {
        const struct canvas_state *was = &run->host.state[i * run->drafts];
        int waits = was->live && !(run->span[i * run->drafts].rows > 0);
        any_live |= waits;
        if (!was->live || waits)
            continue;
        size_t steps = diffuse_draft_steps(run, now, i);
        const struct canvas_state *is = &now[i * run->drafts + steps - 1];
        if (!was->stalled) /* a stalled canvas made no step */
            account(run, i, now, steps, ns);
        if (!was->stalled && run->sight && !is->bad)
            diffuse_observe(run, i, is, steps, ns);
        any_live |= is->live;
        stale |= !is->live || is->stalled;
        size_t needed = is->live ? diffuse_needs(run, is, (size_t)is->wanted) : 0;
        most = needed > most ? needed : most;
        diffuse_draft_follow(run, now, i, steps);
    }
    if (run->drafts == 1)
        memcpy(run->host.state, now, run->batch * sizeof *now);
    stale |= run->how->arrivals && comes(run, ns) && count_taken(run) < run->batch;
    return stale || !any_live || diffuse_capacity(run, most) < run->plan.loop.capacity;
}

static void finish(struct diffuse_run *run)
{
    const double experts = work_experts(run->work, run->n); /* counted by the passes */
    read_ids(run);
    cost_add(&run->trace->cost, (struct cost){0, experts * run->cost_model.expert_bytes});
    for (size_t i = 0; i < run->batch; i++)
        if (!run->host.state[i * run->drafts].live)
            leave(run, i);
}

static void prepare(void *ctx)
{
    struct diffuse_run *run = ctx;
    diffuse_prepare(run);
    work_forget_experts(run->work, run->n); /* the experts that the preparation read */
}

static struct diffuse_run run_of(const struct network *n, const struct diffuse *how,
                         const struct generation_input *in, size_t inputs)
{
    size_t places = how->alive && how->alive < inputs ? how->alive : inputs;
    return (struct diffuse_run){
        .n = n, .how = how, .in = in, .inputs = inputs, .batch = places,
        .changing = how->arrivals || places < inputs};
}

struct memory_estimate diffuse_estimate(const struct network *n, const struct diffuse *how,
                           const struct generation_input *in, size_t batch)
{
    struct diffuse_run run = run_of(n, how, in, batch);
    const struct work_size size = run_count(&run);
    return estimate_of(n, &size, run.slots);
}

void diffuse(const struct network *n, const struct diffuse *how,
             const struct generation_input *in, size_t batch, struct generation *out,
             struct batch_trace *trace)
{
    struct diffuse_run run = run_of(n, how, in, batch);
    run.out = out;
    run.trace = trace;
    run.cost_model = cost_model_of(n);
    generation_batch_begin(trace);
    int short_of_memory = run_make(&run, &trace->estimate);
    if (!short_of_memory) {
        const struct loop loop = {.backend = n->backend, .stop = how->stop,
                                  .observer = how->observer, .state = run.device.state,
                                  .bytes = run.lanes * sizeof *run.device.state,
                                  .describe = describe, .prepare = how->prepare ? prepare : NULL,
                                  .changing = run.changing,
                                  .open = how->arrivals ? open_places : NULL,
                                  .enqueue = enqueue, .settle = settle, .ctx = &run};
        short_of_memory = loop_run(&loop, trace);
    }
    if (!short_of_memory)
        finish(&run);
    generation_batch_end(n->backend, short_of_memory, out, batch, trace);
    run_free(&run);
}
