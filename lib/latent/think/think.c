/* think.c - see think.h.
 *
 *     fit z to the prompts
 *     rows = for each text, up to a window of the ids that the cache does not hold yet (256 ids
 *            with a mixer that recurs)
 *     a pass over the rows (causal, within the window, and all latents); wanted: the last row
 *     append each answer to its text, or end the text; after `refit` ids fit z again and drop the
 *     cache of the text, which was computed with the old z
 *
 * The host describes each pass and takes its answers; a device records passes that repeat. */
#include "lib/latent/think.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/order.h"
#include "lib/base/rng.h"
#include "lib/latent/think/think_run.h"

enum { READ_AT_ONCE = 256 };

static int recurs(const struct thinking *t)
{
    return config_recurs(&t->n->config);
}

/* Most rows of a text in a pass. */
static size_t at_once(const struct thinking *t)
{
    return recurs(t) ? READ_AT_ONCE : t->n->config.window;
}

/* ---- memory ---- */

static size_t ring_of(const struct thinking *t, size_t i)
{
    return recurs(t) ? 1 : order_min(t->in[i].n + t->how->max_new, 2 * t->n->config.window);
}

static struct work_size size_of(const struct thinking *t)
{
    const int again = !t->how->cache || t->how->refit; /* passes over whole texts repeat */
    struct work_size s = {.seqs = t->batch, .wanted = t->batch, .cached = 1, .latent = 1,
                          .how = t->how->variant};
    for (size_t i = 0; i < t->batch; i++) {
        size_t longest = t->in[i].n + (again ? t->how->max_new : 0);
        s.rows += order_min(longest, at_once(t));
        s.listed += ring_of(t, i);
        s.slots = order_max(s.slots, ring_of(t, i));
    }
    return s;
}

static struct memory_estimate estimate(const struct thinking *t)
{
    const struct work_size size = size_of(t);
    struct memory_estimate m = estimate_of(t->n, &size, size.listed);
    const struct memory_estimate fit = think_fit_estimate(t->n, t->how, t->in, t->batch);
    const size_t latents = memory_rounded(latent_bytes(t->n, t->batch));
    m.kv += latents;
    m.reserved += memory_pages(latents);
    return estimate_sum(&m, &fit);
}

struct memory_estimate think_estimate(const struct network *n, const struct think *how,
                                      const struct generation_input *in, size_t batch)
{
    const struct thinking t = {.n = n, .how = how, .in = in, .batch = batch};
    return estimate(&t);
}

static void texts_make(struct thinking *t)
{
    size_t slot = 0;
    t->text = mem_zero(t->batch, sizeof *t->text);
    for (size_t i = 0; i < t->batch; i++) {
        const struct generation_input *in = &t->in[i];
        assert(in->n > 0);
        struct thought *x = &t->text[i];
        *x = (struct thought){.prompt = in->n, .len = in->n, .most = in->n + t->how->max_new,
                              .slot = slot, .ring = ring_of(t, i), .live = 1};
        x->ids = mem_alloc(x->most * sizeof *x->ids);
        memcpy(x->ids, in->ids, in->n * sizeof *x->ids);
        slot += x->ring;
    }
}

/* -1: no memory of the back end. */
static int make(struct thinking *t)
{
    const struct work_size size = size_of(t);
    t->cost_model = cost_model_of(t->n);
    t->token = mem_zero(size.rows, sizeof *t->token);
    t->pos = mem_zero(size.rows, sizeof *t->pos);
    t->slot = mem_zero(size.rows, sizeof *t->slot);
    t->slots = mem_zero(size.listed, sizeof *t->slots);
    t->seqs = mem_zero(t->batch, sizeof *t->seqs);
    t->wanted = mem_zero(t->batch, sizeof *t->wanted);
    t->key = mem_zero(t->batch, sizeof *t->key);
    t->who = mem_zero(t->batch, sizeof *t->who);
    t->answer = mem_zero(t->batch, sizeof *t->answer);
    texts_make(t);
    if (kv_make(&t->kv, t->n, size.listed) || latent_make(&t->latents, t->n, t->batch))
        return -1;
    t->kv.latents = &t->latents;
    t->work = work_make(t->n, &size);
    return t->work ? think_fit_make(t) : -1;
}

static void unmake(struct thinking *t)
{
    think_fit_free(t);
    work_free(t->work, t->n);
    latent_free(&t->latents, t->n);
    kv_free(&t->kv, t->n);
    for (size_t i = 0; i < t->batch; i++)
        free(t->text[i].ids);
    void *host[] = {t->token,  t->pos, t->slot, t->slots,  t->seqs,
                    t->wanted, t->key, t->who,  t->answer, t->text};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
}

