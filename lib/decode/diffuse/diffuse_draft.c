/* diffuse_draft.c - several steps of a canvas in one pass, with the same ids as single steps.
 *
 * A canvas has lanes D_1 .. D_d, states with their own tokens. D_1 is the state of the canvas. D_2
 * is the state after the next step if the answers stay the same, and so on as long as answers are
 * known, up to the first state after the block. One pass answers all lanes, and every lane makes
 * its step T_j = step(D_j) on the back end. If T_j = D_j+1, lane j + 1 started from the right
 * state, and T_j+1 is the state after one more pass. So T_1 always counts, and each next T_j as
 * long as all states before it were predicted right. The canvas continues from the last of these,
 * and its answers make the next drafts. A draw depends on the number of the step, which lanes count
 * as canvases do.
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

void diffuse_draft_make(struct diffuse_run *r)
{
    struct draft *d = &r->draft;
    size_t gen = r->most, longest = 0;
    if (r->drafts == 1)
        return;
    for (size_t i = 0; i < r->batch; i++)
        longest = r->in[i].n + gen > longest ? r->in[i].n + gen : longest;
    d->after = mem_zero(r->ids, sizeof *d->after);
    d->answer = mem_zero(r->lanes * (gen > r->least ? gen : r->least), sizeof *d->answer);
    d->version = mem_zero(r->ids, sizeof *d->version);
    d->place = mem_zero(longest, sizeof *d->place);
    d->known = mem_zero(gen, sizeof *d->known);
    d->row_of = mem_zero(r->ids, sizeof *d->row_of);
    d->asked = mem_zero(gen, sizeof *d->asked);
    d->wanted = mem_zero(gen, sizeof *d->wanted);
    d->key = mem_zero(gen, sizeof *d->key);
}

void diffuse_draft_free(struct diffuse_run *r)
{
    struct draft *d = &r->draft;
    free(d->after);
    free(d->answer);
    free(d->version);
    free(d->place);
    free(d->known);
    free(d->row_of);
    free(d->asked);
    free(d->wanted);
    free(d->key);
}

void diffuse_draft_read(struct diffuse_run *r)
{
    struct backend *b = r->n->backend;
    const struct draft *d = &r->draft;
    if (r->drafts == 1)
        return;
    b->ops->read(b, d->after, r->device.token, r->ids * sizeof *d->after);
    b->ops->read(b, d->answer, r->work->answer, r->plan.pass.R * sizeof *d->answer);
}

/* 1: the new state of a lane equals the state of the next one before the pass. */
static int is_predicted(const struct diffuse_run *r, const struct canvas_state *now, size_t lane)
{
    const struct canvas_state *is = &now[lane], *next = &r->host.state[lane + 1];
    return is->live && next->live && is->block == next->block && is->step == next->step &&
           !memcmp(is->kept, next->kept, sizeof is->kept) &&
           !memcmp(r->draft.after + is->first, r->host.token + next->first,
                   (size_t)is->len * sizeof *r->host.token);
}

size_t diffuse_draft_steps(const struct diffuse_run *r, const struct canvas_state *now,
                           size_t canvas)
{
    size_t steps = 1;
    while (steps < r->drafts && is_predicted(r, now, canvas * r->drafts + steps - 1))
        steps++;
    return steps;
}

/* ---- the slots of the cache ---- */

/* The version of position p after the first `lanes` lanes of a canvas. */
static int32_t version_of(const struct diffuse_run *r, const struct canvas_state *c, size_t lanes,
                          int32_t p)
{
    int32_t kept = r->draft.version[c->first + p];
    while (--lanes > 0)
        if (r->host.row_of[c->first + (int32_t)lanes * c->len + p] >= 0)
            return (kept + (int32_t)lanes) % (int32_t)r->drafts;
    return kept;
}

int32_t diffuse_slot(const struct diffuse_run *r, size_t lane, int32_t p)
{
    size_t own = lane % r->drafts;
    const struct canvas_state *c = &r->host.state[lane - own];
    int32_t slot = r->slot[lane / r->drafts] + p;
    return r->drafts > 1 ? slot + version_of(r, c, own + 1, p) * c->len : slot;
}

