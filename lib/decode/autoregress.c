/* autoregress.c - see autoregress.h.
 *
 *     rows = of each text, the tokens that the cache does not hold yet: at first its whole prompt
 *     a pass over rows (causal), wanted: the last row of each text
 *     each answer is appended to its text, or ends it: kernels/advance.h, which also makes the rows
 *     of the next pass, a token each
 *
 * A text that has ended leaves the batch at the next description. Without a cache nothing is ever
 * held, so each pass feeds everything; and a filter wants whole rows of logits on the host: both
 * describe every pass anew.
 */
#include "lib/decode/autoregress.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/decode/loop.h"
#include "lib/network/pass.h"

/* What advances from pass to pass. */
struct texts {
    struct text_state *state; /* [batch] */
    int32_t *ids;             /* [batch, max_new] */
};

/* All that settles a pass and what follows it: the key of ops.run. */
struct plan {
    struct pass pass;
    struct text_loop loop;
};

struct run {
    const struct network *n;
    const struct autoregress *how;
    const struct generation_input *in;
    struct generation *out;
    struct batch_trace *trace;
    size_t batch;
    struct kv cache, *kv;      /* kv: the cache, or NULL without one */
    struct work *work;
    struct texts host, device;  /* the states as they were when the last pass was settled */
    struct cost_model cost_model;
    struct plan plan;
    size_t longest;            /* ids of the longest text in the next pass */
    /* When a filter needs logits, or an observer looks closely: what is read back. */
    struct head_row *answer;   /* [batch] */
    float *logits;             /* [batch, V], else NULL */
    int32_t *sort;             /* [V] */
};

static struct texts texts_in(unsigned char *extra, size_t batch)
{
    struct text_state *state = (struct text_state *)(void *)extra;
    return (struct texts){state, (int32_t *)(state + batch)};
}

static struct work_size size_of(const struct run *r)
{
    struct work_size s = {.seqs = r->batch, .wanted = r->batch, .cached = r->how->cache != 0,
                          .logits = (size_t)sample_needs_logits(&r->how->sample,
                                                                r->n->config.vocab)};
    for (size_t i = 0; i < r->batch; i++) {
        size_t room = r->in[i].n + r->how->max_new;
        s.rows += s.cached ? r->in[i].n : room;
        s.listed += room;
        s.slots = room > s.slots ? room : s.slots;
    }
    s.extra = r->batch * (sizeof *r->host.state + r->how->max_new * sizeof *r->host.ids);
    return s;
}

static void texts_make(struct run *r)
{
    size_t slot = 0;
    for (size_t i = 0; i < r->batch; i++) {
        const struct generation_input *in = &r->in[i];
        assert(in->n > 0);
        r->host.state[i] = (struct text_state){.key = in->key,
                                               .first_slot = (int32_t)slot,
                                               .prompt = (int32_t)in->n,
                                               .len = (int32_t)in->n,
                                               .max = (int32_t)(in->n + r->how->max_new),
                                               .last = in->ids[in->n - 1],
                                               .live = 1};
        slot += in->n + r->how->max_new;
    }
}

static void loop_make(struct run *r)
{
    struct text_loop *l = &r->plan.loop;
    const struct index *t = &r->work->device;
    memset(l, 0, sizeof *l); /* its bytes are part of a key */
    l->member = t->member;
    l->text = r->device.state;
    l->out = r->device.ids;
    l->max_new = r->how->max_new;
    l->answer = r->work->answer;
    l->rows = t->rows;
    l->n_stop = r->how->ignore_eos ? 0 : generation_stops(&r->n->config, l->stop);
}

/* -1: memory of the back end short. */
static int run_make(struct run *r, struct memory_estimate *estimate)
{
    size_t vocab = r->n->config.vocab;
    r->answer = mem_zero(r->batch, sizeof *r->answer);
    if (sample_needs_logits(&r->how->sample, vocab)) {
        r->logits = mem_zero(r->batch * vocab, sizeof *r->logits);
        r->sort = mem_zero(vocab, sizeof *r->sort);
    }
    r->kv = r->how->cache ? &r->cache : NULL;
    const struct work_size size = size_of(r);
    *estimate = estimate_of(r->n, &size, r->kv ? size.listed : 0);
    if (r->kv && kv_make(r->kv, r->n, size.listed))
        return -1;
    r->work = work_make(r->n, &size);
    if (!r->work)
        return -1;
    r->host = texts_in(r->work->host.extra, r->batch);
    r->device = texts_in(r->work->device.extra, r->batch);
    texts_make(r);
    loop_make(r);
    pass_write(r->n, r->work); /* describe() begins with what is there */
    return 0;
}