/* ---- a pass ---- */

/* Adds rows from..to of text i to the pass, with the slots they see. */
static void add_rows(struct thinking *t, size_t i, size_t from, size_t to, size_t *rows,
                     size_t *listed)
{
    const struct thought *x = &t->text[i];
    size_t first = recurs(t) ? to - 1 : from + 1 - think_seen(t, from);
    struct forward_seq *q = &t->seqs[t->pass.n_seqs++];
    if (recurs(t) && !from)
        kv_forget(&t->kv, t->n, x->slot);
    *q = (struct forward_seq){to - from, t->slots + *listed, to - first, i};
    for (size_t p = first; p < to; p++)
        t->slots[(*listed)++] = (int32_t)(x->slot + p % x->ring);
    for (size_t p = from; p < to; p++, ++*rows) {
        t->token[*rows] = x->ids[p];
        t->pos[*rows] = (int32_t)p;
        t->slot[*rows] = (int32_t)(x->slot + p % x->ring);
    }
}

/* 1: some prompt has more than a window left. The other texts then wait with their last rows, so
 * that all answers start in one pass and need a refit together, whatever texts are in the batch. */
static int is_reading(const struct thinking *t)
{
    int reads = 0;
    for (size_t i = 0; i < t->batch; i++)
        reads |= t->text[i].live && t->text[i].len - t->text[i].held > at_once(t);
    return reads;
}

/* Describes the next pass over the live texts; a text whose last id is in it gets an answer. */
static void describe(struct thinking *t)
{
    size_t rows = 0, listed = 0, answers = 0;
    int reads = is_reading(t);
    t->pass = (struct forward){.token = t->token, .pos = t->pos, .slot = t->slot, .seqs = t->seqs,
                               .mask = MASK_CAUSAL, .wanted = t->wanted, .again = t->how->cache,
                               .query = {.temperature = t->how->temperature,
                                         .seed = t->how->seed, .keys = t->key}};
    for (size_t i = 0; i < t->batch; i++) {
        const struct thought *x = &t->text[i];
        if (!x->live || (reads && x->len - x->held <= at_once(t)))
            continue;
        size_t to = order_min(x->len, x->held + at_once(t));
        add_rows(t, i, x->held, to, &rows, &listed);
        if (to < x->len)
            continue;
        t->wanted[answers] = (int32_t)rows - 1;
        t->key[answers] = rng_at(t->in[i].key, x->len - x->prompt, 0);
        t->who[answers++] = i;
    }
    t->pass.n_wanted = answers;
}

static void count(struct thinking *t)
{
    struct extent x = {.wanted = (double)t->pass.n_wanted};
    for (size_t s = 0; s < t->pass.n_seqs; s++) {
        const struct forward_seq *q = &t->seqs[s];
        size_t from = t->text[q->latent].held;
        for (size_t p = from; p < from + q->rows; p++)
            x.pairs += (double)(think_seen(t, p) + t->n->config.latents);
        x.rows += (double)q->rows;
        x.read += (double)q->n_slots;
        x.written += recurs(t) ? 1 : (double)q->rows;
    }
    cost_add(&t->trace->cost, cost_of(&t->cost_model, &x));
}

/* Runs the first pass that gives each text a token, before the clock. It leaves its keys and values
 * in slots that are written again before they are read. */
static void prepare(struct thinking *t)
{
    for (size_t i = 0; i < t->batch; i++)
        t->text[i].held = t->text[i].len - 1;
    describe(t);
    forward_prepare(t->n, &t->kv, t->work, &t->pass);
    for (size_t i = 0; i < t->batch; i++)
        t->text[i].held = 0;
}

/* ---- results of a pass ---- */

/* Tells an observer that looks closely the id that a text got. */
static void report(const struct thinking *t, size_t i, const struct head_row *a, int64_t ns)
{
    const struct observer *o = t->how->observer;
    const struct thought *x = &t->text[i];
    const int32_t slot = (int32_t)(x->len - x->prompt) - 1;
    const double confidence = (double)a->prob;
    const struct observed seen = {.input = i, .pass = (int64_t)t->out[i].n_steps, .ns = ns,
                                  .ids = x->ids + x->prompt, .n = x->len - x->prompt,
                                  .readable = x->len - x->prompt, .commits = 1,
                                  .slot = &slot, .confidence = &confidence};
    if (o && o->closely)
        o->changed(o->ctx, &seen);
}

