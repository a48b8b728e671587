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

size_t diffuse_needs(const struct diffuse_run *run, const struct canvas_state *canvas,
                     size_t wanted)
{
    int recorded = run->n->backend->ops->depth > 1, last = (size_t)canvas->block + 1 == run->blocks;
    return recorded && !last && wanted < run->how->block_length ? run->how->block_length : wanted;
}

size_t diffuse_capacity(const struct diffuse_run *run, size_t most)
{
    size_t step = run->n->backend->ops->depth > 1 ? CAPACITY_STEP : 1;
    size_t capacity = (most + step - 1) / step * step;
    capacity = capacity < run->most ? capacity : run->most;
    return capacity > run->least ? capacity : run->least;
}

/* Adds the choice that layers make among the rows of a part. `slot`: first slot of the canvas. */
static void add_share(struct diffuse_run *run, int32_t slot, size_t listed)
{
    struct pass *pass = &run->plan.pass;
    const struct index *index = &run->work->host;
    const struct cache_part *part = &run->part;
    int32_t take = (int32_t)(part->take || part->sifts ? part->take : part->n_rows);
    struct share *share = &index->part[pass->n_seqs];
    if (run->policy->outputs) {
        *share = (struct share){(int32_t)part->first, (int32_t)part->n, take,
                                (int32_t)pass->chosen};
        index->some[pass->n_seqs] = (struct attn_seq){share->out, take, (int32_t)listed,
                                                      (int32_t)part->n_keys};
        pass->chosen += (size_t)take;
        pass->max_chosen = (size_t)take > pass->max_chosen ? (size_t)take : pass->max_chosen;
    } else if (part->sifts) {
        *share = (struct share){(int32_t)part->first, (int32_t)part->n, take, slot};
        pass->sifts = 1;
    }
}

/* Returns an offset: position k of a canvas is position k + offset of the pass. So a block of the
 * mask begins where the family says, although attention counts blocks from position 0. Rotations
 * depend on differences of positions alone. */
static int32_t offset_of(const struct diffuse_run *run, const struct canvas_state *canvas)
{
    const struct config *config = &run->n->config;
    int32_t m = (int32_t)diffuse_mask_block(run->how, config);
    return config->attends_from_end && m ? (m - canvas->prompt % m) % m : 0;
}

/* The canvas as a policy sees it. The block in work sees all of itself, unless the pass only seeds
 * it, also in a model that reads finished blocks from left to right. */
static struct cache_view view_of(const struct diffuse_run *run, const struct canvas_state *canvas)
{
    const struct canvas_loop *loop = &run->plan.loop;
    const struct config *config = &run->n->config;
    const int checks = unmask_has(run->how->rule, UNMASK_CHECKS) != 0;
    struct cache_view view = {
        .canvas = canvas,
        .token = run->host.token + canvas->first,
        .cached = run->cached + canvas->first,
        .mask = (int32_t)config->mask,
        .begin = canvas_block_begin(loop, canvas),
        .end = canvas_block_end(loop, canvas),
        .mask_block = (int32_t)diffuse_mask_block(run->how, config),
        .offset = offset_of(run, canvas),
        .joined = config->attends_prompt && config->attends_from_end ? canvas->prompt : 0,
        .seeds = canvas_ask_end(loop, canvas) < canvas_block_end(loop, canvas),
        .forward = config->two_ways || checks,
        .params = run->how->kept};
    if (view.forward && !canvas_seeds_now(loop, canvas)) {
        view.open = view.begin - (view.begin + view.offset) % view.mask_block;
        view.open_end = view.open + view.mask_block;
    }
    if (checks) {
        view.open = view.begin;
        while (view.open < view.end && view.token[view.open] != view.mask)
            view.open++;
        view.open_end = view.open < view.end ? view.open_end : 0;
    }
    return view;
}

