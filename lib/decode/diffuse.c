/* diffuse.c - see diffuse.h.
 *
 *     canvas = prompt, then gen_length masks
 *     for each block, for each of its steps:
 *         answers = a pass over the rows that the cache policy names, wanted: the masked slots up
 *                   to the end of the block
 *         score of an answer = what the order says of it (its probability, a random number...)
 *         commit the answers that the unmask rule picks; a committed slot never changes
 *
 * What follows the answers is kernels/advance.h, which also makes the rows of the next pass;
 * diffuse-describe.c says what goes into the passes; here stands what their counters and clocks
 * say. Each canvas walks through its blocks at its own pace, and a finished one leaves the batch
 * at the next description. A step that would commit nothing (more steps than masks) is not run: it
 * would change nothing.
 *
 * Faithful to the official code: an answer may be the mask id itself. Its slot then counts as
 * masked and competes again, also in later blocks.
 */
#include "lib/decode/diffuse-run.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/decode/loop.h"
#include "lib/decode/schedule.h"
#include "lib/network/pass.h"

static struct canvases canvases_in(const struct run *r, unsigned char *extra)
{
    struct canvas_state *state = (struct canvas_state *)(void *)extra;
    int32_t *token = (int32_t *)(state + r->batch), *row_of = token + r->ids;
    int32_t *origin = row_of + r->ids;
    return (struct canvases){state, token, row_of, origin, origin + r->work->size.rows};
}

static struct work_size size_of(const struct run *r)
{
    size_t rows = r->guided ? 2 * r->ids : r->ids;
    struct work_size s = {.rows = rows,
                          .seqs = r->guided ? 2 * r->batch : r->batch,
                          .listed = rows,
                          .wanted = r->batch * r->how->gen_length,
                          .cached = (size_t)r->policy->kept,
                          .guided = (size_t)r->guided};
    for (size_t i = 0; i < r->batch; i++) {
        size_t len = r->in[i].n + r->how->gen_length;
        s.slots = len > s.slots ? len : s.slots;
    }
    s.extra = r->batch * sizeof *r->host.state +
              (2 * r->ids + rows + r->budgets) * sizeof *r->host.token;
    return s;
}

static void canvases_make(struct run *r)
{
    size_t first = 0;
    for (size_t i = 0; i < r->batch; i++) {
        const struct generation_input *in = &r->in[i];
        size_t len = in->n + r->how->gen_length;
        int32_t *token = r->host.token + first;
        r->host.state[i] = (struct canvas_state){.key = in->key,
                                                 .first = (int32_t)first,
                                                 .prompt = (int32_t)in->n,
                                                 .len = (int32_t)len,
                                                 .live = 1};
        for (size_t k = 0; k < len; k++)
            token[k] = k < in->n ? in->ids[k] : (int32_t)r->n->config.mask;
        first += len;
    }
}

/* The passes of every canvas, from the trace. */
static void replay_make(const struct run *r)
{
    size_t each = r->blocks * r->block_steps;
    for (size_t i = 0; i < r->batch; i++) {
        r->host.state[i].pace = (int32_t)(i * each);
        commit_trace_budget(r->how->replay, r->in[i].key, r->blocks, r->host.budget + i * each);
    }
}

static void budget_make(const struct run *r)
{
    if (r->how->replay) {
        replay_make(r);
        return;
    }
    size_t *budget = mem_alloc(r->block_steps * sizeof *budget);
    schedule_uniform(r->how->block_length, r->block_steps, budget);
    for (size_t i = 0; i < r->block_steps; i++)
        r->host.budget[i] = (int32_t)budget[i];
    free(budget);
}

