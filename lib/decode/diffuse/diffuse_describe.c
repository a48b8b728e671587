/* diffuse_describe.c - builds the passes of a batch of canvases: the rows that the cache policy
 * names, the slots that are read, the answers that are wanted. Before the clock begins it also
 * prepares all kinds of passes that can come.
 *
 * Each part of a pass has room for the same number of answers, the capacity. Where passes are
 * recorded, the capacity grows in steps of CAPACITY_STEP, and a canvas that has further blocks gets
 * room for a whole block. Elsewhere the capacity is the largest number that a canvas wants. A
 * canvas that exceeds the capacity (committed mask ids compete again) stalls and is described
 * anew. */
#include "lib/decode/diffuse/diffuse_run.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { CAPACITY_STEP = 32 };

size_t diffuse_needs(const struct diffuse_run *r, const struct canvas_state *c, size_t wanted)
{
    int recorded = r->n->backend->ops->depth > 1, last = (size_t)c->block + 1 == r->blocks;
    return recorded && !last && wanted < r->how->block_length ? r->how->block_length : wanted;
}

size_t diffuse_capacity(const struct diffuse_run *r, size_t most)
{
    size_t step = r->n->backend->ops->depth > 1 ? CAPACITY_STEP : 1;
    size_t capacity = (most + step - 1) / step * step;
    capacity = capacity < r->most ? capacity : r->most;
    return capacity > r->least ? capacity : r->least;
}

/* The choice that layers make among the rows of a part; the slots of the canvas begin at `slot`. */
static void add_share(struct diffuse_run *r, int32_t slot, size_t listed)
{
    struct pass *p = &r->plan.pass;
    const struct index *x = &r->work->host;
    const struct cache_part *a = &r->part;
    int32_t take = (int32_t)(a->take || a->sifts ? a->take : a->n_rows);
    struct share *share = &x->part[p->n_seqs];
    if (r->policy->outputs) {
        *share = (struct share){(int32_t)a->first, (int32_t)a->n, take, (int32_t)p->chosen};
        x->some[p->n_seqs] = (struct attn_seq){share->out, take, (int32_t)listed,
                                               (int32_t)a->n_keys};
        p->chosen += (size_t)take;
        p->max_chosen = (size_t)take > p->max_chosen ? (size_t)take : p->max_chosen;
    } else if (a->sifts) {
        *share = (struct share){(int32_t)a->first, (int32_t)a->n, take, slot};
        p->sifts = 1;
    }
}

/* Position k of a canvas is position k + this of the pass, so that a block of the mask begins
 * where the family says: attention counts blocks from position 0. Rotations depend on differences
 * alone. */
static int32_t offset_of(const struct diffuse_run *r, const struct canvas_state *c)
{
    const struct config *f = &r->n->config;
    int32_t m = (int32_t)diffuse_mask_block(r->how, f);
    return f->attends_from_end && m ? (m - c->prompt % m) % m : 0;
}

/* The canvas as a policy sees it. The block in work sees all of itself, unless the pass only seeds
 * it, also in a model that reads finished blocks from left to right. */
static struct cache_view view_of(const struct diffuse_run *r, const struct canvas_state *c)
{
    const struct canvas_loop *l = &r->plan.loop;
    const struct config *f = &r->n->config;
    const int checks = unmask_has(r->how->rule, UNMASK_CHECKS) != 0;
    struct cache_view v = {.canvas = c,
                           .token = r->host.token + c->first,
                           .cached = r->cached + c->first,
                           .mask = (int32_t)f->mask,
                           .begin = canvas_block_begin(l, c),
                           .end = canvas_block_end(l, c),
                           .mask_block = (int32_t)diffuse_mask_block(r->how, f),
                           .offset = offset_of(r, c),
                         .joined = f->attends_prompt && f->attends_from_end ? c->prompt : 0,
                           .seeds = canvas_ask_end(l, c) < canvas_block_end(l, c),
                           .forward = f->two_ways || checks,
                           .params = r->how->kept};
    if (v.forward && !canvas_seeds_now(l, c)) {
        v.open = v.begin - (v.begin + v.offset) % v.mask_block;
        v.open_end = v.open + v.mask_block;
    }
    if (checks) {
        v.open = v.begin;
        while (v.open < v.end && v.token[v.open] != v.mask)
            v.open++;
        v.open_end = v.open < v.end ? v.open_end : 0;
    }
    return v;
}

