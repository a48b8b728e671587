/* autoregress-describe.c - what goes into a pass; see autoregress-run.h. A reader is given of each
 * text the ids that its cache does not hold yet: at first all of them, later the last one, and
 * behind it what is guessed. Position p of a text lies in slot first_slot + p of the cache, so what
 * a guess that turned out wrong left there is overwritten before anybody reads it.
 */
#include "lib/decode/autoregress-run.h"

#include <string.h>

/* ---- rows ---- */

int32_t autoregress_id(const struct run *r, size_t seat, int32_t place)
{
    const struct texts *t = &r->writer.host;
    int32_t prompt = t->state[seat].prompt;
    return place < prompt ? r->in[r->who[seat]].ids[place]
                          : t->ids[seat * r->how->max_new + (size_t)(place - prompt)];
}

void autoregress_begin(struct reader *w)
{
    pass_begin(&w->plan.pass, w->n, w->kv, w->work);
    w->longest = 0;
}

/* Names all slots of a text from `listed` on: the cache's, or the `n` rows that it has from `row`
 * on. */
static void list_slots(const struct reader *w, const struct text_state *t, int32_t n, size_t row)
{
    const struct rows *x = &w->work->host.rows;
    int32_t count = w->kv ? t->max : n, first = w->kv ? t->first_slot : (int32_t)row;
    size_t listed = (size_t)t->first_slot;
    for (int32_t p = 0; p < count; p++) {
        x->slots[listed + (size_t)p] = first + p;
        x->slot_pos[listed + (size_t)p] = p;
    }
}

/* The next row of the pass: id `place` of a text. */
static void add_row(struct reader *w, const struct text_state *t, int32_t place, int32_t id)
{
    const struct rows *x = &w->work->host.rows;
    size_t row = w->plan.pass.T++;
    x->token[row] = id;
    x->pos[row] = place;
    x->slot[row] = t->first_slot + place;
}

/* The answers to the last 1 + guesses rows are wanted, each with the draw that chooses the id
 * behind it. */
static void add_wanted(struct reader *w, const struct text_state *t, int32_t guesses)
{
    const struct rows *x = &w->work->host.rows;
    struct pass *p = &w->plan.pass;
    struct text_state at = *t;
    for (int32_t k = 0; k <= guesses; k++, p->R++, at.len++) {
        x->wanted[p->R] = (int32_t)p->T - 1 - guesses + k;
        x->key[p->R] = text_key(&at);
    }
}

/* A text's list of slots begins at its first slot: no other text's does. */
void autoregress_add(struct run *r, struct reader *w, size_t seat, const int32_t *guess,
                     int32_t guesses)
{
    struct pass *p = &w->plan.pass;
    const struct text_state *t = &w->host.state[seat];
    size_t part = p->n_seqs++, row = p->T;
    int32_t n = t->len + guesses;
    list_slots(w, t, n, row);
    for (int32_t place = w->held[seat]; place < t->len; place++)
        add_row(w, t, place, autoregress_id(r, seat, place));
    for (int32_t k = 0; k < guesses; k++)
        add_row(w, t, t->len + k, guess[k]);
    add_wanted(w, t, guesses);
    size_t rows = p->T - row;
    w->work->host.rows.seqs[part] =
        (struct attn_seq){(int32_t)row, (int32_t)rows, t->first_slot, n};
    w->work->host.member[part] = (int32_t)seat;
    p->max_rows = rows > p->max_rows ? rows : p->max_rows;
    w->longest = (size_t)n > w->longest ? (size_t)n : w->longest;
}

