/* test-advance.cu - compares texts and canvases on the device with kernels/advance.c: after every
 * pass, with random answers, all states and all arrays of the next pass must be the same. */
#include <vector>

#include "kernels/cuda/head/canvas_sheet.h"
#include "kernels/host.h"
#include "tests/cuda/rows-fixture.h"

/* An array on the host and on the device. */
template <class E> struct both {
    std::vector<E> host;
    E *device;
};

template <class E> static E *send(struct fixture *f, struct both<E> *a)
{
    return a->device = (E *)sent(f, a->host.data(), (a->host.size() + 1) * sizeof(E));
}

/* Sizes an array, with room for one more element, which `sent` may read. */
template <class E> static void size(struct both<E> *a, size_t n, E fill)
{
    a->host.reserve(n + 1);
    a->host.assign(n, fill);
}

template <class E> static int same(struct fixture *f, const struct both<E> *a)
{
    std::vector<E> got(a->host.size() + 1);
    cuda_read(f->cuda, got.data(), a->device, a->host.size() * sizeof(E));
    return !memcmp(got.data(), a->host.data(), a->host.size() * sizeof(E));
}

static struct head_row answer(struct fixture *f, int32_t ids, int bad)
{
    struct head_row a = {};
    a.id = (int32_t)rng_below(&f->rng, (uint64_t)ids);
    a.log_prob = -(double)rng_below(&f->rng, 12) / 8; /* many ties */
    a.prob = (float)exp(a.log_prob);
    a.best_log_prob = a.log_prob;
    a.runner_up_prob = (float)rng_below(&f->rng, 8) / 16;
    a.entropy = (float)rng_below(&f->rng, 8) / 4;
    a.divergence = (float)rng_below(&f->rng, 4) / 4;
    a.gap = (float)rng_below(&f->rng, 8) / 4;
    a.runner_up = (int32_t)rng_below(&f->rng, (uint64_t)ids);
    a.target_log_prob = -(double)rng_below(&f->rng, 12) / 8;
    if (rng_below(&f->rng, 10) == 0)
        a.log_prob = -HUGE_VAL, a.prob = 0; /* suppressed */
    a.bad = bad;
    return a;
}

/* ---- texts ---- */

static void texts(struct fixture *f, size_t parts, int32_t n_stop)
{
    enum { MAX_NEW = 9 };
    struct both<int32_t> member, out, token, pos, slot, wanted;
    struct both<struct text_state> text;
    struct both<struct head_row> answers;
    struct both<struct attn_seq> seqs;
    struct both<uint64_t> key;
    struct text_state start = {};
    size(&member, parts, 0), size(&out, 2 * parts * MAX_NEW, -7), size(&token, parts, -1);
    size(&pos, parts, -1), size(&slot, parts, -1), size(&wanted, parts, -1);
    size(&text, 2 * parts, start), size(&answers, parts, head_row());
    size(&key, parts, uint64_t(0));
    size(&seqs, parts, attn_seq());
    for (size_t i = 0; i < 2 * parts; i++) {
        struct text_state *t = &text.host[i];
        t->key = rng_next(&f->rng);
        t->first_slot = (int32_t)i * 40;
        t->prompt = t->len = 3 + (int32_t)i % 4;
        t->max = t->prompt + MAX_NEW - (int32_t)i % 3;
        t->last = 5;
        t->live = i % 5 != 4;
    }
    for (size_t i = 0; i < parts; i++) {
        member.host[i] = (int32_t)(2 * i + i % 2);
        seqs.host[i].slot_begin = (int32_t)i * 40;
    }
    struct text_loop l = {};
    l.parts = parts, l.max_new = MAX_NEW, l.n_stop = n_stop;
    l.stop[0] = 3, l.stop[1] = 17;
    struct text_loop d = l;
    l.member = member.host.data(), d.member = send(f, &member);
    l.text = text.host.data(), d.text = send(f, &text);
    l.out = out.host.data(), d.out = send(f, &out);
    l.answer = answers.host.data(), d.answer = send(f, &answers);
    l.rows.token = token.host.data(), d.rows.token = send(f, &token);
    l.rows.pos = pos.host.data(), d.rows.pos = send(f, &pos);
    l.rows.slot = slot.host.data(), d.rows.slot = send(f, &slot);
    l.rows.seqs = seqs.host.data(), d.rows.seqs = send(f, &seqs);
    l.rows.wanted = wanted.host.data(), d.rows.wanted = send(f, &wanted);
    l.rows.key = key.host.data(), d.rows.key = send(f, &key);
    int all = 1;
    for (int pass = 0; pass < MAX_NEW + 2; pass++) {
        for (size_t i = 0; i < parts; i++)
            answers.host[i] = answer(f, 20, rng_below(&f->rng, 40) == 0);
        cuda_write(f->cuda, answers.device, answers.host.data(), parts * sizeof(struct head_row));
        host_advance_texts(f->ref, &l);
        cuda_advance_texts(f->cuda, &d);
        all &= same(f, &text) && same(f, &out) && same(f, &token) && same(f, &pos) &&
               same(f, &slot) && same(f, &seqs) && same(f, &wanted) && same(f, &key);
    }
    ok(all, "%zu texts, %d stop ids", parts, n_stop);
    cuda_free(f->cuda, member.device), cuda_free(f->cuda, out.device);
    cuda_free(f->cuda, token.device), cuda_free(f->cuda, pos.device);
    cuda_free(f->cuda, slot.device), cuda_free(f->cuda, wanted.device);
    cuda_free(f->cuda, text.device), cuda_free(f->cuda, answers.device);
    cuda_free(f->cuda, seqs.device), cuda_free(f->cuda, key.device);
}

