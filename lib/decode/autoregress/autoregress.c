/* autoregress.c - see autoregress.h.
 *
 *     rows = for each text, the tokens that the cache does not hold yet: first its whole prompt
 *     a pass over the rows (causal); wanted: the last row of each text
 *     kernels/advance.h appends each answer to its text, or ends the text, and makes the rows of
 *     the next pass, one token each
 *
 * A finished text leaves the batch at the next description, and a waiting one takes its seat. Two
 * cases describe every pass anew: without a cache each pass reads all tokens; guesses are made on
 * the host. */
#include "lib/decode/autoregress.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/order.h"
#include "lib/decode/autoregress/autoregress_run.h"
#include "lib/decode/loop.h"

static size_t drafted(const struct autoregress *how)
{
    const struct config *c = &how->draft->config;
    assert(!c->taps || c->chains || how->draft_tokens <= c->drafts);
    return how->draft_tokens;
}

/* Most guesses for a text in a pass. */
static size_t most_of(const struct autoregress *how)
{
    size_t most = how->lookup       ? how->lookup
                  : how->self_draft ? how->self_draft
                  : how->draft      ? drafted(how)
                                    : 0;
    return most < how->max_new ? most : how->max_new - 1;
}

/* 1: a pass that checks guesses also makes the next ones. */
static int hints(const struct autoregress_run *r)
{
    return r->how->self_draft > 0 && r->writer.n->config.drafts_causal;
}

static int filters(const struct autoregress_run *r)
{
    const struct sample *s = &r->how->sample;
    const struct head_query q = {
        .temperature = s->temperature, .top_k = s->top_k, .top_p = s->top_p};
    return sample_needs_logits(&q, r->writer.n->config.vocab);
}

/* Most prompt ids of a seat: when inputs wait for seats, those of the longest prompt. */
static size_t prompt_room(const struct autoregress_run *r, size_t seat)
{
    size_t most = r->in[seat].n;
    for (size_t i = 0; r->seats < r->batch && i < r->batch; i++)
        most = r->in[i].n > most ? r->in[i].n : most;
    return most;
}

static struct texts texts_in(unsigned char *extra, size_t seats)
{
    struct text_state *state = (struct text_state *)(void *)extra;
    return (struct texts){state, (int32_t *)(state + seats)};
}

/* The size of a pass of a reader with `guesses` rows after each text, `cached` or not, that starts
 * with `more` ids after a prompt. */
static struct work_size size_of(const struct autoregress_run *r, size_t guesses, int cached,
                                size_t more)
{
    struct work_size s = {.seqs = r->seats, .wanted = r->seats * (1 + guesses),
                          .cached = cached != 0, .how = r->how->variant};
    for (size_t i = 0; i < r->seats; i++) {
        size_t prompt = prompt_room(r, i), room = prompt + r->how->max_new;
        s.rows += s.cached ? order_max(prompt + more, 1 + guesses) : room;
        s.listed += room;
        s.slots = order_max(s.slots, room);
    }
    s.extra = r->seats * (sizeof(struct text_state) + r->how->max_new * sizeof(int32_t));
    return s;
}

static struct work_size writer_size(const struct autoregress_run *r)
{
    struct work_size s = size_of(r, hints(r) ? 2 * r->most : r->most, r->how->cache, 0);
    s.logits = (size_t)filters(r);
    if (r->drafter.n && r->drafter.n->config.taps) {
        s.taps = r->drafter.n->config.taps;
        memcpy(s.tap, r->drafter.n->config.tap, sizeof s.tap);
    }
    return s;
}

/* The drafter starts when a text has an id after its prompt. One that fills masks fills its whole
 * block, also behind the end of a text. One that chains reads all accepted guesses again, now with
 * outputs of the model. */
static struct work_size drafter_size(const struct autoregress_run *r)
{
    const struct config *c = r->drafter.n ? &r->drafter.n->config : NULL;
    const size_t masks = c && c->taps ? c->drafts : 0;
    struct work_size s = size_of(r, c && c->chains ? r->most : masks, 1, 1);
    s.fed = c ? c->taps : 0;
    s.chained = c && c->chains;
    if (s.chained)
        s.wanted = r->seats;
    s.listed += r->seats * masks;
    s.slots += masks;
    return s;
}

