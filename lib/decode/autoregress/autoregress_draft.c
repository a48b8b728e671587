/* autoregress_draft.c - guesses, and how they become text; see autoregress_run.h.
 *
 * Guesses come from the text, from a draft model, or from the model itself where it also fills
 * masks (linear_spec_generate of Nemotron-Labs-Diffusion, with drafts of one pass). Where it fills
 * masks from left to right, one pass checks guesses and makes the next ones (I-DLM). The authors
 * accept a guess with probability min(1, p/q) where the temperature is above 0, with argmaxes as
 * guesses, and draw another id from (p - q)+. Here a guess is accepted where the model's own draw
 * is the same id, so the text is that of the model alone at every temperature. At temperature 0 it
 * is also the text of the authors' code.
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

static void look_up(struct autoregress_run *run, size_t seat)
{
    const struct text_state *state = &run->writer.host.state[seat];
    size_t most = autoregress_room(run, state);
    for (int32_t p = 0; most && p < state->len; p++)
        run->text[p] = autoregress_id(run, seat, p);
    run->guesses[seat] = most ? (int32_t)lookup_guess(run->text, (size_t)state->len,
                                                      run->how->lookup_ngram, most,
                                                      run->guess + seat * run->most)
                              : 0;
}

/* Counts the work of a pass of the drafter. */
static void count(const struct autoregress_run *run)
{
    const struct reader *reader = &run->drafter;
    const struct pass *pass = &reader->plan.pass;
    struct extent extent = {.wanted = (double)pass->R};
    for (size_t part = 0; part < pass->n_seqs; part++) {
        size_t seat = (size_t)reader->work->host.member[part];
        const struct text_state *state = &reader->host.state[seat];
        int32_t rows = state->len - reader->held[seat];
        /* 0 rows: the drafter has made all guesses of the text, which stays in the pass */
        autoregress_count(reader, &extent, rows ? rows : 1, state->len);
    }
    cost_add(&run->trace->cost, cost_of(&reader->cost_model, &extent));
}

/* Runs the drafter as often as the text with the most guesses needs. A text with fewer guesses
 * stays in the passes; its further answers are not read. */
static void draft(struct autoregress_run *run, size_t passes)
{
    struct reader *reader = &run->drafter;
    struct backend *backend = reader->n->backend;
    for (size_t k = 0; k < passes; k++) {
        count(run);
        if (k == 0) /* its rows depend on the accepted guesses */
            autoregress_step(reader);
        else
            backend->ops->run(backend, &reader->plan, sizeof reader->plan, autoregress_step,
                              reader);
        autoregress_step_on(reader);
        for (size_t part = 0; part < reader->plan.pass.n_seqs; part++) {
            size_t seat = (size_t)reader->work->host.member[part];
            struct text_state *state = &reader->host.state[seat];
            reader->held[seat] = state->len;
            state->len += state->len < state->max;
        }
    }
    backend->ops->read(backend, reader->host.state, reader->device.state,
                       run->seats * sizeof *reader->host.state);
    backend->ops->read(backend, reader->host.ids, reader->device.ids,
                       run->seats * run->how->max_new * sizeof *reader->host.ids);
}

/* Lists the outputs of the model that the rows of the drafter's first pass read. A row has the id
 * at a place and the outputs at the place before it. So every id of a text has a row, the last one
 * too. Accepted guesses are read again, because their first rows had states of the drafter, not
 * outputs of the model. */
static void hear_all(struct autoregress_run *run)
{
    const struct reader *reader = &run->writer;
    size_t N = 0;
    for (size_t part = 0; part < reader->plan.pass.n_seqs; part++) {
        const size_t seat = (size_t)reader->work->host.member[part];
        const struct text_state *state = &reader->host.state[seat];
        for (int32_t p = run->drafter.held[seat]; autoregress_room(run, state) && p < state->len;
             p++)
            autoregress_hear(run, part, p - 1, N++);
    }
    assert(N == run->drafter.plan.pass.T);
}

/* Runs the drafter on the texts. For the drafter a text ends after its most guesses. */
static void draft_all(struct autoregress_run *run)
{
    struct reader *reader = &run->drafter;
    size_t passes = 0;
    autoregress_begin(reader);
    for (size_t i = 0; i < run->seats; i++) {
        const struct text_state *state = &run->writer.host.state[i];
        size_t most = autoregress_room(run, state);
        reader->host.state[i] = *state;
        reader->host.state[i].max = state->len + (int32_t)most;
        if (most)
            autoregress_add(run, reader, i, NULL, 0);
        passes = most > passes ? most : passes;
    }
    if (!passes)
        return;
    if (reader->n->config.chains)
        hear_all(run);
    autoregress_send(run, reader);
    if (reader->n->config.chains) {
        pass_fuse(reader->n, reader->work, run->writer.work->taps, reader->plan.pass.T);
        cost_add(&run->trace->cost, cost_of_context(reader->n, (double)reader->plan.pass.T));
    }
    draft(run, passes);
    for (size_t part = 0; part < reader->plan.pass.n_seqs; part++) {
        size_t i = (size_t)reader->work->host.member[part];
        int32_t len = run->writer.host.state[i].len, more = reader->host.state[i].len - len;
        const int32_t *ids = reader->host.ids + i * run->how->max_new +
                             (len - reader->host.state[i].prompt);
        for (int32_t k = 0; k < more; k++)
            run->guess[i * run->most + (size_t)k] = ids[k];
        run->guesses[i] = more;
        /* the drafter has not read its last guess */
        reader->held[i] = reader->n->config.chains ? len : reader->host.state[i].len - 1;
    }
}