static void loop_make(struct run *r)
{
    const struct diffuse *how = r->how;
    struct canvas_loop *l = &r->plan.loop;
    memset(l, 0, sizeof *l); /* its bytes are part of a key */
    diffuse_loop_on(l, &r->work->device, &r->device);
    l->answer = r->work->answer;
    l->gen_length = (int32_t)how->gen_length;
    l->block_length = (int32_t)how->block_length;
    l->block_steps = (int32_t)r->block_steps;
    l->block_pace = how->replay ? (int32_t)r->block_steps : 0;
    l->mask = (int32_t)r->n->config.mask;
    l->order = how->order;
    l->rule = how->rule;
    l->params = how->unmask;
    l->order_seed = rng_derive(how->seed, "random remasking");
    l->per_block = r->policy->per_block;
    l->stop_at_eos = how->stop_at_eos;
    l->n_stop = generation_stops(&r->n->config, l->stop);
}

static struct work_size run_count(struct run *r)
{
    r->policy = cache_policies[r->how->cache];
    r->guided = r->how->cfg_scale > 0;
    r->blocks = r->how->gen_length / r->how->block_length;
    r->block_steps = r->how->replay                  ? r->how->replay->steps
                     : diffuse_has_steps(r->how->rule) ? r->how->steps / r->blocks
                                                       : r->how->block_length;
    r->budgets = r->how->replay ? r->batch * r->blocks * r->block_steps : r->block_steps;
    for (size_t i = 0; i < r->batch; i++)
        r->ids += r->in[i].n + r->how->gen_length;
    return size_of(r);
}

/* Slots of the cache: one an id, and one an id of the twins. */
static size_t slots_of(const struct run *r)
{
    return !r->policy->kept ? 0 : r->guided ? 2 * r->ids : r->ids;
}

/* -1: memory of the back end short. */
static int run_make(struct run *r, struct memory_estimate *estimate)
{
    const struct work_size size = run_count(r);
    *estimate = estimate_of(r->n, &size, slots_of(r));
    r->kv = r->policy->kept ? &r->cache : NULL;
    r->part.row = mem_alloc(size.slots * sizeof *r->part.row);
    r->part.key = mem_alloc(size.slots * sizeof *r->part.key);
    r->span = mem_zero(r->batch, sizeof *r->span);
    if (r->kv && kv_make(r->kv, r->n, slots_of(r)))
        return -1;
    r->work = work_make(r->n, &size);
    if (!r->work)
        return -1;
    r->host = canvases_in(r, r->work->host.extra);
    r->device = canvases_in(r, r->work->device.extra);
    canvases_make(r);
    budget_make(r);
    const struct index *x = &r->work->host;
    r->n_ban = diffuse_banned(r->how, &r->n->config, x->ban);
    r->n_quiet = diffuse_quiet(r->how, &r->n->config, x->quiet);
    loop_make(r);
    if (r->how->observer && r->how->observer->closely)
        r->sight = diffuse_observe_make(r);
    pass_write(r->n, r->work); /* describe() begins with what is there */
    return 0;
}

static void run_free(struct run *r)
{
    free(r->part.row);
    free(r->part.key);
    free(r->span);
    diffuse_observe_free(r->sight);
    work_free(r->work, r->n);
    if (r->kv)
        kv_free(r->kv, r->n);
}

static void enqueue(void *ctx)
{
    struct run *r = ctx;
    struct backend *b = r->n->backend;
    if (r->sight)
        diffuse_observe_before(r);
    b->ops->run(b, &r->plan, sizeof r->plan, diffuse_pass, r);
}

/* ---- what a pass left ---- */

/* A pass has taken canvas i to *now. */
static void account(const struct run *r, size_t i, const struct canvas_state *now, int64_t ns)
{
    const struct canvas_state *was = &r->host.state[i];
    struct generation *g = &r->out[i];
    int32_t rows = r->span[i].rows;
    generation_step(g, ns);
    generation_commit(g, now->bad ? 0 : now->written);
    g->e2e_ns = ns;
    g->denoise_steps++;
    g->canvas_positions += rows;
    g->rows += r->guided ? 2 * rows : rows;
    g->bad = now->bad;
    if (g->bad)
        return;
    if (now->written && !g->committed_tokens)
        g->first_commit_ns = ns;
    g->committed_tokens += now->written;
    if (was->block == 0 && now->block > 0)
        g->first_block_ns = ns;
    if (now->readable > was->readable)
        generation_emit(g, ns, now->readable - was->readable);
}