/* ---- canvases ---- */

struct setting {
    size_t parts, capacity;
    int32_t gen, block, steps; /* steps of a block */
    enum unmask rule;
    enum order order;
    int guided, stops;
    int32_t ids; /* answers are 0..ids-1; the mask is 4 */
    int bad;     /* one of this many answers is bad; 0: none */
    int per_block;
    int lag = 0, seeds = 0; /* as in struct canvas_loop */
};
enum { MASK_ID = 4 };

struct game {
    struct both<int32_t> member, token, row_of, origin, budget, row_token, wanted, uncond;
    struct both<int32_t> check_of, asked, target;
    struct both<struct slot_kept> slot;
    struct both<struct canvas_state> canvas;
    struct both<struct head_row> answers;
    struct both<uint64_t> key;
    struct both<struct head_top> tops;
    struct both<float> map, mean;
    struct canvas_loop l, d;
};

/* Lays out canvases with prompts of different length; those with odd numbers have rows only from
 * the end of the prompt on. */
static size_t lay_out(struct fixture *f, struct game *g, const struct setting *s)
{
    struct canvas_state start = {};
    size_t ids = 0, rows = 0;
    size(&g->member, s->parts, 0), size(&g->canvas, s->parts + 2, start);
    for (size_t i = 0; i < s->parts + 2; i++) {
        struct canvas_state *c = &g->canvas.host[i];
        c->key = rng_next(&f->rng);
        c->first = (int32_t)ids;
        c->prompt = (int32_t)(i * 3 % 7) + s->lag;
        c->len = c->prompt + s->gen;
        c->shift = (int32_t)(i % 2) * (s->block / 2); /* the prompt ends within a block */
        c->live = 1;
        c->kept[0] = (double)i + 0.5; /* memory of the rule, which must come back */
        ids += (size_t)c->len;
    }
    size(&g->token, ids, 0), size(&g->row_of, ids, -1);
    size(&g->check_of, ids, -1), size(&g->slot, ids, slot_kept());
    for (size_t i = 0; i < s->parts; i++) {
        g->member.host[i] = (int32_t)(s->parts - i);
        const struct canvas_state *c = &g->canvas.host[s->parts - i];
        for (int32_t k = i % 2 ? c->prompt : 0; k < c->len; k++)
            g->row_of.host[(size_t)(c->first + k)] = (int32_t)rows++;
        for (int32_t k = 0; k < c->len; k++)
            g->token.host[(size_t)(c->first + k)] = k < c->prompt ? 9 : (int32_t)MASK_ID;
    }
    return rows;
}