/* Adds a sequence to the pass: the rows that the policy names for lane i. Its twin has the prompt
 * masked. Returns the number of slots listed. */
static size_t add_rows(struct diffuse_run *r, size_t i, int twin, size_t listed)
{
    const struct canvas_state *c = &r->host.state[i];
    struct pass *p = &r->plan.pass;
    const struct rows *w = &r->work->host.rows;
    const struct cache_part *a = &r->part;
    int32_t row = (int32_t)p->T, offset = offset_of(r, c);
    int32_t base = twin ? (int32_t)r->slots / 2 : 0;
    const struct cache_view v = view_of(r, c);
    int reads = r->kv && !a->sifts;
    add_share(r, base + diffuse_slot(r, i, 0), listed);
    for (size_t j = 0; j < a->n_rows; j++, p->T++) {
        int32_t k = a->row[j], id = c->first + k, prompt = k < c->prompt;
        w->token[p->T] = twin && prompt ? (int32_t)r->n->config.mask : r->host.token[id];
        w->pos[p->T] = k + offset;
        r->host.origin[p->T] = prompt ? -1 : id;
        if (!twin)
            r->host.row_of[id] = (int32_t)p->T;
        w->slot[p->T] = base + diffuse_slot(r, i, k + a->shift);
    }
    size_t keys = reads ? a->n_keys : a->n_rows;
    for (size_t j = 0; j < keys; j++) {
        w->slots[listed + j] = reads ? base + diffuse_slot(r, i, a->key[j]) : row + (int32_t)j;
        w->slot_pos[listed + j] = cache_place(&v, reads ? a->key[j] : a->row[j]) + offset;
    }
    w->seqs[p->n_seqs++] = (struct attn_seq){row, (int32_t)a->n_rows, (int32_t)listed,
                                             (int32_t)keys};
    p->max_rows = a->n_rows > p->max_rows ? a->n_rows : p->max_rows;
    p->max_slots = keys > p->max_slots ? keys : p->max_slots;
    return keys;
}

/* Adds row p to the pass, if it is not there. */
static void add_row(struct cache_part *a, int32_t p)
{
    size_t j = a->n_rows;
    while (j > 0 && a->row[j - 1] > p)
        j--;
    if (j > 0 && a->row[j - 1] == p)
        return;
    memmove(a->row + j + 1, a->row + j, (a->n_rows - j) * sizeof *a->row);
    a->row[j] = p;
    a->n_rows++;
}

/* Adds the rows that answer about slots at the position behind them: those of masked slots, and the
 * one of the block's first slot in all passes, so that a description can serve several. */
static void add_sources(const struct diffuse_run *r, const struct cache_view *v,
                        struct cache_part *a)
{
    const struct canvas_loop *l = &r->plan.loop;
    int whole = v->canvas->step == 0 || !canvas_seeded(l, v->canvas);
    for (int32_t k = v->canvas->prompt; k < canvas_ask_end(l, v->canvas); k++)
        if (v->token[k] == v->mask || (k == v->begin && whole))
            add_row(a, k - 1);
}

/* Asks the policy about lane i, adds the rows of answers that are not at their own slots, and
 * removes positions that the suffix leaves out; result in r->part. Returns the number of keys after
 * the block. */
static int32_t ask_policy(struct diffuse_run *r, size_t i)
{
    const struct canvas_state *c = &r->host.state[i];
    const struct cache_view v = view_of(r, c);
    struct cache_part *a = &r->part;
    *a = (struct cache_part){.row = a->row, .key = a->key};
    r->policy->describe(&v, a);
    if (v.forward && (!v.open_end || unmask_has(r->how->rule, UNMASK_CHECKS)))
        a->passes = 1; /* the next pass of the block sees more, or has other rows */
    if (canvas_lag(&r->plan.loop, c))
        add_sources(r, &v, a);
    if (r->policy->slots) /* keys are slots, not positions */
        return v.canvas->len - v.end;
    return suffix_filter(&r->how->suffix, &v, r->suffix_seed, r->kv != NULL, a);
}

/* 1: the next passes sift. */
static int sifting(struct diffuse_run *r)
{
    for (size_t i = 0; i < r->batch && r->policy->slots; i++)
        if (r->host.state[i].live) {
            ask_policy(r, i);
            if (r->part.sifts)
                return 1;
        }
    return 0;
}

