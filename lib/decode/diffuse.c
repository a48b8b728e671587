/* diffuse.c - see diffuse.h.
 *
 *     canvas = prompt, then gen_length masks
 *     for each block, for each of its steps:
 *         answers = a pass over the rows that the cache policy names, wanted: the masked slots up
 *                   to the end of the block
 *         score of an answer = what the order says of it (its probability, a random number...)
 *         commit the answers that the unmask rule picks; a committed slot never changes
 *
 * What follows the answers is kernels/advance.h, which also makes the rows of the next pass; here
 * stands what goes into the passes, and what their counters and clocks say. Each canvas walks
 * through its blocks at its own pace, and a finished one leaves the batch at the next description.
 * A step that would commit nothing (more steps than masks) is not run: it would change nothing.
 *
 * Each part of a pass has room for the same number of answers, the capacity. Where passes are
 * recorded it comes in steps of CAPACITY_STEP, and as long as a canvas has further blocks it has
 * room for a whole one; elsewhere it is what the neediest canvas wants. Beyond the capacity (mask
 * ids that were committed compete again) a canvas stalls, and is described anew.
 *
 * Faithful to the official code: an answer may be the mask id itself. Its slot then counts as
 * masked and competes again, also in later blocks.
 */
#include "lib/decode/diffuse.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/decode/loop.h"
#include "lib/decode/schedule.h"
#include "lib/network/pass.h"

enum { CAPACITY_STEP = 32 };

/* What advances from pass to pass, and what does not. */
struct canvases {
    struct canvas_state *state; /* [batch] */
    int32_t *token;             /* [ids] of all canvases, each prompt + gen_length */
    int32_t *row_of;            /* [ids] see struct canvas_loop */
    int32_t *origin;            /* [rows] the same */
    int32_t *budget;            /* [block_steps] */
};

/* All that settles a pass and what follows it: the key of ops.run. */
struct plan {
    struct pass pass;
    struct canvas_loop loop;
};

/* A canvas in the passes that are described: rows computed, keys read. */
struct span {
    int32_t rows, keys;
};

struct run {
    const struct network *n;
    const struct diffuse *how;
    const struct generation_input *in;
    struct generation *out;
    struct batch_trace *trace;
    size_t batch, ids;          /* ids of all canvases */
    size_t blocks, block_steps; /* blocks; steps of each by the schedule */
    size_t n_ban, n_quiet;
    int guided;
    const struct cache_policy *policy;
    struct kv cache, *kv;       /* kv: the cache, or NULL when the policy keeps nothing */
    struct cache_part part;     /* what the policy says of one canvas after the other */
    struct span *span;          /* [batch] */
    size_t serves;              /* passes that the description serves */
    struct work *work;
    struct canvases host, device; /* the states as they were when the last pass was settled */
    struct cost_model cost_model;
    struct plan plan;
};

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
              (2 * r->ids + rows + r->block_steps) * sizeof *r->host.token;
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

static void budget_make(const struct run *r)
{
    size_t *budget = mem_alloc(r->block_steps * sizeof *budget);
    schedule_uniform(r->how->block_length, r->block_steps, budget);
    for (size_t i = 0; i < r->block_steps; i++)
        r->host.budget[i] = (int32_t)budget[i];
    free(budget);
}

/* *l works on the arrays of x and c. */
static void loop_on(struct canvas_loop *l, const struct index *x, const struct canvases *c)
{
    l->member = x->member;
    l->canvas = c->state;
    l->token = c->token;
    l->row_of = c->row_of;
    l->origin = c->origin;
    l->rows = x->rows;
    l->budget = c->budget;
}

static void loop_make(struct run *r)
{
    const struct diffuse *how = r->how;
    struct canvas_loop *l = &r->plan.loop;
    memset(l, 0, sizeof *l); /* its bytes are part of a key */
    loop_on(l, &r->work->device, &r->device);
    l->answer = r->work->answer;
    l->gen_length = (int32_t)how->gen_length;
    l->block_length = (int32_t)how->block_length;
    l->block_steps = (int32_t)r->block_steps;
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
    r->block_steps = unmask_paced(r->how->rule) ? r->how->steps / r->blocks
                                                : r->how->block_length;
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
    pass_write(r->n, r->work); /* describe() begins with what is there */
    return 0;
}