/* Adds the rows of lane i, or of its twin, whose prompt is masked. Returns the slots listed. */
static size_t add_rows(struct diffuse_run *run, size_t i, int twin, size_t listed)
{
    const struct canvas_state *canvas = &run->host.state[i];
    struct pass *pass = &run->plan.pass;
    const struct rows *rows = &run->work->host.rows;
    const struct cache_part *part = &run->part;
    int32_t row = (int32_t)pass->T, offset = offset_of(run, canvas);
    int32_t base = twin ? (int32_t)run->slots / 2 : 0;
    const struct cache_view view = view_of(run, canvas);
    int reads = run->kv && !part->sifts;
    add_share(run, base + diffuse_slot(run, i, 0), listed);
    for (size_t j = 0; j < part->n_rows; j++, pass->T++) {
        int32_t k = part->row[j], id = canvas->first + k, prompt = k < canvas->prompt;
        rows->token[pass->T] = twin && prompt ? (int32_t)run->n->config.mask : run->host.token[id];
        rows->pos[pass->T] = k + offset;
        run->host.origin[pass->T] = prompt ? -1 : id;
        if (!twin)
            run->host.row_of[id] = (int32_t)pass->T;
        rows->slot[pass->T] = base + diffuse_slot(run, i, k + part->shift);
    }
    size_t keys = reads ? part->n_keys : part->n_rows;
    for (size_t j = 0; j < keys; j++) {
        rows->slots[listed + j] = reads ? base + diffuse_slot(run, i, part->key[j])
                                        : row + (int32_t)j;
        rows->slot_pos[listed + j] = cache_place(&view, reads ? part->key[j] : part->row[j]) +
                                     offset;
    }
    rows->seqs[pass->n_seqs++] = (struct attn_seq){row, (int32_t)part->n_rows, (int32_t)listed,
                                                   (int32_t)keys};
    pass->max_rows = part->n_rows > pass->max_rows ? part->n_rows : pass->max_rows;
    pass->max_slots = keys > pass->max_slots ? keys : pass->max_slots;
    return keys;
}

/* Adds row p to the pass, if it is not there. */
static void add_row(struct cache_part *part, int32_t p)
{
    size_t j = part->n_rows;
    while (j > 0 && part->row[j - 1] > p)
        j--;
    if (j > 0 && part->row[j - 1] == p)
        return;
    memmove(part->row + j + 1, part->row + j, (part->n_rows - j) * sizeof *part->row);
    part->row[j] = p;
    part->n_rows++;
}

/* Adds rows of a model in which the row before a slot answers about it: the rows of masked slots,
 * and of the block's first slot in all passes, so that a description can serve several passes. */
static void add_sources(const struct diffuse_run *run, const struct cache_view *view,
                        struct cache_part *part)
{
    const struct canvas_loop *loop = &run->plan.loop;
    int whole = view->canvas->step == 0 || !canvas_seeded(loop, view->canvas);
    for (int32_t k = view->canvas->prompt; k < canvas_ask_end(loop, view->canvas); k++)
        if (view->token[k] == view->mask || (k == view->begin && whole))
            add_row(part, k - 1);
}

/* Asks the policy about lane i, adds the rows of answers that are not at their own slots, and
 * removes positions that the suffix leaves out; result in run->part. Returns the number of keys
 * after the block. */
static int32_t ask_policy(struct diffuse_run *run, size_t i)
{
    const struct canvas_state *canvas = &run->host.state[i];
    const struct cache_view view = view_of(run, canvas);
    struct cache_part *part = &run->part;
    *part = (struct cache_part){.row = part->row, .key = part->key};
    run->policy->describe(&view, part);
    if (view.forward && (!view.open_end || unmask_has(run->how->rule, UNMASK_CHECKS)))
        part->passes = 1; /* the next pass of the block sees more, or has other rows */
    if (canvas_lag(&run->plan.loop, canvas))
        add_sources(run, &view, part);
    if (run->policy->slots) /* keys are slots, not positions */
        return view.canvas->len - view.end;
    return suffix_filter(&run->how->suffix, &view, run->suffix_seed, run->kv != NULL, part);
}

/* 1: the next passes sift (struct cache_part). */
static int sifting(struct diffuse_run *run)
{
    for (size_t i = 0; i < run->batch && run->policy->slots; i++)
        if (run->host.state[i].live) {
            ask_policy(run, i);
            if (run->part.sifts)
                return 1;
        }
    return 0;
}

