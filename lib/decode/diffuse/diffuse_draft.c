/* diffuse_draft.c - several steps of a canvas in one pass, with the same ids as single steps.
 *
 * A canvas has lanes D_1 .. D_d, states with their own tokens. D_1 is the state of the canvas. D_2
 * is the state after the next step if the answers stay the same, and so on as long as answers are
 * known, up to the first state after the block. One pass answers all lanes, and every lane makes
 * its step T_j = step(D_j) on the back end. If T_j equals D_(j+1), lane j + 1 started from the
 * right state, and T_(j+1) is the state after one more pass. So T_1 always counts, and each next
 * T_j counts as long as all states before it were predicted right. The canvas continues from the
 * last T_j that counts, and the answers of that lane make the next drafts. A draw depends on the
 * number of the step, which lanes count as canvases do.
 *
 * With a cache each position has one slot per lane, its versions. A lane reads the version that the
 * last lane up to itself computes in this pass, else the kept one. All keys and values of a layer
 * are written before its attention, so lanes read what consecutive passes would read. Afterwards
 * the versions that the accepted steps computed are kept.
 *
 * Source: "Free Draft-and-Verification: Toward Lossless Parallel Decoding for Diffusion Large
 * Language Models" (FreeDave), arXiv 2510.00294; here a draft is right when it is the same
 * state. */
#include "lib/decode/diffuse/diffuse_run.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/host.h"
#include "lib/base/mem.h"

void diffuse_draft_make(struct diffuse_run *run)
{
    struct draft *draft = &run->draft;
    size_t gen = run->most, longest = 0;
    if (run->drafts == 1)
        return;
    for (size_t i = 0; i < run->batch; i++)
        longest = run->in[i].n + gen > longest ? run->in[i].n + gen : longest;
    draft->after = mem_zero(run->ids, sizeof *draft->after);
    draft->answer = mem_zero(run->lanes * (gen > run->least ? gen : run->least),
                             sizeof *draft->answer);
    draft->version = mem_zero(run->ids, sizeof *draft->version);
    draft->place = mem_zero(longest, sizeof *draft->place);
    draft->known = mem_zero(gen, sizeof *draft->known);
    draft->row_of = mem_zero(run->ids, sizeof *draft->row_of);
    draft->asked = mem_zero(gen, sizeof *draft->asked);
    draft->wanted = mem_zero(gen, sizeof *draft->wanted);
    draft->key = mem_zero(gen, sizeof *draft->key);
}

void diffuse_draft_free(struct diffuse_run *run)
{
    struct draft *draft = &run->draft;
    free(draft->after);
    free(draft->answer);
    free(draft->version);
    free(draft->place);
    free(draft->known);
    free(draft->row_of);
    free(draft->asked);
    free(draft->wanted);
    free(draft->key);
}

void diffuse_draft_read(struct diffuse_run *run)
{
    struct backend *backend = run->n->backend;
    const struct draft *draft = &run->draft;
    if (run->drafts == 1)
        return;
    backend->ops->read(backend, draft->after, run->device.token, run->ids * sizeof *draft->after);
    backend->ops->read(backend, draft->answer, run->work->answer,
                       run->plan.pass.R * sizeof *draft->answer);
}

/* 1: the new state of a lane equals the state that the next lane had before the pass. */
static int is_predicted(const struct diffuse_run *run, const struct canvas_state *now, size_t lane)
{
    const struct canvas_state *is = &now[lane], *next = &run->host.state[lane + 1];
    return is->live && next->live && is->block == next->block && is->step == next->step &&
           !memcmp(is->kept, next->kept, sizeof is->kept) &&
           !memcmp(run->draft.after + is->first, run->host.token + next->first,
                   (size_t)is->len * sizeof *run->host.token);
}

size_t diffuse_draft_steps(const struct diffuse_run *run, const struct canvas_state *now,
                           size_t canvas)
{
    size_t steps = 1;
    while (steps < run->drafts && is_predicted(run, now, canvas * run->drafts + steps - 1))
        steps++;
    return steps;
}

/* ---- the slots of the cache ---- */

/* The version of a position after the first `lanes` lanes of a canvas. */
static int32_t version_of(const struct diffuse_run *run, const struct canvas_state *canvas,
                          size_t lanes, int32_t place)
{
    int32_t kept = run->draft.version[canvas->first + place];
    while (--lanes > 0)
        if (run->host.row_of[canvas->first + (int32_t)lanes * canvas->len + place] >= 0)
            return (kept + (int32_t)lanes) % (int32_t)run->drafts;
    return kept;
}

