/* autoregress.c - see autoregress.h.
 *
 *     rows = for each text, the tokens that the cache does not hold yet: first its whole prompt
 *     a pass over the rows (causal); wanted: the last row of each text
 *     kernels/advance.h appends each answer to its text, or ends the text, and makes the rows of
 *     the next pass, one token each
 *
 * A finished text leaves the batch at the next description, and a waiting one takes its seat. With
 * arrivals a text that comes while a seat is empty ends the description, too. Two
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
    const struct config *config = &how->draft->config;
    assert(!config->taps || config->chains || how->draft_tokens <= config->drafts);
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
static int hints(const struct autoregress_run *run)
{
    return run->how->self_draft > 0 && run->writer.n->config.drafts_causal;
}

static int filters(const struct autoregress_run *run)
{
    const struct sample *sample = &run->how->sample;
    const struct head_query query = {
        .temperature = sample->temperature, .top_k = sample->top_k, .top_p = sample->top_p};
    return sample_needs_logits(&query, run->writer.n->config.vocab);
}

/* Returns the most prompt ids of a seat; if any input may take the seat, those of the longest. */
static size_t prompt_room(const struct autoregress_run *run, size_t seat)
{
    size_t most = run->in[seat].n;
    for (size_t i = 0; run->changing && i < run->batch; i++)
        most = run->in[i].n > most ? run->in[i].n : most;
    return most;
}

static struct texts texts_in(unsigned char *extra, size_t seats)
{
    struct text_state *state = (struct text_state *)(void *)extra;
    return (struct texts){state, (int32_t *)(state + seats)};
}

/* The size of a pass of a reader with `guesses` rows after each text, `cached` or not, that starts
 * with `more` ids after a prompt. */
static struct work_size size_of(const struct autoregress_run *run, size_t guesses, int cached,
                                size_t more)
{
    struct work_size size = {.seqs = run->seats, .wanted = run->seats * (1 + guesses),
                             .cached = cached != 0, .how = run->how->variant};
    for (size_t i = 0; i < run->seats; i++) {
        size_t prompt = prompt_room(run, i), room = prompt + run->how->max_new;
        size.rows += size.cached ? order_max(prompt + more, 1 + guesses) : room;
        size.listed += room;
        size.slots = order_max(size.slots, room);
    }
    size.extra = run->seats * (sizeof(struct text_state) + run->how->max_new * sizeof(int32_t));
    return size;
}

static struct work_size writer_size(const struct autoregress_run *run)
{
    struct work_size size = size_of(run, hints(run) ? 2 * run->most : run->most, run->how->cache,
                                    0);
    size.logits = (size_t)filters(run);
    if (run->drafter.n && run->drafter.n->config.taps) {
        size.taps = run->drafter.n->config.taps;
        memcpy(size.tap, run->drafter.n->config.tap, sizeof size.tap);
    }
    return size;
}

/* The drafter starts when a text has an id after its prompt. A drafter that fills masks fills its
 * whole block, also behind the end of a text. A drafter that chains reads all accepted guesses
 * again, now with outputs of the model. */
static struct work_size drafter_size(const struct autoregress_run *run)
{
    const struct config *config = run->drafter.n ? &run->drafter.n->config : NULL;
    const size_t masks = config && config->taps ? config->drafts : 0;
    struct work_size size = size_of(run, config && config->chains ? run->most : masks, 1, 1);
    size.fed = config ? config->taps : 0;
    size.chained = config && config->chains;
    if (size.chained)
        size.wanted = run->seats;
    size.listed += run->seats * masks;
    size.slots += masks;
    return size;
}

static struct memory_estimate estimate(const struct autoregress_run *run)
{
    const struct work_size size = writer_size(run), guess = drafter_size(run);
    struct memory_estimate m = estimate_of(run->writer.n, &size, size.cached ? size.listed : 0);
    if (!run->drafter.n)
        return m;
    struct memory_estimate d = estimate_of(run->drafter.n, &guess, guess.listed);
    return estimate_sum(&m, &d);
}

/* ---- seats ---- */

