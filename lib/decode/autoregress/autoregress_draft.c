/* autoregress_draft.c - guesses, and how they become text; see autoregress_run.h.
 *
 * Guesses come from the text, from a draft model, or from the model itself where it also fills
 * masks (linear_spec_generate of Nemotron-Labs-Diffusion, with drafts of one pass). Where it fills
 * masks from left to right, one pass checks guesses and makes the next ones (I-DLM). The authors
 * accept a guess with probability min(1, p/q) where the temperature is above 0, with argmaxes as
 * guesses, and draw another id from (p - q)+; here a guess is accepted where the model's own draw
 * is the same id, so that the text is the model's at every temperature, and at 0 theirs.
 *
 * A pass computes answers to the last id of a text and to each guess after it, with the draws that
 * choose the ids at these places. Answers are taken in order while each equals its guess; the first
 * answer that differs is taken too, because the text before it is right. So every id is chosen from
 * the same logits with the same draw as without guesses: a guess can save a pass but cannot change
 * the text. The draft model draws with the noise of the main model, so where their probabilities
 * agree, they draw the same id. */
#include "lib/decode/autoregress/autoregress_run.h"

#include <assert.h>
#include <string.h>

#include "lib/decode/lookup.h"

static void look_up(struct autoregress_run *r, size_t seat)
{
    const struct text_state *t = &r->writer.host.state[seat];
    size_t most = autoregress_room(r, t);
    for (int32_t p = 0; most && p < t->len; p++)
        r->text[p] = autoregress_id(r, seat, p);
    r->guesses[seat] = most ? (int32_t)lookup_guess(r->text, (size_t)t->len, r->how->lookup_ngram,
                                                    most, r->guess + seat * r->most)
                            : 0;
}

/* Counts the work of a pass of the drafter. */
static void count(const struct autoregress_run *r)
{
    const struct reader *d = &r->drafter;
    const struct pass *p = &d->plan.pass;
    struct extent x = {.wanted = (double)p->R};
    for (size_t part = 0; part < p->n_seqs; part++) {
        size_t seat = (size_t)d->work->host.member[part];
        const struct text_state *t = &d->host.state[seat];
        int32_t rows = t->len - d->held[seat];
        autoregress_count(d, &x, rows ? rows : 1, t->len); /* none: no guess is left */
    }
    cost_add(&r->trace->cost, cost_of(&d->cost_model, &x));
}

/* Runs the drafter as often as the text with the most guesses needs. A text with fewer guesses
 * stays in the passes; its further answers are not read. */
static void draft(struct autoregress_run *r, size_t passes)
{
    struct reader *d = &r->drafter;
    struct backend *b = d->n->backend;
    for (size_t k = 0; k < passes; k++) {
        count(r);
        if (k == 0) /* its rows depend on the accepted guesses */
            autoregress_step(d);
        else
            b->ops->run(b, &d->plan, sizeof d->plan, autoregress_step, d);
        autoregress_step_on(d);
        for (size_t part = 0; part < d->plan.pass.n_seqs; part++) {
            size_t seat = (size_t)d->work->host.member[part];
            struct text_state *t = &d->host.state[seat];
            d->held[seat] = t->len;
            t->len += t->len < t->max;
        }
    }
    b->ops->read(b, d->host.state, d->device.state, r->seats * sizeof *d->host.state);
    b->ops->read(b, d->host.ids, d->device.ids,
                 r->seats * r->how->max_new * sizeof *d->host.ids);
}

/* Lists the outputs of the model that the rows of the drafter's first pass read. A row has the id
 * at a place and the outputs at the place before it; so all ids of a text have a row, the last one
 * too. Rows of guesses had states of the drafter: those that were accepted come again. */
static void hear_all(struct autoregress_run *r)
{
    const struct reader *w = &r->writer;
    size_t N = 0;
    for (size_t part = 0; part < w->plan.pass.n_seqs; part++) {
        const size_t seat = (size_t)w->work->host.member[part];
        const struct text_state *t = &w->host.state[seat];
        for (int32_t p = r->drafter.held[seat]; autoregress_room(r, t) && p < t->len; p++)
            autoregress_hear(r, part, p - 1, N++);
    }
    assert(N == r->drafter.plan.pass.T);
}

/* Starts the drafter on each text, which ends for it after the most guesses of the text. */
static void draft_all(struct autoregress_run *r)
{
    struct reader *d = &r->drafter;
    size_t passes = 0;
    autoregress_begin(d);
    for (size_t i = 0; i < r->seats; i++) {
        const struct text_state *t = &r->writer.host.state[i];
        size_t most = autoregress_room(r, t);
        d->host.state[i] = *t;
        d->host.state[i].max = t->len + (int32_t)most;
        if (most)
            autoregress_add(r, d, i, NULL, 0);
        passes = most > passes ? most : passes;
    }
    if (!passes)
        return;
    if (d->n->config.chains)
        hear_all(r);
    autoregress_send(r, d);
    if (d->n->config.chains) {
        pass_fuse(d->n, d->work, r->writer.work->taps, d->plan.pass.T);
        cost_add(&r->trace->cost, cost_of_context(d->n, (double)d->plan.pass.T));
    }
    draft(r, passes);
    for (size_t part = 0; part < d->plan.pass.n_seqs; part++) {
        size_t i = (size_t)d->work->host.member[part];
        int32_t len = r->writer.host.state[i].len, more = d->host.state[i].len - len;
        const int32_t *ids = d->host.ids + i * r->how->max_new + (len - d->host.state[i].prompt);
        for (int32_t k = 0; k < more; k++)
            r->guess[i * r->most + (size_t)k] = ids[k];
        r->guesses[i] = more;
        /* the drafter has not read its last guess */
        d->held[i] = d->n->config.chains ? len : d->host.state[i].len - 1;
    }
}

