/* think.c - decoding of a latent thought model; see think.h.
 *
 *     fit z to the prompts
 *     until all texts have ended:
 *         rows = of each text the ids that the cache does not have, at most a window (with time
 *                mixing 256)
 *         run a pass over the rows (causal, within the window, with all latents); the head answers
 *         the last row of each text
 *         append each answer to its text, or end the text
 *         after `refit` ids: fit z again, and drop the cache of all texts, which was computed with
 *         the old z
 *
 * The host describes each pass and takes its answers. A device records passes that repeat. */
#include "lib/latent/think.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/order.h"
#include "lib/base/rng.h"
#include "lib/latent/think/think_run.h"

enum { READ_AT_ONCE = 256 }; /* most rows of a text in a pass, with time mixing */

static int recurs(const struct thinking *thinking)
{
    return config_recurs(&thinking->n->config);
}

/* Most rows of a text in a pass. */
static size_t at_once(const struct thinking *thinking)
{
    return recurs(thinking) ? READ_AT_ONCE : thinking->n->config.window;
}

/* ---- memory ---- */

/* Slots of text i. */
static size_t ring_of(const struct thinking *thinking, size_t i)
{
    return recurs(thinking) ? 1
                            : order_min(thinking->in[i].n + thinking->how->max_new,
                                        2 * thinking->n->config.window);
}

static struct work_size size_of(const struct thinking *thinking)
{
    /* 1: later passes read whole texts again, so the answers count as rows too */
    const int again = !thinking->how->cache || thinking->how->refit;
    struct work_size size = {.seqs = thinking->batch, .wanted = thinking->batch, .cached = 1,
                             .latent = 1, .how = thinking->how->variant};
    for (size_t i = 0; i < thinking->batch; i++) {
        size_t longest = thinking->in[i].n + (again ? thinking->how->max_new : 0);
        size.rows += order_min(longest, at_once(thinking));
        size.listed += ring_of(thinking, i);
        size.slots = order_max(size.slots, ring_of(thinking, i));
    }
    return size;
}

static struct memory_estimate estimate(const struct thinking *thinking)
{
    const struct work_size size = size_of(thinking);
    struct memory_estimate memory_estimate = estimate_of(thinking->n, &size, size.listed);
    const struct memory_estimate fit = think_fit_estimate(thinking->n, thinking->how, thinking->in,
                                                          thinking->batch);
    const size_t latents = memory_rounded(latent_bytes(thinking->n, thinking->batch));
    memory_estimate.kv += latents;
    memory_estimate.reserved += memory_pages(latents);
    return estimate_sum(&memory_estimate, &fit);
}

struct memory_estimate think_estimate(const struct network *n, const struct think *how,
                                      const struct generation_input *in, size_t batch)
{
    const struct thinking thinking = {.n = n, .how = how, .in = in, .batch = batch};
    return estimate(&thinking);
}

static void texts_make(struct thinking *thinking)
{
    size_t slot = 0;
    thinking->text = mem_zero(thinking->batch, sizeof *thinking->text);
    for (size_t i = 0; i < thinking->batch; i++) {
        const struct generation_input *in = &thinking->in[i];
        assert(in->n > 0);
        struct thought *thought = &thinking->text[i];
        *thought = (struct thought){.prompt = in->n, .len = in->n,
                                    .most = in->n + thinking->how->max_new, .slot = slot,
                                    .ring = ring_of(thinking, i), .live = 1};
        thought->ids = mem_alloc(thought->most * sizeof *thought->ids);
        memcpy(thought->ids, in->ids, in->n * sizeof *thought->ids);
        slot += thought->ring;
    }
}

