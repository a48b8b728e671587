/* diffuse-describe.c - what goes into the passes of a batch of canvases: the rows that the cache
 * policy names, the slots that are read, the answers that are wanted, and what is prepared of all
 * that before the clock begins.
 *
 * Each part of a pass has room for the same number of answers, the capacity. Where passes are
 * recorded it comes in steps of CAPACITY_STEP, and as long as a canvas has further blocks it has
 * room for a whole one; elsewhere it is what the neediest canvas wants. Beyond the capacity (mask
 * ids that were committed compete again) a canvas stalls, and is described anew.
 */
#include "lib/decode/diffuse-run.h"

enum { CAPACITY_STEP = 32 };

void diffuse_loop_on(struct canvas_loop *l, const struct index *x, const struct canvases *c)
{
    l->member = x->member;
    l->canvas = c->state;
    l->token = c->token;
    l->row_of = c->row_of;
    l->check_of = unmask_has(l->rule, UNMASK_REVISES) ? c->check_of : NULL;
    l->slot = unmask_has(l->rule, UNMASK_KEEPS) ? c->slot : NULL;
    l->asked = c->asked;
    l->target = x->target;
    l->origin = c->origin;
    l->rows = x->rows;
    l->budget = c->budget;
}

/* ---- the first pass of several ---- */

void diffuse_read(struct run *r)
{
    struct backend *b = r->n->backend;
    if (r->drafts > 1)
        return;
    b->ops->read(b, r->host.token, r->device.token, r->ids * sizeof *r->host.token);
    if (unmask_has(r->how->rule, UNMASK_KEEPS))
        b->ops->read(b, r->host.slot, r->device.slot, r->ids * sizeof *r->host.slot);
}

size_t diffuse_needs(const struct run *r, const struct canvas_state *c, size_t wanted)
{
    int recorded = r->n->backend->ops->depth > 1, last = (size_t)c->block + 1 == r->blocks;
    return recorded && !last && wanted < r->how->block_length ? r->how->block_length : wanted;
}

size_t diffuse_capacity(const struct run *r, size_t most)
{
    size_t step = r->n->backend->ops->depth > 1 ? CAPACITY_STEP : 1;
    size_t capacity = (most + step - 1) / step * step;
    return capacity < r->how->gen_length ? capacity : r->how->gen_length;
}

/* A sequence of the pass: what the policy named of a canvas. Its twin has the prompt masked.
 * Returns the slots that it lists. */
static size_t add_rows(struct run *r, const struct canvas_state *c, int twin, size_t listed)
{
    struct pass *p = &r->plan.pass;
    const struct rows *w = &r->work->host.rows;
    const struct cache_part *a = &r->part;
    const size_t lane = (size_t)(c - r->host.state);
    int32_t row = (int32_t)p->T, base = twin ? (int32_t)r->ids : 0;
    for (size_t j = 0; j < a->n_rows; j++, p->T++) {
        int32_t k = a->row[j], id = c->first + k, prompt = k < c->prompt;
        w->token[p->T] = twin && prompt ? (int32_t)r->n->config.mask : r->host.token[id];
        w->pos[p->T] = k;
        r->host.origin[p->T] = prompt ? -1 : id;
        if (!twin)
            r->host.row_of[id] = (int32_t)p->T;
        w->slot[p->T] = base + diffuse_slot(r, lane, k);
    }
    size_t keys = r->kv ? a->n_keys : a->n_rows;
    for (size_t j = 0; j < keys; j++) {
        w->slots[listed + j] = r->kv ? base + diffuse_slot(r, lane, a->key[j])
                                       : row + (int32_t)j;
        w->slot_pos[listed + j] = r->kv ? a->key[j] : a->row[j];
    }
    w->seqs[p->n_seqs++] = (struct attn_seq){row, (int32_t)a->n_rows, (int32_t)listed,
                                             (int32_t)keys};
    p->max_rows = a->n_rows > p->max_rows ? a->n_rows : p->max_rows;
    p->max_slots = keys > p->max_slots ? keys : p->max_slots;
    return keys;
}