static void run_free(struct run *r)
{
    free(r->part.row);
    free(r->part.key);
    free(r->span);
    work_free(r->work, r->n);
    if (r->kv)
        kv_free(r->kv, r->n);
}

/* ---- the first pass of several ---- */

static void read_tokens(struct run *r)
{
    struct backend *b = r->n->backend;
    b->ops->read(b, r->host.token, r->device.token, r->ids * sizeof *r->host.token);
}

/* The answers that a live canvas needs room for when its next pass wants `wanted`. */
static size_t needs(const struct run *r, const struct canvas_state *c, size_t wanted)
{
    int recorded = r->n->backend->ops->depth > 1, last = (size_t)c->block + 1 == r->blocks;
    return recorded && !last && wanted < r->how->block_length ? r->how->block_length : wanted;
}

static size_t capacity_for(const struct run *r, size_t most)
{
    size_t step = r->n->backend->ops->depth > 1 ? CAPACITY_STEP : 1;
    size_t capacity = (most + step - 1) / step * step;
    return capacity < r->how->gen_length ? capacity : r->how->gen_length;
}

/* A sequence of the pass: what the policy named of a canvas. Its twin has the prompt masked. Returns
 * the slots that it lists. */
static size_t add_rows(struct run *r, const struct canvas_state *c, int twin, size_t listed)
{
    struct pass *p = &r->plan.pass;
    const struct rows *w = &r->work->host.rows;
    const struct cache_part *a = &r->part;
    int32_t row = (int32_t)p->T, slot = c->first + (twin ? (int32_t)r->ids : 0);
    for (size_t j = 0; j < a->n_rows; j++, p->T++) {
        int32_t k = a->row[j], id = c->first + k, prompt = k < c->prompt;
        w->token[p->T] = twin && prompt ? (int32_t)r->n->config.mask : r->host.token[id];
        w->pos[p->T] = k;
        w->slot[p->T] = slot + k;
        r->host.origin[p->T] = prompt ? -1 : id;
        if (!twin)
            r->host.row_of[id] = (int32_t)p->T;
    }
    for (size_t j = 0; r->kv && j < a->n_keys; j++) {
        w->slots[listed + j] = slot + a->key[j];
        w->slot_pos[listed + j] = a->key[j];
    }
    size_t keys = r->kv ? a->n_keys : a->n_rows;
    w->seqs[p->n_seqs++] = (struct attn_seq){row, (int32_t)a->n_rows,
                                             r->kv ? (int32_t)listed : row, (int32_t)keys};
    p->max_rows = a->n_rows > p->max_rows ? a->n_rows : p->max_rows;
    p->max_slots = keys > p->max_slots ? keys : p->max_slots;
    return keys;
}

/* What the policy says of canvas i now goes into r->part. */
static void ask_policy(struct run *r, size_t i)
{
    struct canvas_state *c = &r->host.state[i];
    const struct cache_view v = {c, r->host.token + c->first, (int32_t)r->n->config.mask,
                                 (int32_t)r->how->block_length};
    struct cache_part *a = &r->part;
    r->policy->describe(&v, a);
    r->span[i] = (struct span){(int32_t)a->n_rows, (int32_t)(r->kv ? a->n_keys : a->n_rows)};
    r->serves = a->passes < r->serves ? a->passes : r->serves;
    c->rows_block = c->block;
}

/* The rows of the passes to come: of every live canvas what the policy names, and for CFG the same
 * again with the prompts masked. */
