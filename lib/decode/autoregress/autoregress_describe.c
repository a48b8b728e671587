/* autoregress_describe.c - builds the next pass; see autoregress_run.h. The rows of a text are the
 * ids that the reader's cache does not hold yet: first the whole prompt, later the last id, and
 * after it the guesses. Position p of a text lies in slot first_slot + p of the cache. A rejected
 * guess leaves keys and values in such a slot; they are overwritten before they are read. */
#include "lib/decode/autoregress/autoregress_run.h"

#include <assert.h>
#include <string.h>

int32_t autoregress_id(const struct autoregress_run *r, size_t seat, int32_t place)
{
    const struct texts *t = &r->writer.host;
    int32_t prompt = t->state[seat].prompt;
    return place < prompt ? r->in[r->who[seat]].ids[place]
                          : t->ids[seat * r->how->max_new + (size_t)(place - prompt)];
}

size_t autoregress_room(const struct autoregress_run *r, const struct text_state *t)
{
    size_t left = (size_t)(t->max - t->len) - 1;
    return t->live && t->len > t->prompt ? (left < r->most ? left : r->most) : 0;
}

void autoregress_begin(struct reader *w)
{
    pass_begin(&w->plan.pass, w->n, w->kv, w->work);
    w->longest = 0;
}

int32_t autoregress_first(const struct reader *w)
{
    return w->n->config.chains != 0;
}

/* Lists the slots of a text from `listed` on: those of the cache, or its `n` rows from `row` on. A
 * place without a row has no key, so its position is one that no row sees. */
static void list_slots(const struct reader *w, const struct text_state *t, int32_t n, size_t row)
{
    const struct rows *x = &w->work->host.rows;
    int32_t count = w->kv ? t->max : n, first = w->kv ? t->first_slot : (int32_t)row;
    size_t listed = (size_t)t->first_slot;
    for (int32_t p = 0; p < count; p++) {
        x->slots[listed + (size_t)p] = first + p;
        x->slot_pos[listed + (size_t)p] = p < autoregress_first(w) ? INT32_MAX : p;
    }
}

void autoregress_hear(const struct autoregress_run *r, size_t part, int32_t place, size_t N)
{
    const struct work *w = r->writer.work;
    const struct index *x = &r->drafter.work->host;
    const size_t taps = r->drafter.work->size.fed;
    const struct attn_seq *seq = &w->host.rows.seqs[part];
    const int32_t row = place - w->host.rows.pos[seq->row_begin];
    assert(row >= 0 && row < seq->rows);
    for (size_t i = 0; i < taps; i++)
        x->feature[N * taps + i] = (int32_t)(i * w->size.rows) + seq->row_begin + row;
}

/* Appends a row to the pass: id `place` of a text. */
static void add_row(struct reader *w, const struct text_state *t, int32_t place, int32_t id)
{
    const struct rows *x = &w->work->host.rows;
    size_t row = w->plan.pass.T++;
    x->token[row] = id;
    x->pos[row] = place;
    x->slot[row] = t->first_slot + place;
}

/* Wants the first `count` answers of the last `rows` rows, which are about the ids behind the text:
 * each has the draw that chooses its id. */
static void add_wanted(struct reader *w, const struct text_state *t, int32_t rows, int32_t count)
{
    const struct rows *x = &w->work->host.rows;
    struct pass *p = &w->plan.pass;
    struct text_state at = *t;
    for (int32_t k = 0; k < count; k++, p->R++, at.len++) {
        x->wanted[p->R] = (int32_t)p->T - rows + k;
        x->key[p->R] = text_key(&at);
    }
}

/* Adds the rows of a text, and of guesses and masks behind it. The slot list of a text begins at
 * the first slot of the text. No other list begins there. */