/* What the policy says of lane i now goes into r->part. */
static void ask_policy(struct run *r, size_t i)
{
    struct canvas_state *c = &r->host.state[i];
    const struct cache_view v = {c, r->host.token + c->first, (int32_t)r->n->config.mask,
                                 (int32_t)r->how->block_length};
    struct cache_part *a = &r->part;
    r->policy->describe(&v, a);
    r->span[i] = (struct span){(int32_t)a->n_rows, (int32_t)(r->kv ? a->n_keys : a->n_rows), 0, 0};
    r->serves = a->passes < r->serves ? a->passes : r->serves;
    c->rows_block = c->block;
}

/* The rows of the passes to come: of every live lane what the policy names, and for CFG the same
 * again with the prompts masked. */
static void gather(struct run *r)
{
    struct canvas_loop *l = &r->plan.loop;
    struct pass *p = &r->plan.pass;
    int32_t *member = r->work->host.member;
    size_t listed = 0;
    for (size_t i = 0; i < r->ids; i++)
        r->host.row_of[i] = r->host.check_of[i] = -1;
    l->parts = 0;
    r->serves = SIZE_MAX;
    for (size_t i = 0; i < r->lanes; i++)
        if (r->host.state[i].live) {
            member[l->parts++] = (int32_t)i;
            ask_policy(r, i);
            listed += add_rows(r, &r->host.state[i], 0, listed);
            listed += r->shadows ? diffuse_shadow(r, i, listed) : 0;
        }
    l->twin = r->guided ? (int32_t)p->T : 0;
    for (size_t i = 0; i < l->parts && r->guided; i++) {
        ask_policy(r, (size_t)member[i]);
        listed += add_rows(r, &r->host.state[member[i]], 1, listed);
    }
    l->T = p->T;
    p->mask = r->policy->mask;
    p->max_slots = pass_slots(r->work, p->max_slots);
}

/* The arrays of the host in place of the back end's. */
static struct canvas_loop loop_here(const struct run *r)
{
    struct canvas_loop here = r->plan.loop;
    diffuse_loop_on(&here, &r->work->host, &r->host);
    return here;
}

static size_t count_asked(const struct run *r, const struct canvas_state *c)
{
    const struct canvas_loop here = loop_here(r);
    size_t n = 0;
    for (int32_t k = c->prompt; k < canvas_block_end(&here, c); k++)
        n += (size_t)(canvas_open(&here, c, k) || canvas_held(&here, c, k));
    return n;
}

/* What the neediest part needs. */
static size_t capacity_now(const struct run *r)
{
    const struct canvas_loop *l = &r->plan.loop;
    size_t most = 0;
    for (size_t i = 0; i < l->parts; i++) {
        const struct canvas_state *c = &r->host.state[r->work->host.member[i]];
        size_t needed = diffuse_needs(r, c, count_asked(r, c));
        most = needed > most ? needed : most;
    }
    return diffuse_capacity(r, most);
}

/* The rows that are asked about, `capacity` for each part. */
static void ask(struct run *r, size_t capacity)
{
    r->plan.loop.capacity = capacity;
    const struct canvas_loop here = loop_here(r);
    for (size_t i = 0; i < here.parts; i++)
        advance_ask(&here, i);
    r->plan.pass.R = here.parts * capacity;
}

/* Passes until the slowest canvas is full, if it does not end before, or until the policy is to be
 * asked again. Behind each that answers drafts the host looks. */
static size_t passes_left(const struct run *r)
{
    size_t block = r->how->block_length, left = 0;
    if (r->block_steps < block)
        block = r->block_steps;
    for (size_t i = 0; i < r->lanes; i++) {
        const struct canvas_state *c = &r->host.state[i];
        size_t its = c->live ? r->blocks * block - (size_t)c->passes : 0;
        left = its > left ? its : left;
    }
    size_t serves = r->drafts > 1 ? 1 : r->serves;
    return left < serves ? left : serves;
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
                                   .divergence = r->work->size.compared,
                                   .quiet = t->quiet, .n_quiet = r->n_quiet,
                                   .target = r->plan.loop.check_of ? t->target : NULL};
    gather(r);
}