void diffuse_draft_inherit(struct diffuse_run *r, size_t lane)
{
    const struct canvas_state *c = &r->host.state[lane], *from = c - 1;
    for (int32_t p = 0; p < c->len; p++)
        r->cached[c->first + p] = r->host.row_of[from->first + p] < 0
                                      ? r->cached[from->first + p]
                                      : r->host.token[from->first + p];
}

/* ---- new drafts ---- */

/* Copies a lane from the one before it. */
static void copy_lane(struct diffuse_run *r, struct canvas_state *c,
                      const struct canvas_state *from)
{
    int32_t first = c->first;
    *c = *from;
    c->first = first;
    memcpy(r->host.token + first, r->host.token + from->first,
           (size_t)c->len * sizeof *r->host.token);
}

void diffuse_draft_guess(struct diffuse_run *r, size_t each)
{
    for (size_t i = 0; i < r->lanes; i++)
        if (i % r->drafts) {
            copy_lane(r, &r->host.state[i], &r->host.state[i - 1]);
            r->host.state[i].live &= i % r->drafts < each;
        }
}

/* Notes the places of the answers that the pass gave to a lane. */
static void place_answers(struct diffuse_run *r, size_t lane)
{
    const struct canvas_state *c = &r->host.state[lane];
    size_t part = 0;
    for (int32_t p = 0; p < c->len; p++)
        r->draft.place[p] = -1;
    while ((size_t)r->work->host.member[part] != lane)
        part++;
    size_t w0 = part * r->plan.loop.capacity;
    for (size_t w = w0; w < w0 + (size_t)c->wanted; w++)
        r->draft.place[r->host.asked[w] - c->first] = (int32_t)w;
}

/* Sets a lane to the state of the one before it, advanced one step by the known answers. */
static void draft_step(struct diffuse_run *r, size_t lane)
{
    struct draft *d = &r->draft;
    struct canvas_state *c = &r->host.state[lane];
    int32_t first = c->first, member = (int32_t)lane, lag = r->plan.loop.lag;
    copy_lane(r, c, c - 1);
    for (int32_t p = 0; p < c->len; p++)
        d->row_of[first + p] = p + lag < c->len && d->place[p + lag] >= 0 ? 0 : -1;
    struct canvas_loop l = diffuse_loop_here(r);
    l.parts = 1;
    l.capacity = r->most;
    l.member = &member;
    l.row_of = d->row_of;
    l.T = 0;
    l.twin = 0;
    l.answer = d->known;
    l.asked = d->asked;
    l.rows.wanted = d->wanted;
    l.rows.key = d->key;
    advance_ask(&l, 0);
    for (int32_t w = 0; w < c->wanted; w++)
        d->known[w] = d->answer[d->place[d->asked[w] - first]];
    host_advance_canvases(r->n->backend, &l);
}

void diffuse_draft_follow(struct diffuse_run *r, const struct canvas_state *now, size_t canvas,
                          size_t steps)
{
    size_t lane = canvas * r->drafts, last = lane + steps - 1;
    struct canvas_state *c = &r->host.state[lane];
    int32_t first = c->first, block = r->host.state[last].block;
    if (r->drafts == 1)
        return;
    for (int32_t p = 0; r->kv && p < c->len; p++)
        r->draft.version[first + p] = version_of(r, c, steps, p);
    memmove(r->cached + first, r->cached + now[last].first, (size_t)c->len * sizeof *r->cached);
    place_answers(r, last);
    *c = now[last];
    c->first = first;
    memcpy(r->host.token + first, r->draft.after + now[last].first,
           (size_t)c->len * sizeof *r->host.token);
    for (size_t k = 1; k < r->drafts; k++)
        c[k].live = 0;
    for (size_t k = 1; k < r->drafts && c[k - 1].live && c[k - 1].block == block; k++)
        draft_step(r, lane + k);
}
