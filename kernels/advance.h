/* advance.h - makes the rows of the next pass from the answers of a pass. It runs where the pass
 * ran: on the host in plain C (advance.c), on a device without the host (cuda/head/advance.cu).
 *
 * The host describes the first pass of a loop (struct rows) and the state of each text or canvas.
 * Then it only enqueues `pass, advance, pass, advance...`, fetches a copy of the states behind each
 * pass, and reads the copy while the next pass runs. When the rows must change otherwise (a text
 * has ended and leaves the batch; a canvas needs more rows than the pass has), the host waits,
 * describes a new first pass, and continues. Until then a finished text or canvas stays in the
 * passes: its rows are computed and ignored. */
#pragma once

#include <math.h>
#include <string.h>

#include "kernels/ops.h"
#include "kernels/order/orders.h"
#include "kernels/unmask/rules.h"
#include "lib/base/linkage.h"
#include "lib/base/philox.h"

enum { ADVANCE_STOPS = 33 }; /* ids that end a text: CONFIG_MAX_EOS, and end-of-turn */

/* The precision in which confidences are compared. Confidences are computed in double, then rounded
 * to it. Near 1, floats tie where doubles differ, and bf16 has no value between 0.996 and 1. */
#define ROUNDING_CHOICES "f64|f32|bf16" /* in the order of enum rounding */
enum rounding { ROUNDING_F64, ROUNDING_F32, ROUNDING_BF16 };
HOST_DEVICE double rounded_confidence(enum rounding r, double p)
{
    float x = (float)p;
    uint32_t bits;
    if (r != ROUNDING_BF16)
        return r == ROUNDING_F32 ? (double)x : p;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u; /* to nearest, ties to even */
    memcpy(&x, &bits, sizeof bits);
    return (double)x;
}

/* ---- texts: one token a pass (autoregression) ---- */

struct text_state {
    uint64_t key;             /* key of the text's random draws */
    int32_t first_slot;       /* position p is slot first_slot + p of the cache */
    int32_t prompt, len, max; /* ids of the prompt; ids so far; the maximum */
    int32_t last;             /* id len - 1 */
    int32_t live;             /* 0: ended */
    int32_t met_stop, bad;    /* why it ended; both 0: `max` ids */
};
/* All arrays are memory of the back end. Part i of the pass is the text member[i]. */
struct text_loop {
    size_t parts;
    const int32_t *member;         /* [parts] */
    struct text_state *text;       /* [B] */
    int32_t *out;                  /* [B, max_new] the ids generated so far */
    size_t max_new;
    const struct head_row *answer; /* [parts] answers of this pass */
    struct rows rows;              /* rows of the next pass: row i, wanted[i] and sequence i belong
                                    * to part i */
    int32_t stop[ADVANCE_STOPS];
    int32_t n_stop;                /* 0: no id ends a text */
};

/* The noise key for the next id of a text (index len). */
HOST_DEVICE uint64_t text_key(const struct text_state *t)
{
    return philox_at(t->key, (uint64_t)(t->len - t->prompt), 0);
}

HOST_DEVICE int is_stop(const int32_t *stop, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (stop[i] == id)
            return 1;
    return 0;
}

/* Takes the answer for a text: its id becomes the text's next id, or ends the text. */
HOST_DEVICE void text_take(const struct text_loop *l, int32_t member, const struct head_row *a)
{
    struct text_state *t = &l->text[member];
    if (t->live && a->bad) {
        t->live = 0;
        t->bad = 1;
    } else if (t->live && is_stop(l->stop, l->n_stop, a->id)) {
        t->live = 0;
        t->met_stop = 1;
    } else if (t->live) {
        l->out[(size_t)member * l->max_new + (size_t)(t->len - t->prompt)] = a->id;
        t->last = a->id;
        t->live = ++t->len < t->max;
    }
}

/* Takes the answer of part i, and writes the row of part i in the next pass. From the first pass
 * on, rows.slots (from seqs[i].slot_begin) must list all slots of the text in order, and
 * rows.slot_pos their positions; a pass reads the first n_slots entries. */
