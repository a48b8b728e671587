/* autoregress_block.c - guesses of a drafter that reads the model and fills masks; see
 * autoregress_run.h.
 *
 * The model has read the first n - 1 of the n ids of a text. The outputs of its layers at these
 * places are the context of the drafter. The outputs that the drafter has not seen yet lie in
 * work.taps of the model: the pass that checked the last guesses left them there. The outputs of
 * wrong guesses lie behind them and are not used. One pass of the drafter then fills masks behind
 * the last id; the masks and that id see each other and the context. A block always has all its
 * masks, as in training, however few answers are wanted. So the cache of the drafter has room for
 * all masks behind each text. Source: dflash_generate of github.com/z-lab/dflash. */
#include "lib/decode/autoregress/autoregress_run.h"

/* The text of a seat as the drafter has it. */
static struct text_state text_of(const struct autoregress_run *run, size_t seat)
{
    const int32_t masks = (int32_t)run->drafter.n->config.drafts;
    struct text_state state = run->writer.host.state[seat];
    state.first_slot += (int32_t)seat * masks;
    state.max += masks;
    return state;
}

/* Lists the outputs of a text that the drafter has not seen, as the next rows of its context.
 * Returns the number of rows with them. */
static size_t add_context(struct autoregress_run *run, size_t part, size_t rows)
{
    const struct reader *writer = &run->writer;
    struct reader *drafter = &run->drafter;
    const struct index *index = &drafter->work->host;
    const size_t seat = (size_t)writer->work->host.member[part];
    const struct text_state state = text_of(run, seat);
    for (int32_t place = drafter->held[seat]; place < state.len - 1; place++, rows++) {
        index->rows.pos[rows] = place;
        index->rows.slot[rows] = state.first_slot + place;
        autoregress_hear(run, part, place, rows);
    }
    drafter->held[seat] = state.len - 1;
    return rows;
}

/* Gives the drafter the context of all texts that get guesses. Returns the number of its rows. */
static size_t take_context(struct autoregress_run *run)
{
    const struct reader *w = &run->writer;
    struct reader *d = &run->drafter;
    size_t N = 0;
    for (size_t part = 0; part < w->plan.pass.n_seqs; part++)
        if (autoregress_room(run, &w->host.state[w->work->host.member[part]]))
            N = add_context(run, part, N);
    if (!N)
        return 0;
    pass_write(d->n, d->work);
    pass_context(d->n, d->kv, d->work, w->work->taps, N);
    return N;
}

/* Describes the pass that fills masks. Returns the number of guesses that it makes. */
static size_t describe(struct autoregress_run *run, struct extent *extent)
{
    struct reader *reader = &run->drafter;
    const size_t masks = reader->n->config.drafts;
    size_t guesses = 0;
    autoregress_begin(reader);
    for (size_t i = 0; i < run->seats; i++) {
        const struct text_state *state = &run->writer.host.state[i];
        const size_t most = autoregress_room(run, state);
        if (!most)
            continue;
        reader->host.state[i] = text_of(run, i);
        autoregress_add_masks(run, reader, i, (int32_t)masks, (int32_t)most);
        cost_full(extent, (double)masks + 1, (double)masks + state->len);
        extent->read += state->len - 1;
        extent->written += (double)masks + 1;
        extent->wanted += (double)most;
        guesses += most;
    }
    if (guesses)
        autoregress_send(run, reader);
    return guesses;
}

void autoregress_fill(struct autoregress_run *run)
{
    struct reader *reader = &run->drafter;
    struct backend *backend = reader->n->backend;
    const struct head_row *row = run->answer;
    struct extent extent = {0};
    const size_t context = take_context(run), guesses = describe(run, &extent);
    if (!guesses)
        return;
    pass_run(reader->n, reader->kv, reader->work, &reader->plan.pass);
    cost_add(&run->trace->cost, cost_of(&reader->cost_model, &extent));
    cost_add(&run->trace->cost, cost_of_context(reader->n, (double)context));
    backend->ops->read(backend, run->answer, reader->work->answer, guesses * sizeof *run->answer);
    for (size_t part = 0; part < reader->plan.pass.n_seqs; part++) {
        const size_t i = (size_t)reader->work->host.member[part];
        const size_t most = autoregress_room(run, &run->writer.host.state[i]);
        for (size_t k = 0; k < most && !row[k].bad; k++)
            run->guess[i * run->most + (size_t)run->guesses[i]++] = row[k].id;
        row += most;
    }
}