/* Takes the answers of the pass over masks as guesses. */
static void take_masks(struct autoregress_run *r)
{
    const struct reader *w = &r->writer;
    const struct head_row *a = r->answer;
    w->n->backend->ops->read(w->n->backend, r->answer, w->work->answer,
                             w->plan.pass.R * sizeof *r->answer);
    for (size_t part = 0; part < w->plan.pass.n_seqs; part++) {
        const size_t i = (size_t)w->work->host.member[part];
        const size_t most = autoregress_room(r, &w->host.state[i]);
        for (size_t k = 0; k < most && !a[k].bad; k++)
            r->guess[i * r->most + (size_t)r->guesses[i]++] = a[k].id;
        a += most;
    }
}

/* The model itself fills masks behind each text, in one pass. Its keys and values of the masks are
 * overwritten by those of the guesses. */
static void fill_masks(struct autoregress_run *r)
{
    struct reader *w = &r->writer;
    struct extent x = {0};
    autoregress_begin(w);
    for (size_t i = 0; i < r->seats; i++) {
        const struct text_state *t = &w->host.state[i];
        size_t most = autoregress_room(r, t);
        if (!most)
            continue;
        autoregress_add_masks(r, w, i, (int32_t)most, (int32_t)most);
        cost_full(&x, (double)most + 1, (double)t->len + (double)most);
        x.read += (double)t->len + (double)most;
        x.written += (double)most + 1;
        x.wanted += (double)most;
    }
    if (!w->plan.pass.T)
        return;
    autoregress_send(r, w);
    pass_run(w->n, w->kv, w->work, &w->plan.pass);
    cost_add(&r->trace->cost, cost_of(&w->cost_model, &x));
    take_masks(r);
}

/* Takes the hints of the last pass as guesses, and asks for new ones: masks stand for the id that
 * the pass adds behind its guesses, and those behind it. */
static void follow_hints(struct autoregress_run *r)
{
    for (size_t i = 0; i < r->seats; i++) {
        const struct text_state *t = &r->writer.host.state[i];
        int32_t most = (int32_t)autoregress_room(r, t), n = r->hints[i] < most ? r->hints[i] : most;
        int32_t left = t->max - t->len - n - 2;
        memcpy(r->guess + i * r->most, r->hint + i * r->most, (size_t)n * sizeof *r->guess);
        r->guesses[i] = n;
        left = left < (int32_t)r->most ? left : (int32_t)r->most;
        r->masks[i] = t->live && t->len > t->prompt && left > 0 ? left : 0;
    }
}

/* Keeps the answers of masks, which hold if the text took all guesses before them. */
static void take_hints(struct autoregress_run *r, size_t seat, int holds, const struct head_row *a)
{
    r->hints[seat] = 0;
    for (int32_t k = 0; k < r->masks[seat] && holds && !a[k].bad; k++)
        r->hint[seat * r->most + (size_t)r->hints[seat]++] = a[k].id;
}

void autoregress_guess(struct autoregress_run *r)
{
    for (size_t i = 0; i < r->seats; i++) {
        r->guesses[i] = 0;
        if (r->how->lookup)
            look_up(r, i);
    }
    if (r->masks)
        follow_hints(r);
    else if (r->how->self_draft)
        fill_masks(r);
    if (r->drafter.n)
        (r->drafter.n->config.drafts ? autoregress_fill : draft_all)(r);
}

/* ---- answers ---- */

void autoregress_take(struct autoregress_run *r)
{
    const struct reader *w = &r->writer;
    struct backend *b = w->n->backend;
    struct text_loop l = w->plan.loop;
    const struct head_row *a = r->answer;
    b->ops->read(b, r->answer, w->work->answer, w->plan.pass.R * sizeof *r->answer);
    l.text = r->next;
    l.out = w->host.ids;
    memcpy(r->next, w->host.state, r->seats * sizeof *r->next);
    for (size_t part = 0; part < w->plan.pass.n_seqs; part++) {
        int32_t i = w->work->host.member[part], k = 0;
        const struct text_state *t = &r->next[i];
        const int32_t *guess = r->most ? r->guess + (size_t)i * r->most : NULL;
        text_take(&l, i, &a[k]);
        while (t->live && k < r->guesses[i] && t->last == guess[k])
            text_take(&l, i, &a[++k]);
        a += 1 + r->guesses[i];
        if (r->masks) {
            take_hints(r, (size_t)i, t->live && k == r->guesses[i], a);
            a += r->masks[i];
        }
    }
    b->ops->write(b, w->device.state, r->next, r->seats * sizeof *r->next);
}