/* Gives text i an answer: its next id, or its end. */
static void take(struct thinking *t, size_t i, const struct head_row *a, int64_t ns)
{
    struct thought *x = &t->text[i];
    struct generation *g = &t->out[i];
    int32_t stop[ADVANCE_STOPS], n = generation_stops(&t->n->config, stop);
    g->bad = a->bad != 0;
    x->met_stop = !g->bad && !t->how->ignore_eos && is_stop(stop, n, a->id);
    if (x->len == x->prompt)
        g->first_commit_ns = g->first_block_ns = ns;
    if (g->bad || x->met_stop) {
        x->live = 0;
        return;
    }
    x->ids[x->len++] = a->id;
    x->live = x->len < x->most;
    if (!t->how->cache)
        x->held = 0;
    g->committed_tokens++;
    generation_emit(g, ns, 1);
    report(t, i, a, ns);
}

static void account(struct thinking *t, int64_t ns)
{
    for (size_t s = 0; s < t->pass.n_seqs; s++) {
        size_t i = t->seqs[s].latent;
        struct generation *g = &t->out[i];
        generation_step(g, ns);
        g->e2e_ns = ns;
        g->rows += (int64_t)t->seqs[s].rows;
        g->canvas_positions += (int64_t)t->seqs[s].rows;
        t->text[i].held += t->seqs[s].rows;
    }
    for (size_t k = 0; k < t->pass.n_wanted; k++)
        take(t, t->who[k], &t->answer[k], ns);
}

static void run_pass(struct thinking *t)
{
    const struct observer *o = t->how->observer;
    describe(t);
    forward(t->n, &t->kv, t->work, &t->pass, t->answer, NULL);
    count(t);
    int64_t ns = clock_ns() - t->trace->start_ns;
    account(t, ns);
    if (!t->trace->prefill_ns && t->pass.n_wanted == t->batch) {
        t->trace->prefill = t->trace->cost;
        t->trace->prefill_ns = ns;
    }
    if (o)
        o->passed(o->ctx);
    t->trace->interrupted = t->how->stop && *t->how->stop;
}

/* ---- from prompts to texts ---- */

static size_t live_texts(const struct thinking *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->batch; i++)
        n += t->text[i].live != 0;
    return n;
}

static int is_due(const struct thinking *t)
{
    int due = 0;
    for (size_t i = 0; i < t->batch; i++)
        due |= t->text[i].live && t->how->refit &&
               t->text[i].len >= t->text[i].fitted + t->how->refit;
    return due;
}

static void write_texts(struct thinking *t)
{
    think_fit(t);
    while (live_texts(t) && !t->trace->interrupted) {
        run_pass(t);
        int due = is_due(t);
        for (size_t i = 0; due && i < t->batch; i++)
            t->text[i].held = 0;
        if (due)
            think_fit(t);
    }
}

/* The latents of text i, layer by layer. */
static float *latents_of(const struct thinking *t, size_t i)
{
    const struct config *c = &t->n->config;
    size_t one = c->latents * c->width;
    float *z = mem_alloc(c->layers * one * sizeof *z);
    for (size_t l = 0; l < c->layers; l++)
        memcpy(z + l * one, t->fit.used + (l * t->batch + i) * one, one * sizeof *z);
    return z;
}

static void finish(struct thinking *t)
{
    const struct config *c = &t->n->config;
    size_t latent = 2 * c->layers * c->kv_heads * c->head_dim * c->latents * sizeof(float);
    size_t slot = 2 * c->layers * c->kv_heads * c->head_dim * dtype_value_bytes(t->kv.dtype);
    if (recurs(t))
        slot = c->layers * config_state(c) * sizeof(float);
    for (size_t i = 0; i < t->batch; i++) {
        const struct thought *x = &t->text[i];
        struct generation *g = &t->out[i];
        g->decode_ns = g->e2e_ns - g->vi_ns;
        g->state_bytes = slot * x->ring + latent;
        if (t->how->latents && t->how->latents->keep) {
            g->latents = latents_of(t, i);
            g->n_latents = latent_values(c);
        }
        if (x->live)
            continue; /* interrupted */
        generation_take(g, x->ids + x->prompt, g->bad ? 0 : x->len - x->prompt);
        generation_close(g, c, x->met_stop);
    }
}

void think(const struct network *n, const struct think *how, const struct generation_input *in,
           size_t batch, struct generation *out, struct batch_trace *trace)
{
    struct thinking t = {.n = n, .how = how, .in = in, .out = out, .trace = trace,
                         .batch = batch};
    trace->estimate = estimate(&t);
    int short_of_memory = make(&t);
    if (!short_of_memory && how->cache && n->backend->ops->prepare)
        prepare(&t);
    generation_batch_begin(trace);
    if (!short_of_memory) {
        write_texts(&t);
        finish(&t);
    }
    generation_batch_end(n->backend, short_of_memory, out, batch, trace);
    unmake(&t);
}