void autoregress_send(const struct run *r, struct reader *w)
{
    struct pass *p = &w->plan.pass;
    w->plan.loop.parts = p->n_seqs;
    p->mask = MASK_CAUSAL;
    p->max_slots = pass_slots(w->work, w->longest);
    p->logits = w->work->size.logits != 0; /* then the host draws */
    p->query = (struct head_query){.temperature = p->logits ? 0 : r->how->sample.temperature,
                                   .seed = r->how->seed, .keys = w->work->device.rows.key};
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

/* ---- the first pass of several ---- */

void autoregress_read(struct run *r)
{
    struct reader *w = &r->writer;
    struct backend *b = w->n->backend;
    if (!r->answer) /* else the host wrote them */
        b->ops->read(b, w->host.ids, w->device.ids,
                     r->seats * r->how->max_new * sizeof *w->host.ids);
}

/* The next pass, with the guesses that there are. Returns how many ids a text may still get. */
static size_t put_together(struct run *r)
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

size_t autoregress_describe(void *ctx)
{
    struct run *r = ctx;
    autoregress_read(r);
    autoregress_change_seats(r);
    if (r->most)
        autoregress_guess(r);
    size_t most = put_together(r);
    return most && (!r->writer.kv || r->answer) ? 1 : most;
}

/* ---- before the clock ---- */

/* The pass as planned; without being recorded where it will not be. */
static void prepare_pass(struct reader *w, int recorded)
{
    struct backend *b = w->n->backend;
    if (recorded)
        b->ops->prepare(b, &w->plan, sizeof w->plan, autoregress_step, w);
    else
        autoregress_step(w);
}

/* Passes of `parts` texts with a token each, from `first` ids of the longest up to `last`. */
static void prepare_tokens(struct reader *w, int recorded, size_t parts, size_t first, size_t last)
{
    struct pass *p = &w->plan.pass;
    p->T = p->R = p->n_seqs = w->plan.loop.parts = parts;
    p->max_rows = 1;
    for (size_t n = first; n <= last; n = p->max_slots + 1) {
        p->max_slots = pass_slots(w->work, n);
        prepare_pass(w, recorded);
    }
}

/* A pass that comes as it is described: of its operations only the kernels are settled. */
static void prepare_described(const struct run *r, struct reader *w)
{
    autoregress_send(r, w);
    pass_run(w->n, w->kv, w->work, &w->plan.pass);
}

/* All texts with `more` ids behind the prompt. */
static void grow(struct run *r, size_t more)
{
    for (size_t i = 0; i < r->seats; i++)
        r->writer.host.state[i].len = r->writer.host.state[i].prompt + (int32_t)more;
}

/* Without a cache: as often as the rows have grown by an eighth. */
static void prepare_growth(struct run *r)
{
    size_t last = r->how->max_new - 1, step;
    for (size_t more = 0; more < last; ) {
        step = r->writer.plan.pass.T / r->seats / 8;
        more = last - more < step ? last : more + (step ? step : 1);
        grow(r, more);
        put_together(r);
        pass_run(r->writer.n, r->writer.kv, r->writer.work, &r->writer.plan.pass);
    }
}

static size_t eighth_more(size_t n)
{
    return n + (n < 8 ? 1 : n / 8);
}

/* A pass over the first texts with n rows in all, as the writer has them with guesses, and the
 * drafter when guesses were right. */
static void prepare_rows(struct run *r, struct reader *w, size_t n)
{
    int writes = w == &r->writer;
    autoregress_begin(w);
    for (size_t i = 0; i < r->seats && n; i++) {
        struct text_state *t = &w->host.state[i];
        size_t left = r->seats - i, rows = (n + left - 1) / left;
        int32_t guesses = writes ? (int32_t)rows - 1 : 0;
        *t = r->writer.host.state[i];
        w->held[i] = t->len + guesses - (int32_t)rows;
        autoregress_add(r, w, i, r->guess + i * r->most, guesses);
        n -= rows;
    }
    prepare_described(r, w);
}

/* Passes with guesses, and those that make them: as often as their rows have grown by an eighth. */
static void prepare_guesses(struct run *r, size_t shortest, size_t longest)
{
    struct reader *w = &r->writer, *d = &r->drafter;
    const struct cost was = r->trace->cost;
    const size_t held = r->seats * sizeof *w->held;
    grow(r, 1);
    for (size_t n = 1; w->kv && n <= r->seats * (1 + r->most); n = eighth_more(n))
        prepare_rows(r, w, n);
    memset(w->held, 0, held);
    if (!d->n)
        return;
    for (size_t n = 1; n <= 2 * r->seats; n = eighth_more(n))
        prepare_rows(r, d, n);
    for (size_t n = r->seats; n > 0; n--)
        prepare_tokens(d, 1, n, shortest + 2, longest + r->how->max_new - 1);
    memset(d->held, 0, held);
    autoregress_guess(r); /* reads all of the texts first */
    memset(d->held, 0, held);
    memset(r->guesses, 0, r->seats * sizeof *r->guesses);
    r->trace->cost = was;
}

/* Prompts that join the tokens of the others: as often as their rows have grown by an eighth. The
 * first seat has the longest of all for a while. */
static void prepare_joining(struct run *r)
{
    struct reader *w = &r->writer;
    struct text_state *t = &w->host.state[0];
    const struct text_state first = *t;
    size_t most = 0;
    for (size_t i = 0; i < r->batch; i++)
        most = r->in[i].n > r->in[most].n ? i : most;
    grow(r, 1);
    r->who[0] = most;
    t->prompt = (int32_t)r->in[most].n;
    t->max = t->prompt + (int32_t)r->how->max_new;
    for (size_t n = 1; n <= r->in[most].n; n = eighth_more(n)) {
        autoregress_begin(w);
        t->len = (int32_t)n;
        for (size_t i = 0; i < r->seats; i++) {
            w->held[i] = i ? w->host.state[i].prompt : 0;
            autoregress_add(r, w, i, NULL, 0);
        }
        prepare_described(r, w);
    }
    r->who[0] = 0;
    *t = first;
    memset(w->held, 0, r->seats * sizeof *w->held);
}

/* Each pass advances what is on the device, as far as it goes; at the end that is sent anew. */
void autoregress_prepare(void *ctx)
{
    struct run *r = ctx;
    struct reader *w = &r->writer;
    size_t shortest = SIZE_MAX, longest = w->longest, most = r->how->max_new;
    int recorded = w->kv && !r->answer;
    for (size_t i = 0; i < r->seats; i++)
        shortest = r->in[i].n < shortest ? r->in[i].n : shortest;
    prepare_pass(w, recorded);
    if (!w->kv)
        prepare_growth(r);
    else if (!r->most && most > 1)
        prepare_tokens(w, recorded, r->seats, longest + 1, longest + most - 1);
    for (size_t n = r->seats; !r->most && w->kv && w->plan.loop.n_stop && most > 2 && --n > 0;)
        prepare_tokens(w, recorded, n, shortest + 2, longest + most - 1);
    if (r->most)
        prepare_guesses(r, shortest, longest);
    if (r->seats < r->batch && w->kv)
        prepare_joining(r);
    grow(r, 0);
    memset(w->host.ids, 0, r->seats * most * sizeof *w->host.ids);
    pass_write(w->n, w->work);
    autoregress_describe(r);
}