static void run_free(struct run *r)
{
    free(r->answer);
    free(r->logits);
    free(r->sort);
    work_free(r->work, r->n);
    if (r->kv)
        kv_free(r->kv, r->n);
}

/* ---- the first pass of several ---- */

static void read_ids(struct run *r)
{
    struct backend *b = r->n->backend;
    b->ops->read(b, r->host.ids, r->device.ids,
                 r->batch * r->how->max_new * sizeof *r->host.ids);
}

static int32_t id_at(const struct run *r, size_t i, int32_t place)
{
    int32_t prompt = r->host.state[i].prompt;
    return place < prompt ? r->in[i].ids[place]
                          : r->host.ids[i * r->how->max_new + (size_t)(place - prompt)];
}

/* Ids whose keys and values the cache holds. */
static int32_t held(const struct run *r, const struct text_state *t)
{
    return r->kv && t->len > t->prompt ? t->len - 1 : 0;
}

/* Names all slots of a text from `listed` on: the cache's, or the rows that it has here. */
static void list_slots(const struct run *r, const struct text_state *t, size_t listed, size_t row)
{
    const struct rows *w = &r->work->host.rows;
    int32_t count = r->kv ? t->max : t->len, first = r->kv ? t->first_slot : (int32_t)row;
    for (int32_t p = 0; p < count; p++) {
        w->slots[listed + (size_t)p] = first + p;
        w->slot_pos[listed + (size_t)p] = p;
    }
}

/* Text i becomes the next part of the pass. Its list begins at its first slot: no other text's
 * does. */
static void add_text(struct run *r, size_t i)
{
    struct pass *p = &r->plan.pass;
    const struct index *x = &r->work->host;
    const struct rows *w = &x->rows;
    const struct text_state *t = &r->host.state[i];
    size_t part = p->n_seqs++;
    int32_t row = (int32_t)p->T, rows = t->len - held(r, t);
    list_slots(r, t, (size_t)t->first_slot, p->T);
    for (int32_t place = held(r, t); place < t->len; place++, p->T++) {
        w->token[p->T] = id_at(r, i, place);
        w->pos[p->T] = place;
        w->slot[p->T] = t->first_slot + place;
    }
    w->seqs[part] = (struct attn_seq){row, rows, t->first_slot, t->len};
    w->wanted[part] = row + rows - 1;
    w->key[part] = text_key(t);
    x->member[part] = (int32_t)i;
    p->max_rows = (size_t)rows > p->max_rows ? (size_t)rows : p->max_rows;
    r->longest = (size_t)t->len > r->longest ? (size_t)t->len : r->longest;
}

static size_t describe(void *ctx)
{
    struct run *r = ctx;
    struct pass *p = &r->plan.pass;
    int32_t most = 0;
    r->longest = 0;
    read_ids(r);
    pass_begin(p, r->n, r->kv, r->work);
    for (size_t i = 0; i < r->batch; i++) {
        const struct text_state *t = &r->host.state[i];
        if (!t->live)
            continue;
        add_text(r, i);
        most = t->max - t->len > most ? t->max - t->len : most;
    }
    p->R = r->plan.loop.parts = p->n_seqs;
    p->mask = MASK_CAUSAL;
    p->max_slots = pass_slots(r->work, r->longest);
    p->query = (struct head_query){.temperature = r->logits ? 0 : r->how->sample.temperature,
                                   .seed = r->how->seed, .keys = r->work->device.rows.key};
    p->logits = r->logits != NULL;
    pass_write(r->n, r->work);
    return most && (!r->kv || r->logits) ? 1 : (size_t)most;
}

/* ---- a pass ---- */

static void run_pass(void *ctx)
{
    const struct run *r = ctx;
    pass_run(r->n, r->kv, r->work, &r->plan.pass);
}

static void run_and_advance(void *ctx)
{
    const struct run *r = ctx;
    run_pass(ctx);
    r->n->backend->ops->advance_texts(r->n->backend, &r->plan.loop);
}

/* The answer becomes the id that is drawn on the host from its logits. */
static void draw(const struct run *r, struct head_row *a, const float *logits, uint64_t key)
{
    int32_t id = sample_draw(logits, r->n->config.vocab, &r->how->sample, r->how->seed, key,
                             r->sort);
    a->log_prob += (double)logits[id] - (double)logits[a->id];
    a->prob = (float)exp(a->log_prob);
    a->id = id;
}

