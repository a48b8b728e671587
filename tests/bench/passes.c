/* passes.c - measures single passes, enqueued many behind each other: a full pass over canvases, a
 * block of a canvas beside a cache, the parts of a pass, and what a decode step costs in addition
 * to its pass. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/network/pass.h"
#include "tests/bench/bench.h"

enum { CANVAS = 256, BLOCK = 32, AFTER = 128, REPEAT_MAX = 1000 };

/* `seqs` sequences of `keys` positions. The last `rows` positions are the rows; the others are
 * cached. The last `wanted` rows of each sequence get an answer. room: limit of keys in the work
 * area. */
struct shape {
    size_t seqs, rows, keys, room, wanted;
    enum mask mask;
    int cached;
};

struct passes {
    struct models *models;
    struct work *work;
    struct kv kv, *cache; /* cache: kv, or NULL without one */
    struct pass pass;
};

static void call_pass(void *ctx, size_t i)
{
    (void)i;
    const struct passes *p = ctx;
    pass_run(&p->models->net, p->cache, p->work, &p->pass);
}

static void describe(struct passes *p, const struct shape *s)
{
    const struct rows *r = &p->work->host.rows;
    const struct config *c = &p->models->net.config;
    for (size_t i = 0, row = 0; i < s->seqs; i++) {
        r->seqs[i] = (struct attn_seq){(int32_t)row, (int32_t)s->rows, (int32_t)(i * s->keys),
                                       (int32_t)s->keys};
        for (size_t k = 0, at = i * s->keys; k < s->keys; k++, at++) {
            r->slots[at] = (int32_t)at;
            r->slot_pos[at] = (int32_t)k;
        }
        for (size_t k = s->keys - s->rows; k < s->keys; k++, row++) {
            r->token[row] = (int32_t)(row * 7919 % (c->vocab - 1));
            r->pos[row] = (int32_t)k;
            r->slot[row] = (int32_t)(i * s->keys + k);
        }
        for (size_t k = 0; k < s->wanted; k++)
            r->wanted[i * s->wanted + k] = (int32_t)(row - s->wanted + k);
    }
}

/* Returns -1 without memory. */
static int passes_make(struct passes *p, const struct shape *s)
{
    const struct network *n = &p->models->net;
    struct bench *b = p->models->bench;
    size_t values = n->config.layers * s->seqs * s->keys * n->config.kv_heads * n->config.head_dim;
    const struct work_size size = {.rows = s->seqs * s->rows, .seqs = s->seqs, .slots = s->room,
                                   .listed = s->seqs * s->keys, .wanted = s->seqs * s->wanted,
                                   .cached = (size_t)s->cached};
    p->work = work_make(n, &size);
    if (!p->work || (s->cached && kv_make(&p->kv, n, s->seqs * s->keys)))
        return -1;
    if (s->cached) {
        data_fill(b, p->kv.k, values, p->kv.dtype);
        data_fill(b, p->kv.v, values, p->kv.dtype);
        p->cache = &p->kv;
    }
    describe(p, s);
    pass_begin(&p->pass, n, p->cache, p->work);
    p->pass.T = size.rows;
    p->pass.R = size.wanted;
    p->pass.n_seqs = s->seqs;
    p->pass.max_rows = s->rows;
    p->pass.max_slots = pass_slots(p->work, s->keys);
    p->pass.mask = s->mask;
    pass_write(n, p->work);
    return 0;
}

/* Returns the seconds of a pass; NaN: no memory. */
static double pass_s(struct models *m, const struct shape *s)
{
    struct passes p = {.models = m};
    double took = (double)NAN;
    if (!passes_make(&p, s))
        took = walk_s(m->bench, call_pass, &p, 1, MEDIAN);
    work_free(p.work, &m->net);
    kv_free(&p.kv, &m->net);
    return took;
}

/* Returns the seconds of a pass. If a peer also does the work of `fields`, pass and peer take
 * turns, and the value is the median of several passes. */
static double pass_in_turn_s(struct models *m, const struct shape *s, const json_t *fields)
{
    static double took[REPEAT_MAX];
    size_t n = peer_tells(m->bench, fields) ? (size_t)m->bench->repeat : 1;
    for (size_t i = 0; i < n; i++) {
        took[i] = *m->bench->stop ? (double)NAN : pass_s(m, s);
        peer_turn(m->bench, fields);
    }
    return median_of(took, n);
}

static int bench_pass(struct models *m, const struct shape *s, const char *work, struct err *e)
{
    double rows = (double)(s->seqs * s->rows), keys = (double)s->keys;
    struct task task = task_begin(m->bench, dtype_info[m->kind->dtype].unit);
    json_t *fields = model_fields(m, work);
    double took = pass_in_turn_s(m, s, fields);
    if (isnan(took)) {
        struct err why = {0};
        json_decref(fields);
        if (bench_stopped(m->bench, e))
            return -1;
        err_set(&why, EXIT_FAILED_RECORDS, "%s %s: no memory", m->pair->llada, work);
        return bench_forgive(m->bench, &why, work, e);
    }
    ceilings_bracket(m->bench);
    add_pass(&task, m, rows, rows * keys, (double)s->seqs * keys, (double)(s->seqs * s->wanted));
    rec_set_int(fields, "rows", (int64_t)(s->seqs * s->rows));
    set_rates(m, fields, rows / took, NULL, (double)NAN);
    return bench_point(m->bench, fields, &task, took, e);
}