HOST_DEVICE void text_advance(const struct text_loop *l, size_t i)
{
    const struct text_state *t = &l->text[l->member[i]];
    text_take(l, l->member[i], &l->answer[i]);
    l->rows.token[i] = t->last;
    l->rows.pos[i] = t->len - 1;
    l->rows.slot[i] = t->first_slot + t->len - 1;
    l->rows.seqs[i].row_begin = (int32_t)i;
    l->rows.seqs[i].rows = 1;
    l->rows.seqs[i].n_slots = t->len;
    l->rows.wanted[i] = (int32_t)i;
    l->rows.key[i] = text_key(t);
}

/* ---- canvases: any number of tokens a pass (masked diffusion) ---- */

struct canvas_state {
    uint64_t key;
    int32_t first, prompt, len; /* the canvas is token[first .. first+len): prompt, gen_length
                                 * slots, and slots that fill the last block of the mask */
    int32_t block, step;        /* current block, and the number of its steps so far */
    int32_t more;               /* open blocks behind the current one: UNMASK_OPENS */
    int32_t shift;              /* prompt tokens in the first block; < block_length; 0 unless the
                                 * mask is block-causal */
    int32_t ahead;              /* slots after the current block that passes read */
    int32_t passes;             /* number of passes so far */
    int32_t readable;           /* slots before the first one that is not final */
    int32_t live;               /* 0: ended */
    int32_t bad;                /* 1: an answer was bad (NaN) */
    int32_t met_stop;           /* 1: a stop id is in the readable slots */
    int32_t written;            /* slots to which the last pass gave an id (not the mask) */
    int32_t remasked;           /* slots that the last pass turned back into masks */
    int32_t edited;             /* slots whose id the last pass replaced */
    int32_t done;               /* 1: the rule has ended the block (UNMASK_EDITS) */
    int32_t wanted;             /* slots that the next pass answers */
    int32_t held;               /* how many of the `wanted` slots hold an id; they come last */
    int32_t rows_block, rows_more; /* block and `more` when the rows were described */
    int32_t stalled;            /* 1: answers of passes in flight are ignored: the canvas needs more
                                 * than `capacity` answers, or rows of another block */
    double kept[UNMASK_KEPT];   /* memory of the rule, see struct offers */
};
/* All arrays are memory of the back end. Part i of the pass is the canvas member[i]. */
struct canvas_loop {
    size_t parts, capacity;        /* R = parts * capacity. Part i has answers from capacity * i on;
                                    * answers beyond canvas.wanted are ignored */
    const int32_t *member;         /* [parts] */
    struct canvas_state *canvas;   /* [B] */
    int32_t *token;                /* [sum of len] ids of all canvases */
    const int32_t *row_of;         /* [sum of len] row of each id in the pass; -1: none */
    const int32_t *check_of;       /* [sum of len] the row that checks an id which the rule may
                                    * revise; -1: none. NULL: the rule revises nothing */
    const int32_t *origin;         /* [T] index in token[] of row t's id; -1: it never changes */
    size_t T;                      /* rows of the pass */
    int32_t twin;                  /* CFG: rows.uncond[w] = wanted[w] + twin; 0: no CFG */
    int32_t compares;              /* 1: rows.uncond[w] = index of the last pass's answer about the
                                    * same slot; 0 if there is none */
    const struct head_row *answer; /* [R] answers of this pass */
    struct rows rows;              /* rows of the next pass; only token, wanted, uncond, key
                                    * change */
    int32_t *asked;                /* [R] the id that each answer is about; -1: none */
    int32_t *target;               /* [R] with check_of: the id in the slot of each answer
                                    * (head_query.target) */
    const struct head_top *top;    /* UNMASK_TOPS: [R] most likely ids of each answer; or NULL */
    const float *map, *mean;       /* UNMASK_LINKED: as in struct linked; or NULL */
    size_t map_stride;
    struct slot_kept *slot;        /* [sum of len] the rule's memory of slots; NULL: none */
    int32_t gen_length, block_length, block_steps;
    const int32_t *budget;         /* [block_steps] budget of each step */
    int32_t block_pace;            /* distance of blocks in budget[]; 0: blocks share one budget */
    int32_t mask;                  /* the mask id */
    int32_t lag;                   /* 1: the row before a slot's row answers about it */
    int32_t seeds;                 /* block length of the mask, or 0. > 0: if a block starts where
                                    * a block of the mask starts, the first pass of the block asks
                                    * only about the block's first slot. The row before that slot
                                    * answers. 0: every pass asks about all slots */
    int32_t from_end;              /* 1: blocks of the mask count from the end of the prompt; 0:
                                    * from the first id */
    enum order order;
    enum unmask rule;
    enum rounding rounding;        /* precision of confidences */
    struct unmask_params params;
    uint64_t order_seed;           /* seed of draws of the order */
    double order_temperature;      /* > 0: slots are drawn by softmax(score / this); 0: the best */
    int32_t per_block;             /* 1: rows serve only the block for which they were described */
    int32_t stop_at_eos;
    int32_t stop[ADVANCE_STOPS], n_stop;
};

