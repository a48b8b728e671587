/* autoregress.c - see autoregress.h.
 *
 *     while texts are left:
 *         rows    = of each text, the tokens that the cache does not hold yet
 *         answers = forward(rows, causal), wanted: the last row of each text
 *         append each answer to its text, or end the text
 *
 * The first pass feeds whole prompts (prefill), the later ones a token each (decode): one statement
 * does both. Without a cache nothing is ever held, so each pass feeds everything.
 */
#include "lib/model/autoregress.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"

struct text {
    int32_t *token;       /* [prompt + max_new] */
    size_t prompt, len;   /* ids of the prompt; ids so far */
    size_t held;          /* ids whose K and V the cache holds */
    size_t first_slot;
    uint64_t key;
    int live;
    struct generation *g;
};

struct run {
    const struct network *n;
    const struct autoregress *how;
    struct text *text;
    size_t batch;
    struct kv kv;
    struct work *work;
    int32_t *slot_name;   /* [S] 0, 1, 2...: a text's slots are a piece of it */
    /* One pass: T rows of `parts` texts. */
    int32_t *token, *pos, *slot, *wanted;
    struct forward_seq *seq;
    struct text **member; /* the text behind each part */
    uint64_t *key;
    size_t rows, parts;
    struct head_row *answer;
    float *logits;        /* [batch, V] when a filter needs them, else NULL */
    int32_t *sort;        /* [V] */
};

static void texts_make(struct run *r, const struct generation_input *in, struct generation *out)
{
    size_t slot = 0;
    for (size_t i = 0; i < r->batch; i++) {
        assert(in[i].n > 0);
        struct text *t = &r->text[i];
        size_t room = in[i].n + r->how->max_new;
        *t = (struct text){.prompt = in[i].n, .len = in[i].n, .first_slot = slot,
                           .key = in[i].key, .live = 1, .g = &out[i]};
        t->token = mem_zero(room, sizeof *t->token);
        memcpy(t->token, in[i].ids, in[i].n * sizeof *t->token);
        slot += room;
    }
}

/* Host arrays of one pass and the device memory. -1: device memory short. */
static int run_make(struct run *r, const struct generation_input *in, struct generation *out,
                    struct paper *paper)
{
    size_t prompts = 0, longest = 0, vocab = r->n->config.vocab;
    for (size_t i = 0; i < r->batch; i++) {
        prompts += in[i].n;
        if (in[i].n + r->how->max_new > longest)
            longest = in[i].n + r->how->max_new;
    }
    size_t slots = prompts + r->batch * r->how->max_new;
    size_t rows = r->how->cache ? prompts : slots;
    r->text = mem_zero(r->batch, sizeof *r->text);
    texts_make(r, in, out);
    r->slot_name = mem_zero(slots, sizeof *r->slot_name);
    for (size_t i = 0; i < slots; i++)
        r->slot_name[i] = (int32_t)i;
    r->token = mem_zero(3 * rows, sizeof *r->token);
    r->pos = r->token + rows;
    r->slot = r->pos + rows;
    r->wanted = mem_zero(r->batch, sizeof *r->wanted);
    r->seq = mem_zero(r->batch, sizeof *r->seq);
    r->member = mem_zero(r->batch, sizeof *r->member);
    r->key = mem_zero(r->batch, sizeof *r->key);
    r->answer = mem_zero(r->batch, sizeof *r->answer);
    if (sample_needs_logits(&r->how->sample, vocab)) {
        r->logits = mem_zero(r->batch * vocab, sizeof *r->logits);
        r->sort = mem_zero(vocab, sizeof *r->sort);
    }
    *paper = paper_of(r->n, rows, longest, r->batch, r->how->cache ? slots : 0);
    if (r->how->cache && kv_make(&r->kv, r->n, slots))
        return -1;
    r->work = work_make(r->n, rows, longest, r->batch);
    return r->work ? 0 : -1;
}

static void run_free(struct run *r)
{
    for (size_t i = 0; i < r->batch; i++)
        free(r->text[i].token);
    free(r->text);
    free(r->slot_name);
    free(r->token);
    free(r->wanted);
    free(r->seq);
    free(r->member);
    free(r->key);
    free(r->answer);
    free(r->logits);
    free(r->sort);
    work_free(r->work, r->n);
    if (r->how->cache)
        kv_free(&r->kv, r->n);
}