/* Adds lane i to the next passes, or lets it wait while others sift. Returns the slots listed. */
static size_t join(struct diffuse_run *run, size_t i, int sifts, size_t listed)
{
    struct canvas_loop *loop = &run->plan.loop;
    struct canvas_state *canvas = &run->host.state[i];
    if (i % run->drafts)
        diffuse_draft_inherit(run, i);
    canvas->ahead = ask_policy(run, i);
    run->span[i] = (struct extent){0};
    if (run->part.sifts != sifts)
        return 0;
    const struct cache_view view = view_of(run, canvas);
    cache_extent(run->policy, &run->part, &view, &run->span[i]);
    run->serves = run->part.passes < run->serves ? run->part.passes : run->serves;
    canvas->rows_block = canvas->block;
    canvas->rows_more = canvas->more;
    run->work->host.member[loop->parts++] = (int32_t)i;
    return add_rows(run, i, 0, listed);
}

static int any_live(const struct diffuse_run *run)
{
    int live = 0;
    for (size_t i = 0; i < run->lanes; i++)
        live |= run->host.state[i].live;
    return live;
}

/* Describes the rows of the next passes: for every lane that takes part the rows that the policy
 * names, and for CFG the same rows with masked prompts. */
static void gather(struct diffuse_run *run)
{
    struct canvas_loop *loop = &run->plan.loop;
    struct pass *pass = &run->plan.pass;
    const int32_t *member = run->work->host.member;
    size_t listed = 0;
    int sifts = sifting(run);
    for (size_t i = 0; i < run->ids; i++)
        run->host.row_of[i] = run->host.check_of[i] = -1;
    loop->parts = 0;
    run->serves = SIZE_MAX;
    for (size_t i = 0; i < run->lanes; i++)
        if (run->host.state[i].live) {
            listed += join(run, i, sifts, listed);
            listed += run->shadows ? diffuse_shadow(run, i, listed) : 0;
        }
    loop->twin = run->guided ? (int32_t)pass->T : 0;
    for (size_t i = 0; i < loop->parts && run->guided; i++) {
        ask_policy(run, (size_t)member[i]);
        listed += add_rows(run, (size_t)member[i], 1, listed);
    }
    loop->T = pass->T;
    pass->chosen = pass->chosen < pass->T ? pass->chosen : 0;
    pass->mask = run->n->config.two_ways || unmask_has(run->how->rule, UNMASK_CHECKS)
                  ? MASK_CAUSAL
                  : run->n->config.attends;
    pass->mask_block = diffuse_mask_block(run->how, &run->n->config);
    pass->max_slots = pass_slots(run->work, pass->max_slots);
}

static size_t count_open(const struct diffuse_run *run, const struct canvas_state *canvas)
{
    const struct canvas_loop here = diffuse_loop_here(run);
    size_t n = 0;
    for (int32_t k = canvas->prompt; k < canvas_block_end(&here, canvas); k++)
        n += (size_t)canvas_open(&here, canvas, k);
    return n;
}

/* Counts the open slots and the slots that a rule may revise. */
static size_t count_asked(const struct diffuse_run *run, const struct canvas_state *canvas)
{
    const struct canvas_loop here = diffuse_loop_here(run);
    size_t n = 0;
    for (int32_t k = canvas_held_begin(&here, canvas); k < canvas_block_end(&here, canvas); k++)
        n += (size_t)canvas_held(&here, canvas, k);
    return n + count_open(run, canvas);
}

/* Returns the capacity for the part that needs most answers. */
static size_t capacity_now(const struct diffuse_run *run)
{
    const struct canvas_loop *loop = &run->plan.loop;
    size_t most = 0;
    for (size_t i = 0; i < loop->parts; i++) {
        const struct canvas_state *canvas = &run->host.state[run->work->host.member[i]];
        size_t needed = canvas->live ? diffuse_needs(run, canvas, count_asked(run, canvas)) : 0;
        most = needed > most ? needed : most;
    }
    return diffuse_capacity(run, most);
}

/* Lists the wanted rows, `capacity` for each part. */
static void ask(struct diffuse_run *run, size_t capacity)
{
    run->plan.loop.capacity = capacity;
    const struct canvas_loop here = diffuse_loop_here(run);
    for (size_t i = 0; i < here.parts; i++)
        advance_ask(&here, i);
    run->plan.pass.R = here.parts * capacity;
}

/* Passes until the slowest canvas is full (it may end earlier) or until the policy must be asked
 * again. With drafts it is one, because the host looks at the result of each pass. */