/* The index of the end of the open blocks, counted from the canvas's first id. */
HOST_DEVICE int32_t canvas_block_end(const struct canvas_loop *l, const struct canvas_state *c)
{
    int32_t slots = (c->block + 1 + c->more) * l->block_length - c->shift;
    return c->prompt + (slots < c->len - c->prompt ? slots : c->len - c->prompt);
}

/* The first slot of the current block, from the canvas's first id. */
HOST_DEVICE int32_t canvas_block_begin(const struct canvas_loop *l, const struct canvas_state *c)
{
    int32_t slots = c->block * l->block_length - c->shift;
    return c->prompt + (slots > 0 ? slots : 0);
}

/* The noise key for slot i (from the canvas's first id) in the next pass. */
HOST_DEVICE uint64_t canvas_key(const struct canvas_state *c, int32_t i)
{
    return philox_at(c->key, (uint64_t)c->passes, (uint64_t)(i - c->prompt));
}

/* 1 if the block begins with a pass that only seeds it. A seeding pass does not count as a step. */
HOST_DEVICE int canvas_seeded(const struct canvas_loop *l, const struct canvas_state *c)
{
    return l->seeds > 0 &&
           (canvas_block_begin(l, c) - (l->from_end ? c->prompt : 0)) % l->seeds == 0;
}

/* 1 if the next pass only seeds the block. */
HOST_DEVICE int canvas_seeds_now(const struct canvas_loop *l, const struct canvas_state *c)
{
    return canvas_seeded(l, c) && c->step == 0;
}

/* 1: the row before a slot's own row answers about the slot; 0: the slot's own row does. */
HOST_DEVICE int32_t canvas_lag(const struct canvas_loop *l, const struct canvas_state *c)
{
    return l->lag || canvas_seeds_now(l, c);
}

/* The end of the slots that the next pass asks about. */
HOST_DEVICE int32_t canvas_ask_end(const struct canvas_loop *l, const struct canvas_state *c)
{
    return canvas_seeds_now(l, c) ? canvas_block_begin(l, c) + 1 : canvas_block_end(l, c);
}

/* 1 if slot i (from the canvas's first id) is masked and the pass has a row for it. */
HOST_DEVICE int canvas_open(const struct canvas_loop *l, const struct canvas_state *c, int32_t i)
{
    return l->token[c->first + i] == l->mask && l->row_of[c->first + i - canvas_lag(l, c)] >= 0;
}

/* The first slot that may hold an id the rule asks about. */
HOST_DEVICE int32_t canvas_held_begin(const struct canvas_loop *l, const struct canvas_state *c)
{
    return unmask_has(l->rule, UNMASK_LINKED) ? 0 : canvas_block_begin(l, c);
}

/* 1 if slot i holds an id that the rule asks about, and the pass has a row that answers. */
HOST_DEVICE int canvas_held(const struct canvas_loop *l, const struct canvas_state *c, int32_t i)
{
    return l->check_of && i >= canvas_held_begin(l, c) && l->token[c->first + i] != l->mask &&
           l->check_of[c->first + i - canvas_lag(l, c)] >= 0;
}