/* Adds lane i to the next passes, or lets it wait while others sift. Returns the number of slots
 * listed. */
static size_t join(struct diffuse_run *r, size_t i, int sifts, size_t listed)
{
    struct canvas_loop *l = &r->plan.loop;
    struct canvas_state *c = &r->host.state[i];
    if (i % r->drafts)
        diffuse_draft_inherit(r, i);
    c->ahead = ask_policy(r, i);
    r->span[i] = (struct extent){0};
    if (r->part.sifts != sifts)
        return 0;
    const struct cache_view v = view_of(r, c);
    cache_extent(r->policy, &r->part, &v, &r->span[i]);
    r->serves = r->part.passes < r->serves ? r->part.passes : r->serves;
    c->rows_block = c->block;
    c->rows_more = c->more;
    r->work->host.member[l->parts++] = (int32_t)i;
    return add_rows(r, i, 0, listed);
}

static int any_live(const struct diffuse_run *r)
{
    int live = 0;
    for (size_t i = 0; i < r->lanes; i++)
        live |= r->host.state[i].live;
    return live;
}

/* Describes the rows of the next passes: for every lane that takes part the rows that the policy
 * names, and for CFG the same rows with masked prompts. */
static void gather(struct diffuse_run *r)
{
    struct canvas_loop *l = &r->plan.loop;
    struct pass *p = &r->plan.pass;
    const int32_t *member = r->work->host.member;
    size_t listed = 0;
    int sifts = sifting(r);
    for (size_t i = 0; i < r->ids; i++)
        r->host.row_of[i] = r->host.check_of[i] = -1;
    l->parts = 0;
    r->serves = SIZE_MAX;
    for (size_t i = 0; i < r->lanes; i++)
        if (r->host.state[i].live) {
            listed += join(r, i, sifts, listed);
            listed += r->shadows ? diffuse_shadow(r, i, listed) : 0;
        }
    l->twin = r->guided ? (int32_t)p->T : 0;
    for (size_t i = 0; i < l->parts && r->guided; i++) {
        ask_policy(r, (size_t)member[i]);
        listed += add_rows(r, (size_t)member[i], 1, listed);
    }
    l->T = p->T;
    p->chosen = p->chosen < p->T ? p->chosen : 0;
    p->mask = r->n->config.two_ways || unmask_has(r->how->rule, UNMASK_CHECKS)
                  ? MASK_CAUSAL
                  : r->n->config.attends;
    p->mask_block = diffuse_mask_block(r->how, &r->n->config);
    p->max_slots = pass_slots(r->work, p->max_slots);
}

static size_t count_open(const struct diffuse_run *r, const struct canvas_state *c)
{
    const struct canvas_loop here = diffuse_loop_here(r);
    size_t n = 0;
    for (int32_t k = c->prompt; k < canvas_block_end(&here, c); k++)
        n += (size_t)canvas_open(&here, c, k);
    return n;
}

/* Adds the slots that a rule may revise. */
static size_t count_asked(const struct diffuse_run *r, const struct canvas_state *c)
{
    const struct canvas_loop here = diffuse_loop_here(r);
    size_t n = 0;
    for (int32_t k = canvas_held_begin(&here, c); k < canvas_block_end(&here, c); k++)
        n += (size_t)canvas_held(&here, c, k);
    return n + count_open(r, c);
}

/* Answers of the part that needs most. */
static size_t capacity_now(const struct diffuse_run *r)
{
    const struct canvas_loop *l = &r->plan.loop;
    size_t most = 0;
    for (size_t i = 0; i < l->parts; i++) {
        const struct canvas_state *c = &r->host.state[r->work->host.member[i]];
        size_t needed = c->live ? diffuse_needs(r, c, count_asked(r, c)) : 0;
        most = needed > most ? needed : most;
    }
    return diffuse_capacity(r, most);
}

/* Lists the wanted rows, `capacity` for each part. */
static void ask(struct diffuse_run *r, size_t capacity)
{
    r->plan.loop.capacity = capacity;
    const struct canvas_loop here = diffuse_loop_here(r);
    for (size_t i = 0; i < here.parts; i++)
        advance_ask(&here, i);
    r->plan.pass.R = here.parts * capacity;
}

