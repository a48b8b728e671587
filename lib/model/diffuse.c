/* diffuse.c - see diffuse.h.
 *
 *     canvas = prompt, then gen_length masks
 *     for each block, for each of its steps:
 *         answers = forward(whole canvas, full mask), wanted: masked slots up to the block's end
 *         confidence of an answer = its probability (or a random number)
 *         commit the answers that the unmask rule picks; a committed slot never changes
 *
 * Each canvas walks through its blocks at its own pace, and a finished one leaves the batch. A step
 * that would commit nothing (more steps than masks) is not run: it would change nothing. Which rows
 * are computed, from which slots, under which mask is decided in gather() alone; that is where a
 * block cache belongs.
 *
 * Faithful to the official code: an answer may be the mask id itself. Its slot then counts as
 * masked and competes again, also in later blocks.
 */
#include "lib/model/diffuse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/model/schedule.h"

struct canvas {
    int32_t *token;    /* [prompt + gen_length] */
    size_t prompt, len;
    uint64_t key;
    size_t block, step; /* the block being filled, the steps it has had */
    size_t readable;   /* slots before the first one that is not final */
    int live;
    struct generation *g;
};

struct run {
    const struct network *n;
    const struct diffuse *how;
    struct canvas *canvas;
    size_t batch;
    size_t *budget;    /* [steps per block] */
    size_t block_steps;
    int32_t quiet[CONFIG_MAX_EOS + 1], ban[CONFIG_MAX_EOS];
    size_t n_quiet, n_ban;
    uint64_t remask_seed;
    struct work *work;
    /* One pass: `rows` rows of `parts` canvases; with CFG as many unconditional ones follow. */
    int32_t *token, *pos, *wanted, *uncond;
    struct forward_seq *seq;
    struct canvas **member;
    size_t *first;     /* [parts + 1] first wanted row of each part */
    size_t rows, parts;
    uint64_t *key;
    struct head_row *answer;
    double *score;
    unsigned char *commit;
};

int diffuse_check(const struct diffuse *how, struct err *e)
{
    size_t gen = how->gen_length, block = how->block_length;
    if (gen == 0 || block == 0 || how->steps == 0)
        return err_set(e, EXIT_BAD_USAGE,
                       "gen-length, block-length and steps: expected at least 1, got %zu, %zu, %zu",
                       gen, block, how->steps);
    if (gen % block)
        return err_set(e, EXIT_BAD_USAGE,
                       "gen-length %zu must be a multiple of block-length %zu", gen, block);
    if (how->steps % (gen / block))
        return err_set(e, EXIT_BAD_USAGE,
                       "steps %zu must be a multiple of the number of blocks, "
                       "gen-length / block-length = %zu", how->steps, gen / block);
    return 0;
}

/* The official options act at two places. logits_eos_inf removes eos before anything is chosen.
 * confidence_eos_eot_inf acts after the choice, on the softmax that gives the confidence; in the
 * official code it reaches eos only at temperature 0, where noised and plain logits are one tensor,
 * and end-of-turn always. A removed answer has confidence 0: it comes last. */
static void suppressions(struct run *r)
{
    const struct config *c = &r->n->config;
    if (r->how->logits_eos_inf)
        for (size_t i = 0; i < c->n_eos; i++)
            r->ban[r->n_ban++] = (int32_t)c->eos[i];
    if (!r->how->confidence_eos_eot_inf)
        return;
    if (!(r->how->temperature > 0))
        for (size_t i = 0; i < c->n_eos; i++)
            r->quiet[r->n_quiet++] = (int32_t)c->eos[i];
    if (c->eot >= 0)
        r->quiet[r->n_quiet++] = (int32_t)c->eot;
}

static void canvases_make(struct run *r, const struct generation_input *in,
                          struct generation *out)
{
    for (size_t i = 0; i < r->batch; i++) {
        struct canvas *c = &r->canvas[i];
        *c = (struct canvas){.prompt = in[i].n, .len = in[i].n + r->how->gen_length,
                             .key = in[i].key, .live = 1, .g = &out[i]};
        c->token = mem_zero(c->len, sizeof *c->token);
        if (in[i].n)
            memcpy(c->token, in[i].ids, in[i].n * sizeof *c->token);
        for (size_t k = in[i].n; k < c->len; k++)
            c->token[k] = (int32_t)r->n->config.mask;
    }
}

