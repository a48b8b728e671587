/* autoregress_describe.c - builds the next pass; see autoregress_run.h. The rows of a text are the
 * ids that the reader's cache does not hold yet: first the whole prompt, later the last id, and
 * after it the guesses. Position p of a text lies in slot first_slot + p of the cache. A rejected
 * guess leaves keys and values in such a slot; they are overwritten before they are read. */
#include "lib/decode/autoregress/autoregress_run.h"

#include <assert.h>
#include <string.h>

int32_t autoregress_id(const struct autoregress_run *run, size_t seat, int32_t place)
{
    const struct texts *texts = &run->writer.host;
    int32_t prompt = texts->state[seat].prompt;
    return place < prompt ? run->in[run->who[seat]].ids[place]
                          : texts->ids[seat * run->how->max_new + (size_t)(place - prompt)];
}

size_t autoregress_room(const struct autoregress_run *run, const struct text_state *state)
{
    size_t left = (size_t)(state->max - state->len) - 1;
    return state->live && state->len > state->prompt ? (left < run->most ? left : run->most) : 0;
}

void autoregress_begin(struct reader *reader)
{
    pass_begin(&reader->plan.pass, reader->n, reader->kv, reader->work);
    reader->longest = 0;
}

int32_t autoregress_first(const struct reader *reader)
{
    return reader->n->config.chains != 0;
}

/* Lists the slots of a text: its slots of the cache, or without a cache its `n` rows from `row` on.
 * A place without a row has no key, so it gets a position that no row sees. */
static void list_slots(const struct reader *reader, const struct text_state *state, int32_t n,
                       size_t row)
{
    const struct rows *rows = &reader->work->host.rows;
    int32_t count = reader->kv ? state->max : n,
            first = reader->kv ? state->first_slot : (int32_t)row;
    size_t listed = (size_t)state->first_slot;
    for (int32_t p = 0; p < count; p++) {
        rows->slots[listed + (size_t)p] = first + p;
        rows->slot_pos[listed + (size_t)p] = p < autoregress_first(reader) ? INT32_MAX : p;
    }
}

void autoregress_hear(const struct autoregress_run *run, size_t part, int32_t place, size_t N)
{
    const struct work *work = run->writer.work;
    const struct index *index = &run->drafter.work->host;
    const size_t taps = run->drafter.work->size.fed;
    const struct attn_seq *seq = &work->host.rows.seqs[part];
    const int32_t row = place - work->host.rows.pos[seq->row_begin];
    assert(row >= 0 && row < seq->rows);
    for (size_t i = 0; i < taps; i++)
        index->feature[N * taps + i] = (int32_t)(i * work->size.rows) + seq->row_begin + row;
}

/* Appends a row to the pass: id `place` of a text. */
static void add_row(struct reader *reader, const struct text_state *state, int32_t place,
                    int32_t id)
{
    const struct rows *rows = &reader->work->host.rows;
    size_t row = reader->plan.pass.T++;
    rows->token[row] = id;
    rows->pos[row] = place;
    rows->slot[row] = state->first_slot + place;
}

/* Wants the answers to the first `count` of the last `rows` rows. These answers are about the ids
 * behind the text, and each is drawn with the noise of its id. */
static void add_wanted(struct reader *reader, const struct text_state *state, int32_t rows,
                       int32_t count)
{
    const struct rows *x = &reader->work->host.rows;
    struct pass *pass = &reader->plan.pass;
    struct text_state at = *state;
    for (int32_t k = 0; k < count; k++, pass->R++, at.len++) {
        x->wanted[pass->R] = (int32_t)pass->T - rows + k;
        x->key[pass->R] = text_key(&at);
    }
}

/* Adds the rows of a text, and of guesses and masks behind it. The slot list of a text begins at
 * the first slot of the text. No other list begins there. */