/* The last pass's answer about `id` if the block has had a pass; -1 otherwise, or if id is -1. */
HOST_DEVICE int32_t canvas_before(const struct canvas_loop *l, const struct canvas_state *c,
                                  int32_t id)
{
    return id >= 0 && c->step > 0 ? unmask_klass_before(&l->slot[id], c->passes) : -1;
}

/* rows.uncond for the next answer, which is about `id` (-1: none) and computed at `row`. */
HOST_DEVICE int32_t canvas_beside(const struct canvas_loop *l, const struct canvas_state *c,
                                  int32_t id, int32_t row)
{
    if (!l->compares)
        return row + l->twin;
    int32_t before = canvas_before(l, c, id);
    return before < 0 ? 0 : before;
}

/* Lets answer w of the next pass be about `slot`. held 1: the slot has an id. slot -1: the answer
 * is about no slot, and comes from an arbitrary row. */
HOST_DEVICE void canvas_ask(const struct canvas_loop *l, const struct canvas_state *c, size_t w,
                            int32_t slot, int held)
{
    int32_t id = c->first + slot, at = id - canvas_lag(l, c); /* the id whose row answers */
    int32_t row = slot < 0 ? 0 : held ? l->check_of[at] : l->row_of[at];
    l->asked[w] = slot < 0 ? -1 : id;
    l->rows.wanted[w] = row;
    if (l->twin || l->compares)
        l->rows.uncond[w] = canvas_beside(l, c, l->asked[w], row);
    l->rows.key[w] = slot < 0 ? 0 : canvas_key(c, slot);
    if (l->check_of)
        l->target[w] = held ? l->token[id] : 0;
}

/* 1 if the next pass has no rows for the canvas's current block. */
HOST_DEVICE int canvas_behind(const struct canvas_loop *l, const struct canvas_state *c)
{
    return c->live && l->per_block &&
           (c->block != c->rows_block || c->more != c->rows_more);
}

/* The index of the current step in the budget. A seeding pass has index 0. */
HOST_DEVICE int32_t canvas_step(const struct canvas_loop *l, const struct canvas_state *c)
{
    return c->step > 0 ? c->step - canvas_seeded(l, c) : 0;
}

HOST_DEVICE struct linked canvas_links(const struct canvas_loop *l, const struct canvas_state *c)
{
    const struct linked links = {l->map, l->mean, l->row_of, l->map_stride, c->first};
    return links;
}

/* The probability that a rule compares for answer w about a slot with an id: that of the answer if
 * the rule has UNMASK_EDITS or UNMASK_LINKED, else that of the id in the slot. */
HOST_DEVICE double canvas_held_confidence(const struct canvas_loop *l, size_t w)
{
    return unmask_has(l->rule, UNMASK_EDITS | UNMASK_LINKED)
               ? rounded_confidence(l->rounding, exp(l->answer[w].log_prob))
               : exp(l->answer[w].target_log_prob);
}

/* 1 if the slot of answer w depends on a slot with a known id whose best token has a probability of
 * at least the threshold (kernels/unmask/dawn.h). */
HOST_DEVICE int canvas_induced(const struct canvas_loop *l, const struct canvas_state *c, size_t w)
{
    const struct linked links = canvas_links(l, c);
    const size_t w0 = w / l->capacity * l->capacity, end = w0 + (size_t)c->wanted;
    for (size_t k = end - (size_t)c->held; k < end; k++)
        if (canvas_held_confidence(l, k) >= l->params.threshold &&
            unmask_dawn_depends(&links, l->asked, w, k, l->params.dawn_sink, l->params.dawn_edge))
            return 1;
    return 0;
}