static struct memory_estimate estimate(const struct autoregress_run *r)
{
    const struct work_size size = writer_size(r), guess = drafter_size(r);
    struct memory_estimate m = estimate_of(r->writer.n, &size, size.cached ? size.listed : 0);
    if (!r->drafter.n)
        return m;
    struct memory_estimate d = estimate_of(r->drafter.n, &guess, guess.listed);
    return estimate_sum(&m, &d);
}

/* ---- seats ---- */

/* Gives a seat to the next input. */
static void admit(struct autoregress_run *r, size_t seat)
{
    const struct generation_input *in = &r->in[r->admitted];
    struct text_state *t = &r->writer.host.state[seat];
    assert(in->n > 0);
    *t = (struct text_state){.key = in->key, .first_slot = t->first_slot,
                             .prompt = (int32_t)in->n, .len = (int32_t)in->n,
                             .max = (int32_t)(in->n + r->how->max_new),
                             .last = in->ids[in->n - 1], .live = 1};
    r->who[seat] = r->admitted++;
    r->writer.held[seat] = 0;
    if (r->drafter.n)
        r->drafter.held[seat] = autoregress_first(&r->drafter);
}

static void seats_make(struct autoregress_run *r)
{
    size_t slot = 0;
    for (size_t i = 0; i < r->seats; i++) {
        r->writer.host.state[i].first_slot = (int32_t)slot;
        admit(r, i);
        slot += prompt_room(r, i) + r->how->max_new;
    }
}

/* Completes the answer of a seat whose text has ended. */
static void leave(const struct autoregress_run *r, size_t seat)
{
    const struct text_state *t = &r->writer.host.state[seat];
    struct generation *g = &r->out[r->who[seat]];
    generation_take(g, r->writer.host.ids + seat * r->how->max_new,
                    g->bad ? 0 : (size_t)(t->len - t->prompt));
    generation_close(g, &r->writer.n->config, t->met_stop);
}

/* Gives the seats of finished texts to waiting inputs. */
static void change_seats(struct autoregress_run *r)
{
    for (size_t i = 0; i < r->seats && r->admitted < r->batch; i++)
        if (!r->writer.host.state[i].live) {
            leave(r, i);
            admit(r, i);
            r->out[r->who[i]].admit_ns = clock_ns() - r->trace->start_ns;
        }
}

/* ---- memory ---- */

static void loop_make(struct reader *w, const struct autoregress *how, int stops)
{
    struct text_loop *l = &w->plan.loop;
    const struct index *t = &w->work->device;
    memset(l, 0, sizeof *l); /* zeroes padding: its bytes are part of a key */
    l->member = t->member;
    l->text = w->device.state;
    l->out = w->device.ids;
    l->max_new = how->max_new;
    l->answer = w->work->answer;
    l->rows = t->rows;
    l->n_stop = stops ? generation_stops(&w->n->config, l->stop) : 0;
}

/* -1: memory of the back end short. */
static int reader_make(struct reader *w, const struct autoregress_run *r,
                       const struct work_size *size, int stops)
{
    w->kv = size->cached ? &w->cache : NULL;
    w->held = mem_zero(r->seats, sizeof *w->held);
    w->cost_model = cost_model_of(w->n);
    if (w->kv && kv_make(w->kv, w->n, size->listed))
        return -1;
    w->work = work_make(w->n, size);
    if (!w->work)
        return -1;
    w->host = texts_in(w->work->host.extra, r->seats);
    w->device = texts_in(w->work->device.extra, r->seats);
    loop_make(w, r->how, stops);
    return 0;
}

static void reader_free(struct reader *w)
{
    free(w->held);
    work_free(w->work, w->n);
    if (w->kv)
        kv_free(w->kv, w->n);
}