/* The rows of the next pass. Returns how many texts are in it. */
static size_t gather(struct run *r)
{
    r->rows = r->parts = 0;
    for (struct text *t = r->text; t < r->text + r->batch; t++) {
        if (!t->live)
            continue;
        for (size_t i = t->held; i < t->len; i++, r->rows++) {
            r->token[r->rows] = t->token[i];
            r->pos[r->rows] = (int32_t)i;
            r->slot[r->rows] = (int32_t)(t->first_slot + i);
        }
        r->seq[r->parts] = (struct forward_seq){t->len - t->held, NULL, 0};
        if (r->how->cache) {
            r->seq[r->parts].slots = r->slot_name + t->first_slot;
            r->seq[r->parts].n_slots = t->len;
        }
        r->wanted[r->parts] = (int32_t)r->rows - 1;
        r->key[r->parts] = rng_at(t->key, t->len - t->prompt, 0);
        r->member[r->parts++] = t;
    }
    return r->parts;
}

static void pass(struct run *r)
{
    struct forward f = {
        .token = r->token, .pos = r->pos, .slot = r->how->cache ? r->slot : NULL,
        .seqs = r->seq, .n_seqs = r->parts, .mask = MASK_CAUSAL,
        .wanted = r->wanted, .n_wanted = r->parts,
        .query = {.temperature = r->logits ? 0 : r->how->sample.temperature,
                  .seed = r->how->seed, .keys = r->key},
    };
    forward(r->n, r->how->cache ? &r->kv : NULL, r->work, &f, r->answer, r->logits);
}

/* The token that pass gave to part i. */
static int32_t choose(const struct run *r, size_t i)
{
    size_t vocab = r->n->config.vocab;
    if (!r->logits)
        return r->answer[i].id;
    return sample_draw(r->logits + i * vocab, vocab, &r->how->sample, r->how->seed, r->key[i],
                       r->sort);
}

static void end_text(struct run *r, struct text *t, int met_stop)
{
    struct generation *g = t->g;
    t->live = 0;
    g->n = g->bad ? 0 : t->len - t->prompt;
    g->ids = mem_zero(g->n, sizeof *g->ids);
    memcpy(g->ids, t->token + t->prompt, g->n * sizeof *g->ids);
    generation_close(g, &r->n->config, met_stop);
}

/* Part i has got its answer: one token more, or the end. */
static void extend(struct run *r, size_t i, int64_t now)
{
    struct text *t = r->member[i];
    struct generation *g = t->g;
    generation_step(g, now);
    g->e2e_ns = now;
    g->rows += (int64_t)r->seq[i].rows;
    g->canvas_positions += (int64_t)r->seq[i].rows;
    t->held = r->how->cache ? t->len : 0;
    if (r->answer[i].bad) {
        g->bad = 1;
        end_text(r, t, 0);
        return;
    }
    int32_t id = choose(r, i);
    if (t->len == t->prompt)
        g->first_commit_ns = g->first_block_ns = now;
    if (!r->how->ignore_eos && generation_is_stop(&r->n->config, id)) {
        end_text(r, t, 1);
        return;
    }
    t->token[t->len++] = id;
    g->committed_tokens++;
    generation_emit(g, now, 1);
    if (t->len - t->prompt == r->how->max_new)
        end_text(r, t, 0);
}

void autoregress(const struct network *n, const struct autoregress *how,
                 const struct generation_input *in, size_t batch, struct generation *out,
                 struct batch_trace *trace)
{
    struct run r = {.n = n, .how = how, .batch = batch};
    int short_of_memory = run_make(&r, in, out, &trace->paper);
    trace->start_ns = clock_ns();
    while (!short_of_memory && !trace->interrupted && gather(&r)) {
        pass(&r);
        int64_t now = clock_ns() - trace->start_ns;
        for (size_t i = 0; i < r.parts; i++)
            extend(&r, i, now);
        trace->makespan_ns = now;
        trace->interrupted = how->stop && *how->stop;
    }
    for (size_t i = 0; i < batch && short_of_memory; i++)
        out[i].oom = 1;
    trace->memory = n->backend->memory;
    run_free(&r);
}