/* What the pass that is settled now had to do, by the states before it. Canvases that have ended
 * were still in it; a pass in which all have is behind the end of the clock. */
static void count(const struct run *r)
{
    struct extent x = {0};
    int live = 0;
    size_t capacity = r->plan.loop.capacity, twins = r->guided ? 2 : 1;
    for (size_t i = 0; i < r->plan.loop.parts; i++) {
        size_t part = (size_t)r->work->host.member[i];
        const struct canvas_state *c = &r->host.state[part];
        const struct span *s = &r->span[part];
        for (size_t k = 0; k < twins; k++) {
            cost_full(&x, s->rows, s->keys);
            x.read += r->kv ? s->keys : 0;
            x.written += r->kv ? s->rows : 0;
        }
        live |= c->live;
        if (c->live)
            x.wanted += (double)(twins * (c->stalled ? capacity : (size_t)c->wanted));
    }
    if (live)
        cost_add(&r->trace->cost, cost_of(&r->cost_model, &x));
}

static int settle(void *ctx, const void *state, int64_t ns)
{
    struct run *r = ctx;
    const struct canvas_state *now = state;
    int stale = 0;
    size_t most = 0;
    count(r);
    if (r->sight)
        diffuse_observe_after(r);
    for (size_t i = 0; i < r->batch; i++) {
        const struct canvas_state *was = &r->host.state[i];
        if (!was->live)
            continue;
        if (!was->stalled) /* else the pass counted for nothing */
            account(r, i, &now[i], ns);
        if (!was->stalled && r->sight && !now[i].bad)
            diffuse_observe(r, i, &now[i], ns);
        stale |= !now[i].live || now[i].stalled;
        size_t needed = now[i].live ? diffuse_needs(r, &now[i], (size_t)now[i].wanted) : 0;
        most = needed > most ? needed : most;
    }
    memcpy(r->host.state, now, r->batch * sizeof *now);
    return stale || diffuse_capacity(r, most) < r->plan.loop.capacity;
}

static void finish(struct run *r)
{
    diffuse_read(r);
    for (size_t i = 0; i < r->batch; i++) {
        const struct canvas_state *c = &r->host.state[i];
        struct generation *g = &r->out[i];
        if (c->live)
            continue;
        generation_take(g, r->host.token + c->first + c->prompt,
                        g->bad ? 0 : (size_t)c->readable);
        generation_close(g, &r->n->config, 0);
    }
}

struct memory_estimate diffuse_estimate(const struct network *n, const struct diffuse *how,
                           const struct generation_input *in, size_t batch)
{
    struct run r = {.n = n, .how = how, .in = in, .batch = batch};
    const struct work_size size = run_count(&r);
    return estimate_of(n, &size, slots_of(&r));
}

void diffuse(const struct network *n, const struct diffuse *how,
             const struct generation_input *in, size_t batch, struct generation *out,
             struct batch_trace *trace)
{
    struct run r = {.n = n, .how = how, .in = in, .out = out, .trace = trace, .batch = batch,
                    .cost_model = cost_model_of(n)};
    trace->start_ns = clock_ns();
    int short_of_memory = run_make(&r, &trace->estimate);
    if (!short_of_memory) {
        const struct loop loop = {.backend = n->backend, .stop = how->stop,
                                  .observer = how->observer, .state = r.device.state,
                                  .bytes = batch * sizeof *r.device.state,
                                  .describe = diffuse_describe,
                                  .prepare = how->prepare ? diffuse_prepare : NULL,
                                  .enqueue = enqueue, .settle = settle, .ctx = &r};
        short_of_memory = loop_run(&loop, trace);
    }
    if (!short_of_memory)
        finish(&r);
    generation_batch_end(n->backend, short_of_memory, out, batch, trace);
    run_free(&r);
}