static void gather(struct run *r)
{
    struct canvas_loop *l = &r->plan.loop;
    struct pass *p = &r->plan.pass;
    int32_t *member = r->work->host.member;
    size_t listed = 0;
    for (size_t i = 0; i < r->ids; i++)
        r->host.row_of[i] = -1;
    l->parts = 0;
    r->serves = SIZE_MAX;
    for (size_t i = 0; i < r->batch; i++)
        if (r->host.state[i].live) {
            member[l->parts++] = (int32_t)i;
            ask_policy(r, i);
            listed += add_rows(r, &r->host.state[i], 0, listed);
        }
    l->twin = r->guided ? (int32_t)p->T : 0;
    for (size_t i = 0; i < l->parts && r->guided; i++) {
        ask_policy(r, (size_t)member[i]);
        listed += add_rows(r, &r->host.state[member[i]], 1, listed);
    }
    l->T = p->T;
    if (!r->kv)
        pass_list_rows(r->work, p->T);
    p->mask = r->policy->mask;
    p->max_slots = pass_slots(r->work, p->max_slots);
}

/* The arrays of the host in place of the back end's. */
static struct canvas_loop loop_here(const struct run *r)
{
    struct canvas_loop here = r->plan.loop;
    loop_on(&here, &r->work->host, &r->host);
    return here;
}

static size_t count_open(const struct run *r, const struct canvas_state *c)
{
    const struct canvas_loop here = loop_here(r);
    size_t n = 0;
    for (int32_t k = c->prompt; k < canvas_block_end(&here, c); k++)
        n += (size_t)canvas_open(&here, c, k);
    return n;
}

/* What the neediest part needs. */
static size_t capacity_now(const struct run *r)
{
    const struct canvas_loop *l = &r->plan.loop;
    size_t most = 0;
    for (size_t i = 0; i < l->parts; i++) {
        const struct canvas_state *c = &r->host.state[r->work->host.member[i]];
        size_t needed = needs(r, c, count_open(r, c));
        most = needed > most ? needed : most;
    }
    return capacity_for(r, most);
}

/* The rows that are asked about, `capacity` for each part. */
static void ask(struct run *r, size_t capacity)
{
    r->plan.loop.capacity = capacity;
    const struct canvas_loop here = loop_here(r);
    for (size_t i = 0; i < here.parts; i++)
        canvas_ask(&here, i);
    r->plan.pass.R = here.parts * capacity;
}

/* Passes until the slowest canvas is full, if it does not end before, or until the policy is to be
 * asked again. */
static size_t passes_left(const struct run *r)
{
    size_t block = r->how->block_length, left = 0;
    if (r->block_steps < block)
        block = r->block_steps;
    for (size_t i = 0; i < r->batch; i++) {
        const struct canvas_state *c = &r->host.state[i];
        size_t its = c->live ? r->blocks * block - (size_t)c->passes : 0;
        left = its > left ? its : left;
    }
    return left < r->serves ? left : r->serves;
}

/* A pass of the live canvases, but for the rows that it is asked about. */
static void describe_pass(struct run *r)
{
    struct pass *p = &r->plan.pass;
    const struct index *t = &r->work->device;
    pass_begin(p, r->n, r->kv, r->work);
    p->guided = r->guided;
    p->query = (struct head_query){.temperature = r->how->temperature, .seed = r->how->seed,
                                   .keys = t->rows.key, .cfg_scale = r->how->cfg_scale,
                                   .ban = t->ban, .n_ban = r->n_ban,
                                   .quiet = t->quiet, .n_quiet = r->n_quiet};
    gather(r);
}

static size_t describe(void *ctx)
{
    struct run *r = ctx;
    read_tokens(r);
    describe_pass(r);
    ask(r, capacity_now(r));
    pass_write(r->n, r->work);
    return passes_left(r);
}

/* ---- a pass ---- */

static void run_and_advance(void *ctx)
{
    const struct run *r = ctx;
    struct backend *b = r->n->backend;
    pass_run(r->n, r->kv, r->work, &r->plan.pass);
    b->ops->advance_canvases(b, &r->plan.loop);
}

static void enqueue(void *ctx)
{
    struct run *r = ctx;
    struct backend *b = r->n->backend;
    b->ops->run(b, &r->plan, sizeof r->plan, run_and_advance, r);
}

/* ---- before the clock ---- */