/* -1: memory of the back end short. */
static int run_make(struct autoregress_run *r)
{
    const struct work_size size = writer_size(r), guess = drafter_size(r);
    r->who = mem_zero(r->seats, sizeof *r->who);
    r->guesses = mem_zero(r->seats, sizeof *r->guesses);
    r->guess = mem_zero(r->seats * r->most, sizeof *r->guess);
    r->text = mem_zero(size.slots, sizeof *r->text);
    r->masks = hints(r) ? mem_zero(r->seats, sizeof *r->masks) : NULL;
    r->hints = mem_zero(r->seats, sizeof *r->hints);
    r->hint = mem_zero(r->seats * r->most, sizeof *r->hint);
    if (r->most) {
        r->answer = mem_zero(size.wanted, sizeof *r->answer);
        r->next = mem_zero(r->seats, sizeof *r->next);
    }
    if (reader_make(&r->writer, r, &size, !r->how->ignore_eos) ||
        (r->drafter.n && reader_make(&r->drafter, r, &guess, 0)))
        return -1;
    /* passes of one that fills masks read the writer's head, in the writer's format */
    if (r->drafter.n == &r->lent && !r->lent.config.chains)
        r->drafter.cost_model.head_bytes = r->writer.cost_model.head_bytes;
    seats_make(r);
    pass_write(r->writer.n, r->writer.work); /* describe() starts from these states */
    return 0;
}

static void run_free(struct autoregress_run *r)
{
    free(r->who);
    free(r->guess);
    free(r->guesses);
    free(r->masks);
    free(r->hints);
    free(r->hint);
    free(r->text);
    free(r->answer);
    free(r->next);
    reader_free(&r->writer);
    if (r->drafter.n)
        reader_free(&r->drafter);
}

/* ---- a pass ---- */

/* Copies the ids of all texts to the host, unless the host writes them. */
static void read_ids(struct autoregress_run *r)
{
    struct reader *w = &r->writer;
    struct backend *b = w->n->backend;
    if (!r->answer)
        b->ops->read(b, w->host.ids, w->device.ids,
                     r->seats * r->how->max_new * sizeof *w->host.ids);
}

static size_t describe(void *ctx)
{
    struct autoregress_run *r = ctx;
    read_ids(r);
    change_seats(r);
    if (r->most)
        autoregress_guess(r);
    size_t most = autoregress_describe(r);
    return most && (!r->writer.kv || r->answer) ? 1 : most;
}

static void enqueue(void *ctx)
{
    struct autoregress_run *r = ctx;
    struct reader *w = &r->writer;
    struct backend *b = w->n->backend;
    if (r->answer) {
        pass_run(w->n, w->kv, w->work, &w->plan.pass);
        autoregress_take(r);
    } else {
        b->ops->run(b, &w->plan, sizeof w->plan, autoregress_step, w);
    }
    autoregress_step_on(w);
}

/* ---- results of a pass ---- */

/* Records that a pass took the text of a seat from *was to *now. */
static void account(const struct autoregress_run *r, size_t seat, const struct text_state *was,
                    const struct text_state *now, int64_t ns)
{
    struct generation *g = &r->out[r->who[seat]];
    int32_t rows = was->len - r->writer.held[seat] + r->guesses[seat];
    rows += r->masks                                  ? r->masks[seat]
            : r->how->self_draft && r->guesses[seat] ? 1 + r->guesses[seat]
                                                      : 0;
    int32_t tokens = now->len - was->len;
    ns -= g->admit_ns;
    generation_step(g, ns);
    g->e2e_ns = ns;
    g->rows += rows;
    g->canvas_positions += rows;
    g->bad = now->bad;
    if (g->bad)
        return;
    g->drafted_tokens += r->guesses[seat];
    g->accepted_tokens += tokens - !now->met_stop; /* the last answer was not guessed */
    if (was->len == was->prompt)
        g->first_commit_ns = g->first_block_ns = ns;
    g->committed_tokens += tokens;
    if (tokens)
        generation_emit(g, ns, tokens);
}

/* Counts the work of the pass that is settled now, by the states before it. A finished text was one
 * row of it; a pass in which all texts had finished is after the end of the clock. */
