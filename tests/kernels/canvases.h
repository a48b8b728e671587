/* canvases.h - runs four canvases with prompts of 0, 2, 4 and 6 tokens in one loop of advance.h,
 * with made-up answers. */
#pragma once

#include "kernels/advance.h"
#include "kernels/host.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

enum { MASK = 1, EOS = 2, VOCAB = 12, CANVASES = 4 };

struct way {
    const char *name;
    enum unmask rule;
    struct unmask_params params;
    int32_t gen, block, steps; /* steps of a block */
    enum order order;
    int stop, guided, bad;
};

/* The made-up answer of the head to slot s (from the end of the prompt) of canvas i in its pass,
 * with many equal confidences, mask ids and stop ids. */
static struct head_row answer_of(const struct way *y, int32_t i, int32_t pass, int32_t s)
{
    uint64_t h = rng_at(77, (uint64_t)i << 32 | (uint64_t)pass, (uint64_t)s);
    static const double steps[] = {0.99, 0.95, 0.9, 0.7, 0.5, 0.0};
    struct head_row a = {.id = (int32_t)(1 + h % VOCAB)};
    a.log_prob = log(steps[h >> 20 & 3 ? (h >> 24) % 5 : 5]);
    if (y->rule == UNMASK_SCHEDULE && a.id == MASK)
        a.id = h >> 40 & 3 ? 3 : MASK;
    a.prob = (float)exp(a.log_prob);
    a.best_log_prob = a.log_prob;
    a.runner_up_prob = (float)(h >> 50 & 7) / 16;
    a.entropy = (float)(h >> 53 & 7) / 4;
    a.bad = y->bad && pass == 2 && i == 1 && s % 3 == 1;
    return a;
}

/* One canvas alone, computed in the plainest way: no shared states, no rows, no order except that
 * the best remaining answer is picked. */
struct alone {
    int32_t token[64];
    int32_t prompt, block, step, passes, readable, written;
    uint64_t key;
    int live, bad, met;
};

/* All canvases in one loop, with the arrays of the loop. */
struct together {
    struct canvas_loop l;
    struct canvas_state canvas[CANVASES];
    int32_t member[CANVASES], token[256], row_of[256], origin[512];
    int32_t row_token[512], wanted[512], uncond[512], budget[64], asked[512], target[512];
    struct slot_kept slot[256];
    uint64_t key[512];
    struct head_row answer[512];
};

/* Lays the rows of the parts one after another, then the unconditional rows of all parts. */
static void lay_rows(struct together *t, const struct way *y)
{
    int32_t rows = 0, twins = 0;
    for (size_t i = 0; i < t->l.parts; i++)
        rows += t->canvas[t->member[i]].len;
    for (int32_t k = 0; k < 256; k++)
        t->row_of[k] = -1;
    for (size_t i = 0; i < t->l.parts; i++) {
        const struct canvas_state *c = &t->canvas[t->member[i]];
        for (int32_t k = 0; k < c->len; k++, twins++) {
            t->row_of[c->first + k] = twins;
            t->origin[twins] = c->first + k;
            t->row_token[twins] = t->token[c->first + k];
            t->origin[rows + twins] = k < c->prompt ? -1 : c->first + k;
            t->row_token[rows + twins] = k < c->prompt ? MASK : t->token[c->first + k];
        }
    }
    t->l.twin = y->guided ? rows : 0;
    t->l.T = (size_t)(y->guided ? 2 * rows : rows);
    for (size_t i = 0; i < t->l.parts; i++)
        advance_ask(&t->l, i);
}

/* Describes the first pass of the live canvases, with room for all their questions. */
static void describe(struct together *t, const struct way *y)
{
    t->l.parts = 0;
    for (int32_t i = CANVASES - 1; i >= 0; i--) /* members need not be in order */
        if (t->canvas[i].live) {
            t->member[t->l.parts++] = i;
            if ((size_t)t->canvas[i].wanted > t->l.capacity)
                t->l.capacity = (size_t)t->canvas[i].wanted;
        }
    lay_rows(t, y);
}

static void begin(struct together *t, struct alone *alone, const struct way *y)
{
    int32_t first = 0;
    *t = (struct together){0};
    t->l = (struct canvas_loop){.capacity = (size_t)y->block, .member = t->member,
        .canvas = t->canvas, .token = t->token, .row_of = t->row_of, .origin = t->origin,
        .answer = t->answer, .rows = {.token = t->row_token, .wanted = t->wanted,
        .uncond = t->uncond, .key = t->key}, .asked = t->asked, .target = t->target,
        .check_of = unmask_has(y->rule, UNMASK_REVISES) ? t->row_of : NULL,
        .slot = unmask_has(y->rule, UNMASK_KEEPS) ? t->slot : NULL,
        .gen_length = y->gen, .block_length = y->block, .block_steps = y->steps,
        .budget = t->budget, .mask = MASK, .rule = y->rule, .params = y->params,
        .order = y->order, .stop_at_eos = y->stop, .order_seed = 5, .stop = {EOS}, .n_stop = 1};
    for (int32_t s = 0; s < y->steps; s++)
        t->budget[s] = y->block / y->steps + (s < y->block % y->steps);
    for (int32_t i = 0; i < CANVASES; i++) {
        struct alone *a = &alone[i];
        *a = (struct alone){.prompt = 2 * i, .key = 100 + (uint64_t)i, .live = 1};
        for (int32_t k = 0; k < a->prompt + y->gen; k++)
            a->token[k] = k < a->prompt ? 50 + k : MASK;
        t->canvas[i] = (struct canvas_state){.key = a->key, .first = first, .prompt = a->prompt,
                                             .len = a->prompt + y->gen, .live = 1};
        memcpy(t->token + first, a->token, (size_t)t->canvas[i].len * sizeof *a->token);
        first += t->canvas[i].len;
    }
    describe(t, y);
}

/* Fills in the answers to the questions; other places get answers that must be ignored. */
static void answer_all(struct together *t, const struct way *y)
{
    for (size_t i = 0; i < t->l.parts; i++) {
        const struct canvas_state *c = &t->canvas[t->member[i]];
        for (size_t k = 0; k < t->l.capacity; k++) {
            size_t w = i * t->l.capacity + k;
            int32_t slot = t->asked[w] - c->first - c->prompt;
            t->answer[w] = (struct head_row){.id = 11, .bad = 1, .log_prob = 1};
            if (c->live && k < (size_t)c->wanted)
                t->answer[w] = answer_of(y, t->member[i], c->passes, slot);
        }
    }
}