/* Gives a seat to the next input. */
static void admit(struct autoregress_run *run, size_t seat)
{
    const struct generation_input *in = &run->in[run->admitted];
    struct text_state *state = &run->writer.host.state[seat];
    assert(in->n > 0);
    *state = (struct text_state){.key = in->key, .first_slot = state->first_slot,
                                 .prompt = (int32_t)in->n, .len = (int32_t)in->n,
                                 .max = (int32_t)(in->n + run->how->max_new),
                                 .last = in->ids[in->n - 1], .live = 1};
    run->who[seat] = run->admitted++;
    run->writer.held[seat] = 0;
    if (run->drafter.n)
        run->drafter.held[seat] = autoregress_first(&run->drafter);
}

static void seats_make(struct autoregress_run *run)
{
    size_t slot = 0;
    for (size_t i = 0; i < run->seats; i++) {
        run->writer.host.state[i].first_slot = (int32_t)slot;
        admit(run, i);
        slot += prompt_room(run, i) + run->how->max_new;
    }
}

/* Completes the answer of a seat whose text has ended, if the seat has an input. */
static void leave(const struct autoregress_run *run, size_t seat)
{
    const struct text_state *state = &run->writer.host.state[seat];
    if (run->who[seat] == run->batch)
        return;
    struct generation *generation = &run->out[run->who[seat]];
    generation_take(generation, run->writer.host.ids + seat * run->how->max_new,
                    generation->bad ? 0 : (size_t)(state->len - state->prompt));
    generation_close(generation, &run->writer.n->config, state->met_stop);
}

/* 1: an input waits for a seat at `now`, ns since the batch began. */
static int comes(const struct autoregress_run *run, int64_t now)
{
    return run->admitted < run->batch &&
           (!run->how->arrivals || run->in[run->admitted].due_ns <= now);
}

static size_t count_taken(const struct autoregress_run *run)
{
    size_t n = 0;
    for (size_t i = 0; i < run->seats; i++)
        n += run->writer.host.state[i].live != 0;
    return n;
}

/* Gives empty seats, and seats of finished texts, to waiting inputs. */
static void change_seats(struct autoregress_run *run)
{
    const int64_t now = clock_ns() - run->trace->start_ns;
    for (size_t i = 0; i < run->seats && comes(run, now); i++)
        if (!run->writer.host.state[i].live) {
            leave(run, i);
            admit(run, i);
            generation_join(&run->out[run->who[i]], &run->in[run->who[i]], run->how->arrivals, now);
        }
}

/* ---- memory ---- */

static void loop_make(struct reader *reader, const struct autoregress *how, int stops)
{
    struct text_loop *loop = &reader->plan.loop;
    const struct index *index = &reader->work->device;
    memset(loop, 0, sizeof *loop); /* zeroes padding: its bytes are part of a key */
    loop->member = index->member;
    loop->text = reader->device.state;
    loop->out = reader->device.ids;
    loop->max_new = how->max_new;
    loop->answer = reader->work->answer;
    loop->rows = index->rows;
    loop->n_stop = stops ? generation_stops(&reader->n->config, loop->stop) : 0;
}

/* Fails if the back end has too little memory. */
static int reader_make(struct reader *reader, const struct autoregress_run *run,
                       const struct work_size *size, int stops)
{
    reader->kv = size->cached ? &reader->cache : NULL;
    reader->held = mem_zero(run->seats, sizeof *reader->held);
    reader->cost_model = cost_model_of(reader->n);
    if (reader->kv && kv_make(reader->kv, reader->n, size->listed))
        return -1;
    reader->work = work_make(reader->n, size);
    if (!reader->work)
        return -1;
    reader->host = texts_in(reader->work->host.extra, run->seats);
    reader->device = texts_in(reader->work->device.extra, run->seats);
    loop_make(reader, run->how, stops);
    return 0;
}

static void reader_free(struct reader *reader)
{
    free(reader->held);
    work_free(reader->work, reader->n);
    if (reader->kv)
        kv_free(reader->kv, reader->n);
}