static void plan(struct game *g, const struct setting *s, size_t rows)
{
    size_t T = s->guided ? 2 * rows : rows, R = s->parts * s->capacity;
    size(&g->origin, T, -1), size(&g->row_token, T, -3), size(&g->budget, (size_t)s->steps, 0);
    size(&g->wanted, R, 0), size(&g->uncond, R, 0), size(&g->key, R, uint64_t(0));
    size(&g->asked, R, -5), size(&g->target, R, -5);
    size(&g->answers, R, head_row());
    for (size_t i = 0; i < g->row_of.host.size(); i++)
        if (g->row_of.host[i] >= 0)
            g->origin.host[(size_t)g->row_of.host[i]] = (int32_t)i;
    for (size_t i = 0; i < g->row_of.host.size(); i++) /* rows of checks; some slots have none */
        g->check_of.host[i] = i % 7 == 6 ? -1 : (int32_t)((i * 5 + 3) % rows);
    const int linked = unmask_has(s->rule, UNMASK_LINKED) != 0;
    if (linked)
        g->check_of = g->row_of;
    size(&g->tops, R, head_top()), size(&g->mean, linked ? rows : 0, 0.0f);
    size(&g->map, linked ? rows * (rows + 1) : 0, 0.0f);
    for (size_t t = 0; s->guided && t < rows; t++)
        if (t % 3)
            g->origin.host[rows + t] = g->origin.host[t];
    for (int32_t k = 0; k < s->steps; k++)
        g->budget.host[(size_t)k] = s->block / s->steps + (k < s->block % s->steps);
    struct canvas_loop *l = &g->l;
    memset(l, 0, sizeof *l);
    l->parts = s->parts, l->capacity = s->capacity, l->T = T;
    l->twin = s->guided ? (int32_t)rows : 0;
    l->gen_length = s->gen, l->block_length = s->block, l->block_steps = s->steps;
    l->mask = MASK_ID, l->rule = s->rule;
    l->params.threshold = 0.6, l->params.factor = 1;
    l->params.entropy_bound = 9, l->params.upper = 0.8, l->params.lower = 0.5;
    l->params.gap = 0.5;
    l->params.credit_threshold = 0.8, l->params.credit_weight = 0.7;
    l->params.credit_decay = 0.8, l->params.credit_power = 0.2;
    l->params.slowfast_sure = 0.7, l->params.slowfast_reach = 0.3;
    l->params.saber_floor = 0.3, l->params.saber_least = 2;
    l->params.conf_threshold = 0.5, l->params.kl_threshold = 0.7, l->params.kl_history = 2;
    l->params.edit_threshold = 0.8, l->params.edit_passes = 3;
    l->compares = unmask_has(s->rule, UNMASK_COMPARES) != 0;
    l->params.open_share = 0.3, l->params.ready_share = 0.5, l->params.check_span = 2;
    l->params.relaxed_threshold = 0.4, l->params.leap_radius = 2;
    l->params.sched_high = 1.2, l->params.sched_low = 0.2, l->params.sched_rate = 2;
    l->params.less_sure = 0.3, l->params.less_drift = 0.2, l->params.less_history = 1;
    l->params.dawn_sink = 0.8, l->params.dawn_edge = 0.7, l->params.dawn_induce = 0.4;
    l->params.dawn_low = 0.2, l->map_stride = rows + 1;
    l->params.wino_draft = 0.5, l->params.wino_verify = 0.35;
    l->order = s->order, l->stop_at_eos = s->stops > 0;
    l->order_seed = 99, l->per_block = s->per_block;
    l->lag = s->lag, l->seeds = s->seeds;
    l->stop[0] = 11, l->stop[1] = 7, l->n_stop = s->stops;
}