int32_t diffuse_slot(const struct diffuse_run *run, size_t lane, int32_t place)
{
    size_t own = lane % run->drafts;
    const struct canvas_state *canvas = &run->host.state[lane - own];
    int32_t slot = run->slot[lane / run->drafts] + place;
    return run->drafts > 1 ? slot + version_of(run, canvas, own + 1, place) * canvas->len : slot;
}

void diffuse_draft_inherit(struct diffuse_run *run, size_t lane)
{
    const struct canvas_state *canvas = &run->host.state[lane], *from = canvas - 1;
    for (int32_t place = 0; place < canvas->len; place++)
        run->cached[canvas->first + place] = run->host.row_of[from->first + place] < 0
                                      ? run->cached[from->first + place]
                                      : run->host.token[from->first + place];
}

/* ---- new drafts ---- */

/* Copies a lane from `from`, the lane before it. */
static void copy_lane(struct diffuse_run *run, struct canvas_state *canvas,
                      const struct canvas_state *from)
{
    int32_t first = canvas->first;
    *canvas = *from;
    canvas->first = first;
    memcpy(run->host.token + first, run->host.token + from->first,
           (size_t)canvas->len * sizeof *run->host.token);
}

void diffuse_draft_guess(struct diffuse_run *run, size_t each)
{
    for (size_t i = 0; i < run->lanes; i++)
        if (i % run->drafts) {
            copy_lane(run, &run->host.state[i], &run->host.state[i - 1]);
            run->host.state[i].live &= i % run->drafts < each;
        }
}

/* Notes the places of the answers that the pass gave to a lane. */
static void place_answers(struct diffuse_run *run, size_t lane)
{
    const struct canvas_state *canvas = &run->host.state[lane];
    size_t part = 0;
    for (int32_t place = 0; place < canvas->len; place++)
        run->draft.place[place] = -1;
    while ((size_t)run->work->host.member[part] != lane)
        part++;
    size_t w0 = part * run->plan.loop.capacity;
    for (size_t w = w0; w < w0 + (size_t)canvas->wanted; w++)
        run->draft.place[run->host.asked[w] - canvas->first] = (int32_t)w;
}

/* Sets a lane to the state of the lane before it, advanced one step by the known answers. */
static void draft_step(struct diffuse_run *run, size_t lane)
{
    struct draft *draft = &run->draft;
    struct canvas_state *canvas = &run->host.state[lane];
    int32_t first = canvas->first, member = (int32_t)lane, lag = run->plan.loop.lag;
    copy_lane(run, canvas, canvas - 1);
    for (int32_t place = 0; place < canvas->len; place++)
        draft->row_of[first + place] = place + lag < canvas->len && draft->place[place + lag] >= 0
                                           ? 0
                                           : -1;
    struct canvas_loop loop = diffuse_loop_here(run);
    loop.parts = 1;
    loop.capacity = run->most;
    loop.member = &member;
    loop.row_of = draft->row_of;
    loop.T = 0;
    loop.twin = 0;
    loop.answer = draft->known;
    loop.asked = draft->asked;
    loop.rows.wanted = draft->wanted;
    loop.rows.key = draft->key;
    advance_ask(&loop, 0);
    for (int32_t wanted = 0; wanted < canvas->wanted; wanted++)
        draft->known[wanted] = draft->answer[draft->place[draft->asked[wanted] - first]];
    host_advance_canvases(run->n->backend, &loop);
}

void diffuse_draft_follow(struct diffuse_run *run, const struct canvas_state *now, size_t canvas,
                          size_t steps)
{
    size_t lane = canvas * run->drafts, last = lane + steps - 1;
    struct canvas_state *state = &run->host.state[lane];
    int32_t first = state->first, block = run->host.state[last].block;
    if (run->drafts == 1)
        return;
    for (int32_t place = 0; run->kv && place < state->len; place++)
        run->draft.version[first + place] = version_of(run, state, steps, place);
    memmove(run->cached + first, run->cached + now[last].first,
            (size_t)state->len * sizeof *run->cached);
    place_answers(run, last);
    *state = now[last];
    state->first = first;
    memcpy(run->host.token + first, run->draft.after + now[last].first,
           (size_t)state->len * sizeof *run->host.token);
    for (size_t k = 1; k < run->drafts; k++)
        state[k].live = 0;
    for (size_t k = 1; k < run->drafts && state[k - 1].live && state[k - 1].block == block; k++)
        draft_step(run, lane + k);
}