static size_t passes_left(const struct diffuse_run *run)
{
    size_t block = run->how->block_length, left = 0;
    if (run->block_steps < block || unmask_has(run->how->rule, UNMASK_IDLES | UNMASK_EDITS))
        block = run->block_steps;
    block += run->n->config.seeds > 0;
    size_t serves = run->drafts > 1 ? 1 : run->serves;
    for (size_t i = 0; i < run->lanes; i++) {
        const struct canvas_state *canvas = &run->host.state[i];
        size_t to_come = canvas->live ? run->blocks * block - (size_t)canvas->passes : 0;
        left = to_come > left ? to_come : left;
    }
    return left < serves ? left : serves;
}

/* Describes a pass of the live canvases, except the wanted rows. */
static void describe_pass(struct diffuse_run *run)
{
    struct pass *pass = &run->plan.pass;
    const struct index *index = &run->work->device;
    pass_begin(pass, run->n, run->kv, run->work);
    pass->guided = run->guided;
    pass->query = diffuse_query(run->how);
    pass->query.keys = index->rows.key;
    pass->query.top_p_of_all = run->n->config.top_p_of_all != 0;
    pass->query.ban = index->ban;
    pass->query.n_ban = run->n_ban;
    pass->query.divergence = run->work->size.compared;
    pass->query.quiet = index->quiet;
    pass->query.n_quiet = run->n_quiet;
    pass->query.target = run->plan.loop.check_of ? index->target : NULL;
    pass->logits = run->work->size.logits != 0;
    pass->links = run->work->size.linked != 0;
    pass->query.tops = run->work->size.tops ? run->work->tops : NULL;
    gather(run);
}

/* Notes the contents of the cache after a described pass. Later passes of the description may renew
 * them, so the notes are never newer than the contents. Where a rule revises ids, an old one may
 * come back after later passes read others: there a cache that must be exact notes nothing. */
static void note_rows(struct diffuse_run *run)
{
    const int unsure = run->policy->causal && run->serves > 1 &&
                       unmask_has(run->how->rule, UNMASK_REVISES);
    for (size_t k = 0; k < run->ids && run->kv; k++)
        if (run->host.row_of[k] >= 0)
            run->cached[k] = unsure ? -1 : run->host.token[k];
}

/* Marks all slots of the cache as empty. */
static void forget(struct diffuse_run *run)
{
    for (size_t k = 0; k < run->ids; k++)
        run->cached[k] = -1;
}

size_t diffuse_describe(struct diffuse_run *run)
{
    describe_pass(run);
    ask(run, capacity_now(run));
    pass_write(run->n, run->work);
    note_rows(run);
    return passes_left(run);
}

/* ---- a pass ---- */

void diffuse_pass(void *ctx)
{
    const struct diffuse_run *run = ctx;
    struct backend *backend = run->n->backend;
    pass_run(run->n, run->kv, run->work, &run->plan.pass);
    backend->ops->advance_canvases(backend, &run->plan.loop);
}

/* ---- before the clock ---- */

/* Prepares the pass with `capacity` wanted rows; a canvas that wants more only waits. */
static void prepare_pass(struct diffuse_run *run, size_t capacity, int recorded)
{
    struct backend *backend = run->n->backend;
    ask(run, capacity);
    pass_write(run->n, run->work);
    if (recorded)
        backend->ops->prepare(backend, &run->plan, sizeof run->plan, diffuse_pass, run);
    else
        diffuse_pass(run);
}

/* Prepares passes with fewer and fewer lanes, per decrease of the rows by a sixteenth. */
static void prepare_fewer(struct diffuse_run *run, size_t capacity, const struct canvas_state *at)
{
    size_t T = run->plan.pass.T;
    for (size_t n = run->lanes; --n > 0;) {
        run->host.state[n].live = 0;
        describe_pass(run);
        if (!run->plan.pass.T || run->plan.pass.T > T - T / 16) /* 0: the lanes before have ended */
            continue;
        T = run->plan.pass.T;
        prepare_pass(run, capacity, 0);
    }
    memcpy(run->host.state, at, run->lanes * sizeof *at);
    describe_pass(run);
}

/* State of diffuse_prepare. */
struct acts {
    int32_t id;         /* the committed id: no mask and no stop id */
    struct diffuse_plan *plan;  /* [n] prepared */
    size_t n, cap;
    size_t fewest;      /* rows of the last prepared pass that does not repeat */
    struct canvas_state *at; /* [lanes] the states as described */
};