static void share(struct fixture *f, struct game *g)
{
    struct canvas_loop *l = &g->l, *d = &g->d;
    l->member = g->member.host.data(), l->canvas = g->canvas.host.data();
    l->token = g->token.host.data(), l->row_of = g->row_of.host.data();
    l->origin = g->origin.host.data(), l->budget = g->budget.host.data();
    l->answer = g->answers.host.data(), l->rows.token = g->row_token.host.data();
    l->rows.wanted = g->wanted.host.data(), l->rows.uncond = g->uncond.host.data();
    l->rows.key = g->key.host.data(), l->asked = g->asked.host.data();
    l->target = g->target.host.data();
    l->check_of =
        unmask_has(l->rule, UNMASK_REVISES | UNMASK_LINKED) ? g->check_of.host.data() : nullptr;
    l->top = unmask_has(l->rule, UNMASK_TOPS) ? g->tops.host.data() : nullptr;
    l->map = unmask_has(l->rule, UNMASK_LINKED) ? g->map.host.data() : nullptr;
    l->mean = g->mean.host.data();
    l->slot = unmask_has(l->rule, UNMASK_KEEPS) ? g->slot.host.data() : nullptr;
    for (size_t i = 0; i < l->parts; i++)
        advance_ask(l, i);
    *d = *l;
    d->member = send(f, &g->member), d->canvas = send(f, &g->canvas);
    d->token = send(f, &g->token), d->row_of = send(f, &g->row_of);
    d->origin = send(f, &g->origin), d->budget = send(f, &g->budget);
    d->answer = send(f, &g->answers), d->rows.token = send(f, &g->row_token);
    d->rows.wanted = send(f, &g->wanted), d->rows.uncond = send(f, &g->uncond);
    d->rows.key = send(f, &g->key), d->asked = send(f, &g->asked);
    d->target = send(f, &g->target), d->mean = send(f, &g->mean);
    struct head_top *tops = send(f, &g->tops);
    float *map = send(f, &g->map);
    d->top = l->top ? tops : nullptr;
    d->map = l->map ? map : nullptr;
    int32_t *check_of = send(f, &g->check_of);
    struct slot_kept *slot = send(f, &g->slot);
    d->check_of = l->check_of ? check_of : nullptr;
    d->slot = l->slot ? slot : nullptr;
}

/* Draws the other facts that a pass returns about its answers and rows. */
static void renew(struct fixture *f, struct game *g)
{
    for (struct head_top &t : g->tops.host)
        for (int i = 0; i < HEAD_TOPS; i++) {
            t.id[i] = (int32_t)rng_below(&f->rng, i ? 9 : 2) + 9 * i;
            t.prob[i] = (float)(i ? 1 + rng_below(&f->rng, 3) : 60) / 100;
        }
    for (float &x : g->map.host)
        x = (float)rng_below(&f->rng, 8) / 8;
    for (float &x : g->mean.host)
        x = (float)rng_below(&f->rng, 8) / 8;
    cuda_write(f->cuda, g->tops.device, g->tops.host.data(),
               g->tops.host.size() * sizeof(struct head_top));
    cuda_write(f->cuda, g->map.device, g->map.host.data(), g->map.host.size() * sizeof(float));
    cuda_write(f->cuda, g->mean.device, g->mean.host.data(), g->mean.host.size() * sizeof(float));
}

static void canvases(struct fixture *f, struct setting s)
{
    struct game g;
    plan(&g, &s, lay_out(f, &g, &s));
    share(f, &g);
    int all = 1, live = 1, passes = 0, stalled = 0, bad = 0;
    for (; live && passes < 700; passes++) {
        for (size_t r = 0; r < g.answers.host.size(); r++)
            g.answers.host[r] =
                answer(f, s.ids, s.bad && rng_below(&f->rng, (uint64_t)s.bad) == 0);
        renew(f, &g);
        cuda_write(f->cuda, g.answers.device, g.answers.host.data(),
                   g.answers.host.size() * sizeof(struct head_row));
        host_advance_canvases(f->ref, &g.l);
        cuda_advance_canvases(f->cuda, &g.d);
        all &= same(f, &g.canvas) && same(f, &g.token) && same(f, &g.row_token) &&
               same(f, &g.wanted) && same(f, &g.uncond) && same(f, &g.key) &&
               same(f, &g.asked) && same(f, &g.target) && same(f, &g.slot);
        live = 0;
        for (size_t i = 0; i < s.parts; i++) {
            const struct canvas_state *c = &g.canvas.host[(size_t)g.member.host[i]];
            live += c->live && !c->stalled;
            stalled += c->stalled;
            bad += c->bad;
        }
    }
    ok(all && !live,
       "%zu canvases, capacity %zu, %d by %d in %d, rule %d, order %d%s%s: %d passes%s%s",
       s.parts, s.capacity, s.gen, s.block, s.steps, (int)s.rule, (int)s.order,
       s.guided ? ", guided" : "", s.seeds ? ", seeded" : s.stops ? ", stop ids" : "", passes,
       stalled ? ", stalled" : "", bad ? ", bad" : "");
    cuda_free(f->cuda, g.member.device), cuda_free(f->cuda, g.token.device);
    cuda_free(f->cuda, g.row_of.device), cuda_free(f->cuda, g.origin.device);
    cuda_free(f->cuda, g.budget.device), cuda_free(f->cuda, g.row_token.device);
    cuda_free(f->cuda, g.wanted.device), cuda_free(f->cuda, g.uncond.device);
    cuda_free(f->cuda, g.canvas.device), cuda_free(f->cuda, g.answers.device);
    cuda_free(f->cuda, g.key.device), cuda_free(f->cuda, g.asked.device);
    cuda_free(f->cuda, g.target.device), cuda_free(f->cuda, g.check_of.device);
    cuda_free(f->cuda, g.slot.device), cuda_free(f->cuda, g.tops.device);
    cuda_free(f->cuda, g.map.device), cuda_free(f->cuda, g.mean.device);
}