/* Passes until the slowest canvas is full (it may end earlier) or until the policy must be asked
 * again. With drafts it is one, because the host looks at the result of each pass. */
static size_t passes_left(const struct diffuse_run *r)
{
    size_t block = r->how->block_length, left = 0;
    if (r->block_steps < block || unmask_has(r->how->rule, UNMASK_IDLES | UNMASK_EDITS))
        block = r->block_steps;
    block += r->n->config.seeds > 0;
    size_t serves = r->drafts > 1 ? 1 : r->serves;
    for (size_t i = 0; i < r->lanes; i++) {
        const struct canvas_state *c = &r->host.state[i];
        size_t to_come = c->live ? r->blocks * block - (size_t)c->passes : 0;
        left = to_come > left ? to_come : left;
    }
    return left < serves ? left : serves;
}

/* Describes a pass of the live canvases, except the wanted rows. */
static void describe_pass(struct diffuse_run *r)
{
    struct pass *p = &r->plan.pass;
    const struct index *t = &r->work->device;
    pass_begin(p, r->n, r->kv, r->work);
    p->guided = r->guided;
    p->query = diffuse_query(r->how);
    p->query.keys = t->rows.key;
    p->query.top_p_of_all = r->n->config.top_p_of_all != 0;
    p->query.ban = t->ban;
    p->query.n_ban = r->n_ban;
    p->query.divergence = r->work->size.compared;
    p->query.quiet = t->quiet;
    p->query.n_quiet = r->n_quiet;
    p->query.target = r->plan.loop.check_of ? t->target : NULL;
    p->logits = r->work->size.logits != 0;
    p->links = r->work->size.linked != 0;
    p->query.tops = r->work->size.tops ? r->work->tops : NULL;
    gather(r);
}

/* Notes the contents of the cache after a described pass. Later passes of the description may renew
 * them, so the notes are never newer than the contents. Where a rule revises ids, an old one may
 * come back after later passes read others: there a cache that must be exact notes nothing. */
static void note_rows(struct diffuse_run *r)
{
    const int unsure = r->policy->causal && r->serves > 1 &&
                       unmask_has(r->how->rule, UNMASK_REVISES);
    for (size_t k = 0; k < r->ids && r->kv; k++)
        if (r->host.row_of[k] >= 0)
            r->cached[k] = unsure ? -1 : r->host.token[k];
}

/* Marks all slots of the cache as empty. */
static void forget(struct diffuse_run *r)
{
    for (size_t k = 0; k < r->ids; k++)
        r->cached[k] = -1;
}

size_t diffuse_describe(struct diffuse_run *r)
{
    describe_pass(r);
    ask(r, capacity_now(r));
    pass_write(r->n, r->work);
    note_rows(r);
    return passes_left(r);
}

/* ---- a pass ---- */

void diffuse_pass(void *ctx)
{
    const struct diffuse_run *r = ctx;
    struct backend *b = r->n->backend;
    pass_run(r->n, r->kv, r->work, &r->plan.pass);
    b->ops->advance_canvases(b, &r->plan.loop);
}

/* ---- before the clock ---- */

/* Prepares the pass with `capacity` wanted rows; a canvas that wants more only waits. */
static void prepare_pass(struct diffuse_run *r, size_t capacity, int recorded)
{
    struct backend *b = r->n->backend;
    ask(r, capacity);
    pass_write(r->n, r->work);
    if (recorded)
        b->ops->prepare(b, &r->plan, sizeof r->plan, diffuse_pass, r);
    else
        diffuse_pass(r);
}

/* Prepares passes with fewer and fewer lanes, per decrease of the rows by a sixteenth. */
static void prepare_fewer(struct diffuse_run *r, size_t capacity, const struct canvas_state *at)
{
    size_t T = r->plan.pass.T;
    for (size_t n = r->lanes; --n > 0;) {
        r->host.state[n].live = 0;
        describe_pass(r);
        if (!r->plan.pass.T || r->plan.pass.T > T - T / 16) /* 0: the lanes before have ended */
            continue;
        T = r->plan.pass.T;
        prepare_pass(r, capacity, 0);
    }
    memcpy(r->host.state, at, r->lanes * sizeof *at);
    describe_pass(r);
}

/* State of diffuse_prepare. */
struct acts {
    int32_t id;         /* the committed id: no mask and no stop id */
    struct diffuse_plan *plan;  /* [n] prepared */
    size_t n, cap;
    size_t fewest;      /* rows of the last pass that does not repeat */
    struct canvas_state *at; /* [lanes] as described */
};