static void count(const struct autoregress_run *r, int64_t ns)
{
    const struct reader *w = &r->writer;
    struct batch_trace *trace = r->trace;
    struct extent x = {0};
    int live = 0;
    for (size_t part = 0; part < w->plan.loop.parts; part++) {
        size_t i = (size_t)w->work->host.member[part];
        const struct text_state *t = &w->host.state[i];
        int32_t more = r->guesses[i] + (r->masks ? r->masks[i] : 0);
        int32_t rows = t->live ? t->len - w->held[i] + more : 1;
        live |= t->live;
        x.wanted += 1 + more;
        autoregress_count(w, &x, rows, t->len + more);
    }
    if (!live)
        return;
    cost_add(&trace->cost, cost_of(&w->cost_model, &x));
    if (w->kv && r->seats == r->batch && !trace->prefill_ns) {
        trace->prefill = trace->cost;
        trace->prefill_ns = ns;
    }
}

/* Sets what the caches hold of a text of `len` ids: not the last id, and no wrong guess. */
static void set_held(struct autoregress_run *r, size_t seat, int32_t len)
{
    if (r->writer.kv)
        r->writer.held[seat] = len - 1;
    if (r->drafter.n && r->drafter.held[seat] >= len)
        r->drafter.held[seat] = len - 1;
}

static int settle(void *ctx, const void *state, int64_t ns)
{
    struct autoregress_run *r = ctx;
    struct text_state *was = r->writer.host.state;
    const struct text_state *now = state;
    int ended = 0;
    count(r, ns);
    for (size_t i = 0; i < r->seats; i++)
        if (was[i].live) {
            account(r, i, &was[i], &now[i], ns);
            set_held(r, i, now[i].len);
            ended |= !now[i].live;
        }
    if (r->how->observer && r->how->observer->closely) {
        read_ids(r);
        autoregress_observe(r, now, ns);
    }
    memcpy(was, now, r->seats * sizeof *now);
    return ended;
}

static void finish(struct autoregress_run *r)
{
    read_ids(r);
    for (size_t i = 0; i < r->seats; i++)
        if (!r->writer.host.state[i].live)
            leave(r, i);
}

static struct autoregress_run run_of(const struct network *n, const struct autoregress *how,
                                     const struct generation_input *in, size_t batch)
{
    size_t seats = how->alive && how->alive < batch ? how->alive : batch, most = most_of(how);
    return (struct autoregress_run){.how = how, .in = in, .batch = batch, .seats = seats,
                                    .most = most, .writer.n = n,
                                    .drafter.n = most && !how->lookup && !how->self_draft
                                                     ? how->draft
                                                     : NULL};
}

struct memory_estimate autoregress_estimate(const struct network *n, const struct autoregress *how,
                               const struct generation_input *in, size_t batch)
{
    const struct autoregress_run r = run_of(n, how, in, batch);
    return estimate(&r);
}

void autoregress(const struct network *n, const struct autoregress *how,
                 const struct generation_input *in, size_t batch, struct generation *out,
                 struct batch_trace *trace)
{
    struct autoregress_run r = run_of(n, how, in, batch);
    r.out = out;
    r.trace = trace;
    if (r.drafter.n && r.drafter.n->config.taps) {
        r.lent = *r.drafter.n;
        r.lent.embed = r.lent.config.embeds ? r.lent.embed : n->embed;
        r.lent.head = r.lent.config.chains ? r.lent.head : n->head;
        r.drafter.n = &r.lent;
    }
    generation_batch_begin(trace);
    trace->estimate = estimate(&r);
    int short_of_memory = run_make(&r);
    if (!short_of_memory) {
        const struct loop loop = {.backend = n->backend, .stop = how->stop,
                                  .observer = how->observer, .state = r.writer.device.state,
                                  .bytes = r.seats * sizeof *r.writer.device.state,
                                  .describe = describe,
                                  .prepare = how->prepare ? autoregress_prepare : NULL,
                                  .enqueue = enqueue, .settle = settle, .ctx = &r};
        short_of_memory = loop_run(&loop, trace);
    }
    if (!short_of_memory)
        finish(&r);
    generation_batch_end(n->backend, short_of_memory, out, batch, trace);
    run_free(&r);
}