/* The pass that asks about so many rows, from the start; a canvas that wants more only waits. */
static void prepare_pass(struct run *r, size_t capacity, int recorded)
{
    struct backend *b = r->n->backend;
    ask(r, capacity);
    pass_write(r->n, r->work);
    if (recorded)
        b->ops->prepare(b, &r->plan, sizeof r->plan, run_and_advance, r);
    else
        run_and_advance(r);
}

/* With fewer and fewer canvases, whenever a sixteenth of the rows has gone. */
static void prepare_fewer(struct run *r, size_t capacity)
{
    size_t T = r->plan.pass.T;
    for (size_t n = r->batch; --n > 0;) {
        r->host.state[n].live = 0;
        describe_pass(r);
        if (r->plan.pass.T > T - T / 16)
            continue;
        T = r->plan.pass.T;
        prepare_pass(r, capacity, 0);
    }
    for (size_t i = 0; i < r->batch; i++)
        r->host.state[i].live = 1;
    describe_pass(r);
}

/* The passes of a description, for the masks that a block may still have: by the schedule, or by
 * other rules any number. */
static void prepare_described(struct run *r, size_t first)
{
    int paced = unmask_paced(r->how->rule);
    size_t last = 0, left = r->how->block_length;
    for (size_t k = 0; left > 0; k++) {
        size_t takes = !paced ? 1 : k < r->block_steps ? (size_t)r->host.budget[k] : 0;
        size_t capacity = k ? capacity_for(r, left) : first;
        if (capacity != last)
            prepare_pass(r, last = capacity, 1);
        left = takes && takes < left ? left - takes : 0;
    }
    if (r->batch > 1 && (!paced || r->how->stop_at_eos))
        prepare_fewer(r, first);
}

static void describe_at(struct run *r, size_t block, size_t step)
{
    for (size_t i = 0; i < r->batch; i++) {
        r->host.state[i].block = (int32_t)block;
        r->host.state[i].step = (int32_t)step;
    }
    describe_pass(r);
}

/* Every description that canvases side by side come to. */
static void prepare(void *ctx)
{
    struct run *r = ctx;
    size_t first = r->plan.loop.capacity, blocks = r->policy->per_block ? r->blocks : 1;
    for (size_t block = 0; block < blocks; block++)
        for (size_t step = 0; step < r->block_steps;) {
            describe_at(r, block, step);
            prepare_described(r, first);
            step = r->serves < r->block_steps ? step + r->serves : r->block_steps;
        }
    describe_at(r, 0, 0);
    ask(r, first);
    pass_write(r->n, r->work);
}

/* ---- what a pass left ---- */

/* A pass has taken canvas i to *now. */
static void account(const struct run *r, size_t i, const struct canvas_state *now, int64_t ns)
{
    const struct canvas_state *was = &r->host.state[i];
    struct generation *g = &r->out[i];
    int32_t rows = r->span[i].rows;
    generation_step(g, ns);
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
    for (size_t i = 0; i < r->batch; i++) {
        const struct canvas_state *was = &r->host.state[i];
        if (!was->live)
            continue;
        if (!was->stalled) /* else the pass counted for nothing */
            account(r, i, &now[i], ns);
        stale |= !now[i].live || now[i].stalled;
        size_t needed = now[i].live ? needs(r, &now[i], (size_t)now[i].wanted) : 0;
        most = needed > most ? needed : most;
    }
    memcpy(r->host.state, now, r->batch * sizeof *now);
    return stale || capacity_for(r, most) < r->plan.loop.capacity;
}

static void finish(struct run *r)
{
    read_tokens(r);
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
        const struct loop loop = {.backend = n->backend, .stop = how->stop, .state = r.device.state,
                                  .bytes = batch * sizeof *r.device.state, .describe = describe,
                                  .prepare = how->prepare ? prepare : NULL,
                                  .enqueue = enqueue, .settle = settle, .ctx = &r};
        short_of_memory = loop_run(&loop, trace);
    }
    if (!short_of_memory)
        finish(&r);
    batch_end(n->backend, short_of_memory, out, batch, trace);
    run_free(&r);
}