/* Host arrays of one pass and the device memory. -1: device memory short. */
static int run_make(struct run *r, const struct generation_input *in, struct generation *out,
                    struct paper *paper)
{
    size_t rows = 0, longest = 0, wanted = r->batch * r->how->gen_length;
    for (size_t i = 0; i < r->batch; i++) {
        size_t len = in[i].n + r->how->gen_length;
        rows += len;
        longest = len > longest ? len : longest;
    }
    size_t twice = r->how->cfg_scale > 0 ? 2 : 1;
    r->block_steps = r->how->steps / (r->how->gen_length / r->how->block_length);
    r->budget = mem_zero(r->block_steps, sizeof *r->budget);
    schedule_uniform(r->how->block_length, r->block_steps, r->budget);
    suppressions(r);
    r->remask_seed = rng_derive(r->how->seed, "random remasking");
    r->canvas = mem_zero(r->batch, sizeof *r->canvas);
    canvases_make(r, in, out);
    r->token = mem_zero(2 * twice * rows, sizeof *r->token);
    r->pos = r->token + twice * rows;
    r->wanted = mem_zero(2 * wanted, sizeof *r->wanted);
    r->uncond = r->wanted + wanted;
    r->seq = mem_zero(twice * r->batch, sizeof *r->seq);
    r->member = mem_zero(r->batch, sizeof *r->member);
    r->first = mem_zero(r->batch + 1, sizeof *r->first);
    r->key = mem_zero(wanted, sizeof *r->key);
    r->answer = mem_zero(wanted, sizeof *r->answer);
    r->score = mem_zero(r->how->gen_length, sizeof *r->score);
    r->commit = mem_zero(r->how->gen_length, 1);
    *paper = paper_of(r->n, twice * rows, longest, wanted, 0);
    r->work = work_make(r->n, twice * rows, longest, wanted);
    return r->work ? 0 : -1;
}

static void run_free(struct run *r)
{
    for (size_t i = 0; i < r->batch; i++)
        free(r->canvas[i].token);
    free(r->canvas);
    free(r->budget);
    free(r->token);
    free(r->wanted);
    free(r->seq);
    free(r->member);
    free(r->first);
    free(r->key);
    free(r->answer);
    free(r->score);
    free(r->commit);
    work_free(r->work, r->n);
}

static size_t block_end(const struct run *r, const struct canvas *c)
{
    return c->prompt + (c->block + 1) * r->how->block_length;
}

/* The masked slots that may be committed now are wanted; row0 is the canvas's first row. */
static void want_masked(struct run *r, const struct canvas *c, size_t row0, size_t *wanted)
{
    for (size_t i = c->prompt; i < block_end(r, c); i++)
        if (c->token[i] == r->n->config.mask) {
            r->wanted[*wanted] = (int32_t)(row0 + i);
            r->key[(*wanted)++] = rng_at(c->key, c->g->n_steps, i - c->prompt);
        }
}

/* For CFG: the same rows again with the prompts masked, and each wanted row's twin. */
static void add_unconditional(struct run *r)
{
    size_t t = r->rows;
    for (size_t i = 0; i < r->parts; i++) {
        const struct canvas *c = r->member[i];
        r->seq[r->parts + i] = r->seq[i];
        for (size_t k = 0; k < c->len; k++, t++) {
            r->token[t] = k < c->prompt ? (int32_t)r->n->config.mask : c->token[k];
            r->pos[t] = (int32_t)k;
        }
    }
    for (size_t w = 0; w < r->first[r->parts]; w++)
        r->uncond[w] = r->wanted[w] + (int32_t)r->rows;
}

/* The rows of the next pass: every position of every live canvas. Returns how many are live. */
static size_t gather(struct run *r)
{
    size_t wanted = 0;
    r->rows = r->parts = 0;
    for (struct canvas *c = r->canvas; c < r->canvas + r->batch; c++) {
        if (!c->live)
            continue;
        r->first[r->parts] = wanted;
        want_masked(r, c, r->rows, &wanted);
        for (size_t k = 0; k < c->len; k++, r->rows++) {
            r->token[r->rows] = c->token[k];
            r->pos[r->rows] = (int32_t)k;
        }
        r->seq[r->parts] = (struct forward_seq){.rows = c->len};
        r->member[r->parts++] = c;
    }
    r->first[r->parts] = wanted;
    if (r->how->cfg_scale > 0)
        add_unconditional(r);
    return r->parts;
}

static void pass(struct run *r)
{
    int guided = r->how->cfg_scale > 0;
    struct forward f = {
        .token = r->token, .pos = r->pos, .seqs = r->seq,
        .n_seqs = guided ? 2 * r->parts : r->parts, .mask = MASK_FULL,
        .wanted = r->wanted, .n_wanted = r->first[r->parts],
        .uncond = guided ? r->uncond : NULL,
        .query = {.temperature = r->how->temperature, .seed = r->how->seed, .keys = r->key,
                  .cfg_scale = r->how->cfg_scale, .ban = r->ban, .n_ban = r->n_ban,
                  .quiet = r->quiet, .n_quiet = r->n_quiet},
    };
    forward(r->n, NULL, r->work, &f, r->answer, NULL);
}