/* -1: no memory of the back end. */
static int make(struct thinking *thinking)
{
    const struct work_size size = size_of(thinking);
    thinking->cost_model = cost_model_of(thinking->n);
    thinking->token = mem_zero(size.rows, sizeof *thinking->token);
    thinking->pos = mem_zero(size.rows, sizeof *thinking->pos);
    thinking->slot = mem_zero(size.rows, sizeof *thinking->slot);
    thinking->slots = mem_zero(size.listed, sizeof *thinking->slots);
    thinking->seqs = mem_zero(thinking->batch, sizeof *thinking->seqs);
    thinking->wanted = mem_zero(thinking->batch, sizeof *thinking->wanted);
    thinking->key = mem_zero(thinking->batch, sizeof *thinking->key);
    thinking->who = mem_zero(thinking->batch, sizeof *thinking->who);
    thinking->answer = mem_zero(thinking->batch, sizeof *thinking->answer);
    texts_make(thinking);
    if (kv_make(&thinking->kv, thinking->n, size.listed) ||
        latent_make(&thinking->latents, thinking->n, thinking->batch))
        return -1;
    thinking->kv.latents = &thinking->latents;
    thinking->work = work_make(thinking->n, &size);
    return thinking->work ? think_fit_make(thinking) : -1;
}

static void unmake(struct thinking *thinking)
{
    think_fit_free(thinking);
    work_free(thinking->work, thinking->n);
    latent_free(&thinking->latents, thinking->n);
    kv_free(&thinking->kv, thinking->n);
    for (size_t i = 0; i < thinking->batch; i++)
        free(thinking->text[i].ids);
    void *host[] = {thinking->token,  thinking->pos, thinking->slot, thinking->slots,
                    thinking->seqs, thinking->wanted, thinking->key, thinking->who,
                    thinking->answer, thinking->text};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
}

/* ---- a pass ---- */

/* Adds rows from .. to - 1 of text i to the pass, with the slots that they see. Advances *rows and
 * *listed, the rows and slots of the pass so far. */
static void add_rows(struct thinking *thinking, size_t i, size_t from, size_t to, size_t *rows,
                     size_t *listed)
{
    const struct thought *thought = &thinking->text[i];
    size_t first = recurs(thinking) ? to - 1 : from + 1 - think_seen(thinking, from);
    struct forward_seq *seq = &thinking->seqs[thinking->pass.n_seqs++];
    if (recurs(thinking) && !from)
        kv_forget(&thinking->kv, thinking->n, thought->slot);
    *seq = (struct forward_seq){to - from, thinking->slots + *listed, to - first, i};
    for (size_t place = first; place < to; place++)
        thinking->slots[(*listed)++] = (int32_t)(thought->slot + place % thought->ring);
    for (size_t place = from; place < to; place++, ++*rows) {
        thinking->token[*rows] = thought->ids[place];
        thinking->pos[*rows] = (int32_t)place;
        thinking->slot[*rows] = (int32_t)(thought->slot + place % thought->ring);
    }
}

/* 1: some text has more rows left than one pass takes. The other texts then wait with their last
 * rows, so that all answers start in the same pass and are refitted at the same time. */
static int is_reading(const struct thinking *thinking)
{
    int reads = 0;
    for (size_t i = 0; i < thinking->batch; i++)
        reads |= thinking->text[i].live &&
                 thinking->text[i].len - thinking->text[i].held > at_once(thinking);
    return reads;
}

/* Describes the next pass over the live texts. A text whose last id is in the pass gets an
 * answer. */
static void describe(struct thinking *thinking)
{
    size_t rows = 0, listed = 0, answers = 0;
    int reads = is_reading(thinking);
    thinking->pass = (struct forward){.token = thinking->token,
                                      .pos = thinking->pos,
                                      .slot = thinking->slot,
                                      .seqs = thinking->seqs,
                                      .mask = MASK_CAUSAL,
                                      .wanted = thinking->wanted,
                                      .again = thinking->how->cache,
                                      .query = {.temperature = thinking->how->temperature,
                                                .seed = thinking->how->seed,
                                                .keys = thinking->key}};
    for (size_t i = 0; i < thinking->batch; i++) {
        const struct thought *thought = &thinking->text[i];
        if (!thought->live || (reads && thought->len - thought->held <= at_once(thinking)))
            continue;
        size_t to = order_min(thought->len, thought->held + at_once(thinking));
        add_rows(thinking, i, thought->held, to, &rows, &listed);
        if (to < thought->len)
            continue;
        thinking->wanted[answers] = (int32_t)rows - 1;
        thinking->key[answers] = rng_at(thinking->in[i].key, thought->len - thought->prompt, 0);
        thinking->who[answers++] = i;
    }
    thinking->pass.n_wanted = answers;
}

