/* prepare.c - runs each kind of pass that can come once, before the clock begins; see
 * autoregress_run.h. Some of these passes are invented: other text lengths, made-up guesses. */
#include "lib/decode/autoregress/autoregress_run.h"

#include <string.h>

/* Prepares the pass as described; `recorded` 0: runs it without recording. */
static void prepare_pass(struct reader *reader, int recorded)
{
    struct backend *backend = reader->n->backend;
    if (recorded)
        backend->ops->prepare(backend, &reader->plan, sizeof reader->plan, autoregress_step,
                              reader);
    else
        autoregress_step(reader);
}

/* Prepares passes of `parts` texts with one token each, for `first` to `last` ids of the
 * longest. */
static void prepare_tokens(struct reader *reader, int recorded, size_t parts, size_t first,
                           size_t last)
{
    struct pass *pass = &reader->plan.pass;
    pass->T = pass->R = pass->n_seqs = reader->plan.loop.parts = parts;
    pass->max_rows = 1;
    for (size_t n = first; n <= last; n = pass->max_slots + 1) {
        pass->max_slots = pass_slots(reader->work, n);
        prepare_pass(reader, recorded);
    }
}

/* Prepares a pass that will not repeat: only the kernels of its operations. */
static void prepare_described(const struct autoregress_run *run, struct reader *reader)
{
    autoregress_send(run, reader);
    if (reader->n->config.chains)
        pass_fuse(reader->n, reader->work, run->writer.work->taps, reader->plan.pass.T);
    pass_run(reader->n, reader->kv, reader->work, &reader->plan.pass);
}

/* Describes all texts with `more` ids after the prompt. */
static void grow(struct autoregress_run *run, size_t more)
{
    for (size_t i = 0; i < run->seats; i++)
        run->writer.host.state[i].len = run->writer.host.state[i].prompt + (int32_t)more;
}

/* Prepares passes without a cache, one for each growth of the rows by an eighth. */
static void prepare_growth(struct autoregress_run *run)
{
    size_t last = run->how->max_new - 1, step;
    for (size_t more = 0; more < last; ) {
        step = run->writer.plan.pass.T / run->seats / 8;
        more = last - more < step ? last : more + (step ? step : 1);
        grow(run, more);
        autoregress_describe(run);
        pass_run(run->writer.n, run->writer.kv, run->writer.work, &run->writer.plan.pass);
    }
}

static size_t eighth_more(size_t n)
{
    return n + (n < 8 ? 1 : n / 8);
}

/* Prepares a pass over the first texts with n rows in all: of the writer with guesses, or of the
 * drafter after accepted guesses. */
static void prepare_rows(struct autoregress_run *run, struct reader *reader, size_t n)
{
    int writes = reader == &run->writer;
    autoregress_begin(reader);
    for (size_t i = 0; i < run->seats && n; i++) {
        struct text_state *state = &reader->host.state[i];
        size_t left = run->seats - i, rows = (n + left - 1) / left;
        int32_t guesses = writes ? (int32_t)rows - 1 : 0;
        *state = run->writer.host.state[i];
        reader->held[i] = state->len + guesses - (int32_t)rows;
        autoregress_add(run, reader, i, run->guess + i * run->most, guesses);
        n -= rows;
    }
    prepare_described(run, reader);
}

/* Prepares first passes of the drafter. A drafter that chains reads again all guesses that became
 * text, and the id behind them; all these ids lie behind the prompt, whose first id has no row. Any
 * other drafter reads at most the last guess and the id behind it. */
static void prepare_drafts(struct autoregress_run *run)
{
    const int chains = run->drafter.n->config.chains;
    const size_t most = run->seats * (chains ? 1 + run->most : 2);
    grow(run, chains ? 1 + run->most : 1);
    for (size_t n = 1; n <= most; n = eighth_more(n))
        prepare_rows(run, &run->drafter, n);
    grow(run, 1);
    prepare_rows(run, &run->drafter, run->seats);
}

/* Prepares passes that verify guesses and passes that make them, per growth of rows by an
 * eighth. */