/* Fails if the back end has too little memory. */
static int run_make(struct autoregress_run *run)
{
    const struct work_size size = writer_size(run), guess = drafter_size(run);
    run->who = mem_zero(run->seats, sizeof *run->who);
    run->guesses = mem_zero(run->seats, sizeof *run->guesses);
    run->guess = mem_zero(run->seats * run->most, sizeof *run->guess);
    run->text = mem_zero(size.slots, sizeof *run->text);
    run->masks = hints(run) ? mem_zero(run->seats, sizeof *run->masks) : NULL;
    run->hints = mem_zero(run->seats, sizeof *run->hints);
    run->hint = mem_zero(run->seats * run->most, sizeof *run->hint);
    if (run->most) {
        run->answer = mem_zero(size.wanted, sizeof *run->answer);
        run->next = mem_zero(run->seats, sizeof *run->next);
    }
    if (reader_make(&run->writer, run, &size, !run->how->ignore_eos) ||
        (run->drafter.n && reader_make(&run->drafter, run, &guess, 0)))
        return -1;
    /* passes of a drafter that fills masks read the writer's head, in the writer's format */
    if (run->drafter.n == &run->lent && !run->lent.config.chains)
        run->drafter.cost_model.head_bytes = run->writer.cost_model.head_bytes;
    seats_make(run);
    pass_write(run->writer.n, run->writer.work); /* describe() starts from these states */
    return 0;
}

static void run_free(struct autoregress_run *run)
{
    free(run->who);
    free(run->guess);
    free(run->guesses);
    free(run->masks);
    free(run->hints);
    free(run->hint);
    free(run->text);
    free(run->answer);
    free(run->next);
    reader_free(&run->writer);
    if (run->drafter.n)
        reader_free(&run->drafter);
}

/* ---- a pass ---- */

/* Copies the ids of all texts to the host, unless the host writes them. */
static void read_ids(struct autoregress_run *run)
{
    struct reader *reader = &run->writer;
    struct backend *backend = reader->n->backend;
    if (!run->answer)
        backend->ops->read(backend, reader->host.ids, reader->device.ids,
                           run->seats * run->how->max_new * sizeof *reader->host.ids);
}

static size_t describe_seated(struct autoregress_run *run)
{
    size_t most = autoregress_describe(run);
    return most && (!run->writer.kv || run->answer) ? 1 : most;
}

static size_t describe(void *ctx)
{
    struct autoregress_run *run = ctx;
    read_ids(run);
    change_seats(run);
    if (!count_taken(run) && run->admitted < run->batch) {
        if (loop_sleep(run->in[run->admitted].due_ns, run->how->stop, run->trace))
            return 0;
        change_seats(run);
    }
    if (run->most)
        autoregress_guess(run);
    return describe_seated(run);
}

/* Empties the seats of inputs that come later. Until now all seats were taken, to prepare passes of
 * a full batch. */
static size_t open_seats(void *ctx)
{
    struct autoregress_run *run = ctx;
    run->admitted = 0;
    for (size_t i = 0; i < run->seats; i++) {
        const int there = run->in[i].due_ns <= 0;
        run->writer.host.state[i].live = there;
        run->who[i] = there ? i : run->batch;
        run->admitted += (size_t)there;
    }
    return describe_seated(run);
}

static void enqueue(void *ctx)
{
    struct autoregress_run *run = ctx;
    struct reader *reader = &run->writer;
    struct backend *backend = reader->n->backend;
    if (run->answer) {
        pass_run(reader->n, reader->kv, reader->work, &reader->plan.pass);
        autoregress_take(run);
    } else {
        backend->ops->run(backend, &reader->plan, sizeof reader->plan, autoregress_step, reader);
    }
    autoregress_step_on(reader);
}

/* ---- results of a pass ---- */

/* Records that a pass took the text of a seat from *was to *now. */
static void account(const struct autoregress_run *run, size_t seat, const struct text_state *was,
                    const struct text_state *now, int64_t ns)
{
    struct generation *generation = &run->out[run->who[seat]];
    int32_t rows = was->len - run->writer.held[seat] + run->guesses[seat];
    rows += run->masks                                   ? run->masks[seat]
            : run->how->self_draft && run->guesses[seat] ? 1 + run->guesses[seat]
                                                         : 0;
    int32_t tokens = now->len - was->len;
    ns -= generation->admit_ns;
    generation_step(generation, ns);
    generation->e2e_ns = ns;
    generation->rows += rows;
    generation->canvas_positions += rows;
    generation->bad = now->bad;
    if (generation->bad)
        return;
    generation->drafted_tokens += run->guesses[seat];
    generation->accepted_tokens += tokens - !now->met_stop; /* the last answer was not guessed */
    if (was->len == was->prompt)
        generation->first_commit_ns = generation->first_block_ns = ns;
    generation->committed_tokens += tokens;
    if (tokens)
        generation_emit(generation, ns, tokens);
}

/* Counts the work of the pass that is settled now, by the states before the pass. A finished text
 * was one row of the pass. A pass in which all texts had finished is after the end of the clock, so
 * it is not counted. */