/* Draws from the logits of the pass and puts the ids into the answers. */
static void sample(struct run *r)
{
    struct backend *b = r->n->backend;
    size_t vocab = r->n->config.vocab, parts = r->plan.loop.parts;
    b->ops->read(b, r->answer, r->work->answer, parts * sizeof *r->answer);
    b->ops->read(b, r->logits, r->work->logits, parts * vocab * sizeof *r->logits);
    for (size_t i = 0; i < parts; i++)
        if (!r->answer[i].bad)
            draw(r, &r->answer[i], r->logits + i * vocab, r->work->host.rows.key[i]);
    b->ops->write(b, r->work->answer, r->answer, parts * sizeof *r->answer);
}

static void enqueue(void *ctx)
{
    struct run *r = ctx;
    struct backend *b = r->n->backend;
    struct pass *p = &r->plan.pass;
    if (r->logits) {
        run_pass(r);
        sample(r);
        b->ops->advance_texts(b, &r->plan.loop);
    } else {
        b->ops->run(b, &r->plan, sizeof r->plan, run_and_advance, r);
    }
    p->T = p->n_seqs; /* the next pass: a token each */
    p->max_rows = 1;
    r->longest += r->longest < r->work->size.slots;
    p->max_slots = pass_slots(r->work, r->longest);
}

/* ---- before the clock ---- */

/* The pass as planned, without being recorded where it will not be. */
static void prepare_pass(struct run *r)
{
    struct backend *b = r->n->backend;
    if (r->kv && !r->logits)
        b->ops->prepare(b, &r->plan, sizeof r->plan, run_and_advance, r);
    else
        run_and_advance(r);
}

/* Passes of `parts` texts with a token each, from `first` ids of the longest up to `last`. */
static void prepare_tokens(struct run *r, size_t parts, size_t first, size_t last)
{
    struct pass *p = &r->plan.pass;
    p->T = p->R = p->n_seqs = r->plan.loop.parts = parts;
    p->max_rows = 1;
    for (size_t n = first; n <= last; n = p->max_slots + 1) {
        p->max_slots = pass_slots(r->work, n);
        prepare_pass(r);
    }
}

/* Without a cache: as often as the rows have grown by an eighth. */
static void prepare_growth(struct run *r)
{
    size_t last = r->how->max_new - 1, step;
    for (size_t more = 0; more < last; ) {
        step = r->plan.pass.T / r->batch / 8;
        more = last - more < step ? last : more + (step ? step : 1);
        for (size_t i = 0; i < r->batch; i++)
            r->host.state[i].len = r->host.state[i].prompt + (int32_t)more;
        describe(r);
        run_pass(r);
    }
    for (size_t i = 0; i < r->batch; i++)
        r->host.state[i].len = r->host.state[i].prompt;
}

/* Each pass advances what is on the device, as far as it goes; at the end that is sent anew. */
static void prepare(void *ctx)
{
    struct run *r = ctx;
    size_t shortest = SIZE_MAX, longest = r->longest, most = r->how->max_new;
    for (size_t i = 0; i < r->batch; i++)
        shortest = r->in[i].n < shortest ? r->in[i].n : shortest;
    prepare_pass(r);
    if (!r->kv)
        prepare_growth(r);
    else if (most > 1)
        prepare_tokens(r, r->batch, longest + 1, longest + most - 1);
    for (size_t n = r->batch; r->kv && r->plan.loop.n_stop && most > 2 && --n > 0;)
        prepare_tokens(r, n, shortest + 2, longest + most - 1);
    memset(r->host.ids, 0, r->batch * r->how->max_new * sizeof *r->host.ids);
    pass_write(r->n, r->work);
    describe(r);
}

/* ---- what a pass left ---- */

/* A pass has taken the text of g from *was to *now. */
static void account(const struct run *r, struct generation *g, const struct text_state *was,
                    const struct text_state *now, int64_t ns)
{
    int32_t rows = was->len - held(r, was);
    generation_step(g, ns);
    g->e2e_ns = ns;
    g->rows += rows;
    g->canvas_positions += rows;
    g->bad = now->bad;
    if (g->bad)
        return;
    if (was->len == was->prompt)
        g->first_commit_ns = g->first_block_ns = ns;
    if (now->met_stop)
        return;
    g->committed_tokens++;
    generation_emit(g, ns, 1);
}

