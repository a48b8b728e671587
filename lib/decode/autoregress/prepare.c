/* prepare.c - runs each kind of pass that can come once, before the clock begins; see
 * autoregress_run.h. Some of these passes are invented: other text lengths, made-up guesses. */
#include "lib/decode/autoregress/autoregress_run.h"

#include <string.h>

/* Prepares the pass as described; `recorded` 0: runs it without recording. */
static void prepare_pass(struct reader *w, int recorded)
{
    struct backend *b = w->n->backend;
    if (recorded)
        b->ops->prepare(b, &w->plan, sizeof w->plan, autoregress_step, w);
    else
        autoregress_step(w);
}

/* Prepares passes of `parts` texts with one token each, for `first` to `last` ids of the
 * longest. */
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

/* Prepares a pass that will not repeat: only the kernels of its operations. */
static void prepare_described(const struct autoregress_run *r, struct reader *w)
{
    autoregress_send(r, w);
    pass_run(w->n, w->kv, w->work, &w->plan.pass);
}

/* Describes all texts with `more` ids after the prompt. */
static void grow(struct autoregress_run *r, size_t more)
{
    for (size_t i = 0; i < r->seats; i++)
        r->writer.host.state[i].len = r->writer.host.state[i].prompt + (int32_t)more;
}

/* Without a cache: once for each growth of the rows by an eighth. */
static void prepare_growth(struct autoregress_run *r)
{
    size_t last = r->how->max_new - 1, step;
    for (size_t more = 0; more < last; ) {
        step = r->writer.plan.pass.T / r->seats / 8;
        more = last - more < step ? last : more + (step ? step : 1);
        grow(r, more);
        autoregress_describe(r);
        pass_run(r->writer.n, r->writer.kv, r->writer.work, &r->writer.plan.pass);
    }
}

static size_t eighth_more(size_t n)
{
    return n + (n < 8 ? 1 : n / 8);
}

/* Prepares a pass over the first texts with n rows in all: of the writer with guesses, or of the
 * drafter after accepted guesses. */
static void prepare_rows(struct autoregress_run *r, struct reader *w, size_t n)
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

/* Prepares passes that verify guesses and passes that make them, per growth of rows by an
 * eighth. */
static void prepare_guesses(struct autoregress_run *r, size_t shortest, size_t longest)
{
    struct reader *w = &r->writer, *d = &r->drafter;
    const struct cost was = r->trace->cost;
    const size_t held = r->seats * sizeof *w->held;
    const size_t left = r->how->max_new - 1 - r->most; /* ids behind the guesses */
    grow(r, 1);
    for (size_t i = 0; i < r->seats && r->masks; i++)
        r->masks[i] = (int32_t)(left < r->most ? left : r->most);
    for (size_t n = 1; w->kv && n <= r->seats * (1 + r->most); n = eighth_more(n))
        prepare_rows(r, w, n);
    if (r->masks) {
        memset(r->masks, 0, r->seats * sizeof *r->masks);
    } else if (r->how->self_draft) {
        for (size_t i = 0; i < r->seats; i++)
            w->held[i] = w->host.state[i].prompt;
        autoregress_guess(r);
        memset(r->guesses, 0, r->seats * sizeof *r->guesses);
        r->trace->cost = was;
    }
    memset(w->held, 0, held);
    if (!d->n || d->n->config.drafts) /* what this drafter reads comes from passes over texts */
        return;
    for (size_t n = 1; n <= 2 * r->seats; n = eighth_more(n))
        prepare_rows(r, d, n);
    for (size_t n = r->seats; n > 0; n--)
        prepare_tokens(d, 1, n, shortest + 2, longest + r->how->max_new - 1);
    memset(d->held, 0, held);
    if (!d->n->config.chains)
        autoregress_guess(r); /* first reads the whole texts */
    for (size_t i = 0; i < r->seats; i++)
        d->held[i] = autoregress_first(d);
    memset(r->guesses, 0, r->seats * sizeof *r->guesses);
    r->trace->cost = was;
}

/* Prepares passes in which a prompt joins the tokens of the others, per growth of the rows by an
 * eighth. Meanwhile the first seat has the longest prompt. */
static void prepare_joining(struct autoregress_run *r)
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

/* Each prepared pass advances the states on the device; at the end they are sent again, with the
 * first pass, which has no guesses. */
void autoregress_prepare(void *ctx)
{
    struct autoregress_run *r = ctx;
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
    autoregress_describe(r);
}