static void every_setting(struct fixture *f)
{
    for (int i = 0; i < (int)UNMASK_COUNT * (int)ORDER_COUNT; i++)
        for (int way = 0; way < 4; way++) {
            enum unmask rule = (enum unmask)(i % UNMASK_COUNT);
            enum order order = (enum order)(i / UNMASK_COUNT);
            int guided = way & 1, stops = way >> 1 ? 2 : 0;
            if (order != ORDER_CONFIDENCE && way != i % 4)
                continue;
            /* ids 0..39 contain the mask, so it is committed now and then */
            canvases(f, {3, 16, 32, 16, 5, rule, order, guided, stops, 40, 0, 0});
            canvases(f, {1, 1, 3, 1, 1, rule, order, guided, stops, 6, 0, 0});
        }
    for (int i = 0; i < (int)UNMASK_COUNT; i++) {
        enum unmask rule = (enum unmask)i;
        enum order order = i == UNMASK_SCHEDULE ? ORDER_RANDOM : ORDER_CONFIDENCE;
        canvases(f, {4, 40, 40, 40, 40, rule, order, 1, 1, 5, 0, 0});
        canvases(f, {5, 9, 27, 9, 4, rule, order, 0, 1, 30, 60, 0}); /* bad answers */
        canvases(f, {3, 10, 36, 12, 3, rule, order, 1, 0, 50, 0, 0}); /* too many at once */
        size_t tiles = unmask_has(rule, UNMASK_REVISES) ? 600 : 1100; /* some passes take few */
        canvases(f, {2, tiles, (int32_t)tiles, (int32_t)tiles, 7, rule, order, 0, 0, 3000, 0, 0});
        canvases(f, {3, 16, 32, 16, 5, rule, order, 1, 0, 40, 0, 1}); /* rows of the first block */
        if (!unmask_has(rule, UNMASK_LINKED)) /* a linked rule needs answers at their own rows */
            canvases(f, {3, 16, 32, 16, 5, rule, order, 0, 1, 40, 0, 0, 1, 4}); /* and seeds */
    }
    /* masks that stay in earlier blocks take room from a later block */
    canvases(f, {6, 8, 32, 8, 2, UNMASK_SCHEDULE, ORDER_CONFIDENCE, 0, 0, 5, 0, 0});
}

static void sheets(void)
{
    for (size_t capacity = 1; capacity < 5000; capacity += 617) {
        alignas(128) static unsigned char room[1 << 17];
        struct sheet s = sheet_of(room, capacity);
        ok((uintptr_t)s.bits % 8 == 0 && (uintptr_t)s.confidence % 8 == 0 &&
               (size_t)((unsigned char *)(s.votes + CANVAS_THREADS / 32) - room) ==
                   sheet_bytes(capacity) && sheet_bytes(4096) < 99 << 10,
           "the pieces of shared memory for %zu answers", capacity);
    }
}

int main(void)
{
    struct fixture f = fixture_open();
    sheets();
    for (size_t parts = 1; parts < 80; parts += 13)
        for (int32_t stops = 0; stops < 3; stops++)
            texts(&f, parts, stops);
    every_setting(&f);
    fixture_close(&f);
    return tap_done();
}