static void count(const struct autoregress_run *run, int64_t ns)
{
    const struct reader *reader = &run->writer;
    struct batch_trace *trace = run->trace;
    struct extent extent = {0};
    int live = 0;
    for (size_t part = 0; part < reader->plan.loop.parts; part++) {
        size_t i = (size_t)reader->work->host.member[part];
        const struct text_state *state = &reader->host.state[i];
        int32_t more = run->guesses[i] + (run->masks ? run->masks[i] : 0);
        int32_t rows = state->live ? state->len - reader->held[i] + more : 1;
        live |= state->live;
        extent.wanted += 1 + more;
        autoregress_count(reader, &extent, rows, state->len + more);
    }
    if (!live)
        return;
    cost_add(&trace->cost, cost_of(&reader->cost_model, &extent));
    if (reader->kv && !run->changing && !trace->prefill_ns) {
        trace->prefill = trace->cost;
        trace->prefill_ns = ns;
    }
}

/* Sets what the caches hold of a text of `len` ids: not the last id, and no wrong guess. */
static void set_held(struct autoregress_run *run, size_t seat, int32_t len)
{
    if (run->writer.kv)
        run->writer.held[seat] = len - 1;
    if (run->drafter.n && run->drafter.held[seat] >= len)
        run->drafter.held[seat] = len - 1;
}

static int settle(void *ctx, const void *state, int64_t ns)
{
    struct autoregress_run *run = ctx;
    struct text_state *was = run->writer.host.state;
    const struct text_state *now = state;
    int ended = 0;
    count(run, ns);
    for (size_t i = 0; i < run->seats; i++)
        if (was[i].live) {
            account(run, i, &was[i], &now[i], ns);
            set_held(run, i, now[i].len);
            ended |= !now[i].live;
        }
    if (run->how->observer && run->how->observer->closely) {
        read_ids(run);
        autoregress_observe(run, now, ns);
    }
    memcpy(was, now, run->seats * sizeof *now);
    return ended || (run->how->arrivals && comes(run, ns) && count_taken(run) < run->seats);
}

static void finish(struct autoregress_run *run)
{
    read_ids(run);
    for (size_t i = 0; i < run->seats; i++)
        if (!run->writer.host.state[i].live)
            leave(run, i);
}

static struct autoregress_run run_of(const struct network *n, const struct autoregress *how,
                                     const struct generation_input *in, size_t batch)
{
    size_t seats = how->alive && how->alive < batch ? how->alive : batch, most = most_of(how);
    return (struct autoregress_run){.how = how, .in = in, .batch = batch, .seats = seats,
                                    .changing = how->arrivals || seats < batch,
                                    .most = most, .writer.n = n,
                                    .drafter.n = most && !how->lookup && !how->self_draft
                                                     ? how->draft
                                                     : NULL};
}

struct memory_estimate autoregress_estimate(const struct network *n, const struct autoregress *how,
                               const struct generation_input *in, size_t batch)
{
    const struct autoregress_run run = run_of(n, how, in, batch);
    return estimate(&run);
}

void autoregress(const struct network *n, const struct autoregress *how,
                 const struct generation_input *in, size_t batch, struct generation *out,
                 struct batch_trace *trace)
{
    struct autoregress_run run = run_of(n, how, in, batch);
    run.out = out;
    run.trace = trace;
    if (run.drafter.n && run.drafter.n->config.taps) {
        run.lent = *run.drafter.n;
        network_lend(&run.lent, n);
        run.drafter.n = &run.lent;
    }
    generation_batch_begin(trace);
    trace->estimate = estimate(&run);
    int short_of_memory = run_make(&run);
    if (!short_of_memory) {
        const struct loop loop = {.backend = n->backend, .stop = how->stop,
                                  .observer = how->observer, .state = run.writer.device.state,
                                  .bytes = run.seats * sizeof *run.writer.device.state,
                                  .describe = describe,
                                  .prepare = how->prepare ? autoregress_prepare : NULL,
                                  .changing = run.changing && !run.most,
                                  .open = how->arrivals ? open_seats : NULL,
                                  .enqueue = enqueue, .settle = settle, .ctx = &run};
        short_of_memory = loop_run(&loop, trace);
    }
    if (!short_of_memory)
        finish(&run);
    generation_batch_end(n->backend, short_of_memory, out, batch, trace);
    run_free(&run);
}