/* Confidence of wanted row w. In double: near 1 floats tie where doubles do not. */
static double confidence(const struct run *r, size_t w)
{
    if (r->how->random_remasking)
        return rng_unit(rng_at(r->remask_seed, r->key[w], 0));
    return exp(r->answer[w].log_prob);
}

/* Part i's answers are in: the rule picks, the canvas takes. Returns how many slots were
 * written. */
static size_t commit(struct run *r, size_t i, size_t row0)
{
    struct canvas *c = r->member[i];
    size_t w0 = r->first[i], n = r->first[i + 1] - w0;
    for (size_t k = 0; k < n; k++)
        r->score[k] = confidence(r, w0 + k);
    size_t budget = c->step < r->block_steps ? r->budget[c->step] : 0;
    r->how->rule(r->score, n, budget, &r->how->unmask, r->commit);
    size_t written = 0;
    for (size_t k = 0; k < n; k++)
        if (r->commit[k]) {
            c->token[(size_t)r->wanted[w0 + k] - row0] = r->answer[w0 + k].id;
            written += r->answer[w0 + k].id != r->n->config.mask;
        }
    return written;
}

/* 1 when the block has had its last step. */
static int block_done(const struct run *r, const struct canvas *c)
{
    if (r->how->rule == unmask_schedule)
        return c->step == r->block_steps || r->budget[c->step] == 0;
    for (size_t i = c->prompt; i < block_end(r, c); i++)
        if (c->token[i] == r->n->config.mask)
            return c->step == r->how->block_length; /* mask ids were committed: no endless loop */
    return 1;
}

/* Lets the readable prefix grow over final slots (over all of them when `all`). Returns 1 when a
 * stop id has come into it. */
static int read_on(struct run *r, struct canvas *c, int all, int64_t now)
{
    size_t from = c->readable;
    int met = 0;
    const int32_t *slot = c->token + c->prompt;
    while (c->readable < r->how->gen_length &&
           (all || slot[c->readable] != r->n->config.mask))
        met |= generation_is_stop(&r->n->config, slot[c->readable++]);
    if (c->readable > from)
        generation_emit(c->g, now, (int32_t)(c->readable - from));
    return met;
}

static void end_canvas(struct run *r, struct canvas *c)
{
    struct generation *g = c->g;
    c->live = 0;
    g->n = g->bad ? 0 : c->readable;
    g->ids = mem_zero(g->n, sizeof *g->ids);
    memcpy(g->ids, c->token + c->prompt, g->n * sizeof *g->ids);
    generation_close(g, &r->n->config, 0);
}

static int any_bad(const struct run *r, size_t i)
{
    int bad = 0;
    for (size_t w = r->first[i]; w < r->first[i + 1]; w++)
        bad |= r->answer[w].bad;
    return bad;
}

/* One pass is over for part i, whose rows begin at row0. */
static void advance(struct run *r, size_t i, size_t row0, int64_t now)
{
    struct canvas *c = r->member[i];
    struct generation *g = c->g;
    generation_step(g, now);
    g->e2e_ns = now;
    g->denoise_steps++;
    g->canvas_positions += (int64_t)c->len;
    g->rows += (int64_t)(r->how->cfg_scale > 0 ? 2 * c->len : c->len);
    if ((g->bad = any_bad(r, i))) {
        end_canvas(r, c);
        return;
    }
    size_t written = commit(r, i, row0);
    if (written && !g->committed_tokens)
        g->first_commit_ns = now;
    g->committed_tokens += (int64_t)written;
    c->step++;
    if (block_done(r, c)) {
        g->first_block_ns = c->block == 0 ? now : g->first_block_ns;
        c->block++;
        c->step = 0;
    }
    int full = c->block * r->how->block_length == r->how->gen_length;
    if ((read_on(r, c, full, now) && r->how->stop_at_eos) || full)
        end_canvas(r, c);
}

void diffuse(const struct network *n, const struct diffuse *how,
             const struct generation_input *in, size_t batch, struct generation *out,
             struct batch_trace *trace)
{
    struct run r = {.n = n, .how = how, .batch = batch};
    int short_of_memory = run_make(&r, in, out, &trace->paper);
    trace->start_ns = clock_ns();
    while (!short_of_memory && !trace->interrupted && gather(&r)) {
        pass(&r);
        int64_t now = clock_ns() - trace->start_ns;
        for (size_t i = 0, row0 = 0; i < r.parts; row0 += r.seq[i++].rows)
            advance(&r, i, row0, now);
        trace->makespan_ns = now;
        trace->interrupted = how->stop && *how->stop;
    }
    for (size_t i = 0; i < batch && short_of_memory; i++)
        out[i].oom = 1;
    trace->memory = n->backend->memory;
    run_free(&r);
}