static int is_prepared(const struct acts *a, const struct diffuse_plan *p)
{
    size_t i = 0;
    while (i < a->n && memcmp(&a->plan[i], p, sizeof *p))
        i++;
    return i < a->n;
}

/* Prepares the passes as described. Rows that do not repeat are not recorded; they run once per
 * decrease by a sixteenth, for the kernels and choices that similar passes share. */
static void prepare_described(struct diffuse_run *r, struct acts *a)
{
    size_t T = r->plan.pass.T, capacity = capacity_now(r);
    int recorded = !r->policy->fleeting || T == (r->guided ? 2 * r->ids : r->ids);
    int together = r->how->rule == UNMASK_SCHEDULE && !r->how->stop_at_eos;
    if (!recorded && T > a->fewest - a->fewest / 16)
        return;
    a->fewest = recorded ? a->fewest : T;
    ask(r, capacity);
    if (is_prepared(a, &r->plan))
        return;
    MEM_GROW(a->plan, a->n, a->cap);
    memcpy(&a->plan[a->n++], &r->plan, sizeof r->plan);
    prepare_pass(r, capacity, recorded);
    memcpy(a->at, r->host.state, r->lanes * sizeof *a->at);
    if (recorded && r->batch > 1 && (!together || r->drafts > 1))
        prepare_fewer(r, capacity, a->at);
}

/* Simulates a pass: commits what the schedule says, or one slot of each canvas. 1: the next passes
 * must be described again; see settle(). */
static int simulate(struct diffuse_run *r, const struct acts *a)
{
    const struct canvas_loop here = diffuse_loop_here(r);
    size_t most = 0;
    int stale = 0;
    for (size_t i = 0; i < r->lanes; i += r->drafts) {
        struct canvas_state *c = &r->host.state[i];
        if (!c->live || canvas_behind(&here, c) || !(r->span[i].rows > 0))
            continue;
        int32_t takes = unmask_paced(here.rule) ? canvas_budget(&here, c) : 1;
        for (int32_t k = c->prompt; takes > 0 && k < canvas_ask_end(&here, c); k++)
            if (canvas_open(&here, c, k)) {
                r->host.token[c->first + k] = a->id;
                takes--;
            }
        canvas_settle(&here, c, (int32_t)count_open(r, c));
        size_t needed = c->live ? diffuse_needs(r, c, count_asked(r, c)) : 0;
        most = needed > most ? needed : most;
        stale |= !c->live || canvas_behind(&here, c);
    }
    return stale || !any_live(r) || diffuse_capacity(r, most) < here.capacity;
}

/* Prepares the passes of a description, including those in flight when the first one shows that a
 * new description is needed. */
static void simulate_all(struct diffuse_run *r, const struct acts *a)
{
    int stale = 0, more = r->n->backend->ops->depth;
    for (size_t n = passes_left(r); n > 0 && more > 0; n--) {
        stale |= simulate(r, a);
        more -= stale;
    }
}

/* Prepares every description that canvases reach when they commit by the schedule, or with other
 * rules one slot at a time: simulates all passes, each with all numbers of drafts. */
void diffuse_prepare(void *ctx)
{
    struct diffuse_run *r = ctx;
    size_t states = r->lanes * sizeof *r->host.state, ids = r->ids * sizeof *r->host.token;
    struct acts a = {.fewest = SIZE_MAX, .at = mem_alloc(states)};
    struct canvas_state *state = memcpy(mem_alloc(states), r->host.state, states);
    int32_t *token = memcpy(mem_alloc(ids), r->host.token, ids);
    while (a.id == r->plan.loop.mask || is_stop(r->plan.loop.stop, r->plan.loop.n_stop, a.id))
        a.id++;
    forget(r);
    while (any_live(r)) {
        for (size_t each = r->drafts; each > 0; each--) {
            diffuse_draft_guess(r, each);
            describe_pass(r);
            prepare_described(r, &a);
        }
        note_rows(r);
        simulate_all(r, &a);
    }
    memcpy(r->host.state, state, states);
    memcpy(r->host.token, token, ids);
    forget(r);
    diffuse_describe(r);
    free(a.plan);
    free(a.at);
    free(state);
    free(token);
}