static void add_text(struct autoregress_run *r, struct reader *w, size_t seat, const int32_t *guess,
                     int32_t guesses, int32_t masks)
{
    struct pass *p = &w->plan.pass;
    const struct text_state *t = &w->host.state[seat];
    size_t part = p->n_seqs++, row = p->T;
    int32_t n = t->len + guesses + masks;
    list_slots(w, t, n, row);
    for (int32_t place = w->held[seat]; place < t->len; place++)
        add_row(w, t, place, autoregress_id(r, seat, place));
    for (int32_t k = 0; k < guesses; k++)
        add_row(w, t, t->len + k, guess[k]);
    for (int32_t k = 0; k < masks; k++)
        add_row(w, t, t->len + guesses + k, (int32_t)w->n->config.mask);
    size_t rows = p->T - row;
    w->work->host.rows.seqs[part] =
        (struct attn_seq){(int32_t)row, (int32_t)rows, t->first_slot, n};
    w->work->host.member[part] = (int32_t)seat;
    p->max_rows = rows > p->max_rows ? rows : p->max_rows;
    w->longest = (size_t)n > w->longest ? (size_t)n : w->longest;
}

void autoregress_add(struct autoregress_run *r, struct reader *w, size_t seat, const int32_t *guess,
                     int32_t guesses)
{
    int32_t masks = w == &r->writer && r->masks ? r->masks[seat] : 0;
    add_text(r, w, seat, guess, guesses, masks);
    add_wanted(w, &w->host.state[seat], 1 + guesses + masks, 1 + guesses + masks);
}

/* For attention all that these rows read counts as position 0, which each of them sees. */
void autoregress_add_masks(struct autoregress_run *r, struct reader *w, size_t seat, int32_t masks,
                           int32_t wanted)
{
    const struct text_state *t = &w->host.state[seat];
    add_text(r, w, seat, NULL, 0, masks);
    memset(w->work->host.rows.slot_pos + t->first_slot, 0, (size_t)t->max * sizeof(int32_t));
    add_wanted(w, t, masks, wanted);
}

void autoregress_send(const struct autoregress_run *r, struct reader *w)
{
    const struct sample *s = &r->how->sample;
    struct pass *p = &w->plan.pass;
    w->plan.loop.parts = p->n_seqs;
    p->mask = MASK_CAUSAL;
    p->max_slots = pass_slots(w->work, w->longest);
    p->logits = w->work->size.logits != 0;
    p->query = (struct head_query){.temperature = s->temperature, .seed = r->how->seed,
                                   .top_k = p->logits ? s->top_k : 0, /* a drafter has none */
                                   .top_p = p->logits ? s->top_p : 0,
                                   .keys = w->work->device.rows.key};
    pass_write(w->n, w->work);
}

void autoregress_step(void *ctx)
{
    const struct reader *w = ctx;
    struct backend *b = w->n->backend;
    pass_run(w->n, w->kv, w->work, &w->plan.pass);
    b->ops->advance_texts(b, &w->plan.loop);
}

void autoregress_step_on(struct reader *w)
{
    struct pass *p = &w->plan.pass;
    p->T = p->n_seqs;
    p->max_rows = 1;
    w->longest += w->longest < w->work->size.slots;
    p->max_slots = pass_slots(w->work, w->longest);
}

void autoregress_count(const struct reader *w, struct extent *x, int32_t rows, int32_t len)
{
    cost_causal(x, rows, len);
    x->read += w->kv ? len : 0;
    x->written += w->kv ? rows : 0;
}

size_t autoregress_describe(struct autoregress_run *r)
{
    struct reader *w = &r->writer;
    int32_t most = 0;
    autoregress_begin(w);
    for (size_t i = 0; i < r->seats; i++) {
        const struct text_state *t = &w->host.state[i];
        if (!t->live)
            continue;
        autoregress_add(r, w, i, r->most ? r->guess + i * r->most : NULL, r->guesses[i]);
        most = t->max - t->len > most ? t->max - t->len : most;
    }
    autoregress_send(r, w);
    return (size_t)most;
}