/* Adds the least work of the last pass to trace->cost. */
static void count(struct thinking *thinking)
{
    struct extent extent = {.wanted = (double)thinking->pass.n_wanted};
    for (size_t s = 0; s < thinking->pass.n_seqs; s++) {
        const struct forward_seq *seq = &thinking->seqs[s];
        size_t from = thinking->text[seq->latent].held;
        for (size_t p = from; p < from + seq->rows; p++)
            extent.pairs += (double)(think_seen(thinking, p) + thinking->n->config.latents);
        extent.rows += (double)seq->rows;
        extent.read += (double)seq->n_slots;
        extent.written += recurs(thinking) ? 1 : (double)seq->rows;
    }
    cost_add(&thinking->trace->cost, cost_of(&thinking->cost_model, &extent));
}

/* Before the clock starts: prepares passes of the shape in which each text has one row
 * (forward_prepare). The keys and values of this pass are in slots that are written again before
 * they are read. */
static void prepare(struct thinking *thinking)
{
    for (size_t i = 0; i < thinking->batch; i++)
        thinking->text[i].held = thinking->text[i].len - 1;
    describe(thinking);
    forward_prepare(thinking->n, &thinking->kv, thinking->work, &thinking->pass);
    for (size_t i = 0; i < thinking->batch; i++)
        thinking->text[i].held = 0;
}

/* ---- results of a pass ---- */

/* Calls the observer with the new id of text i, if observer->closely is set. */
static void report(const struct thinking *thinking, size_t i, const struct head_row *row,
                   int64_t ns)
{
    const struct observer *observer = thinking->how->observer;
    const struct thought *thought = &thinking->text[i];
    const int32_t slot = (int32_t)(thought->len - thought->prompt) - 1;
    const double confidence = (double)row->prob;
    const struct observed seen = {.input = i, .pass = (int64_t)thinking->out[i].n_steps, .ns = ns,
                                  .ids = thought->ids + thought->prompt,
                                  .n = thought->len - thought->prompt,
                                  .readable = thought->len - thought->prompt, .commits = 1,
                                  .slot = &slot, .confidence = &confidence};
    if (observer && observer->closely)
        observer->changed(observer->ctx, &seen);
}

/* Takes the answer *row of text i: appends the id to the text, or ends the text. */
static void take(struct thinking *thinking, size_t i, const struct head_row *row, int64_t ns)
{
    struct thought *thought = &thinking->text[i];
    struct generation *generation = &thinking->out[i];
    int32_t stop[ADVANCE_STOPS], n = generation_stops(&thinking->n->config, stop);
    generation->bad = row->bad != 0;
    thought->met_stop = !generation->bad && !thinking->how->ignore_eos && is_stop(stop, n, row->id);
    if (thought->len == thought->prompt)
        generation->first_commit_ns = generation->first_block_ns = ns;
    if (generation->bad || thought->met_stop) {
        thought->live = 0;
        return;
    }
    thought->ids[thought->len++] = row->id;
    thought->live = thought->len < thought->most;
    if (!thinking->how->cache)
        thought->held = 0;
    generation->committed_tokens++;
    generation_emit(generation, ns, 1);
    report(thinking, i, row, ns);
}

/* Books the pass that ended at `ns` in the generations, and takes its answers. */
static void account(struct thinking *thinking, int64_t ns)
{
    for (size_t s = 0; s < thinking->pass.n_seqs; s++) {
        size_t i = thinking->seqs[s].latent;
        struct generation *generation = &thinking->out[i];
        generation_step(generation, ns);
        generation->e2e_ns = ns;
        generation->rows += (int64_t)thinking->seqs[s].rows;
        generation->canvas_positions += (int64_t)thinking->seqs[s].rows;
        thinking->text[i].held += thinking->seqs[s].rows;
    }
    for (size_t k = 0; k < thinking->pass.n_wanted; k++)
        take(thinking, thinking->who[k], &thinking->answer[k], ns);
}