/* Takes the answers of the pass over masks as guesses. */
static void take_masks(struct autoregress_run *run)
{
    const struct reader *reader = &run->writer;
    const struct head_row *row = run->answer;
    reader->n->backend->ops->read(reader->n->backend, run->answer, reader->work->answer,
                                  reader->plan.pass.R * sizeof *run->answer);
    for (size_t part = 0; part < reader->plan.pass.n_seqs; part++) {
        const size_t i = (size_t)reader->work->host.member[part];
        const size_t most = autoregress_room(run, &reader->host.state[i]);
        for (size_t k = 0; k < most && !row[k].bad; k++)
            run->guess[i * run->most + (size_t)run->guesses[i]++] = row[k].id;
        row += most;
    }
}

/* The model itself fills masks behind each text, in one pass. The keys and values of the masks are
 * later overwritten by those of the guesses. */
static void fill_masks(struct autoregress_run *run)
{
    struct reader *reader = &run->writer;
    struct extent extent = {0};
    autoregress_begin(reader);
    for (size_t i = 0; i < run->seats; i++) {
        const struct text_state *state = &reader->host.state[i];
        size_t most = autoregress_room(run, state);
        if (!most)
            continue;
        autoregress_add_masks(run, reader, i, (int32_t)most, (int32_t)most);
        cost_full(&extent, (double)most + 1, (double)state->len + (double)most);
        extent.read += (double)state->len + (double)most;
        extent.written += (double)most + 1;
        extent.wanted += (double)most;
    }
    if (!reader->plan.pass.T)
        return;
    autoregress_send(run, reader);
    pass_run(reader->n, reader->kv, reader->work, &reader->plan.pass);
    cost_add(&run->trace->cost, cost_of(&reader->cost_model, &extent));
    take_masks(run);
}

/* Takes the hints of the last pass as guesses, and asks for new hints by masks. The masks stand for
 * the ids behind the id that the pass adds after its guesses, and for that id. */
static void follow_hints(struct autoregress_run *run)
{
    for (size_t i = 0; i < run->seats; i++) {
        const struct text_state *state = &run->writer.host.state[i];
        int32_t most = (int32_t)autoregress_room(run, state),
                n = run->hints[i] < most ? run->hints[i] : most;
        int32_t left = state->max - state->len - n - 2;
        memcpy(run->guess + i * run->most, run->hint + i * run->most,
               (size_t)n * sizeof *run->guess);
        run->guesses[i] = n;
        left = left < (int32_t)run->most ? left : (int32_t)run->most;
        run->masks[i] = state->live && state->len > state->prompt && left > 0 ? left : 0;
    }
}

/* Keeps the answers to masks as hints. holds 1: the text took all guesses before the masks, so the
 * answers are about its next ids. */
static void take_hints(struct autoregress_run *run, size_t seat, int holds,
                       const struct head_row *row)
{
    run->hints[seat] = 0;
    for (int32_t k = 0; k < run->masks[seat] && holds && !row[k].bad; k++)
        run->hint[seat * run->most + (size_t)run->hints[seat]++] = row[k].id;
}

void autoregress_guess(struct autoregress_run *run)
{
    for (size_t i = 0; i < run->seats; i++) {
        run->guesses[i] = 0;
        if (run->how->lookup)
            look_up(run, i);
    }
    if (run->masks)
        follow_hints(run);
    else if (run->how->self_draft)
        fill_masks(run);
    if (run->drafter.n)
        (run->drafter.n->config.drafts ? autoregress_fill : draft_all)(run);
}

/* ---- answers ---- */

void autoregress_take(struct autoregress_run *run)
{
    const struct reader *reader = &run->writer;
    struct backend *backend = reader->n->backend;
    struct text_loop loop = reader->plan.loop;
    const struct head_row *row = run->answer;
    backend->ops->read(backend, run->answer, reader->work->answer,
                       reader->plan.pass.R * sizeof *run->answer);
    loop.text = run->next;
    loop.out = reader->host.ids;
    memcpy(run->next, reader->host.state, run->seats * sizeof *run->next);
    for (size_t part = 0; part < reader->plan.pass.n_seqs; part++) {
        int32_t i = reader->work->host.member[part], k = 0;
        const struct text_state *state = &run->next[i];
        const int32_t *guess = run->most ? run->guess + (size_t)i * run->most : NULL;
        text_take(&loop, i, &row[k]);
        while (state->live && k < run->guesses[i] && state->last == guess[k])
            text_take(&loop, i, &row[++k]);
        row += 1 + run->guesses[i];
        if (run->masks) {
            take_hints(run, (size_t)i, state->live && k == run->guesses[i], row);
            row += run->masks[i];
        }
    }
    backend->ops->write(backend, reader->device.state, run->next, run->seats * sizeof *run->next);
}