static void add_text(struct autoregress_run *run, struct reader *reader, size_t seat,
                     const int32_t *guess, int32_t guesses, int32_t masks)
{
    struct pass *pass = &reader->plan.pass;
    const struct text_state *state = &reader->host.state[seat];
    size_t part = pass->n_seqs++, row = pass->T;
    int32_t n = state->len + guesses + masks;
    list_slots(reader, state, n, row);
    for (int32_t place = reader->held[seat]; place < state->len; place++)
        add_row(reader, state, place, autoregress_id(run, seat, place));
    for (int32_t k = 0; k < guesses; k++)
        add_row(reader, state, state->len + k, guess[k]);
    for (int32_t k = 0; k < masks; k++)
        add_row(reader, state, state->len + guesses + k, (int32_t)reader->n->config.mask);
    size_t rows = pass->T - row;
    reader->work->host.rows.seqs[part] =
        (struct attn_seq){(int32_t)row, (int32_t)rows, state->first_slot, n};
    reader->work->host.member[part] = (int32_t)seat;
    pass->max_rows = rows > pass->max_rows ? rows : pass->max_rows;
    reader->longest = (size_t)n > reader->longest ? (size_t)n : reader->longest;
}

void autoregress_add(struct autoregress_run *run, struct reader *reader, size_t seat,
                     const int32_t *guess, int32_t guesses)
{
    int32_t masks = reader == &run->writer && run->masks ? run->masks[seat] : 0;
    add_text(run, reader, seat, guess, guesses, masks);
    add_wanted(reader, &reader->host.state[seat], 1 + guesses + masks, 1 + guesses + masks);
}

/* For attention, all keys of the text count as position 0, so that every row sees all of them. */
void autoregress_add_masks(struct autoregress_run *run, struct reader *reader, size_t seat,
                           int32_t masks, int32_t wanted)
{
    const struct text_state *state = &reader->host.state[seat];
    add_text(run, reader, seat, NULL, 0, masks);
    memset(reader->work->host.rows.slot_pos + state->first_slot, 0,
           (size_t)state->max * sizeof(int32_t));
    add_wanted(reader, state, masks, wanted);
}

void autoregress_send(const struct autoregress_run *run, struct reader *reader)
{
    const struct sample *sample = &run->how->sample;
    struct pass *pass = &reader->plan.pass;
    reader->plan.loop.parts = pass->n_seqs;
    pass->mask = MASK_CAUSAL;
    pass->max_slots = pass_slots(reader->work, reader->longest);
    pass->logits = reader->work->size.logits != 0;
    pass->query = (struct head_query){.temperature = sample->temperature,
                                      .seed = run->how->seed,
                                      .top_k = pass->logits ? sample->top_k
                                                            : 0, /* a drafter has none */
                                      .top_p = pass->logits ? sample->top_p : 0,
                                      .keys = reader->work->device.rows.key};
    pass_write(reader->n, reader->work);
}

void autoregress_step(void *ctx)
{
    const struct reader *reader = ctx;
    struct backend *backend = reader->n->backend;
    pass_run(reader->n, reader->kv, reader->work, &reader->plan.pass);
    backend->ops->advance_texts(backend, &reader->plan.loop);
}

void autoregress_step_on(struct reader *reader)
{
    struct pass *pass = &reader->plan.pass;
    pass->T = pass->n_seqs;
    pass->max_rows = 1;
    reader->longest += reader->longest < reader->work->size.slots;
    pass->max_slots = pass_slots(reader->work, reader->longest);
}

void autoregress_count(const struct reader *reader, struct extent *extent, int32_t rows,
                       int32_t len)
{
    cost_causal(extent, rows, len);
    extent->read += reader->kv ? len : 0;
    extent->written += reader->kv ? rows : 0;
}

size_t autoregress_describe(struct autoregress_run *run)
{
    struct reader *reader = &run->writer;
    int32_t most = 0;
    autoregress_begin(reader);
    for (size_t i = 0; i < run->seats; i++) {
        const struct text_state *state = &reader->host.state[i];
        if (!state->live)
            continue;
        autoregress_add(run, reader, i, run->most ? run->guess + i * run->most : NULL,
                        run->guesses[i]);
        most = state->max - state->len > most ? state->max - state->len : most;
    }
    autoregress_send(run, reader);
    return (size_t)most;
}