static void run_pass(struct thinking *thinking)
{
    const struct observer *observer = thinking->how->observer;
    describe(thinking);
    forward(thinking->n, &thinking->kv, thinking->work, &thinking->pass, thinking->answer, NULL);
    count(thinking);
    int64_t ns = clock_ns() - thinking->trace->start_ns;
    account(thinking, ns);
    if (!thinking->trace->prefill_ns && thinking->pass.n_wanted == thinking->batch) {
        thinking->trace->prefill = thinking->trace->cost;
        thinking->trace->prefill_ns = ns;
    }
    if (observer)
        observer->passed(observer->ctx);
    thinking->trace->interrupted = thinking->how->stop && *thinking->how->stop;
}

/* ---- from prompts to texts ---- */

static size_t live_texts(const struct thinking *thinking)
{
    size_t n = 0;
    for (size_t i = 0; i < thinking->batch; i++)
        n += thinking->text[i].live != 0;
    return n;
}

/* 1: a live text has `refit` ids more than at its last fit. */
static int is_due(const struct thinking *thinking)
{
    int due = 0;
    for (size_t i = 0; i < thinking->batch; i++)
        due |= thinking->text[i].live && thinking->how->refit &&
               thinking->text[i].len >= thinking->text[i].fitted + thinking->how->refit;
    return due;
}

static void write_texts(struct thinking *thinking)
{
    think_fit(thinking);
    while (live_texts(thinking) && !thinking->trace->interrupted) {
        run_pass(thinking);
        int due = is_due(thinking);
        for (size_t i = 0; due && i < thinking->batch; i++)
            thinking->text[i].held = 0;
        if (due)
            think_fit(thinking);
    }
}

/* The latents [L, n, D] of text i. The caller frees. */
static float *latents_of(const struct thinking *thinking, size_t i)
{
    const struct config *config = &thinking->n->config;
    size_t one = config->latents * config->width;
    float *z = mem_alloc(config->layers * one * sizeof *z);
    for (size_t layer = 0; layer < config->layers; layer++)
        memcpy(z + layer * one, thinking->fit.used + (layer * thinking->batch + i) * one,
               one * sizeof *z);
    return z;
}

static void finish(struct thinking *thinking)
{
    const struct config *config = &thinking->n->config;
    size_t latent = 2 * config->layers * config->kv_heads * config->head_dim * config->latents *
                    sizeof(float);
    size_t slot = 2 * config->layers * config->kv_heads * config->head_dim *
                  dtype_value_bytes(thinking->kv.dtype);
    if (recurs(thinking))
        slot = config->layers * config_state(config) * sizeof(float);
    for (size_t i = 0; i < thinking->batch; i++) {
        const struct thought *thought = &thinking->text[i];
        struct generation *generation = &thinking->out[i];
        generation->decode_ns = generation->e2e_ns - generation->vi_ns;
        generation->state_bytes = slot * thought->ring + latent;
        if (thinking->how->latents && thinking->how->latents->keep) {
            generation->latents = latents_of(thinking, i);
            generation->n_latents = latent_values(config);
        }
        if (thought->live)
            continue; /* interrupted */
        generation_take(generation, thought->ids + thought->prompt,
                        generation->bad ? 0 : thought->len - thought->prompt);
        generation_close(generation, config, thought->met_stop);
    }
}

void think(const struct network *n, const struct think *how, const struct generation_input *in,
           size_t batch, struct generation *out, struct batch_trace *trace)
{
    struct thinking thinking = {.n = n, .how = how, .in = in, .out = out, .trace = trace,
                                .batch = batch};
    trace->estimate = estimate(&thinking);
    int short_of_memory = make(&thinking);
    if (!short_of_memory && how->cache && n->backend->ops->prepare)
        prepare(&thinking);
    generation_batch_begin(trace);
    if (!short_of_memory) {
        write_texts(&thinking);
        finish(&thinking);
    }
    generation_batch_end(n->backend, short_of_memory, out, batch, trace);
    unmake(&thinking);
}