size_t diffuse_describe(void *ctx)
{
    struct run *r = ctx;
    diffuse_read(r);
    describe_pass(r);
    ask(r, capacity_now(r));
    pass_write(r->n, r->work);
    return passes_left(r);
}

/* ---- a pass ---- */

void diffuse_pass(void *ctx)
{
    const struct run *r = ctx;
    struct backend *b = r->n->backend;
    pass_run(r->n, r->kv, r->work, &r->plan.pass);
    b->ops->advance_canvases(b, &r->plan.loop);
}

/* ---- before the clock ---- */

/* The pass that asks about so many rows, from the start; a canvas that wants more only waits. */
static void prepare_pass(struct run *r, size_t capacity, int recorded)
{
    struct backend *b = r->n->backend;
    ask(r, capacity);
    pass_write(r->n, r->work);
    if (recorded)
        b->ops->prepare(b, &r->plan, sizeof r->plan, diffuse_pass, r);
    else
        diffuse_pass(r);
}

/* Of each canvas the first `each` lanes are in the passes. */
static void make_live(struct run *r, size_t each)
{
    for (size_t i = 0; i < r->lanes; i++)
        r->host.state[i].live = i % r->drafts < each;
}

/* With fewer and fewer lanes, whenever a sixteenth of the rows has gone. */
static void prepare_fewer(struct run *r, size_t capacity, size_t each)
{
    size_t T = r->plan.pass.T;
    for (size_t n = r->lanes; --n > 0;) {
        r->host.state[n].live = 0;
        describe_pass(r);
        if (r->plan.pass.T > T - T / 16)
            continue;
        T = r->plan.pass.T;
        prepare_pass(r, capacity, 0);
    }
    make_live(r, each);
    describe_pass(r);
}

/* The passes of a description, for the masks that a block may still have: by the schedule, or by
 * other rules any number. One that revises asks about the whole block in every pass. */
static void prepare_described(struct run *r, size_t first, size_t each)
{
    int paced = r->how->rule == UNMASK_SCHEDULE && r->drafts == 1;
    int revises = unmask_has(r->how->rule, UNMASK_REVISES);
    size_t last = 0, left = r->how->block_length;
    for (size_t k = 0; left > 0; k++) {
        size_t takes = !paced ? 1 : k < r->block_steps ? (size_t)r->host.budget[k] : 0;
        size_t capacity = k ? diffuse_capacity(r, left) : first;
        if (capacity != last)
            prepare_pass(r, last = capacity, 1);
        left = takes && takes < left && !revises ? left - takes : 0;
    }
    if (r->batch > 1 && (!paced || r->how->stop_at_eos))
        prepare_fewer(r, first, each);
}

static void describe_at(struct run *r, size_t block, size_t step)
{
    for (size_t i = 0; i < r->lanes; i++) {
        r->host.state[i].block = (int32_t)block;
        r->host.state[i].step = (int32_t)step;
    }
    describe_pass(r);
}

/* Every description that canvases side by side come to, each with so many lanes. */
static void prepare_lanes(struct run *r, size_t first, size_t each)
{
    size_t blocks = r->plan.loop.per_block ? r->blocks : 1;
    make_live(r, each);
    for (size_t block = 0; block < blocks; block++)
        for (size_t step = 0; step < r->block_steps;) {
            describe_at(r, block, step);
            prepare_described(r, first, each);
            step = r->serves < r->block_steps ? step + r->serves : r->block_steps;
        }
}

void diffuse_prepare(void *ctx)
{
    struct run *r = ctx;
    size_t first = r->plan.loop.capacity;
    for (size_t each = r->drafts; each > 0; each--)
        prepare_lanes(r, first, each);
    describe_at(r, 0, 0);
    ask(r, first);
    pass_write(r->n, r->work);
}