static int bench_full(struct models *m, struct err *e)
{
    static const struct {
        size_t seqs, rows;
    } sizes[] = {{1, 256}, {1, 356}, {1, 1024}, {1, 1256}, {8, 1024}, {32, 256}};
    int bad = 0;
    for (size_t i = 0; !bad && i < 2 * sizeof sizes / sizeof *sizes; i++) {
        size_t seqs = sizes[i / 2].seqs, rows = shrunk(m->pair, sizes[i / 2].rows);
        size_t block = rows < BLOCK ? rows : BLOCK;
        const struct shape s = {seqs, rows, rows, rows, i % 2 ? rows : block, MASK_FULL, 0};
        char work[64];
        if (i % 2)
            snprintf(work, sizeof work, "full %zu x %zu, head of all", seqs, rows);
        else
            snprintf(work, sizeof work, "full %zu x %zu, head of %zu", seqs, rows, block);
        bad = bench_pass(m, &s, work, e);
    }
    return bad;
}

static int bench_block(struct models *m, struct err *e)
{
    size_t before = shrunk(m->pair, 1000);
    const struct shape s = {1, BLOCK, before + BLOCK, before + BLOCK, BLOCK, MASK_FULL, 1};
    char work[64];
    snprintf(work, sizeof work, "block %d after %zu", BLOCK, before);
    return bench_pass(m, &s, work, e);
}

/* Returns the seconds between decode steps of the generator; NaN: no memory, or a signal
 * arrived. */
static double step_s(struct models *m, size_t prompt)
{
    static double spaced[REPEAT_MAX];
    size_t n = (size_t)m->bench->repeat;
    if (n < 3)
        run_texts(m, 1, prompt, prompt, 1); /* a median of three excludes a cold run anyway */
    for (size_t i = 0; i < n; i++)
        spaced[i] = *m->bench->stop ? (double)NAN
                                    : run_texts(m, 1, prompt, prompt, 1) / (double)prompt;
    return median_of(spaced, n);
}

/* Writes two shares that together contain every gap between kernels. The first is the share of a
 * decode step outside its recorded pass (one of many passes behind each other, at the middle length
 * of a text). The second is the share of the pass beyond the time of copying its bytes. The second
 * contains more than gaps: work that does not overlap, and bandwidth that is not reached. (If
 * reading alone is faster than copying, the second may be smaller than the gaps.) */
static int bench_gap(struct models *m, struct err *e)
{
    size_t prompt = shrunk(m->pair, AFTER);
    const struct shape s = {1, 1, prompt + prompt / 2 + 1, 2 * prompt + 1, 1, MASK_CAUSAL, 1};
    double step = step_s(m, prompt), keys = (double)s.keys;
    struct task task = task_begin(m->bench, dtype_info[m->kind->dtype].unit);
    double pass = pass_s(m, &s);
    if (bench_stopped(m->bench, e))
        return -1;
    if (isnan(pass) || isnan(step)) {
        struct err why = {0};
        err_set(&why, EXIT_FAILED_RECORDS, "%s gap: no memory, or NaN", m->pair->llama);
        return bench_forgive(m->bench, &why, "gap", e);
    }
    ceilings_bracket(m->bench);
    add_pass(&task, m, 1, keys, keys, 1);
    double bandwidth = m->bench->roof.bytes_per_s;
    json_t *fields = model_fields(m, "decode step and its pass");
    rec_set_number(fields, "step_ns", step * 1e9, NULL);
    rec_set_number(fields, "pass_ns", pass * 1e9, NULL);
    rec_set_number(fields, "pass_bytes", task.bytes, NULL);
    rec_set_number(fields, "ceiling_bytes_per_s", bandwidth, NULL);
    rec_set_number(fields, "outside_pass_fraction", 1 - pass / step, NULL);
    rec_set_number(fields, "beyond_bytes_fraction", 1 - task.bytes / bandwidth / pass, NULL);
    return bench_figure(m->bench, fields, e);
}

/* Times the parts of a step over a canvas, or of a decode step at the middle length of a text. */
static int bench_parts(struct models *m, struct err *e)
{
    size_t rows = shrunk(m->pair, CANVAS), after = shrunk(m->pair, AFTER), keys = after + after / 2;
    size_t block = rows < BLOCK ? rows : BLOCK;
    const struct shape canvas = {1, rows, rows, rows, block, MASK_FULL, 0},
                       token = {1, 1, keys + 1, keys + 1, 1, MASK_CAUSAL, 1};
    const int diffuses = m->paradigm == PARADIGM_MASKED_DIFFUSION;
    struct passes p = {.models = m};
    char work[64];
    snprintf(work, sizeof work, diffuses ? "parts of full 1 x %zu" : "parts of decode after %zu",
             diffuses ? rows : keys);
    json_t *fields = model_fields(m, work);
    const int made = !passes_make(&p, diffuses ? &canvas : &token);
    if (made)
        parts_time(m, call_pass, &p, fields);
    work_free(p.work, &m->net);
    kv_free(&p.kv, &m->net);
    if (made && !bench_stopped(m->bench, e))
        return bench_figure(m->bench, fields, e);
    json_decref(fields);
    struct err why = {0};
    err_set(&why, EXIT_FAILED_RECORDS, "%s: no memory", work);
    return made ? -1 : bench_forgive(m->bench, &why, work, e);
}

int bench_passes(struct models *m, struct err *e)
{
    const char *jobs = m->bench->jobs;
    if (bench_chosen(jobs, "parts") && bench_parts(m, e))
        return -1;
    if (m->paradigm == PARADIGM_AUTOREGRESSIVE)
        return bench_chosen(jobs, "gap") ? bench_gap(m, e) : 0;
    if (bench_chosen(jobs, "full") && bench_full(m, e))
        return -1;
    return bench_chosen(jobs, "block") ? bench_block(m, e) : 0;
}