/* Tells an observer that looks closely what the pass added to the texts of its parts. */
static void observe(struct run *r, const struct text_state *now, int64_t ns)
{
    struct backend *b = r->n->backend;
    size_t parts = r->plan.loop.parts;
    b->ops->read(b, r->answer, r->work->answer, parts * sizeof *r->answer);
    read_ids(r);
    for (size_t part = 0; part < parts; part++) {
        size_t i = (size_t)r->work->host.member[part];
        int32_t n = now[i].len - now[i].prompt, slot = n - 1;
        double prob = (double)r->answer[part].prob;
        const struct observed o = {.input = i, .pass = (int64_t)r->out[i].n_steps, .ns = ns,
                                   .ids = r->host.ids + i * r->how->max_new, .n = (size_t)n,
                                   .readable = (size_t)n, .mask = -1,
                                   .commits = now[i].len > r->host.state[i].len, .slot = &slot,
                                   .confidence = &prob};
        if (r->host.state[i].live && !now[i].bad)
            r->how->observer->changed(r->how->observer->ctx, &o);
    }
}

/* What the pass that is settled now had to do, by the states before it. A text that has ended was
 * one row of it; a pass in which all have is behind the end of the clock. */
static void count(const struct run *r, int64_t ns)
{
    struct batch_trace *trace = r->trace;
    struct extent x = {.wanted = (double)r->plan.loop.parts};
    int live = 0;
    for (size_t i = 0; i < r->plan.loop.parts; i++) {
        const struct text_state *t = &r->host.state[r->work->host.member[i]];
        int32_t rows = t->live ? t->len - held(r, t) : 1;
        live |= t->live;
        cost_causal(&x, rows, t->len);
        x.read += r->kv ? t->len : 0;
        x.written += r->kv ? rows : 0;
    }
    if (!live)
        return;
    cost_add(&trace->cost, cost_of(&r->cost_model, &x));
    if (r->kv && !trace->prefill_ns) {
        trace->prefill = trace->cost;
        trace->prefill_ns = ns;
    }
}

static int settle(void *ctx, const void *state, int64_t ns)
{
    struct run *r = ctx;
    const struct text_state *now = state;
    int ended = 0;
    count(r, ns);
    for (size_t i = 0; i < r->batch; i++)
        if (r->host.state[i].live) {
            account(r, &r->out[i], &r->host.state[i], &now[i], ns);
            ended |= !now[i].live;
        }
    if (r->how->observer && r->how->observer->closely)
        observe(r, now, ns);
    memcpy(r->host.state, now, r->batch * sizeof *now);
    return ended;
}

static void finish(struct run *r)
{
    read_ids(r);
    for (size_t i = 0; i < r->batch; i++) {
        const struct text_state *t = &r->host.state[i];
        struct generation *g = &r->out[i];
        if (t->live)
            continue;
        generation_take(g, r->host.ids + i * r->how->max_new,
                        g->bad ? 0 : (size_t)(t->len - t->prompt));
        generation_close(g, &r->n->config, t->met_stop);
    }
}

struct memory_estimate autoregress_estimate(const struct network *n, const struct autoregress *how,
                               const struct generation_input *in, size_t batch)
{
    const struct run r = {.n = n, .how = how, .in = in, .batch = batch};
    const struct work_size size = size_of(&r);
    return estimate_of(n, &size, size.cached ? size.listed : 0);
}

void autoregress(const struct network *n, const struct autoregress *how,
                 const struct generation_input *in, size_t batch, struct generation *out,
                 struct batch_trace *trace)
{
    struct run r = {.n = n, .how = how, .in = in, .out = out, .trace = trace, .batch = batch,
                    .cost_model = cost_model_of(n)};
    trace->start_ns = clock_ns();
    int short_of_memory = run_make(&r, &trace->estimate);
    if (!short_of_memory) {
        const struct loop loop = {.backend = n->backend, .stop = how->stop,
                                  .observer = how->observer, .state = r.device.state,
                                  .bytes = batch * sizeof *r.device.state, .describe = describe,
                                  .prepare = how->prepare ? prepare : NULL,
                                  .enqueue = enqueue, .settle = settle, .ctx = &r};
        short_of_memory = loop_run(&loop, trace);
    }
    if (!short_of_memory)
        finish(&r);
    generation_batch_end(n->backend, short_of_memory, out, batch, trace);
    run_free(&r);
}