/* The rule's reading (struct reading) of answer w about a masked slot. */
HOST_DEVICE struct reading canvas_read(const struct canvas_loop *loop,
                                       const struct canvas_state *canvas, size_t w)
{
    struct slot_kept *slot = loop->slot ? &loop->slot[loop->asked[w]] : NULL;
    if (loop->compares)
        unmask_klass_note(slot, w, canvas->passes,
                          canvas_before(loop, canvas, loop->asked[w]) >= 0 &&
                              (double)loop->answer[w].divergence < loop->params.kl_threshold);
    if (loop->top)
        unmask_less_note(slot, &loop->top[w], canvas_step(loop, canvas) == 0,
                         loop->params.less_drift, loop->params.less_history);
    if (loop->map)
        slot->id[DAWN_INDUCED] = canvas_induced(loop, canvas, w);
    struct reading said = unmask_read(loop->rule, &loop->params, &loop->answer[w], slot);
    if (said.id == loop->mask && unmask_has(loop->rule, UNMASK_CHECKS))
        said.id = loop->answer[w].runner_up; /* a draft has no mask: only full blocks are checked */
    said.confidence = rounded_confidence(loop->rounding, said.confidence);
    return said;
}

/* The score that the order gives answer w. With Gumbel noise on the scores, taking the best ones is
 * a draw without replacement. */
HOST_DEVICE double canvas_score(const struct canvas_loop *l, size_t w, double confidence)
{
    const struct candidate c = {&l->answer[w], confidence, l->order_seed, l->rows.key[w]};
    double score = order_score(l->order, &c);
    if (!(l->order_temperature > 0))
        return score;
    double u = philox_unit(philox_at(l->order_seed, l->rows.key[w], 1)) + 0x1p-54; /* never 0 */
    return score / l->order_temperature - log(-log(u));
}

/* The budget of the current step; canvas_step() must be below block_steps. */
HOST_DEVICE int32_t canvas_budget(const struct canvas_loop *l, const struct canvas_state *c)
{
    return l->budget[c->block * l->block_pace + canvas_step(l, c)];
}

/* Calls the rule. Puts the answers that become final first in pick[], returns their number, and
 * writes the *backs slots to revise from pick[wanted - held] on. Answers start at w0. */
HOST_DEVICE size_t canvas_takes(const struct canvas_loop *loop, struct canvas_state *canvas,
                                size_t w0, const double *confidence, int32_t *pick, size_t *backs)
{
    struct offers offers;
    *backs = 0;
    canvas->done = 0;
    offers.n = (size_t)(canvas->wanted - canvas->held);
    offers.m = (size_t)canvas->held;
    offers.answer = loop->answer + w0;
    offers.confidence = confidence;
    offers.pick = pick;
    offers.back = pick + offers.n;
    offers.backs = backs;
    offers.done = &canvas->done;
    offers.token = loop->token;
    offers.asked = loop->asked + w0;
    offers.first = canvas->first + canvas->prompt;
    offers.slot = loop->slot;
    offers.block = canvas->block;
    offers.step = canvas_step(loop, canvas);
    offers.steps = loop->block_steps;
    offers.slots = loop->block_length;
    offers.shift = canvas->shift;
    offers.ahead = canvas->ahead;
    offers.budget = canvas_step(loop, canvas) < loop->block_steps
                        ? (size_t)canvas_budget(loop, canvas)
                        : 0;
    offers.links = canvas_links(loop, canvas);
    offers.key = philox_at(canvas->key, (uint64_t)canvas->passes, UINT64_MAX);
    offers.kept = canvas->kept;
    return unmask_count(loop->rule, &loop->params, &offers);
}

/* Revises the slot that an entry of offers.back names (w0: the canvas's first answer). Returns 1 if
 * it now has another id, 0 if it has a mask. */
HOST_DEVICE int canvas_revise(const struct canvas_loop *l, size_t w0, int32_t back)
{
    const size_t w = w0 + (size_t)(back < 0 ? ~back : back);
    const int32_t id = back >= 0 && unmask_has(l->rule, UNMASK_EDITS) ? l->answer[w].id : l->mask;
    l->token[l->asked[w]] = id;
    return id != l->mask;
}

/* 1 if the block has had its last step. masks: masked slots up to its end. A rule that does not
 * edit needs at most one step a slot, because it commits more slots than it masks again. */
HOST_DEVICE int canvas_block_done(const struct canvas_loop *l, const struct canvas_state *c,
                                  int32_t masks)
{
    if (unmask_has(l->rule, UNMASK_EDITS))
        return c->done || canvas_step(l, c) == l->block_steps;
    if (unmask_paced(l->rule))
        return canvas_step(l, c) == l->block_steps || masks == 0 ||
               (canvas_budget(l, c) == 0 && !unmask_has(l->rule, UNMASK_IDLES));
    /* the model may commit the mask id itself: no endless loop */
    return masks == 0 || canvas_step(l, c) == l->block_length;
}

