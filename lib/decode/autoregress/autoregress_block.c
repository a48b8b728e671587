/* autoregress_block.c - guesses of a drafter that reads the model and fills masks; see
 * autoregress_run.h.
 *
 * The model has read the first n - 1 of the n ids of a text. The outputs of its layers at these
 * places are the context of the drafter. The outputs that the drafter has not seen yet lie in
 * work.taps of the model: the pass that checked the last guesses left them there. The outputs of
 * wrong guesses lie behind them and are not used. One pass of the drafter then fills masks behind
 * the last id; the masks and that id see each other and the context. A block always has all its
 * masks, as in training, however few of its answers are wanted. So the cache of the drafter has
 * room for them behind each text. Source: dflash_generate of github.com/z-lab/dflash. */
#include "lib/decode/autoregress/autoregress_run.h"

/* The text of a seat as the drafter has it. */
static struct text_state text_of(const struct autoregress_run *r, size_t seat)
{
    const int32_t masks = (int32_t)r->drafter.n->config.drafts;
    struct text_state t = r->writer.host.state[seat];
    t.first_slot += (int32_t)seat * masks;
    t.max += masks;
    return t;
}

/* Lists the outputs of a text that the drafter has not seen, as rows N.. of its context. Returns
 * the number of rows with them. */
static size_t add_context(struct autoregress_run *r, size_t part, size_t N)
{
    const struct reader *w = &r->writer;
    struct reader *d = &r->drafter;
    const struct index *x = &d->work->host;
    const size_t seat = (size_t)w->work->host.member[part];
    const struct text_state t = text_of(r, seat);
    for (int32_t p = d->held[seat]; p < t.len - 1; p++, N++) {
        x->rows.pos[N] = p;
        x->rows.slot[N] = t.first_slot + p;
        autoregress_hear(r, part, p, N);
    }
    d->held[seat] = t.len - 1;
    return N;
}

/* The context of all texts that get guesses. Returns its rows. */
static size_t take_context(struct autoregress_run *r)
{
    const struct reader *w = &r->writer;
    struct reader *d = &r->drafter;
    size_t N = 0;
    for (size_t part = 0; part < w->plan.pass.n_seqs; part++)
        if (autoregress_room(r, &w->host.state[w->work->host.member[part]]))
            N = add_context(r, part, N);
    if (!N)
        return 0;
    pass_write(d->n, d->work);
    pass_context(d->n, d->kv, d->work, w->work->taps, N);
    return N;
}

/* Describes the pass that fills masks. Returns its guesses. */
static size_t describe(struct autoregress_run *r, struct extent *x)
{
    struct reader *d = &r->drafter;
    const size_t masks = d->n->config.drafts;
    size_t guesses = 0;
    autoregress_begin(d);
    for (size_t i = 0; i < r->seats; i++) {
        const struct text_state *t = &r->writer.host.state[i];
        const size_t most = autoregress_room(r, t);
        if (!most)
            continue;
        d->host.state[i] = text_of(r, i);
        autoregress_add_masks(r, d, i, (int32_t)masks, (int32_t)most);
        cost_full(x, (double)masks + 1, (double)masks + t->len);
        x->read += t->len - 1;
        x->written += (double)masks + 1;
        x->wanted += (double)most;
        guesses += most;
    }
    if (guesses)
        autoregress_send(r, d);
    return guesses;
}

void autoregress_fill(struct autoregress_run *r)
{
    struct reader *d = &r->drafter;
    struct backend *b = d->n->backend;
    const struct head_row *a = r->answer;
    struct extent x = {0};
    const size_t context = take_context(r), guesses = describe(r, &x);
    if (!guesses)
        return;
    pass_run(d->n, d->kv, d->work, &d->plan.pass);
    cost_add(&r->trace->cost, cost_of(&d->cost_model, &x));
    cost_add(&r->trace->cost, cost_of_context(d->n, (double)context));
    b->ops->read(b, r->answer, d->work->answer, guesses * sizeof *r->answer);
    for (size_t part = 0; part < d->plan.pass.n_seqs; part++) {
        const size_t i = (size_t)d->work->host.member[part];
        const size_t most = autoregress_room(r, &r->writer.host.state[i]);
        for (size_t k = 0; k < most && !a[k].bad; k++)
            r->guess[i * r->most + (size_t)r->guesses[i]++] = a[k].id;
        a += most;
    }
}