static int is_prepared(const struct acts *acts, const struct diffuse_plan *plan)
{
    size_t i = 0;
    while (i < acts->n && memcmp(&acts->plan[i], plan, sizeof *plan))
        i++;
    return i < acts->n;
}

/* Prepares the passes as described. Rows that do not repeat are not recorded; they run once per
 * decrease by a sixteenth, for the kernels and choices that similar passes share. */
static void prepare_described(struct diffuse_run *run, struct acts *acts)
{
    size_t T = run->plan.pass.T, capacity = capacity_now(run);
    int recorded = !run->policy->fleeting || T == (run->guided ? 2 * run->ids : run->ids);
    int together = run->how->rule == UNMASK_SCHEDULE && !run->how->stop_at_eos;
    if (!recorded && T > acts->fewest - acts->fewest / 16)
        return;
    acts->fewest = recorded ? acts->fewest : T;
    ask(run, capacity);
    if (is_prepared(acts, &run->plan))
        return;
    MEM_GROW(acts->plan, acts->n, acts->cap);
    memcpy(&acts->plan[acts->n++], &run->plan, sizeof run->plan);
    prepare_pass(run, capacity, recorded);
    memcpy(acts->at, run->host.state, run->lanes * sizeof *acts->at);
    if (recorded && run->batch > 1 && (!together || run->drafts > 1 || run->how->arrivals))
        prepare_fewer(run, capacity, acts->at);
}

/* Simulates a pass: commits as scheduled, or one slot of each canvas. Returns as settle(). */
static int simulate(struct diffuse_run *run, const struct acts *acts)
{
    const struct canvas_loop here = diffuse_loop_here(run);
    size_t most = 0;
    int stale = 0;
    for (size_t i = 0; i < run->lanes; i += run->drafts) {
        struct canvas_state *canvas = &run->host.state[i];
        if (!canvas->live || canvas_behind(&here, canvas) || !(run->span[i].rows > 0))
            continue;
        int32_t takes = unmask_paced(here.rule) ? canvas_budget(&here, canvas) : 1;
        for (int32_t k = canvas->prompt; takes > 0 && k < canvas_ask_end(&here, canvas); k++)
            if (canvas_open(&here, canvas, k)) {
                run->host.token[canvas->first + k] = acts->id;
                takes--;
            }
        canvas_settle(&here, canvas, (int32_t)count_open(run, canvas));
        size_t needed = canvas->live ? diffuse_needs(run, canvas, count_asked(run, canvas)) : 0;
        most = needed > most ? needed : most;
        stale |= !canvas->live || canvas_behind(&here, canvas);
    }
    return stale || !any_live(run) || diffuse_capacity(run, most) < here.capacity;
}

/* Simulates the passes of a description, and those in flight when a new description is needed. */
static void simulate_all(struct diffuse_run *run, const struct acts *acts)
{
    int stale = 0, more = run->n->backend->ops->depth;
    for (size_t n = passes_left(run); n > 0 && more > 0; n--) {
        stale |= simulate(run, acts);
        more -= stale;
    }
}

/* Prepares every description that canvases reach when they commit by the schedule, or with other
 * rules one slot at a time: simulates all passes, each with all numbers of drafts. */
void diffuse_prepare(void *ctx)
{
    struct diffuse_run *run = ctx;
    size_t states = run->lanes * sizeof *run->host.state, ids = run->ids * sizeof *run->host.token;
    struct acts acts = {.fewest = SIZE_MAX, .at = mem_alloc(states)};
    struct canvas_state *state = memcpy(mem_alloc(states), run->host.state, states);
    int32_t *token = memcpy(mem_alloc(ids), run->host.token, ids);
    while (acts.id == run->plan.loop.mask ||
           is_stop(run->plan.loop.stop, run->plan.loop.n_stop, acts.id))
        acts.id++;
    forget(run);
    while (any_live(run)) {
        for (size_t each = run->drafts; each > 0; each--) {
            diffuse_draft_guess(run, each);
            describe_pass(run);
            prepare_described(run, &acts);
        }
        note_rows(run);
        simulate_all(run, &acts);
    }
    memcpy(run->host.state, state, states);
    memcpy(run->host.token, token, ids);
    forget(run);
    diffuse_describe(run);
    free(acts.plan);
    free(acts.at);
    free(state);
    free(token);
}