/* Extends the readable prefix over final slots, or over all slots if `all`. If the rule revises,
 * slots of the current block are not final. */
HOST_DEVICE void canvas_read_on(const struct canvas_loop *l, struct canvas_state *c, int all)
{
    const int32_t *slot = l->token + c->first + c->prompt;
    const int revises = unmask_has(l->rule, UNMASK_REVISES) != 0;
    int32_t end = revises && !all ? canvas_block_begin(l, c) - c->prompt : l->gen_length;
    while (c->readable < end && (all || slot[c->readable] != l->mask))
        c->met_stop |= is_stop(l->stop, l->n_stop, slot[c->readable++]);
}

/* The number of masked slots of block b; *slots = the number of all its slots. */
HOST_DEVICE int32_t canvas_masks(const struct canvas_loop *l, const struct canvas_state *c,
                                 int32_t b, int32_t *slots)
{
    struct canvas_state one = *c;
    int32_t masks = 0;
    one.block = b;
    one.more = 0;
    const int32_t begin = canvas_block_begin(l, &one), end = canvas_block_end(l, &one);
    for (int32_t i = begin; i < end; i++)
        masks += l->token[c->first + i] == l->mask;
    *slots = end - begin;
    return masks;
}

/* 1 if an open block has a stop id that ends the answer: slots behind it are not needed. */
HOST_DEVICE int canvas_stops(const struct canvas_loop *l, const struct canvas_state *c)
{
    const int32_t end = canvas_block_end(l, c);
    int32_t i = l->stop_at_eos ? canvas_block_begin(l, c) : end;
    while (i < end && !is_stop(l->stop, l->n_stop, l->token[c->first + i]))
        i++;
    return i < end;
}

/* Ends full blocks at the front of the open ones. Then opens a block behind the last open one, if
 * that one is filled to open_share and no stop id ends the answer, or if that one has ended. */
HOST_DEVICE void canvas_open_on(const struct canvas_loop *l, struct canvas_state *c)
{
    int32_t slots, last = c->block + c->more, masks = canvas_masks(l, c, last, &slots);
    const int opens = (double)(slots - masks) / slots >= l->params.open_share &&
                      !canvas_stops(l, c);
    while (c->block <= last &&
           (canvas_masks(l, c, c->block, &slots) == 0 || c->step == l->block_length)) {
        c->block++;
        c->step = 0;
    }
    if ((opens || c->block > last) && (last + 1) * l->block_length - c->shift < l->gen_length)
        last++;
    c->more = last > c->block ? last - c->block : 0;
}

/* Ends the step of a live canvas after its answers are committed: counts the step, and may end the
 * block or the canvas. masks: as in canvas_block_done(). The caller then asks for the next pass. */
HOST_DEVICE void canvas_settle(const struct canvas_loop *loop, struct canvas_state *canvas,
                               int32_t masks)
{
    int seeds = canvas_ask_end(loop, canvas) < canvas_block_end(loop, canvas);
    canvas->passes++;
    canvas->step++;
    if (unmask_has(loop->rule, UNMASK_OPENS)) {
        canvas_open_on(loop, canvas);
    } else if (!seeds && canvas_block_done(loop, canvas, masks)) {
        canvas->block++;
        canvas->step = 0;
    }
    int full = canvas->block * loop->block_length - canvas->shift >= loop->gen_length;
    canvas_read_on(loop, canvas, full);
    /* all gen_length slots are final */
    full |= !unmask_has(loop->rule, UNMASK_REVISES) && canvas->readable == loop->gen_length;
    if (full || (canvas->met_stop && loop->stop_at_eos))
        canvas->live = 0;
}

C_BEGIN
/* On the host: writes wanted, uncond, key, asked and target of part i for the next pass, and
 * canvas.wanted, held and stalled. For the first pass the host calls it on copies of the arrays. */
void advance_ask(const struct canvas_loop *loop, size_t i);
C_END
