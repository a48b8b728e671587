/* diffuse_describe.c - starts canvases, and builds the passes of a batch of them: the rows that the
 * cache policy names, the slots that are read, the answers that are wanted.
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

/* ---- the start of a canvas ---- */

size_t diffuse_slots_kept(const struct diffuse_run *run)
{
    return unmask_has(run->how->rule, UNMASK_KEEPS) ? run->ids : 0;
}

size_t diffuse_length(const struct diffuse_run *run, const struct generation_input *in)
{
    const struct config *config = &run->n->config;
    size_t len = in->n + run->how->gen_length, m = diffuse_mask_block(run->how, config);
    size_t behind = len - (config->attends_from_end ? in->n : 0);
    const int fills = config->attends == MASK_BLOCK_CAUSAL && !config->attends_cut;
    return fills ? len + (m - behind % m) % m : len;
}

size_t diffuse_shift(const struct diffuse_run *run, const struct generation_input *in)
{
    const struct config *config = &run->n->config;
    return config->attends == MASK_BLOCK_CAUSAL && !config->attends_from_end
               ? in->n % run->how->block_length
               : 0;
}

void diffuse_begin(struct diffuse_run *run, size_t lane, size_t first,
                   const struct generation_input *in)
{
    size_t len = diffuse_length(run, in);
    int32_t *token = run->host.token + first;
    run->host.state[lane] = (struct canvas_state){.key = in->key,
                                                  .first = (int32_t)first, .prompt = (int32_t)in->n,
                                                  .len = (int32_t)len,
                                                  .shift = (int32_t)diffuse_shift(run, in),
                                                  .live = lane % run->drafts == 0};
    for (size_t k = 0; k < len; k++) {
        token[k] = k < in->n ? in->ids[k] : (int32_t)run->n->config.mask;
        run->cached[first + k] = -1;
    }
    if (diffuse_slots_kept(run))
        memset(run->host.slot + first, 0, len * sizeof *run->host.slot);
}

/* ---- the rows of a pass ---- */

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

size_t diffuse_count_open(const struct diffuse_run *run, const struct canvas_state *canvas)
{
    const struct canvas_loop here = diffuse_loop_here(run);
    size_t n = 0;
    for (int32_t k = canvas->prompt; k < canvas_block_end(&here, canvas); k++)
        n += (size_t)canvas_open(&here, canvas, k);
    return n;
}

size_t diffuse_count_asked(const struct diffuse_run *run, const struct canvas_state *canvas)
{
    const struct canvas_loop here = diffuse_loop_here(run);
    size_t n = 0;
    for (int32_t k = canvas_held_begin(&here, canvas); k < canvas_block_end(&here, canvas); k++)
        n += (size_t)canvas_held(&here, canvas, k);
    return n + diffuse_count_open(run, canvas);
}

size_t diffuse_capacity_now(const struct diffuse_run *run)
{
    const struct canvas_loop *loop = &run->plan.loop;
    size_t most = 0;
    for (size_t i = 0; i < loop->parts; i++) {
        const struct canvas_state *canvas = &run->host.state[run->work->host.member[i]];
        size_t wanted = canvas->live ? diffuse_count_asked(run, canvas) : 0;
        size_t needed = canvas->live ? diffuse_needs(run, canvas, wanted) : 0;
        most = needed > most ? needed : most;
    }
    return diffuse_capacity(run, most);
}

void diffuse_ask(struct diffuse_run *run, size_t capacity)
{
    run->plan.loop.capacity = capacity;
    const struct canvas_loop here = diffuse_loop_here(run);
    for (size_t i = 0; i < here.parts; i++)
        advance_ask(&here, i);
    run->plan.pass.R = here.parts * capacity;
}

size_t diffuse_passes_left(const struct diffuse_run *run)
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

void diffuse_describe_pass(struct diffuse_run *run)
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

void diffuse_note_rows(struct diffuse_run *run)
{
    const int unsure = run->policy->causal && run->serves > 1 &&
                       unmask_has(run->how->rule, UNMASK_REVISES);
    for (size_t k = 0; k < run->ids && run->kv; k++)
        if (run->host.row_of[k] >= 0)
            run->cached[k] = unsure ? -1 : run->host.token[k];
}

size_t diffuse_describe(struct diffuse_run *run)
{
    diffuse_describe_pass(run);
    diffuse_ask(run, diffuse_capacity_now(run));
    pass_write(run->n, run->work);
    diffuse_note_rows(run);
    return diffuse_passes_left(run);
}

/* ---- a pass ---- */

void diffuse_pass(void *ctx)
{
    const struct diffuse_run *run = ctx;
    struct backend *backend = run->n->backend;
    pass_run(run->n, run->kv, run->work, &run->plan.pass);
    backend->ops->advance_canvases(backend, &run->plan.loop);
}