static void prepare_guesses(struct autoregress_run *run, size_t shortest, size_t longest)
{
    struct reader *writer = &run->writer, *drafter = &run->drafter;
    const struct cost was = run->trace->cost;
    const size_t held = run->seats * sizeof *writer->held;
    const size_t left = run->how->max_new - 1 - run->most; /* ids behind the guesses */
    grow(run, 1);
    for (size_t i = 0; i < run->seats && run->masks; i++)
        run->masks[i] = (int32_t)(left < run->most ? left : run->most);
    for (size_t n = 1; writer->kv && n <= run->seats * (1 + run->most); n = eighth_more(n))
        prepare_rows(run, writer, n);
    if (run->masks) {
        memset(run->masks, 0, run->seats * sizeof *run->masks);
    } else if (run->how->self_draft) {
        for (size_t i = 0; i < run->seats; i++)
            writer->held[i] = writer->host.state[i].prompt;
        autoregress_guess(run);
        memset(run->guesses, 0, run->seats * sizeof *run->guesses);
        run->trace->cost = was;
    }
    memset(writer->held, 0, held);
    /* a drafter that fills masks needs outputs of passes over real texts: not prepared */
    if (!drafter->n || drafter->n->config.drafts)
        return;
    prepare_drafts(run);
    for (size_t n = run->seats; n > 0; n--)
        prepare_tokens(drafter, 1, n, shortest + 2, longest + run->how->max_new - 1);
    memset(drafter->held, 0, held);
    if (!drafter->n->config.chains)
        autoregress_guess(run); /* its first pass reads the whole texts */
    for (size_t i = 0; i < run->seats; i++)
        drafter->held[i] = autoregress_first(drafter);
    memset(run->guesses, 0, run->seats * sizeof *run->guesses);
    run->trace->cost = was;
}

/* Prepares passes in which a prompt joins the tokens of the others, per growth of the rows by an
 * eighth. Meanwhile the first seat has the longest prompt. */
static void prepare_joining(struct autoregress_run *run)
{
    struct reader *reader = &run->writer;
    struct text_state *state = &reader->host.state[0];
    const struct text_state first = *state;
    size_t most = 0;
    for (size_t i = 0; i < run->batch; i++)
        most = run->in[i].n > run->in[most].n ? i : most;
    grow(run, 1);
    run->who[0] = most;
    state->prompt = (int32_t)run->in[most].n;
    state->max = state->prompt + (int32_t)run->how->max_new;
    for (size_t n = 1; n <= run->in[most].n; n = eighth_more(n)) {
        autoregress_begin(reader);
        state->len = (int32_t)n;
        for (size_t i = 0; i < run->seats; i++) {
            reader->held[i] = i ? reader->host.state[i].prompt : 0;
            autoregress_add(run, reader, i, NULL, 0);
        }
        prepare_described(run, reader);
    }
    run->who[0] = 0;
    *state = first;
    memset(reader->held, 0, run->seats * sizeof *reader->held);
}

/* Each prepared pass advances the states on the device. So at the end the states are sent again,
 * with the first pass, which has no guesses. */
void autoregress_prepare(void *ctx)
{
    struct autoregress_run *run = ctx;
    struct reader *reader = &run->writer;
    size_t shortest = SIZE_MAX, longest = reader->longest, most = run->how->max_new;
    int recorded = reader->kv && !run->answer;
    /* where seats change, any input may take a seat */
    for (size_t i = 0; i < (run->changing ? run->batch : run->seats); i++) {
        shortest = run->in[i].n < shortest ? run->in[i].n : shortest;
        longest = run->in[i].n > longest ? run->in[i].n : longest;
    }
    prepare_pass(reader, recorded);
    if (!reader->kv)
        prepare_growth(run);
    else if (!run->most && most > 1)
        prepare_tokens(reader, recorded, run->seats, (run->changing ? shortest : longest) + 1,
                       longest + most - 1);
    for (size_t n = run->seats;
         !run->most && reader->kv && (reader->plan.loop.n_stop || run->changing) &&
         most > 2 && --n > 0;)
        prepare_tokens(reader, recorded, n, shortest + 2, longest + most - 1);
    if (run->most)
        prepare_guesses(run, shortest, longest);
    if (run->changing && reader->kv)
        prepare_joining(run);
    grow(run, 0);
    memset(reader->host.ids, 0, run->seats * most * sizeof *reader->host.ids);
    autoregress_describe(run);
}
